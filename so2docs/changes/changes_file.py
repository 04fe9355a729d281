"""The changes file: compare two outputs, and write and read their changes.

    {"op":"diff","version":1,"old":{…},"new":{…},"segments":[[first id, documents, CRC-32],…]}
    {"op":"added","Id":11,"document":{…}}
    …
    {"op":"end","changes":12,"crc32":2774931817}

`old` and `new` identify the outputs. If the changes are incomplete, `new` is null and `segments` is
empty. A patch that compresses these segments with the same level reproduces the new output byte for
byte. `crc32` covers all uncompressed bytes before the last line, so a lost, repeated or altered
line is detected with every compression and through a pipe. Other programs that write changes may
omit the first line.

Both outputs are read once, from start to end, a segment of each at a time. Equal segments that
start at the same question are skipped without parsing, and usually without decompression. In other
segments, equal lines are not parsed.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO, NamedTuple, get_args

import orjson
from isal import isal_zlib

from so2docs.changes.compare import DOCUMENT_KEY, OPERATIONS, Operation
from so2docs.counts import plural
from so2docs.errors import OutputError, flag
from so2docs.options.choices import Compression
from so2docs.output.file import Target
from so2docs.output.index import tail_crc
from so2docs.output.new_files import NewFiles
from so2docs.output.segments import Segment
from so2docs.reader.collection import Collection
from so2docs.reader.reading import read_lines

_ID = re.compile(rb'\{"Id":(-?\d{1,18})[,}]')

Line = tuple[int, bytes]
"""Question id, and the document as a line of JSON without a line feed."""


class Side:
    """Reads one of the two outputs from start to end."""

    def __init__(self, output: Collection, read: Callable[[int], object]) -> None:
        self.output = output
        self.segment = 0
        self._read = read
        self._lines: Iterator[Line] = iter(())
        self._last_id: int | None = None
        self.line: Line | None = None

    def next_entry(self) -> Segment | None:
        """Return the next segment; None at the end, or if the open segment has lines left."""
        if self.line is not None or self.segment == self.output.index.segments:
            return None
        return self.output.index[self.segment]

    def skip(self) -> None:
        """Skip the next segment."""
        self._read(self.output.index[self.segment].size)
        self.segment += 1

    def current(self) -> Line | None:
        """Return the current line, from the next segment if necessary; None after the last line."""
        while self.line is None and self.segment < self.output.index.segments:
            entry = self.output.index[self.segment]
            self._lines = self._parsed(self.output.reader.read(entry), entry)
            self.skip()
            self.advance()
        return self.line

    def advance(self) -> None:
        """Move to the next line of the segment; `line` becomes None after the last line."""
        self.line = next(self._lines, None)

    def _parsed(self, raw: bytes, entry: Segment) -> Iterator[Line]:
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
                    f"{self._last_id}; documents can be compared only in ascending order of Id; "
                    f"convert the dump again"
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
        new: The new output.
        read: Called with the number of compressed bytes read from either output.

    Yields:
        Question id, old line and new line of each difference; None for a missing line.

    Raises:
        OutputError: An output is damaged, or not in ascending order of `Id`.
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
    """Whether the next segments of both outputs have the same documents."""
    entry, other_entry = left.next_entry(), right.next_entry()
    if entry is None or other_entry is None:
        return False
    if entry._replace(offset=0, size=0) != other_entry._replace(offset=0, size=0):
        return False
    old, new = left.output.reader, right.output.reader
    # Compare the bytes too, since different documents may have equal checksums.
    if old.read_stored(entry) == new.read_stored(other_entry):
        return True
    return old.read(entry) == new.read(other_entry)


_LEVEL = 2
"""Compression level assumed for an output that does not record its level."""


def write_empty(path: str, record: bytes) -> None:
    """Write an output without documents; `record` is its provenance as JSON."""
    with NewFiles() as files, Target(files, path, indexed=True) as target:
        target.record = record


VERSION = 1

_ADVICE = "compare the outputs again with so2docs diff"


class OutputIdentity(NamedTuple):
    """Identity of an output: its size, and the CRC-32 of its last 64 KiB."""

    size: int
    tail: int

    @classmethod
    def of(cls, output: Collection) -> OutputIdentity:
        """Identify an open output."""
        return cls(output.index.size, output.index.tail)

    @classmethod
    def of_file(cls, path: str) -> OutputIdentity:
        """Identify the file at `path`, which may have no index."""
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            return cls(size, tail_crc(file, size))


class SegmentIdentity(NamedTuple):
    """Identity of a segment: consecutive documents compressed together."""

    first_id: int
    documents: int
    crc: int


@dataclass(frozen=True, slots=True)
class NewOutput:
    """Description of the new output that `diff` read and that `patch` reproduces."""

    size: int
    tail: int
    compression: Compression
    level: int
    provenance: dict[str, Any] | None

    @property
    def record(self) -> bytes:
        """The provenance as stored in the index."""
        return (
            b""
            if self.provenance is None
            else orjson.dumps(self.provenance, option=orjson.OPT_SORT_KEYS)
        )


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a changes file, which identifies both outputs."""

    old: OutputIdentity
    new: NewOutput | None
    segments: tuple[SegmentIdentity, ...]

    @classmethod
    def between(cls, old: Collection, new: Collection, *, is_everything: bool) -> Header:
        """Make the header for the changes between two outputs."""
        before = OutputIdentity.of(old)
        if not is_everything:
            return cls(before, None, ())
        segments = (SegmentIdentity(e.first_id, e.documents, e.crc) for e in new.index)
        provenance = None if new.provenance is None else new.provenance.as_dict()
        identity = new.index.size, new.index.tail
        output = NewOutput(*identity, new.reader.compression, compression_level(new), provenance)
        return cls(before, output, tuple(segments))

    def line(self) -> bytes:
        """Return the header as a line of JSON, without a line feed."""
        return orjson.dumps(
            {
                "op": "diff",
                "version": VERSION,
                "old": self.old._asdict(),
                "new": None if self.new is None else asdict(self.new),
                "segments": list(map(list, self.segments)),
            }
        )

    @classmethod
    def parse(cls, values: dict[str, Any]) -> Header:
        """Parse a header from the values of its line.

        Raises:
            KeyError, TypeError, ValueError: The values are not those of a header.
        """
        old, new = OutputIdentity(**values["old"]), values["new"]
        output = None if new is None else NewOutput(**new)
        segments = tuple(SegmentIdentity(*numbers) for numbers in values["segments"])
        numbers = [*old, *(number for segment in segments for number in segment)]
        if output is not None:
            numbers += [output.size, output.tail, output.level]
            if output.compression not in get_args(Compression):
                raise ValueError
        if not all(isinstance(number, int) for number in numbers):
            raise TypeError
        return cls(old, output, segments)


