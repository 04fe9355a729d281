"""Write segments of documents to the files of an output, each complete by itself.

Header, documents, separators and footer of a file are separate segments, so that none depends on
its neighbours. Files split by number are written one after another; files split by date or share
grow at the same time, as the documents arrive. All files are renamed together, after the last one
is complete.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace

from so2docs.errors import OutputError, flag
from so2docs.options.split import MOST_FILES, UNDATED
from so2docs.options.table import Options
from so2docs.output import formats
from so2docs.output.compression import trailer_bytes
from so2docs.output.file import Output
from so2docs.output.new_files import NewFiles
from so2docs.output.paths import OutputPaths
from so2docs.output.provenance import Provenance
from so2docs.output.segments import Segment
from so2docs.report import Report

_MORE_SEGMENTS = 3
"""Segments that a file may still get: a separator, a segment of documents, and the footer."""


class Writer:
    """Writes the files of an output.

    Args:
        files: The new files, to which each file is added once it is complete.
        provenance: Provenance of the output, without counts.
        names: The paths of the output.
        options: The options, including the form of the output.
        cuts: First question id of each file but the first, ascending, for files split by number.
    """

    def __init__(
        self,
        files: NewFiles,
        provenance: Provenance,
        names: OutputPaths,
        options: Options,
        *,
        cuts: tuple[int, ...],
    ) -> None:
        self._new_files = files
        self._names = names
        self._provenance = provenance
        self._form = options.form
        self._format = formats.of(options)
        self._between_bytes = self._format.segment(self._format.between).size
        self._cuts = cuts
        self._files: dict[str, Output] = {}  # The unfinished files by label.
        self._finished: list[tuple[str, int]] = []

    def append(self, segment: Segment) -> None:
        """Append a segment to its file."""
        if self._form.split.is_by_question:
            file = self._find(segment.label or UNDATED)
        else:
            number = bisect_right(self._cuts, segment.first_id)
            while len(self._finished) < number or not self._has_room(segment):
                self._end(self._next_label())
            file = self._find(self._next_label())
        self._add(file, self._format.between if file.journal.count else self._format.header)
        file.append(segment)

    def _add(self, file: Output, raw: bytes) -> None:
        if raw:
            file.append(self._format.segment(raw))

    def _has_room(self, segment: Segment) -> bool:
        """Whether a segment fits within the size limit, or the next file is still empty."""
        limit, journal = self._form.split.size, self._find(self._next_label()).journal
        if limit is None or not journal.count:
            return True
        end = trailer_bytes(self._form.compression, journal.count + _MORE_SEGMENTS)
        end += self._format.footer_bytes(journal, segment)
        return journal.end + self._between_bytes + segment.size + end <= limit

    def seal(self, report: Report) -> list[tuple[str, int]]:
        """End the remaining files; return the path and the size of each file."""
        if self._form.split.shares is not None:
            report.empty_shares = [
                name
                for name, _ in self._form.split.ends
                if name not in self._files or not self._files[name].journal.documents
            ]
        if not self._form.split:
            self._provenance = self._provenance.with_counts(report)
        if self._form.split.is_by_question:
            labels = {name for name, _ in self._form.split.ends} | self._files.keys()
            for label in sorted(labels or {UNDATED}):  # Without documents, write one empty file.
                self._end(label)
            return self._finished
        while len(self._finished) < len(self._cuts):
            self._end(self._next_label())
        self._end(self._next_label())
        return self._with_total() if self._form.has_total else self._finished

    def _with_total(self) -> list[tuple[str, int]]:
        """Add the number of files, known only now, to the final name of each file."""
        total, named = len(self._finished), []
        for number, (path, size) in enumerate(self._finished):
            named.append((self._names.file(f"{number:05}-of-{total:05}"), size))
            self._new_files.change_name(path, named[-1][0])
        return named

    def _next_label(self) -> str:
        """Return the label of the first file that is not finished."""
        return f"{len(self._finished):05}" if self._form.split else ""

    def _find(self, label: str) -> Output:
        """Return the unfinished file with a label; create it if it is new."""
        if label in self._files:
            return self._files[label]
        path, form = self._names.file(label), self._form
        if len(self._files) == MOST_FILES:
            raise OutputError(
                f"{self._names.output}: {flag('split', form.split.by)} would create more than "
                f"{MOST_FILES:,} files from the dates in this dump; split by a number of files, "
                f"as in {flag('split', '100files')}"
            )
        file = Output(self._new_files, path, form.compression, indexed=form.is_indexed)
        self._files[label] = file
        return file

    def _end(self, label: str) -> None:
        """Append the footer of a file, and finish it."""
        file, record = self._find(label), self._provenance
        if self._form.split:
            record = replace(record, counts={"documents": file.journal.documents})
        if not file.journal.count:
            self._add(file, self._format.header)
        self._add(file, self._format.footer(file.journal, record.to_json()))
        # The record of a split output has the checksums of its files.
        is_inside = bool(label) and self._format.holds_record
        size = file.seal(b"" if is_inside else record.to_json())
        self._finished.append((file.path, size))
        del self._files[label]
