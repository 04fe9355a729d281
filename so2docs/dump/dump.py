"""A dump on disk: where its rows start and end, and how it is cut into ranges of whole rows.

First in the flow: nothing here looks inside a row. Only the head and the tail of the file are read
before the passes start, so a dump that was cut off is noticed within milliseconds; memory is
bounded by `SLICE_BYTES` and the longest row.

Cutting relies on the XML rule that a raw `<` cannot be part of an attribute value (XML 1.0, [10]
AttValue): the bytes `<row` followed by white space always start a row.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from so2docs.dump import storage
from so2docs.dump.ending import check_misc, empty_root_error, find_in_file
from so2docs.dump.prolog import Frame, read_prolog
from so2docs.dump.source import End
from so2docs.errors import ChangedDumpError, DumpError, Location, flag
from so2docs.parse.rows import ROW_START
from so2docs.schema import POSTS, Table

PIECES, PIECE_END = "pieces", ".xml"
"""Folder in the spill's, and end of names, for pieces of a dump that comes as a stream."""

SLICE_BYTES = 256 * 1024
"""Rows are parsed in slices of this size: the fastest of 64 KiB to 1 MiB, and small in memory."""

_ROW_START_BYTES = 5
_MOST_HEAD = 64 * 1024
_WINDOW = 64 * 1024
_SMALLEST_CHUNK = 8 * 1024 * 1024
_MOST_CHUNKS = 400


