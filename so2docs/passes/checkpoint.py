"""How far the second pass has come: what the spill keeps, so that another session resumes there."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from so2docs.merge import Tally
from so2docs.nest import Counts, added
from so2docs.output.document_file import Finished, WriterProgress
from so2docs.output.file import FileProgress
from so2docs.output.paths import Names
from so2docs.output.writer import publish_all
from so2docs.report import Report


@dataclass(slots=True)
class Checkpoint:
    """The state of the second pass.

    Attributes:
        next_id: Question id that comes next; None at the start.
        output: State of the writer.
        strays: State of the side file.
        questions: Documents written.
        answers: Answers nested in them.
        stray_reasons: Strays written, of the second pass only, by reason.
        filtered: Posts left out, by the second pass only.
        tables: What became of the rows of other tables.
        records: Records written, where a recipe makes some.
        without_record: Documents of which none was made.
    """

    next_id: int | None = None
    output: WriterProgress | None = None
    strays: FileProgress | None = None
    questions: int = 0
    answers: int = 0
    stray_reasons: dict[str, int] = field(default_factory=dict)
    filtered: int = 0
    tables: Counts = field(default_factory=dict)
    records: int = 0
    without_record: int = 0

    def to_json(self) -> dict[str, Any]:
        """All fields by name."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Checkpoint:
        """What `to_json` returned."""
        found = cls(**values)
        found.output = WriterProgress.from_json(values["output"])
        found.strays = FileProgress.from_json(values["strays"])
        return found

    def files(self, names: Names) -> list[tuple[str, FileProgress | None]]:
        """The files so far, each with how far it has come."""
        output = [] if self.output is None else self.output.files(names)
        return [*output, (names.strays, self.strays)]

    def add(self, tally: Tally) -> None:
        """Add what a range of question ids became."""
        self.questions += tally.questions
        self.answers += tally.answers
        self.filtered += tally.filtered
        self.records += tally.records
        self.without_record += tally.without_record
        self.stray_reasons = dict(Counter(self.stray_reasons) + tally.strays)
        self.tables = added(self.tables, tally.tables)

    def add_left_out(self, posts: int, tables: Counts) -> None:
        """Add what no task looked at."""
        self.filtered += posts
        self.tables = added(self.tables, tables)

    def add_to(self, report: Report) -> None:
        """Complete the report."""
        report.questions, report.answers = self.questions, self.answers
        report.filtered += self.filtered
        if report.recipe is not None:
            report.records, report.without_record = self.records, self.without_record
        strays = Counter(report.strays) + Counter(self.stray_reasons)
        report.strays = dict(sorted(strays.items()))
        for name, counts in self.tables.items():
            report.tables[name].add(counts)


@dataclass(slots=True)
class Sealed:
    """A second pass that has written all: what is left to do is to give the files their names.

    Attributes:
        report: Of the conversion.
        files: The output files.
        strays: The side file; None if there is none.
        index: The index beside the output; None if there is none.
    """

    report: Report
    files: list[Finished]
    strays: Finished | None = None
    index: Finished | None = None

    def to_json(self) -> dict[str, Any]:
        """All fields by name, in JSON types only."""
        return {**asdict(self), "report": self.report.as_dict()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Sealed:
        """What `to_json` returned."""
        files = [Finished(**file) for file in values["files"]]
        side_files = values["strays"], values["index"]
        strays, index = (None if file is None else Finished(**file) for file in side_files)
        return cls(Report.from_dict(values["report"]), files, strays, index)

    def damaged(self, names: Names) -> str | None:
        """A file that is not as an earlier session sealed it, if one is; reads all of them."""
        found = [(names.file(file.label), file) for file in self.files]
        found += [(names.strays, self.strays)] if self.strays else []
        found += [(names.index, self.index)] if self.index else []
        return next((path for path, file in found if not file.is_intact(path)), None)

    def publish(self, names: Names) -> str | None:
        """Give the files their names.

        Returns:
            A file that is lost, if one is; none of the others gets its name then.
        """
        stray_bytes = self.strays.size if self.strays else 0
        lost = publish_all(names, self.files, stray_bytes)
        if lost is None and not stray_bytes:
            names.remove_earlier_strays()
        return lost
