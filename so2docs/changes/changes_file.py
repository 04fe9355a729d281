"""The file of changes: made from two outputs read next to each other, written, and read back.

    {"op":"diff","version":1,"old":{…},"new":{…},"segments":[[first id, documents, CRC-32],…]}
    {"op":"added","Id":11,"document":{…}}
    …
    {"op":"end","changes":12,"crc32":2774931817}

`old` and `new` identify the outputs. `new` and `segments` are there when the changes are all that
is needed to make the new output: compressed in the same segments with the same level, it comes out
byte for byte. `crc32` covers all bytes before the last line, before compression, so that a lost,
repeated or altered line is noticed in every compression and through a pipe. A program that writes
changes of its own may leave the first line out.

Both outputs are read once, from start to end, a segment of each at a time. Segments that start at
the same place and have the same bytes are passed over without being parsed, and mostly without
being decompressed; within others, lines with the same bytes are not parsed.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO, NamedTuple, get_args

import orjson
from isal import isal_zlib

from so2docs.changes.compare import DOCUMENT_KEY, OPERATIONS, Operation
from so2docs.errors import OptionError, OutputError, flag
from so2docs.options.choices import Compression, split_compression
from so2docs.output.file import Output
from so2docs.output.index import tail_crc
from so2docs.output.new_files import NewFiles
from so2docs.output.segments import Entry
from so2docs.reader.collection import Collection
from so2docs.reader.reading import read_lines

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
            self._lines = self._parsed(self.output.reader.read(entry), entry)
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
    old, new = left.output.reader, right.output.reader
    # A checksum that is the same proves nothing yet.
    if old.read_stored(entry) == new.read_stored(other_entry):
        return True
    return old.read(entry) == new.read(other_entry)


_LEVEL = 2


class Target(Output):
    """One of a command's new files, written from start to end; a context manager ends it.

    Args:
        files: Where it belongs: they get their names together.
        path: Its name, which says the compression; `-` is standard output.
        read: Files that must not be overwritten.
        force: Overwrite what exists.
        level: Of the compression.
        indexed: Whether it holds documents, and gets an index to look them up with.

    Attributes:
        record: How its documents were made, for the index.

    Raises:
        OptionError: The name is empty.
        OutputError: It exists, is one of the inputs, or its folder is missing or not writable.
    """

    def __init__(
        self,
        files: NewFiles,
        path: str,
        read: Sequence[str],
        *,
        force: bool,
        level: int = _LEVEL,
        indexed: bool = False,
    ) -> None:
        if not path:
            raise OptionError(
                "a name is empty, as an unset variable is; give the name of a file, or -"
            )
        files.claim(path, read, force=force)
        super().__init__(path, split_compression(path)[1] or "none", level=level, indexed=indexed)
        self.record = b""
        self._files = files

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            if exception[0] is None:
                self._files.add(self.path, self.seal(self.record))
        finally:
            self.close()


def write_empty(path: str, record: bytes) -> None:
    """Write an output without documents.

    Args:
        path: Its name, which says the compression.
        record: How it was made, for the index.
    """
    with NewFiles() as files, Target(files, path, (), force=False, indexed=True) as target:
        target.record = record


VERSION = 1

_ADVICE = "compare the outputs again with so2docs diff"


class OutputIdentity(NamedTuple):
    """Which output it is: its bytes, and the CRC-32 of the last 64 KiB of them."""

    size: int
    tail: int

    @classmethod
    def of(cls, output: Collection) -> OutputIdentity:
        """Identify an open output."""
        return cls(output.index.size, output.index.tail)

    @classmethod
    def of_file(cls, path: str) -> OutputIdentity:
        """Identify a file.

        Raises:
            OSError: It cannot be read.
        """
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            return cls(size, tail_crc(file, size))


class SegmentIdentity(NamedTuple):
    """Consecutive documents that are compressed together."""

    first_id: int
    documents: int
    crc: int


@dataclass(frozen=True, slots=True)
class NewOutput:
    """The output that a patch makes.

    Attributes:
        size: Its bytes.
        tail: CRC-32 of the last 64 KiB of them.
        compression: How it is compressed.
        level: Of the compression.
        provenance: Its provenance, for the index of the patched output; None if unknown.
    """

    size: int
    tail: int
    compression: Compression
    level: int
    provenance: dict[str, Any] | None

    @property
    def record(self) -> bytes:
        """The provenance in the index."""
        return (
            b""
            if self.provenance is None
            else orjson.dumps(self.provenance, option=orjson.OPT_SORT_KEYS)
        )


@dataclass(frozen=True, slots=True)
class Header:
    """The outputs that changes were made from.

    Attributes:
        old: The output to apply them to.
        new: What comes out; None if they are not all that changed.
        segments: Of the new output, in order.
    """

    old: OutputIdentity
    new: NewOutput | None
    segments: tuple[SegmentIdentity, ...]

    @classmethod
    def between(cls, old: Collection, new: Collection, *, is_everything: bool) -> Header:
        """The header of the changes between two outputs.

        Args:
            old: The old output.
            new: The new one.
            is_everything: Whether the changes are all that is needed to make the new output.
        """
        before = OutputIdentity.of(old)
        if not is_everything:
            return cls(before, None, ())
        segments = (SegmentIdentity(e.first_id, e.documents, e.crc) for e in new.index)
        provenance = None if new.provenance is None else new.provenance.as_dict()
        identity = new.index.size, new.index.tail
        output = NewOutput(*identity, new.reader.compression, compression_level(new), provenance)
        return cls(before, output, tuple(segments))

    def line(self) -> bytes:
        """The header as a line of JSON, without its end."""
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
        """Parse the result of `line`.

        Raises:
            KeyError, TypeError, ValueError: It is something else.
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
    """The level that an output was compressed with; the usual one if it does not say."""
    return _LEVEL if output.provenance is None else int(output.provenance.options["level"])


