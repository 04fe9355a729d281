"""Apply changes to an output; both are read once, in ascending order of question id."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from so2docs.changes.changes_file import (
    VERSION,
    ChangeReader,
    Header,
    Line,
    OutputIdentity,
    SegmentIdentity,
    Side,
    compression_level,
)
from so2docs.changes.compare import OPERATIONS
from so2docs.counts import Counts, plural
from so2docs.errors import OutputError
from so2docs.output.compression import SEGMENT_BYTES
from so2docs.output.file import Target
from so2docs.output.new_files import NewFiles
from so2docs.output.part_files import explain_errors, part_path
from so2docs.output.paths import OutputPaths
from so2docs.output.product import Product
from so2docs.output.provenance import UP_TO_DATE, Comparison, File, Provenance, make_record
from so2docs.progress import bar
from so2docs.reader.collection import open as open_output


@dataclass(frozen=True, slots=True)
class Patched(Counts):
    """The result of a patch.

    Attributes:
        path: Path of the new output.
        documents: Number of documents in the new output.
        added: Number of documents that are only in the new output.
        changed: Number of documents that differ between the outputs.
        deleted: Number of documents that are only in the old output.
        is_verified: Whether the result is byte for byte the new output that `diff` read. False if
            the changes do not identify that output.
    """

    path: str
    documents: int
    added: int
    changed: int
    deleted: int
    is_verified: bool

    def columns(self) -> dict[str, int | float]:
        """Return this patch's row of a table of several sites."""
        names = ("added", "changed", "deleted")
        return {"questions": self.documents, **{name: getattr(self, name) for name in names}}

    def __str__(self) -> str:
        verified = ", identical to the new output that diff read" if self.is_verified else ""
        return (
            f"{self.path}: {plural(self.documents, 'question')} ({self.added:,} added, "
            f"{self.changed:,} changed, {self.deleted:,} deleted){verified}"
        )


def patch(
    old: str | os.PathLike[str],
    changes: str | os.PathLike[str],
    new: str | os.PathLike[str],
    *,
    update: bool = False,
    force: bool = False,
    progress: bool = False,
) -> Patched:
    """Apply changes to an output, unless the new output is up to date.

    The result is byte for byte the new output that `diff` read. Changes written with `only` or
    `ignore`, or by another program, do not identify that output: the result then has the changed
    documents, but not the same segments.

    Args:
        old: The old output.
        changes: File that `diff` wrote in the format `changes`; `-` is standard input.
        new: Name of the new output; its extension determines the compression.
        update: Replace an output made with other changes.
        force: Overwrite an existing file.
        progress: Show a progress bar.

    Returns:
        The numbers of documents, and whether the result was verified.

    Raises:
        OutputError: A file cannot be read or written, or exists already, or the changes are damaged
            or belong to another output.
    """
    old, new, reader = os.fspath(old), os.fspath(new), ChangeReader(os.fspath(changes))
    return PatchedOutput(old, reader, new, progress=progress).build(force=force, update=update)


