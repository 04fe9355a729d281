"""Dumps that can be read only from the start: in an archive or a pipe, or not in UTF-8.

The stream is decompressed once. Its rows are written to pieces next to the spill, each with whole
rows. A worker reads a piece like a range of a file. As soon as a piece is committed, the next one
overwrites its file, and only a few exist at any time (the task queue is bounded), so they stay in
the page cache. Memory is bounded by a block, however long rows and pieces are.

The bounds of pieces depend only on the bytes of the stream, so a resumed conversion makes the same
pieces and skips the committed pieces.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import BinaryIO

from so2docs.dump import storage
from so2docs.dump.compressed import BLOCK_BYTES
from so2docs.dump.dump import PIECE_END, PIECES, SMALLEST_PIECE, Chunk, Dump
from so2docs.dump.layers import Layers, Stream
from so2docs.dump.root import TAIL_LIMIT, Ending, Prolog, add_last_row, read_prolog
from so2docs.errors import DumpError, Location, MalformedDumpError
from so2docs.parse.rows import ROW_START
from so2docs.schema import Table

# Split a stream into pieces of whole rows, and check the end of the dump.

MOST_ROW_BYTES = 128 * 1024 * 1024
"""Maximum size of a row; posts have at most 30,000 characters. This bounds the disk space that a
decompression bomb can take."""


class StreamedRows:
    """The rows of a stream between the tags of the root, as pieces of whole rows.

    The rows pass through one buffer, which grows only if many bytes wait after a closing tag.
    """

    def __init__(self, path: str, stream: Stream, prolog: Prolog, table: Table) -> None:
        self._path = path
        self._stream = stream
        self._ending = Ending(path, prolog.frame, table)
        self._table = table
        self._buffer = bytearray(prolog.head[prolog.start :])
        self._size = len(self._buffer)
        self.at_end = prolog.is_empty

    def copy(self, size: int, write: Callable[[memoryview], object]) -> int:
        """Write whole rows: at least `size` bytes, or fewer if the root ends first.

        Args:
            size: Number of bytes after which the next start of a row ends the piece.
            write: Writes bytes.

        Returns:
            The number of bytes written. Locations of errors are relative to their end.
        """
        copied = 0
        while True:
            limit = self._ending.rows_before(self._buffer, self._size)
            cut = self._row_after(size - copied, limit)
            copied += self._hand_on(limit if cut is None else cut, write)
            if cut is not None:
                return copied
            if copied > size + MOST_ROW_BYTES:
                raise MalformedDumpError(
                    self._path,
                    f"has no <row in {MOST_ROW_BYTES >> 20} MiB",
                    advice=f"check that this is the {self._table.file} of a Stack Exchange dump",
                )
            if self._size > TAIL_LIMIT or not self._read_more():
                return copied + self._finish(write)

    def _read_more(self) -> bool:
        """Read at least as many bytes as the buffer holds, so that no byte is searched often.

        Returns False at the end.
        """
        needed = 2 * self._size + 1
        space = needed + BLOCK_BYTES
        if len(self._buffer) < space:
            self._buffer.extend(bytes(space - len(self._buffer)))
        elif len(self._buffer) > 4 * space:
            del self._buffer[space:]
        while self._size < needed:
            part = self._stream.read_part(len(self._buffer) - self._size)
            if not part:
                return False
            end = self._size + len(part)
            with memoryview(self._buffer) as view:  # Otherwise, the part would be copied twice.
                view[self._size : end] = part
            self._size = end
        return True

    def _row_after(self, position: int, limit: int) -> int | None:
        """Find the first row that starts at `position` or later; None if no such row is certain."""
        if limit < position:
            return None
        match = ROW_START.search(self._buffer, max(0, position), self._size)
        return match.start() if match and match.start() <= limit else None

    def _hand_on(self, size: int, write: Callable[[memoryview], object]) -> int:
        with memoryview(self._buffer) as view:
            write(view[:size])
            view[: self._size - size] = view[size : self._size]
        self._size -= size
        return size

    def _finish(self, write: Callable[[memoryview], object]) -> int:
        """Write the remaining bytes before the closing tag, and return their number."""
        data = bytes(memoryview(self._buffer)[: self._size])
        try:
            if len(data) > TAIL_LIMIT:  # The buffer grows this large only after a closing tag.
                raise self._ending.content_after(-len(data))
            limit = self._ending.find(data, -len(data))
        except DumpError:
            self._hand_on(len(data), write)  # For the excerpt of the error.
            raise
        self.at_end = True
        return self._hand_on(limit, write)


_LARGEST_PIECE = 128 * 1024 * 1024
_GROWTH = 64
_EXCERPT_BYTES = 1024 * 1024


def piece_bytes(offset: int) -> int:
    """Return the size of the piece at an offset: small at first, so that all workers get work soon.

    Later pieces are larger, because a piece adds a block to each bucket that it has posts of:
    100 GB make about 1,000 pieces.
    """
    return min(max(SMALLEST_PIECE, offset // _GROWTH), _LARGEST_PIECE)


class StreamDump:
    """A dump that is read once from start to end, with the interface of `Dump`.

    Attributes:
        path: Name of the dump, for messages.
        file: Path of the file of the stream; None if it can be read only once.
        identity: Identity of the file.
        frame: The root's start and closing tags.
        first_line: Line number of the first byte after the start tag, from 1.
        head: The bytes up to the root's start tag, in UTF-8.
        encoding: Original encoding of the dump.
        chunk_bytes: Always 0: pieces grow with the stream.
        size: Decompressed size in bytes, up to and including the closing tag; an estimate until the
            end is read; 0 if unknown.
    """

    chunk_bytes = 0

    def __init__(
        self, layers: Layers, table: Table, file: str | None, identity: storage.FileIdentity
    ) -> None:
        """Read the start of the dump."""
        self.layers, self._table = layers, table
        self.path, self.file, self.identity = layers.name, file, identity
        prolog = read_prolog(self.path, layers.top.read, table)
        self.frame, self.first_line = prolog.frame, prolog.first_line
        self.head, self.encoding = prolog.head[: prolog.start], layers.encoding
        self.size = layers.expected or 0
        self._start = prolog.start
        self._rows = StreamedRows(self.path, layers.top, prolog, table)
        self._error: DumpError | None = None
        self._shown = 0
        self._folder: Path | None = None
        self._free: list[Path] = []

    def chunks(self, size: int, done_chunks: Collection[int], folder: Path) -> Iterator[Chunk]:
        """Read the stream, and split it into pieces.

        Errors of the stream are raised by `check_end`, after all rows before them are committed.

        Args:
            size: Size of a piece in bytes: as in a file, a piece ends at the first row after each
                multiple of this size; 0 for growing pieces.
            done_chunks: Numbers of the chunks to leave out.
            folder: Folder of the spill, for the pieces.
        """
        self._folder = folder / f"{PIECES}-{self._table.name}"
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(exist_ok=True)
        number, offset = 0, self._start
        try:
            while not self._rows.at_end:
                target = (size and size - (offset - self._start) % size) or piece_bytes(offset)
                if number in done_chunks:
                    length = self._rows.copy(target, len)
                else:
                    path = self._folder / f"{number:06}{PIECE_END}"
                    piece = self._piece(self._free.pop() if self._free else path, offset, target)
                    length = piece.end
                    if length:
                        yield Chunk(number, piece, 0, length)
                offset += length
                number += 1
        except DumpError as error:
            error.location = error.location or Location(offset)
            self._error = error
            return
        self.size = offset + len(self.frame[1])

    def _piece(self, path: Path, offset: int, size: int) -> Dump:
        """Read a piece of about `size` bytes, and return it as a separate dump.

        A file of an earlier piece is overwritten: its pages are already in the page cache, which
        saves 0.2 s of CPU time per GB.

        Args:
            path: File for the piece.
            offset: Offset of the piece in the stream.
            size: Number of bytes after which the next row ends the piece.
        """
        path.touch()
        # Aligned writes of whole blocks save 0.14 s of CPU time per GB.
        with open(path, "r+b", BLOCK_BYTES) as file:
            try:
                length = self._rows.copy(size, file.write)
            except DumpError as error:
                file.truncate()
                self._place(error, file, offset)
                raise
            file.truncate()
        # Identify the file after it is closed: some systems set its time only then.
        whole = self.path, storage.identify(str(path)), 0, length, self.first_line, self.frame
        return Dump(*whole, str(path), offset)

    def _place(self, error: DumpError, file: BinaryIO, offset: int) -> None:
        """Make the location of an error in a piece relative to the dump, and add an excerpt."""
        length = file.seek(0, io.SEEK_END)
        file.seek(max(0, length - _EXCERPT_BYTES))
        beyond = error.location.offset if error.location else 0
        error.location = Location(offset + length + beyond)
        add_last_row(error, file.read(), self.frame)

    def progress_total(self, size: int, done_chunks: Collection[int]) -> tuple[int | None, int]:
        """Return the size of the dump, perhaps an estimate, and 0: it is read from its start."""
        return self.size or None, 0

    def progress(self, chunk: Chunk) -> int:
        """Free the piece of a finished chunk; return the bytes since the chunk before it."""
        self._free.append(Path(chunk.dump.file))
        before, self._shown = self._shown, chunk.dump.base + chunk.end
        return self._shown - before

    def check_end(self) -> None:
        """After the last chunk, raise any error that ended the stream early."""
        if self._error is not None:
            raise self._error
        if self.file is not None:
            storage.check_unchanged(self.path, self.file, self.identity)

    @property
    def repaired(self) -> int:
        """Number of characters that the decoder replaced so far."""
        return self.layers.repaired

    def close(self) -> None:
        """Remove the pieces, and close all layers."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self.layers.close()


AnyDump = Dump | StreamDump