def compression_level(output: Collection) -> int:
    """Return the compression level of an output; the default level if it is not recorded."""
    return _LEVEL if output.provenance is None else int(output.provenance.options["level"])


class ChangeRecord(NamedTuple):
    """A change read from a changes file, with its line number."""

    line: int
    operation: Operation
    question_id: int
    document: bytes


class ChangeReader:
    """Reads a changes file once, from start to end.

    Attributes:
        header: Header of the file; None if it has no header.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.header: Header | None = None
        self._crc = self._number = self._changes = 0
        source: str | BinaryIO = sys.stdin.buffer if path == "-" else path
        self._lines = read_lines(source)
        self._first: tuple[bytes, dict[str, Any]] | None = self._next()
        if self._first is not None and self._first[1].get("op") == "diff":
            self._read_header(*self._first)
            self._first = self._next()

    def _read_header(self, line: bytes, values: dict[str, Any]) -> None:
        if values.get("version") != VERSION:
            raise OutputError(f"{self.path}: was written by another version of so2docs; {_ADVICE}")
        try:
            self.header = Header.parse(values)
        except (KeyError, TypeError, ValueError):
            raise self._damaged("line 1 does not identify the compared outputs") from None
        self._crc = isal_zlib.crc32(line)

    def __iter__(self) -> Iterator[ChangeRecord]:
        """Yield the changes; after the last one, check their number and checksum."""
        last_id: int | None = None
        record = self._first
        while record is not None:
            line, values = record
            if values.get("op") == "end":
                self._check_end(values)
                return
            change = self._change(line, values)
            if last_id is not None and change.question_id <= last_id:
                raise OutputError(
                    f"{self.path}: line {change.line:,}: question {change.question_id} comes after "
                    f"question {last_id}; changes must be in ascending order of Id; {_ADVICE}"
                )
            last_id = change.question_id
            self._crc = isal_zlib.crc32(line, self._crc)
            self._changes += 1
            yield change
            record = self._next()
        raise self._damaged("its last line is missing")

    def _next(self) -> tuple[bytes, dict[str, Any]] | None:
        line = next(self._lines, None)
        if line is None:
            return None
        self._number += 1
        try:
            values = orjson.loads(line)
        except orjson.JSONDecodeError:
            values = None
        if not isinstance(values, dict):
            raise self._not_a_change()
        return line, values

    def _change(self, line: bytes, values: dict[str, Any]) -> ChangeRecord:
        operation, question_id = values.get("op"), values.get("Id")
        if operation not in OPERATIONS or not isinstance(question_id, int):
            raise self._not_a_change()
        document = b""
        if operation != "deleted":
            document = _document(line.rstrip(), values)
            if parse_id(document) != question_id:
                raise OutputError(
                    f"{self.path}: line {self._number:,}: the document is not question "
                    f"{question_id}"
                )
        return ChangeRecord(self._number, operation, question_id, document)

    def _check_end(self, values: dict[str, Any]) -> None:
        if values.get("changes") != self._changes:
            found = plural(self._changes, "change")
            raise self._damaged(f"it has {found}, but {values.get('changes')} were written")
        if values.get("crc32") != self._crc:
            raise self._damaged("its changes do not match its checksum")
        if next(self._lines, None) is not None:
            raise self._damaged(f"line {self._number + 1:,} is after its end")

    def _damaged(self, reason: str) -> OutputError:
        return OutputError(f"{self.path}: is damaged or truncated: {reason}; {_ADVICE}")

    def _not_a_change(self) -> OutputError:
        return OutputError(
            f"{self.path}: line {self._number:,} is not a change; give a file that so2docs "
            "diff wrote with "
            f"{flag('format', 'changes')}"
        )


def _document(line: bytes, values: dict[str, Any]) -> bytes:
    """Return the document in a line; serialize it again if another program wrote the line."""
    start = line.find(DOCUMENT_KEY) + len(DOCUMENT_KEY)
    document = line[start:-1]
    if start >= len(DOCUMENT_KEY) and document.startswith(b'{"'):
        return document
    return orjson.dumps(values.get("document"))