class PatchedOutput(Product[Patched]):
    """A patched output as a product; its record is that of the new output that `diff` read.

    If the changes do not identify that output, a record is written next to the patched output.
    """

    def __init__(
        self, old: str, changes: ChangeReader, new: str, *, progress: bool = False
    ) -> None:
        self._output = None if changes.header is None else changes.header.new
        read = {"old": old, "changes": changes.path}
        files = [File.of(role, path) for role, path in read.items()]
        super().__init__(new, make_record("patch", VERSION, {}, files), read.values())
        self._old, self._changes, self._progress = old, changes, progress

    def _is_expected(self, identity: OutputIdentity) -> bool:
        output = self._output
        return output is not None and identity == (output.size, output.tail)

    def compare(self) -> Comparison:
        """Compare the existing file with the new output that the changes identify."""
        if self._output is None or self.path == "-" or not os.path.exists(self.path):
            return super().compare()
        if self._is_expected(OutputIdentity.of_file(self.path)):
            return Comparison(UP_TO_DATE)
        return Comparison("another input", f", and differs from the result of {self._changes.path}")

    def load(self, records: list[Provenance]) -> Patched:
        """Return the recorded result of an earlier run, or count the changes again."""
        if self._output is None:
            return Patched(path=self.path, **records[0].counts)
        header = self._changes.header
        documents = sum(segment.documents for segment in header.segments) if header else 0
        done = Counter(dict.fromkeys(map(str, OPERATIONS), 0))
        done.update(change.operation for change in self._changes)
        return Patched(self.path, documents, **done, is_verified=True)

    def counts(self, result: Patched) -> dict[str, Any] | None:
        """Return the counts; None if the output has the record of a conversion."""
        values = result.as_dict()
        return None if self._output is not None else {n: values[n] for n in values if n != "path"}

    def make(self, files: NewFiles) -> Patched:
        """Merge the old output and the changes into the new output.

        Raises:
            OutputError: The changes do not belong to the old output, or a file cannot be written.
        """
        old, new, reader, output = self._old, self.path, self._changes, self._output
        with open_output(old, progress=self._progress) as source:
            if reader.header is not None and reader.header.old != OutputIdentity.of(source):
                raise OutputError(
                    f"{old}: is not the output that {reader.path} was made from; "
                    "apply the changes to the right output, or compare again"
                )
            total = sum(entry.size for entry in source.index)
            level = output.level if output is not None else compression_level(source)
            with bar("patching", total, shown=self._progress) as progress_bar:
                with Target(files, new, level=level, indexed=True) as target:
                    target.record = b"" if output is None else output.record
                    done = dict.fromkeys(map(str, OPERATIONS), 0)
                    segments = _PatchedSegments(target, reader.header, reader.path)
                    segments.write(_merge(Side(source, progress_bar.update), reader, done))
                is_verified = False
                if new != "-":
                    part = part_path(new)
                    with explain_errors(part):
                        is_verified = self._is_expected(OutputIdentity.of_file(part))
                    files.outdate(*OutputPaths(new, None).side_files)
        return Patched(new, segments.documents, **done, is_verified=is_verified)


def _merge(old: Side, changes: ChangeReader, done: dict[str, int]) -> Iterator[Line]:
    """Yield the documents of the new output, and count the changes in `done`."""
    for number, operation, question_id, document in changes:
        while (line := old.current()) is not None and line[0] < question_id:
            yield line
            old.advance()
        is_there = line is not None and line[0] == question_id
        if is_there == (operation == "added"):
            has = "already has" if is_there else "has no"
            raise OutputError(
                f"{changes.path}: line {number:,}: question {question_id} is {operation}, but "
                f"{old.output.path} {has} such a question; apply the changes to the output that "
                "they were made from"
            )
        done[operation] += 1
        if operation != "deleted":
            yield question_id, document
        if is_there:
            old.advance()
    while (line := old.current()) is not None:
        yield line
        old.advance()


class _PatchedSegments:
    """Groups lines into segments: those in the header, or else segments of the usual size."""

    def __init__(self, target: Target, header: Header | None, changes: str) -> None:
        self.documents = 0
        self._target, self._changes = target, changes
        self._expected = deque(header.segments) if header and header.new else None
        self._first_id = self._held = self._size = 0

    def write(self, lines: Iterator[Line]) -> None:
        """Write all lines to the target, segment by segment."""
        for question_id, line in lines:
            if self._held and self._is_start(question_id):
                self.end()
            if not self._held:
                self._first_id = question_id
            self._size = self._target.hold(line + b"\n")
            self._held += 1
            self.documents += 1
        if self._held:
            self.end()

    def _is_start(self, question_id: int) -> bool:
        """Whether this question starts a segment."""
        if self._expected is None:
            return self._size >= SEGMENT_BYTES
        return len(self._expected) > 1 and self._expected[1].first_id == question_id

    def end(self) -> None:
        """End the current segment, and compare it with the header.

        Raises:
            OutputError: The segment is not the one in the header.
        """
        identity = SegmentIdentity(
            self._first_id, self._held, self._target.end_segment(self._first_id, self._held)
        )
        if self._expected is not None and self._expected.popleft() != identity:
            raise OutputError(
                f"{self._changes}: the documents from question {self._first_id} on do not match "
                "the output that the changes were made from; compare the outputs again"
            )
        self._held = self._size = 0
