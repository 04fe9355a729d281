"""How far the second pass has come: what the spill keeps, so that another session resumes there."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from so2docs.counts import Counts
from so2docs.output.document_file import WriterProgress
from so2docs.output.file import FileProgress
from so2docs.output.part_files import CompleteFile
from so2docs.output.paths import OutputPaths
from so2docs.output.writer import publish_all
from so2docs.report import Report


@dataclass(slots=True)
class Checkpoint:
    """The state of the second pass.

    Attributes:
        next_id: Question id that comes next; None at the start.
        output: State of the writer.
        strays: State of the side file.
        counts: What became of the rows so far, as far as the second pass tells.
    """

    next_id: int | None = None
    output: WriterProgress | None = None
    strays: FileProgress | None = None
    counts: Counts = field(default_factory=Counts)

    def to_json(self) -> dict[str, Any]:
        """All fields by name, in JSON types."""
        output, strays = (
            None if state is None else asdict(state) for state in (self.output, self.strays)
        )
        counts = self.counts.to_json()
        return {"next_id": self.next_id, "output": output, "strays": strays, "counts": counts}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Checkpoint:
        """What `to_json` returned."""
        return cls(
            values["next_id"],
            WriterProgress.from_json(values["output"]),
            FileProgress.from_json(values["strays"]),
            Counts.from_json(values["counts"]),
        )

    def files(self, names: OutputPaths) -> list[tuple[str, FileProgress | None]]:
        """The files so far, each with how far it has come."""
        output = [] if self.output is None else self.output.files(names)
        return [*output, (names.strays, self.strays)]


@dataclass(slots=True)
class FinalizedOutput:
    """A second pass that has written all: what is left to do is to give the files their names.

    Attributes:
        report: Of the conversion.
        files: The output files.
        strays: The side file; None if there is none.
    """

    report: Report
    files: list[CompleteFile]
    strays: CompleteFile | None = None

    def to_json(self) -> dict[str, Any]:
        """All fields by name, in JSON types only."""
        return {**asdict(self), "report": self.report.as_dict()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> FinalizedOutput:
        """What `to_json` returned."""
        files = [CompleteFile.from_json(file) for file in values["files"]]
        strays = values["strays"] and CompleteFile.from_json(values["strays"])
        return cls(Report.from_dict(values["report"]), files, strays)

    def publish(self, names: OutputPaths) -> None:
        """Give the files their names.

        Raises:
            LostFileError: One is lost; none of the others gets its name then.
            OutputError: A name cannot be given.
        """
        publish_all(names, self.files, self.strays)
