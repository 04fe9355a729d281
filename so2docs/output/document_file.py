"""Segments of documents -> one file, or several, each of them whole.

Header, documents, separators and footer of a file are segments of their own, so that none depends
on its neighbours. Files by number are written one after the other, those by date as the documents
come. They get their final names together, when the last one is whole.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from so2docs.errors import OutputError, flag
from so2docs.options.option import bounds
from so2docs.options.table import MOST_FILES, UNDATED, Options, OutputForm
from so2docs.output import formats
from so2docs.output.file import FileProgress, Output
from so2docs.output.formats import Format
from so2docs.output.index import index_path as index_of
from so2docs.output.part_files import CompleteFile, Copy, explain_errors, publish, remove
from so2docs.output.paths import OutputPaths
from so2docs.output.provenance import Provenance
from so2docs.output.segments import Segment
from so2docs.report import Report

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
        """Parse the result of `to_json`."""
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
        """Whether a segment fits within a size limit, or the file is still empty."""
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


_MOST_OPEN = 32
"""Files that are open at a time; others are opened again where a document belongs there."""


class Writer:
    """Writes the output.

    Args:
        names: Where it goes.
        options: In what form.
        cuts: Question ids that start another file, in ascending order; for files by number.
        resume: A checkpoint of an earlier session, of files that are all as it says.
        provenance: Provenance of the output, without counts; None to record nothing.
        settle: Called before a file ends, to copy what `append` returned.

    Raises:
        OutputError: A file cannot be written.
    """

    def __init__(
        self,
        names: OutputPaths,
        options: Options,
        cuts: tuple[int, ...] = (),
        resume: WriterProgress | None = None,
        provenance: Provenance | None = None,
        *,
        settle: Callable[[], None] = lambda: None,
    ) -> None:
        self._names = names
        self._settle = settle
        self._provenance = provenance
        self._form = options.form
        self._format = formats.of(options)
        self._cuts = cuts
        self._finished = [
            file.as_verified(names.file(file.label)) for file in (resume.finished if resume else [])
        ]
        self._files: dict[str, DocumentFile] = {}
        self._open: dict[str, DocumentFile] = {}  # In the order in which they were last used.
        for file in resume.unfinished if resume else []:
            self._file(file.label, file)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *exception: object) -> None:
        for file in self._open.values():
            file.close()

    def append(self, segment: Segment) -> list[Copy]:
        """Append a segment, in the file where it belongs.

        Returns:
            What is to be copied before a file ends.
        """
        if self._form.is_by_question:
            return self._file(segment.period or UNDATED).append(segment)
        number = bisect_right(self._cuts, segment.first_id)
        while len(self._finished) < number or not self._next().takes(
            segment, self._form.split_size
        ):
            self._end(self._next())
        return self._next().append(segment)

    def checkpoint(self) -> WriterProgress:
        """How far the files have come."""
        files = [file.checkpoint() for file in self._files.values()]
        return WriterProgress(list(self._finished), files)

    def seal(self, report: Report) -> list[CompleteFile]:
        """End the last files; what is left to do is to give all their names.

        Args:
            report: Of the conversion, complete but for what the files are.
        """
        if self._provenance is not None and not self._form.is_split:
            self._provenance = self._provenance.with_counts(report)
        if self._form.is_by_question:
            if self._form.split_share is not None:
                for name, _ in bounds(self._form.split_share):
                    self._file(name)
            elif not self._files:  # Of no documents, one file all the same.
                self._file(UNDATED)
            for label in sorted(self._files):
                self._end(self._file(label))
            return list(self._finished)
        while len(self._finished) < len(self._cuts):
            self._end(self._next())
        self._end(self._next())
        return list(self._finished)

    def _next(self) -> DocumentFile:
        """The file of the next number."""
        return self._file(f"{len(self._finished):05}" if self._form.is_split else "")

    def _file(self, label: str, resume: PartialFile | None = None) -> DocumentFile:
        """A file, made if it is new; few are open at a time."""
        if label not in self._files:
            if len(self._files) == MOST_FILES:
                raise OutputError(
                    f"{self._names.output}: {flag('split_by', self._form.split_by)} makes more "
                    f"than {MOST_FILES:,} files of the dates in this dump; split by a number "
                    f"of files, as in {flag('split_files', 100)}"
                )
            path = self._names.file(label)
            self._files[label] = DocumentFile(path, label, self._form, self._format, resume=resume)
        file = self._open[label] = self._open.pop(label, self._files[label])
        if len(self._open) > _MOST_OPEN:
            self._open.pop(next(iter(self._open))).close()
        return file

    def _end(self, file: DocumentFile) -> None:
        self._settle()
        provenance = self._provenance
        if provenance is not None and self._form.is_split:
            provenance = provenance.of_part(file.documents)
        self._finished.append(file.end(b"" if provenance is None else provenance.to_json()))
        del self._files[file.label], self._open[file.label]


def publish_all(
    names: OutputPaths, files: Sequence[CompleteFile], strays: CompleteFile | None = None
) -> None:
    """Give finished files their names, and remove what is left of an earlier output.

    Args:
        names: Where the conversion writes.
        files: Its files.
        strays: The side file for strays, if there are any.

    Raises:
        LostFileError: A file is lost; none of the others gets its name then.
        OutputError: A name cannot be given.
    """
    named_files = [] if strays is None else [(names.strays, strays)]
    if names.output == "-":
        publish(named_files)
        return
    named_files += [(names.file(file.label), file) for file in files]
    paths = [path for name, file in named_files for path, _ in file.all_files(name)]
    publish(named_files)
    earlier = [path for path in names.earlier_files() if path not in paths]
    outdated = [*names.side_files, *earlier, *map(index_of, earlier)]
    for path in set(outdated) - set(paths):
        with explain_errors(path):
            remove(path)
    names.remove_temporaries()
