"""Segments of documents -> the files of an output, each of them whole.

Header, documents, separators and footer of a file are segments of their own, so that none depends
on its neighbours. Files by number are written one after the other, those by date as the documents
come. They get their final names together, when the last one is whole.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

from so2docs.errors import OutputError, flag
from so2docs.options.option import bounds
from so2docs.options.table import MOST_FILES, UNDATED, Options
from so2docs.output import formats
from so2docs.output.compression import trailer_bytes
from so2docs.output.file import Output
from so2docs.output.index import index_path as index_of
from so2docs.output.part_files import FileState, explain_errors, publish, remove
from so2docs.output.paths import OutputPaths
from so2docs.output.provenance import Provenance
from so2docs.output.segments import Copy, Segment
from so2docs.report import Report

_MOST_OPEN = 32
"""Files that are open at a time; others are opened again where a document belongs there."""

_MORE_SEGMENTS = 3
"""Segments that a file may still get: a separator, one of documents, and the footer."""


class Writer:
    """Writes the output.

    Args:
        names: Where it goes.
        options: In what form.
        cuts: Question ids that start another file, in ascending order; for files by number.
        resume: The files of a checkpoint of an earlier session, which are all as it says.
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
        resume: Iterable[FileState] = (),
        provenance: Provenance | None = None,
        *,
        settle: Callable[[], None] = lambda: None,
    ) -> None:
        self._names = names
        self._settle = settle
        self._provenance = provenance
        self._form = options.form
        self._format = formats.of(options)
        self._between_bytes = self._format.segment(self._format.between).size
        self._cuts = cuts
        self._finished: list[FileState] = []
        self._files: dict[str, Output] = {}
        self._open: dict[str, Output] = {}  # In the order in which they were last used.
        for file in resume:
            if file.is_whole:
                self._finished.append(file.as_verified(names.file(file.label)))
            else:
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
            file = self._file(segment.label or UNDATED)
        else:
            number = bisect_right(self._cuts, segment.first_id)
            while len(self._finished) < number or not self._has_room(self._next(), segment):
                self._end(self._next())
            file = self._next()
        self._add(file, self._format.between if file.journal.count else self._format.header)
        return file.place(segment)

    def _has_room(self, file: Output, segment: Segment) -> bool:
        """Whether a segment fits within the size limit, or the file is still empty."""
        most, journal = self._form.split_size, file.journal
        if most is None or not journal.count:
            return True
        end = trailer_bytes(self._form.compression, journal.count + _MORE_SEGMENTS)
        end += self._format.footer_bytes(journal, segment)
        return journal.size + self._between_bytes + segment.size + end <= most

    def _add(self, file: Output, raw: bytes) -> None:
        if raw:
            file.append(self._format.segment(raw))

    def checkpoint(self) -> list[FileState]:
        """How far the files have come."""
        return [*self._finished, *(file.checkpoint() for file in self._files.values())]

    def seal(self, report: Report) -> list[FileState]:
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

    def _next(self) -> Output:
        """The file of the next number."""
        return self._file(f"{len(self._finished):05}" if self._form.is_split else "")

    def _file(self, label: str, resume: FileState | None = None) -> Output:
        """A file, made if it is new; few are open at a time."""
        if label not in self._files:
            if len(self._files) == MOST_FILES:
                raise OutputError(
                    f"{self._names.output}: {flag('split_by', self._form.split_by)} makes more "
                    f"than {MOST_FILES:,} files of the dates in this dump; split by a number "
                    f"of files, as in {flag('split_files', 100)}"
                )
            self._files[label] = Output(
                self._names.file(label),
                self._form.compression,
                resume,
                label=label,
                indexed=self._form.is_indexed,
            )
        file = self._open[label] = self._open.pop(label, self._files[label])
        if len(self._open) > _MOST_OPEN:
            self._open.pop(next(iter(self._open))).close()
        return file

    def _end(self, file: Output) -> None:
        self._settle()
        if not file.journal.count:
            self._add(file, self._format.header)
        provenance = self._provenance
        if provenance is not None and self._form.is_split:
            provenance = provenance.of_file(file.journal.documents)
        record = b"" if provenance is None else provenance.to_json()
        self._add(file, self._format.footer(file.journal, record))
        self._finished.append(file.seal(b"" if self._format.holds_record else record))
        del self._files[file.label], self._open[file.label]


def publish_all(
    names: OutputPaths, files: Sequence[FileState], strays: FileState | None = None
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
    named_files += [(names.file(file.label), file) for file in files]
    publish(named_files)
    if names.output == "-":
        return
    paths = [path for name, file in named_files for path, _ in file.all_files(name)]
    earlier = [path for path in names.earlier_files() if path not in paths]
    outdated = [*names.side_files, *earlier, *map(index_of, earlier)]
    for path in set(outdated) - set(paths):
        with explain_errors(path):
            remove(path)
    names.remove_temporaries()
