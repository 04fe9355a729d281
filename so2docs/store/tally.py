"""Counts of a chunk: the numbers that are committed with its blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from so2docs.counts import Counts


@dataclass(slots=True)
class ChunkTally:
    """What is known of a chunk that was read.

    Attributes:
        counts: Its rows, and what became of them so far.
        lines: Line feeds.
        last_id: `Id` of the last row that has one.
        first_questions: Post ids under several questions, each with the first of them.
    """

    counts: Counts = field(default_factory=Counts)
    lines: int = 0
    last_id: int | None = None
    first_questions: dict[int, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """All fields by name; in JSON, numbers that are keys become texts."""
        return {
            "counts": self.counts.to_json(),
            "lines": self.lines,
            "last_id": self.last_id,
            "first_questions": self.first_questions,
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> ChunkTally:
        """What `to_json` returned, before or after it was JSON."""
        first_questions = {int(post): first for post, first in values["first_questions"].items()}
        counts = Counts.from_json(values["counts"])
        return cls(counts, values["lines"], values["last_id"], first_questions)
