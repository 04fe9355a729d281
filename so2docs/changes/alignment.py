"""Two outputs side by side -> the documents that differ, in ascending question id.

Both are read once, from start to end, a segment of each at a time. Segments that start at the same
place and have the same bytes are passed over without being parsed, and mostly without being
decompressed; within others, lines with the same bytes are not parsed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import orjson

from so2docs.errors import OutputError
from so2docs.output.index import Entry
from so2docs.reader.collection import Collection

_ID = re.compile(rb'\{"Id":(-?\d{1,18})[,}]')

Line = tuple[int, bytes]
"""Question id, and the document as a line of JSON without its end."""


class Side:
    """One of the outputs, read from start to end.

    Attributes:
        segment: Number of the segment that comes next.
        line: The line that comes next in the segment before; None at its end.
    """

    def __init__(self, output: Collection, read: Callable[[int], object]) -> None:
        self.output = output
        self.segment = 0
        self._read = read
        self._lines: Iterator[Line] = iter(())
        self._last_id: int | None = None
        self.line: Line | None = None

    def next_entry(self) -> Entry | None:
        """The segment that comes next, if the one before is used up."""
        if self.line is not None or self.segment == self.output.index.segments:
            return None
        return self.output.index[self.segment]

    def skip(self) -> None:
        """Pass over the segment that comes next."""
        self._read(self.output.index[self.segment].size)
        self.segment += 1

    def current(self) -> Line | None:
        """The line that comes next; None when all were used."""
        while self.line is None and self.segment < self.output.index.segments:
            entry = self.output.index[self.segment]
            self._lines = self._parsed(self.output.read(entry), entry)
            self.skip()
            self.advance()
        return self.line

    def advance(self) -> None:
        """Go to the next line of the segment; None at its end."""
        self.line = next(self._lines, None)

    def _parsed(self, raw: bytes, entry: Entry) -> Iterator[Line]:
        for line in raw.split(b"\n"):
            if not line:
                continue
            question_id = parse_id(line)
            if question_id is None:
                raise OutputError(
                    f"{self.output.path}: after byte {entry.offset:,}, a line is not a document "
                    "with an Id; compare outputs in the format jsonl that keep Id"
                )
            if self._last_id is not None and question_id <= self._last_id:
                raise OutputError(
                    f"{self.output.path}: question {question_id} comes after question "
                    f"{self._last_id}; only documents in ascending Id can be compared; "
                    "convert the dump again"
                )
            self._last_id = question_id
            yield question_id, line


def parse_id(line: bytes) -> int | None:
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
        new: The new one.
        read: Called with the number of compressed bytes read from either.

    Yields:
        Question id, old line and new line, where they differ; None for a missing line.

    Raises:
        OutputError: One of them is damaged, or is not in ascending order of `Id`.
    """
    left, right = Side(old, read), Side(new, read)
    while True:
        while _is_same_segment(left, right):
            left.skip()
            right.skip()
        before, after = left.current(), right.current()
        if before is None and after is None:
            return
        if after is None or (before is not None and before[0] < after[0]):
            assert before is not None
            yield before[0], before[1], None
            left.advance()
        elif before is None or after[0] < before[0]:
            yield after[0], None, after[1]
            right.advance()
        else:
            if before[1] != after[1]:
                yield after[0], before[1], after[1]
            left.advance()
            right.advance()


def _is_same_segment(left: Side, right: Side) -> bool:
    """Whether both come to a segment, with the same documents in it."""
    entry, other_entry = left.next_entry(), right.next_entry()
    if entry is None or other_entry is None:
        return False
    if entry._replace(offset=0, size=0) != other_entry._replace(offset=0, size=0):
        return False
    # A checksum that is the same proves nothing yet.
    if left.output.stored(entry) == right.output.stored(other_entry):
        return True
    return left.output.read(entry) == right.output.read(other_entry)