class Chunk(NamedTuple):
    """Where one task of the first pass reads: what `slices` takes."""

    number: int
    dump: Dump
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Dump:
    """A dump file whose head and tail are sound.

    Attributes:
        path: The file.
        identity: Size in bytes, modification time in ns and inode, to notice a change.
        start: Offset of the first byte after the root's start tag.
        end: Offset of the root's closing tag.
        first_line: Line of the byte at `start`, from 1.
        frame: The root's start and closing tags, to put around a slice of rows.
        location: Where the bytes are, if not in `path`: a piece of a stream.
        base: Offset in the stream of the first byte of that piece.
        head: What is before `start`, not more than 64 KiB; nothing of a piece.
        encoding: Of its bytes.
    """

    path: str
    identity: tuple[int, int, int]
    start: int
    end: int
    first_line: int
    frame: Frame
    location: str = ""
    base: int = 0
    head: bytes = b""
    encoding: str = "utf-8"

    @property
    def file(self) -> str:
        """The file to read."""
        return self.location or self.path

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.identity[0]

    @property
    def chunk_bytes(self) -> int:
        """Bytes of a chunk where nobody says otherwise."""
        return max(_SMALLEST_CHUNK, -(-self.size // _MOST_CHUNKS))

    def check_unchanged(self, file: BinaryIO | None = None) -> None:
        """Raise `ChangedDumpError` if the file (an open one, or the path) is another by now."""
        try:
            found = storage.identity(self.file, file)
        except OSError as error:
            raise ChangedDumpError(
                self.path,
                f"disappeared while being read ({error.strerror})",
                advice="make it available, then run again",
            ) from None
        if found != self.identity:
            raise ChangedDumpError(
                self.path,
                f"changed while being read ({self.size:,} bytes before, {found[0]:,} now)",
                advice=f"wait until it is complete, then run again with {flag('restart', True)}",
            )

    def check_end(self) -> None:
        """Raise what is wrong with the dump as a whole, once all its chunks are done."""
        self.check_unchanged()

    def chunks(self, size: int, done: Collection[int], folder: Path) -> Iterator[Chunk]:
        """Cut the rows into consecutive ranges of `size` bytes; `slices` finds the whole rows.

        Args:
            size: Bytes of a range.
            done: Numbers of the chunks to leave out.
            folder: For files that chunks need; a range of a file needs none.
        """
        for number, start in enumerate(range(self.start, self.end, size)):
            if number not in done:
                yield Chunk(number, self, start, min(start + size, self.end))

    def progress_total(self, size: int, done: Collection[int]) -> tuple[int | None, int]:
        """Bytes of the given file in all, and those that the chunks of `done` stand for."""
        before = sum(min(size, self.end - self.start - chunk * size) for chunk in done)
        return self.size, before

    def progress(self, chunk: Chunk) -> int:
        """Bytes of the given file that a finished chunk stands for."""
        return chunk.end - chunk.start

    def chunk_end(self, size: int) -> End:
        """What is known when all ranges of `size` bytes have been read."""
        return End(self.size, 0, -(-self.size // size))

    def close(self) -> None:
        """A dump that is a file is opened by those who read it."""


def identity(status: os.stat_result) -> tuple[int, int, int]:
    """Size, modification time and inode: what shows that a file is another."""
    return status.st_size, status.st_mtime_ns, status.st_ino


def open_dump(path: str, wanted: Table = POSTS) -> Dump:
    """Look at the head and the tail of a dump.

    Args:
        path: The file.
        wanted: Which table it is to be.

    Raises:
        TruncatedDumpError: It ends before the closing tag of its root.
        MalformedDumpError: It is not XML, or something follows the closing tag.
        DumpError: It cannot be opened, is empty, or is something else.
    """
    try:
        # Opening a pipe would wait for its other end.
        if not (storage.is_url(path) or stat.S_ISREG(os.stat(path).st_mode)):
            raise DumpError(
                path,
                "is not a file",
                advice=f"give the {wanted.file} of a dump, or the archive of its site",
            )
        with storage.open_file(path) as file:
            return _inspect(path, file, wanted)
    except OSError as error:
        raise storage.unreadable_dump(path, error) from error


def _inspect(path: str, file: BinaryIO, wanted: Table) -> Dump:
    found = storage.identity(path, file)
    prolog = read_prolog(path, file.read, wanted)
    start, frame, head = prolog.start, prolog.frame, prolog.head[: min(prolog.start, _MOST_HEAD)]
    if prolog.is_empty:
        file.seek(start)
        location = Location(start, prolog.first_line, row=wanted.row)
        check_misc(b"", file.read, empty_root_error(path, location))
        return Dump(path, found, start, start, prolog.first_line, frame, head=head)
    end = find_in_file(path, file, start=start, size=found[0], frame=frame, wanted=wanted)
    return Dump(path, found, start, end, prolog.first_line, frame, head=head)


def _find_row(file: BinaryIO, offset: int, limit: int) -> int:
    """Offset of the first row that starts at `offset` or later; `limit` if none does before it."""
    file.seek(offset)
    window = b""
    while offset + len(window) < limit + _ROW_START_BYTES and (more := file.read(_WINDOW)):
        window += more
        if found := ROW_START.search(window):
            return min(offset + found.start(), limit)
        offset += max(0, len(window) - _ROW_START_BYTES)
        window = window[-_ROW_START_BYTES:]
    return limit


def slices(
    dump: Dump, start: int, end: int, size: int = SLICE_BYTES
) -> Iterator[tuple[int, bytes]]:
    """Read the rows that start in `[start, end)` as slices of whole rows.

    Args:
        dump: The dump to read.
        start: Offset of the range's first byte.
        end: Offset after the range's last byte; the last row may reach beyond it.
        size: Bytes of a slice, about; a longer row makes a longer slice.

    Yields:
        The offset of a slice in the dump, and its bytes.

    Raises:
        ChangedDumpError: The file is not the one that `open_dump` saw.
    """
    dump.check_unchanged()
    with storage.open_file(dump.file) as file:
        dump.check_unchanged(file)
        at = start if start == dump.start else _find_row(file, start, dump.end)
        stop = dump.end if end >= dump.end else _find_row(file, end, dump.end)
        file.seek(at)
        rest = b""
        while at + len(rest) < stop:
            # A row longer than a slice is read in doubling steps, not copied once per slice.
            more = file.read(min(max(size, len(rest)), stop - at - len(rest)))
            if not more:
                dump.check_unchanged(file)
                raise ChangedDumpError(
                    dump.path,
                    "became shorter while being read",
                    advice=(
                        f"wait until it is complete, then run again with {flag('restart', True)}"
                    ),
                )
            is_last = at + len(rest) + len(more) >= stop
            # A start where two reads meet is not looked for: its row joins the next slice.
            cut = -1 if is_last else _last_row_start(more)
            if cut < 0:
                rest += more
                continue
            found = b"".join((rest, memoryview(more)[:cut]))
            rest = more[cut:]
            if found:
                yield dump.base + at, found
                at += len(found)
        if rest:
            yield dump.base + at, rest


def _last_row_start(data: bytes) -> int:
    """Position of the last row start in `data`; -1 if there is none."""
    position = len(data)
    while (position := data.rfind(b"<row", 0, position)) >= 0:
        if ROW_START.match(data, position):
            return position
    return -1
