"""One file of the output: its header, documents with their separators, its footer.

Each of these is a segment of its own, so that none depends on its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from so2docs.options.table import OutputForm
from so2docs.output.file import FileProgress, Output
from so2docs.output.formats import Format
from so2docs.output.part_files import CompleteFile, Copy
from so2docs.output.paths import OutputPaths
from so2docs.output.segments import Segment

_MORE_SEGMENTS = 3
"""What a file gets besides what it has: a separator, a segment, and the footer."""


@dataclass(slots=True, frozen=True)
class PartialFile:
    """A file that grows.

    Attributes:
        label: What of its name is its own.
        is_begun: Whether it has its header.
        output: How far it has come.
    """

    label: str
    is_begun: bool
    output: FileProgress


@dataclass(slots=True, frozen=True)
class WriterProgress:
    """How far the files have come: what a checkpoint keeps, in JSON types only.

    Attributes:
        finished: The files that are whole, in order.
        unfinished: Those that are not.
    """

    finished: list[CompleteFile]
    unfinished: list[PartialFile]

    def to_json(self) -> dict[str, Any]:
        """All fields by name."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> WriterProgress:
        """What `to_json` returned."""
        unfinished = [
            PartialFile(file["label"], file["is_begun"], FileProgress.from_json(file["output"]))
            for file in values["unfinished"]
        ]
        return cls([CompleteFile.from_json(file) for file in values["finished"]], unfinished)

    def files(self, names: OutputPaths) -> Iterator[tuple[str, FileProgress]]:
        """The files so far, each with a checkpoint of its own for `matches_checkpoint`."""
        for whole in self.finished:
            for path, complete in whole.all_files(names.file(whole.label)):
                yield path, FileProgress(complete.size, complete.crc or 0)
        for file in self.unfinished:
            yield names.file(file.label), file.output


class DocumentFile:
    """A file that grows.

    Args:
        path: Its name.
        label: What of that is its own.
        form: The form of the output.
        format_: The format of the documents.
        resume: A checkpoint of an earlier session, if it is as that says.

    Raises:
        OutputError: It cannot be written.
    """

    def __init__(
        self,
        path: str,
        label: str,
        form: OutputForm,
        format_: Format,
        *,
        resume: PartialFile | None = None,
    ) -> None:
        self.label = label
        self._format = format_
        self._is_begun = bool(resume and resume.is_begun)
        self._between_bytes = len(format_.segment(format_.between).data)
        self._output = Output(
            path,
            form.compression,
            resume.output if resume else None,
            indexed=form.is_indexed,
            logs=True,
        )

    def append(self, segment: Segment) -> list[Copy]:
        """Append a segment of documents; returns what is to be copied before the file ends."""
        self._add(self._format.between if self._is_begun else self._format.header)
        self._is_begun = True
        return self._output.place(segment)

    def takes(self, segment: Segment, most: int | None) -> bool:
        """Whether it holds at most so many bytes with one more segment, or is still empty."""
        if most is None or not self._is_begun:
            return True
        after = self._format.footer_bytes(self._output.journal, segment)
        data_bytes = self._between_bytes + segment.size + after
        return self._output.size_with(_MORE_SEGMENTS, data_bytes) <= most

    def checkpoint(self) -> PartialFile:
        """How far it has come."""
        return PartialFile(self.label, self._is_begun, self._output.checkpoint())

    @property
    def documents(self) -> int:
        """Documents so far."""
        return sum(entry.documents for entry in self._output.journal)

    def end(self, record: bytes) -> CompleteFile:
        """End it; what is left to do is to give it its name.

        Args:
            record: How it was made.
        """
        if not self._is_begun:
            self._add(self._format.header)
        self._add(self._format.footer(self._output.journal, record))
        return self._output.seal(b"" if self._format.holds_record else record, self.label)

    def close(self) -> None:
        """Give the open file back; more can be appended."""
        self._output.file.close()

    def _add(self, raw: bytes) -> None:
        if raw:
            self._output.append(self._format.segment(raw))
