"""How far the second pass has come: what the spill keeps, so that another session resumes there."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from so2docs.counts import Counts
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

    def files(self, names: Names) -> list[tuple[str, FileProgress | None]]:
        """The files so far, each with how far it has come."""
        output = [] if self.output is None else self.output.files(names)
        return [*output, (names.strays, self.strays)]


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
