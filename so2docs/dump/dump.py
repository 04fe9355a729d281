"""A dump in a file, read in ranges: chunks for the workers, and slices of whole rows in a chunk.

This is the first step, which does not look inside rows. Before the passes start, only the head and
the tail of the file are read, so a truncated dump is detected within milliseconds. Memory is
bounded by `SLICE_BYTES` and the longest row.

XML does not allow a raw `<` in an attribute value (XML 1.0, [10] AttValue), so the bytes `<row`
followed by white space always start a row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from so2docs.dump import storage
from so2docs.dump.root import Frame, find_in_file, read_prolog
from so2docs.dump.storage import changed_error, check_unchanged, unreadable_dump
from so2docs.parse.rows import ROW_START
from so2docs.schema import POSTS, Table

_WINDOW = 64 * 1024

PIECES, PIECE_END = "pieces", ".xml"
"""Start of the name of the folder with the pieces of a stream, and extension of the pieces."""

SLICE_BYTES = 256 * 1024
"""Approximate size of a slice in bytes. Larger slices, up to 1 MiB, are not faster, but take more
memory."""

_ROW_START_BYTES = 5
_SMALLEST_CHUNK = 8 * 1024 * 1024
SMALLEST_PIECE = 8 * 1024 * 1024
"""Size of the first pieces of a stream, in bytes."""
_MOST_CHUNKS = 400


class Chunk(NamedTuple):
    """A range of a dump that one task of the first pass reads; the input of `slices`."""

    number: int
    dump: Dump
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Dump:
    """A dump file with a valid head and tail.

    Attributes:
        path: Name of the file.
        identity: Identity of the file, to detect a change.
        start: Offset of the first byte after the root's start tag.
        end: Offset of the root's closing tag.
        first_line: Line number of the byte at `start`, from 1.
        frame: The root's start and closing tags, for slices of rows.
        file: Path of the file to read: that of the dump, or of a piece of a stream.
        base: Offset of the piece in the stream.
        head: The bytes before `start`; empty for a piece.
        encoding: Encoding of the dump.
        repaired: Number of characters that the decoder replaced.
    """

    path: str
    identity: storage.FileIdentity
    start: int
    end: int
    first_line: int
    frame: Frame
    file: str
    base: int = 0
    head: bytes = b""
    encoding: str = "utf-8"
    repaired: int = 0

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return self.identity.size

    @property
    def chunk_bytes(self) -> int:
        """Default size of a chunk in bytes."""
        return max(_SMALLEST_CHUNK, -(-self.size // _MOST_CHUNKS))

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the file to read; raise `ChangedDumpError` if it has changed."""
        self.check_unchanged()
        with storage.open_file(self.file) as file:
            self.check_unchanged(file)
            yield file

    def check_unchanged(self, file: BinaryIO | None = None) -> None:
        """Raise `ChangedDumpError` if the file has changed; `file` is the open file, if any."""
        check_unchanged(self.path, self.file, self.identity, file)

    def check_end(self) -> None:
        """After the last chunk, raise any error that concerns the whole dump."""
        self.check_unchanged()

    def chunks(self, size: int, done_chunks: Collection[int], folder: Path) -> Iterator[Chunk]:
        """Split the rows into consecutive ranges of `size` bytes; `slices` finds the whole rows."""
        for number, start in enumerate(range(self.start, self.end, size)):
            if number not in done_chunks:
                yield Chunk(number, self, start, min(start + size, self.end))

    def progress_total(self, size: int, done_chunks: Collection[int]) -> tuple[int | None, int]:
        """Return the size of the file, and the size of the chunks in `done_chunks`, in bytes."""
        before = sum(min(size, self.end - self.start - chunk * size) for chunk in done_chunks)
        return self.size, before

    def progress(self, chunk: Chunk) -> int:
        """Return the size of a finished chunk, in bytes of the file."""
        return chunk.end - chunk.start

    def close(self) -> None:
        """Do nothing, since readers open the file themselves."""


def open_dump(path: str, table: Table = POSTS) -> Dump:
    """Read and check the head and the tail of a dump file."""
    try:
        with storage.open_file(path) as file:
            identity = storage.identify(path, file)
            prolog = read_prolog(path, file.read, table)
            end = find_in_file(path, file, identity.size, prolog=prolog, table=table)
    except OSError as error:
        raise unreadable_dump(path, error) from error
    head = prolog.head[: prolog.start]
    return Dump(path, identity, prolog.start, end, prolog.first_line, prolog.frame, path, head=head)


def _find_row(file: BinaryIO, offset: int, limit: int) -> int:
    """Find the first row at `offset` or later; return `limit` if no row starts before it."""
    file.seek(offset)
    window = b""
    while offset + len(window) < limit + _ROW_START_BYTES and (block := file.read(_WINDOW)):
        window += block
        if match := ROW_START.search(window):
            return min(offset + match.start(), limit)
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
        size: Approximate size of a slice in bytes; a longer row makes a longer slice.

    Yields:
        The offset of each slice in the dump, and its bytes.
    """
    with dump.open() as file:
        at = start if start == dump.start else _find_row(file, start, dump.end)
        stop = dump.end if end >= dump.end else _find_row(file, end, dump.end)
        file.seek(at)
        pending = b""
        while at + len(pending) < stop:
            # Double the size of reads for a row longer than a slice, so that the row is copied only
            # a few times.
            block = file.read(min(max(size, len(pending)), stop - at - len(pending)))
            if not block:
                dump.check_unchanged(file)
                raise changed_error(dump.path, "shrank while being read")
            is_last = at + len(pending) + len(block) >= stop
            # A row start split across two reads is not found here, so its row goes to the next
            # slice.
            cut = -1 if is_last else _last_row_start(block)
            if cut < 0:
                pending += block
                continue
            lines = b"".join((pending, memoryview(block)[:cut]))
            pending = block[cut:]
            if lines:
                yield dump.base + at, lines
                at += len(lines)
        if pending:
            yield dump.base + at, pending


def _last_row_start(data: bytes) -> int:
    """Find the last start of a row in `data`; -1 if there is none."""
    position = len(data)
    while (position := data.rfind(b"<row", 0, position)) >= 0:
        if ROW_START.match(data, position):
            return position
    return -1
