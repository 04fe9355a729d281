"""Counts of a chunk: the numbers that are committed with its blocks."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(slots=True)
class ChunkTally:
    """Counts of a chunk.

    Attributes:
        rows: Rows, whatever became of them.
        lines: Line feeds.
        last_id: `Id` of the last row that has one.
        repaired: Characters replaced by U+FFFD.
        strays: Rows without a usable key, by reason.
        other_types: Posts that are neither questions nor answers, by type.
        first_questions: Post ids under several questions, each with the first of them.
        filtered: Rows that a filter has rejected.
    """

    rows: int = 0
    lines: int = 0
    last_id: int | None = None
    repaired: int = 0
    strays: dict[str, int] = field(default_factory=dict)
    other_types: dict[int, int] = field(default_factory=dict)
    first_questions: dict[int, int] = field(default_factory=dict)
    filtered: int = 0

    def to_json(self) -> dict[str, Any]:
        """All fields by name; in JSON, numbers that are keys become texts."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> ChunkTally:
        """What `to_json` returned, before or after it was JSON."""
        found = cls(**values)
        found.other_types = _by_number(found.other_types)
        found.first_questions = _by_number(found.first_questions)
        return found


def _by_number(counts: dict[int, int]) -> dict[int, int]:
    return {int(number): count for number, count in counts.items()}
