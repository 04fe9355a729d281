"""Counts of rows, and of what became of them: of a chunk, a bucket or a whole conversion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any, Self

NESTED, FILTERED = "nested", "filtered"


@dataclass(slots=True)
class Counts:
    """Counts of rows by result.

    Attributes:
        rows: Rows that were read.
        questions: Documents made.
        answers: Answers inside them.
        strays: Posts that no document holds, by reason.
        other_types: Posts that are neither questions nor answers, by the name of the type.
        filtered: Posts that were left out on purpose.
        dropped: Of these, posts that a list of users or posts names.
        repaired: Characters replaced by U+FFFD.
        records: Records made of the documents, where a recipe makes some.
        without_record: Documents of which none was made.
        tables: By table, the number of rows that were `nested` or `filtered`, and of strays by
            reason.
    """

    rows: int = 0
    questions: int = 0
    answers: int = 0
    strays: Counter[str] = field(default_factory=Counter)
    other_types: Counter[str] = field(default_factory=Counter)
    filtered: int = 0
    dropped: int = 0
    repaired: int = 0
    records: int = 0
    without_record: int = 0
    tables: dict[str, Counter[str]] = field(default_factory=dict)

    def __iadd__(self, more: Counts) -> Self:
        for name in _NUMBERS:
            setattr(self, name, getattr(self, name) + getattr(more, name))
        self.strays.update(more.strays)
        self.other_types.update(more.other_types)
        for table, counts in more.tables.items():
            self.tables.setdefault(table, Counter()).update(counts)
        return self

    def __add__(self, more: Counts) -> Counts:
        return Counts.total((self, more))

    @classmethod
    def total(cls, counts: Iterable[Counts]) -> Counts:
        """The sum of any number of counts."""
        result = cls()
        for more in counts:
            result += more
        return result

    def to_json(self) -> dict[str, Any]:
        """All fields by name, in JSON types."""
        numbers = {name: getattr(self, name) for name in _NUMBERS}
        tables = {table: dict(counts) for table, counts in self.tables.items()}
        by_name = {"strays": dict(self.strays), "other_types": dict(self.other_types)}
        return {**numbers, **by_name, "tables": tables}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Counts:
        """Parse the result of `to_json`."""
        by_name = {name: Counter(values[name]) for name in ("strays", "other_types")}
        tables = {table: Counter(counts) for table, counts in values["tables"].items()}
        return cls(**{**values, **by_name, "tables": tables})


_NUMBERS = tuple(one.name for one in fields(Counts) if one.type == "int")


@dataclass(slots=True)
class ChunkTally:
    """Counts and facts of a parsed chunk.

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
        """Parse the result of `to_json`, as an object or as JSON."""
        first_questions = {int(post): first for post, first in values["first_questions"].items()}
        counts = Counts.from_json(values["counts"])
        return cls(counts, values["lines"], values["last_id"], first_questions)
