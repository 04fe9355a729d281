"""How far the second pass has come: what the spill keeps, so that another session goes on."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from so2docs.merge import Tally
from so2docs.nest import Counts, added
from so2docs.report import Report


@dataclass(slots=True)
class Checkpoint:
    """The state of the second pass, in JSON types only.

    Attributes:
        next_id: Question id that comes next; None at the start.
        output: State of the writer.
        strays: State of the side file.
        questions: Documents written.
        answers: Answers nested in them.
        stray_reasons: Strays written, of the second pass only, by reason.
        filtered: Posts left out, by the second pass only.
        tables: What became of the rows of other tables.
    """

    next_id: int | None = None
    output: dict[str, Any] | None = None
    strays: dict[str, int] | None = None
    questions: int = 0
    answers: int = 0
    stray_reasons: dict[str, int] = field(default_factory=dict)
    filtered: int = 0
    tables: Counts = field(default_factory=dict)

    def left(self, limit: int | None) -> int | None:
        """Documents left to write of so many."""
        return None if limit is None else limit - self.questions

    def add(self, tally: Tally) -> None:
        """Add what a range of question ids became."""
        self.questions += tally.questions
        self.answers += tally.answers
        self.filtered += tally.filtered
        self.stray_reasons = dict(Counter(self.stray_reasons) + tally.strays)
        self.tables = added(self.tables, tally.tables)

    def complete(self, report: Report) -> None:
        """Complete the report, and check that every row went somewhere."""
        report.questions, report.answers = self.questions, self.answers
        report.filtered += self.filtered
        strays = Counter(report.strays) + Counter(self.stray_reasons)
        report.strays = dict(sorted(strays.items()))
        for name, counts in self.tables.items():
            report.tables[name].add(counts)
        report.check()
