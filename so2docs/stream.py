"""A dump that can only be read from its start: from an archive, a pipe, or in another encoding.

The stream is decompressed once. Rows go, as they come, into piece files beside the spill, each cut
where a row starts; a worker reads a piece as it reads a range of a file. A piece is gone as soon as
it is committed, and only a few exist at any time (the task queue is bounded), so that they live and
die in the page cache. Nothing here holds more than a block, whatever the length of rows or pieces.

Where pieces are cut depends on the bytes of the stream only, so that an interrupted conversion
finds the same pieces and passes over those that are committed.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from so2docs.dump import ROW_START, Chunk, Dump, identity, last_good_row
from so2docs.errors import ArchiveError, DumpError, MalformedDumpError, Place, TruncatedDumpError
from so2docs.prolog import HEAD_LIMIT, MISC, Frame, read_prolog
from so2docs.sources.source import BLOCK_BYTES, Source

MOST_ROW_BYTES = 128 * 1024 * 1024
"""A longer row is no row: posts end at 30,000 characters. Bounds what a bomb takes of disk."""

_SMALLEST_PIECE = 8 * 1024 * 1024
_LARGEST_PIECE = 128 * 1024 * 1024
_GROWTH = 64
_OVERLAP = 64
_EXCERPT_BYTES = 1024 * 1024


def piece_bytes(offset: int) -> int:
    """Size of the piece at an offset: small at first, so that all workers soon have work.

    Later pieces grow, because each leaves a block in every bucket that it touches: 100 GB make
    about 1,000 pieces.
    """
    return min(max(_SMALLEST_PIECE, offset // _GROWTH), _LARGEST_PIECE)


class Rows:
    """What stands in a stream between the root's tags, handed on in pieces of whole rows.

    Args:
        path: Name of the dump, for messages.
        read: Returns at most so many bytes; none at the end of the stream.
        frame: The root's start and closing tags.
        data: What has been read already, after the start tag.
        is_empty: Whether the root is one empty tag.
    """

    def __init__(
        self, path: str, read: Callable[[int], bytes], frame: Frame, data: bytes, is_empty: bool
    ) -> None:
        self._path = path
        self._read = read
        self._opening = frame[1][:-1]
        self._closing = re.compile(re.escape(self._opening) + rb"\s*>")
        self._name = frame[1].decode(errors="replace")
        self._overlap = max(_OVERLAP, len(frame[1]))
        self._data = data
        self._is_empty = is_empty
        self.at_end = is_empty

    def copy(self, size: int, write: Callable[[bytes], object]) -> Iterator[int]:
        """Hand on whole rows, at least `size` bytes of them unless the root closes before.

        Args:
            size: Bytes after which the next row start ends the piece.
            write: Gets the bytes.

        Yields:
            The number of bytes handed on, each time that some are.

        Raises:
            TruncatedDumpError: The stream ends before the root closes.
            MalformedDumpError: No row starts for longer than any row is.
        """
        copied = 0
        while True:
            data = self._data
            limit, closes = self._limit(data)
            cut = ROW_START.search(data, max(0, size - copied)) if copied + limit >= size else None
            if cut is not None and (cut.start() <= limit or not closes):
                limit = cut.start()
                closes = False
            if limit:
                write(data[:limit])
                copied += limit
                self._data = data[limit:]
                yield limit
            self.at_end = closes
            if cut is not None or closes:
                return
            if copied > size + MOST_ROW_BYTES:
                raise MalformedDumpError(
                    self._path,
                    f"has no start of a row in {MOST_ROW_BYTES >> 20} MiB",
                    advice="check that this is the Posts.xml of a Stack Exchange dump",
                )
            more = self._read(BLOCK_BYTES)
            if not more:
                write(self._data)
                yield len(self._data)
                raise TruncatedDumpError(
                    self._path,
                    f"is cut off: it ends without {self._name}",
                    advice="download it again, or the part that is missing",
                )
            self._data += more

    def _limit(self, data: bytes) -> tuple[int, bool]:
        """Up to where `data` is rows for certain, and whether the root closes there."""
        at = data.find(self._opening)
        while at >= 0:
            if self._closing.match(data, at):
                return at, True
            if not data[at + len(self._opening) :].strip():
                return at, False
            at = data.find(self._opening, at + 1)
        return max(0, len(data) - self._overlap), False

    def check_rest(self) -> None:
        """Read the stream to its end, and raise unless only comments follow the root."""
        rest = self._data
        if found := None if self._is_empty else self._closing.match(rest):
            rest = rest[found.end() :]
        while True:
            allowed = MISC.match(rest)
            rest = rest[allowed.end() if allowed else 0 :]
            begins_well = rest.startswith((b"<!--", b"<?")) or rest in (b"", b"<", b"<!", b"<!-")
            more = self._read(BLOCK_BYTES) if begins_well and len(rest) < HEAD_LIMIT else b""
            if not more:
                break
            rest += more
        if rest:
            raise MalformedDumpError(
                self._path,
                "has content after its empty root element"
                if self._is_empty
                else f"has content after its closing {self._name}",
                advice="are these two files in one? convert them one by one",
            )


class StreamDump:
    """A dump that is read once, from start to end; what a `Dump` is to the passes.

    Attributes:
        path: Its name, for messages.
        frame: The root's start and closing tags.
        first_line: Line of the first byte after the start tag, from 1.
        chunk_bytes: 0, for pieces that grow with the stream.
        size: Bytes of the decompressed dump: expected at first, true at the end; 0 if not known.
        end_state: What is known once it has been read to its end, for a spill to remember.
    """

    chunk_bytes = 0

    def __init__(self, source: Source) -> None:
        """Read the start of the dump.

        Raises:
            DumpError: It is empty, is not XML, or cannot be decompressed.
        """
        self.source = source
        self.path = source.name
        try:
            prolog = read_prolog(self.path, source.read)
        except BaseException:
            source.close()
            raise
        self.frame, self.first_line = prolog.frame, prolog.first_line
        self.size = source.expected or 0
        self.end_state: dict[str, int] | None = None
        self._start = prolog.start
        self._rows = Rows(
            self.path, source.read, self.frame, prolog.head[prolog.start :], prolog.is_empty
        )
        self._error: DumpError | None = None
        self._positions: dict[int, int] = {}
        self._shown = 0
        self._folder: Path | None = None

    @property
    def file(self) -> str | None:
        """The file that the stream comes from; None if it can be read only once."""
        return self.source.file

    @property
    def identity(self) -> tuple[int, int, int]:
        """Of that file: size, modification time and inode."""
        return self.source.identity

    def chunks(self, size: int, done: Collection[int], folder: Path) -> Iterator[Chunk]:
        """Read the stream, and cut it into pieces.

        What is wrong with it is kept for `check_end`, so that whatever stands before is committed.

        Args:
            size: Bytes of a piece; 0 for pieces that grow.
            done: Numbers of the chunks to leave out.
            folder: Folder of the spill, for the pieces.
        """
        if self.end_state is not None:
            return
        self._folder = folder / "pieces"
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        number, offset = 0, self._start
        try:
            while not self._rows.at_end:
                target = size or piece_bytes(offset)
                if number in done:
                    length = sum(self._rows.copy(target, len))
                else:
                    piece = self._piece(self._folder / f"{number:06}.xml", offset, target)
                    length = piece.size
                    self._positions[number] = self.source.position()
                    if length:
                        yield Chunk(number, piece, 0, length)
                offset += length
                number += 1
            self._rows.check_rest()
        except DumpError as error:
            error.place = error.place or Place(offset)
            self._error = error
            return
        self.size = offset + len(self.frame[1])
        self.end_state = {"size": self.size, "repaired": self.source.repaired()}

    def _piece(self, path: Path, offset: int, size: int) -> Dump:
        """Write a piece, and describe it as a dump of its own."""
        with open(path, "wb") as file:
            try:
                length = sum(self._rows.copy(size, file.write))
            except DumpError as error:
                file.flush()
                self._place(error, path, offset)
                raise
        return Dump(
            self.path,
            identity(os.stat(path)),
            0,
            length,
            self.first_line,
            self.frame,
            str(path),
            offset,
        )

    def _place(self, error: DumpError, path: Path, offset: int) -> None:
        """Say where in the dump a piece ended early; lines count from the start of the piece."""
        lines = length = 0
        tail = b""
        with open(path, "rb") as file:
            while data := file.read(BLOCK_BYTES):
                lines += data.count(b"\n")
                length += len(data)
                tail = (tail + data)[-_EXCERPT_BYTES:]
        last_id, start = last_good_row(tail, self.frame) or (None, -_EXCERPT_BYTES // 16)
        error.place = Place(offset + length, lines, last_id)
        if not isinstance(error, ArchiveError):
            error.excerpt = self.frame[0] + b"\n" + tail[start:]

    def progress_total(self, size: int, done: Collection[int]) -> tuple[int | None, int]:
        """Bytes of the given file in all, and what an earlier session did: that is read again."""
        return self.source.total, 0

    def progress(self, chunk: Chunk) -> int:
        """Bytes of the given file that a finished chunk stands for; its piece is removed."""
        Path(chunk.dump.file).unlink(missing_ok=True)
        position = self._positions.pop(chunk.number)
        self._shown, before = position, self._shown
        return position - before

    def check_end(self) -> None:
        """Raise what ended the stream before its end, once all chunks before that are done."""
        if self._error is not None:
            raise self._error
        self.source.check_unchanged()

    def go_on(self, state: dict[str, int] | None) -> None:
        """Take over what an earlier session found out by reading to the end."""
        if state is not None:
            self.end_state, self.size = state, state["size"]

    def close(self) -> None:
        """Remove the pieces, and close what was opened."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self.source.close()


AnyDump = Dump | StreamDump
