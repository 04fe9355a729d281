"""An output and its changes -> the new output. Both are read once, in ascending question id."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from so2docs.changes.changes_file import (
    ChangeReader,
    Header,
    Line,
    OutputIdentity,
    SegmentIdentity,
    Side,
    Target,
    compression_level,
)
from so2docs.errors import OutputError
from so2docs.output.compression import SEGMENT_BYTES
from so2docs.output.new_files import NewFiles
from so2docs.output.part_files import explain_errors, part_path
from so2docs.output.paths import OutputPaths
from so2docs.progress import bar
from so2docs.reader.collection import Collection
from so2docs.reader.collection import open as open_output


@dataclass(frozen=True, slots=True)
class Patched:
    """The result of a patch.

    Attributes:
        path: The new output.
        documents: Documents in it.
        added: Of those, documents that the old output did not have.
        changed: Of those, documents that the old output had in another state.
        deleted: Documents that only the old output has.
        is_verified: Whether the new output was found to be, byte for byte, the one that the
            changes were made from; else nothing says what that was.
    """

    path: str
    documents: int
    added: int
    changed: int
    deleted: int
    is_verified: bool

    def as_dict(self) -> dict[str, Any]:
        """All fields in JSON types."""
        return asdict(self)

    def __str__(self) -> str:
        verified = ", checked against what the changes were made from" if self.is_verified else ""
        return (
            f"{self.path}: {self.documents:,} questions ({self.added:,} added, "
            f"{self.changed:,} changed, {self.deleted:,} deleted){verified}"
        )


def patch(
    old: str | os.PathLike[str],
    changes: str | os.PathLike[str],
    new: str | os.PathLike[str],
    *,
    force: bool = False,
    progress: bool = False,
) -> Patched:
    """Apply changes to an output.

    The new output has the bytes of the one that `diff` made the changes from. Changes that `diff`
    wrote with `only` or `ignore`, or that another program wrote, do not say which that is: then
    the lines are right, in segments of their own.

    Args:
        old: The old output.
        changes: What `diff` wrote in the format `changes`; `-` is standard input.
        new: File for the new output; its name says the compression.
        force: Overwrite an existing file.
        progress: Show a progress bar.

    Returns:
        What was done.

    Raises:
        OutputError: A file cannot be read or written, exists already, the changes are damaged, or
            they belong to another output than the old one.
    """
    old, changes, new = os.fspath(old), os.fspath(changes), os.fspath(new)
    reader = ChangeReader(changes)
    header = reader.header
    with open_output(old, progress=progress) as source:
        if header is not None and header.old != OutputIdentity.of(source):
            raise OutputError(
                f"{old}: is not the output that {changes} was made from; "
                "apply the changes to that one, or compare again"
            )
        total = sum(entry.size for entry in source.index)
        output = header.new if header is not None else None
        level = output.level if output is not None else compression_level(source)
        inputs = [name for name in (old, changes) if name != "-"]
        with bar("patching", total, shown=progress) as progress_bar, NewFiles() as files:
            with Target(files, new, inputs, force=force, level=level, indexed=True) as target:
                target.record = b"" if output is None else output.record
                work = _Patch(source, reader, progress_bar.update)
                segments = _PatchedSegments(target, header, changes)
                segments.write(work.lines())
            is_verified = False
            if new != "-":
                is_verified = output is not None and _written(new) == (output.size, output.tail)
                files.outdate(*OutputPaths(new, None).side_files)
    return Patched(new, segments.documents, **work.done, is_verified=is_verified)


def _written(new: str) -> OutputIdentity:
    """Which output a file is that gets its name soon."""
    part = part_path(new)
    with explain_errors(part):
        return OutputIdentity.of_file(part)


class _Patch:
    """Two streams, merged."""

    def __init__(self, old: Collection, changes: ChangeReader, read: Any) -> None:
        self.done = {"added": 0, "changed": 0, "deleted": 0}
        self._old, self._changes = Side(old, read), changes

    def lines(self) -> Iterator[Line]:
        """The documents of the new output."""
        old = self._old
        for number, operation, question_id, document in self._changes:
            while (line := old.current()) is not None and line[0] < question_id:
                yield line
                old.advance()
            is_there = line is not None and line[0] == question_id
            if is_there == (operation == "added"):
                has = "already has" if is_there else "has no"
                raise OutputError(
                    f"{self._changes.path}: line {number:,}: question {question_id} is "
                    f"{operation}, but {old.output.path} {has} such a question; apply the "
                    "changes to the output that they were made from"
                )
            self.done[operation] += 1
            if operation != "deleted":
                yield question_id, document
            if is_there:
                old.advance()
        while (line := old.current()) is not None:
            yield line
            old.advance()


class _PatchedSegments:
    """Lines -> segments of the new output: those of the header, or of the usual size."""

    def __init__(self, target: Target, header: Header | None, changes: str) -> None:
        self.documents = 0
        self._target, self._changes = target, changes
        self._expected = deque(header.segments) if header and header.new else None
        self._first_id = self._held = self._size = 0

    def write(self, lines: Iterator[Line]) -> None:
        """Write all lines."""
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
        """Whether a segment starts with this question."""
        if self._expected is None:
            return self._size >= SEGMENT_BYTES
        return len(self._expected) > 1 and self._expected[1].first_id == question_id

    def end(self) -> None:
        """End a segment."""
        identity = SegmentIdentity(
            self._first_id, self._held, self._target.end_segment(self._first_id, self._held)
        )
        if self._expected is not None and self._expected.popleft() != identity:
            raise OutputError(
                f"{self._changes}: the documents from question {self._first_id} on do not match "
                "the output that the changes were made from; compare the outputs again"
            )
        self._held = self._size = 0