class ChangeRecord(NamedTuple):
    """A change that was read.

    Attributes:
        line: Its number in the file.
        operation: `added`, `changed` or `deleted`.
        question_id: Of the document.
        document: The new document as a line of JSON without its end; empty if it is deleted.
    """

    line: int
    operation: Operation
    question_id: int
    document: bytes


class ChangeReader:
    """Reads a file of changes once, from start to end.

    Args:
        path: Its name; `-` is standard input.

    Attributes:
        header: What they were made from; None if the file does not say it.

    Raises:
        OutputError: It cannot be read, or its first line is damaged.
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
            raise self._damaged("line 1 does not say what the changes were made from") from None
        self._crc = isal_zlib.crc32(line)

    def __iter__(self) -> Iterator[ChangeRecord]:
        """The changes.

        Raises:
            OutputError: A line is not a change, or the file is not what `diff` wrote.
        """
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
                    f"question {last_id}; changes must be in ascending Id; {_ADVICE}"
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
        if (values.get("changes"), values.get("crc32")) != (self._changes, self._crc):
            raise self._damaged(
                f"it has {self._changes:,} changes, {values.get('changes')} were written"
            )
        if next(self._lines, None) is not None:
            raise self._damaged(f"line {self._number:,} is after its end")

    def _damaged(self, reason: str) -> OutputError:
        return OutputError(f"{self.path}: is damaged or cut off: {reason}; {_ADVICE}")

    def _not_a_change(self) -> OutputError:
        return OutputError(
            f"{self.path}: line {self._number:,} is not a change; give a file that so2docs "
            "diff wrote with "
            f"{flag('format', 'changes')}"
        )


def _document(line: bytes, values: dict[str, Any]) -> bytes:
    """The bytes of a change's document; made again if another program wrote the line."""
    start = line.find(DOCUMENT_KEY) + len(DOCUMENT_KEY)
    document = line[start:-1]
    if start >= len(DOCUMENT_KEY) and document.startswith(b'{"'):
        return document
    return orjson.dumps(values.get("document"))
