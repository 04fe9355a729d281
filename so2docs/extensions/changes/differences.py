"""Find the lines that differ between two outputs.

Both outputs are read once, a segment of each at a time. Equal segments that start at the same
question are skipped without parsing, and usually without decompression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import orjson

from so2docs.errors import OutputError
from so2docs.output.segments import Segment
from so2docs.reader.collection import Collection

_ID = re.compile(rb'\{"Id":(-?\d{1,18})[,}]')

Line = tuple[int, bytes]
"""Question id, and the document as a line of JSON without a line feed."""

_END: Line = (1 << 64, b"")
"""Stands for the line after the last one; its id is larger than any other."""


class Side:
    """Reads one of the two outputs from start to end."""

    def __init__(self, output: Collection, read: Callable[[int], object]) -> None:
        self.output = output
        self.segment = 0
        self._read = read
        self._lines: Iterator[Line] = iter(())
        self._last_id: int | None = None
        self._line = _END

    def next_entry(self) -> Segment | None:
        """Return the next segment; None at the end, or if the open segment has lines left."""
        if self._line is not _END or self.segment == self.output.index.segments:
            return None
        return self.output.index[self.segment]

    def skip(self) -> None:
        """Skip the next segment."""
        self._read(self.output.index[self.segment].size)
        self.segment += 1

    def current(self) -> Line:
        """Return the current line, from the next segment if necessary."""
        while self._line is _END and self.segment < self.output.index.segments:
            entry = self.output.index[self.segment]
            self._lines = self._parsed(self.output.reader.read(entry), entry)
            self.skip()
            self.advance()
        return self._line

    def advance(self) -> None:
        """Move to the next line of the segment."""
        self._line = next(self._lines, _END)

    def _parsed(self, raw: bytes, entry: Segment) -> Iterator[Line]:
        for line in raw.split(b"\n"):
            if not line:
                continue
            question_id = _parse_id(line)
            if question_id is None:
                raise OutputError(
                    f"{self.output.path}: after byte {entry.offset:,}, a line is not a document "
                    "with an Id; compare outputs in the format jsonl that keep Id"
                )
            if self._last_id is not None and question_id <= self._last_id:
                raise OutputError(
                    f"{self.output.path}: question {question_id} comes after question "
                    f"{self._last_id}; documents can be compared only in ascending order of Id; "
                    f"convert the dump again"
                )
            self._last_id = question_id
            yield question_id, line


def _parse_id(line: bytes) -> int | None:
    """Parse the `Id` of a document; None if the line is not a document."""
    if match := _ID.match(line):
        return int(match[1])
    try:
        question_id = orjson.loads(line)["Id"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    return question_id if isinstance(question_id, int) else None


def iterate_differences(
    old: Collection, new: Collection, read: Callable[[int], object]
) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    """Compare two outputs by their bytes.

    Args:
        old: The old output.
        new: The new output.
        read: Called with the number of compressed bytes read from either output.

    Yields:
        Question id, old line and new line of each difference; None for a missing line.
    """
    left, right = Side(old, read), Side(new, read)
    while True:
        while _is_same_segment(left, right):
            left.skip()
            right.skip()
        before, after = left.current(), right.current()
        if before[0] < after[0]:
            yield before[0], before[1], None
            left.advance()
        elif after[0] < before[0]:
            yield after[0], None, after[1]
            right.advance()
        elif after is _END:
            return
        else:
            if before[1] != after[1]:
                yield after[0], before[1], after[1]
            left.advance()
            right.advance()


def _is_same_segment(left: Side, right: Side) -> bool:
    """Whether the next segments of both outputs have the same documents."""
    entry, other_entry = left.next_entry(), right.next_entry()
    if entry is None or other_entry is None:
        return False
    if entry._replace(offset=0, size=0) != other_entry._replace(offset=0, size=0):
        return False
    old, new = left.output.reader, right.output.reader
    # Compare the bytes too, since different documents may have equal checksums.
    is_same = old.read_stored(entry) == new.read_stored(other_entry)
    return is_same or old.read(entry) == new.read(other_entry)
