"""One output file from independently compressed pieces.

Last in the flow. A worker compresses a piece on its own; the main process only appends the pieces
in order. The gzip stream (RFC 1952) is one member: raw deflate data (RFC 1951) of each piece ended
on a byte boundary by a full flush, an empty final block, and the CRC-32 of all joined from those of
the pieces. Some readers stop after the first member of a file, so there is only one.

The file grows under `NAME.part` and gets its final name when it is whole. An index grows beside it
and gets its name first, so that no output stands there without.

A zstd stream is a frame for each piece and, at the end, a table of the frames, which readers skip
that do not know it.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from io import RawIOBase
from pathlib import Path
from typing import BinaryIO

from isal import isal_zlib

from so2docs.errors import DiskFullError, OutputError, So2docsError
from so2docs.options.choices import Compression
from so2docs.output import seekable
from so2docs.output.compression import GZIP_HEADER, LAST_BLOCK, Piece, Written
from so2docs.output.index import Builder, UnusableIndexError
from so2docs.output.index_writer import Writer
from so2docs.output.journal import PieceLog
from so2docs.store.disk import is_full, write_all

_COPY_BYTES = 256 * 1024
_TRAILER = struct.Struct("<II")


@dataclass(slots=True)
class Progress:
    """How far an output has been written: what a checkpoint keeps.

    Attributes:
        size: Bytes in the `.part` file.
        file_crc: CRC-32 of those.
        raw_size: Bytes before compression.
        crc: CRC-32 of those.
        pieces: Pieces in the index.
        documents: Documents in those.
        index_crc: CRC-32 of the index so far.
        logged: Bytes of the log of its pieces, where there is one.
    """

    size: int = 0
    file_crc: int = 0
    raw_size: int = 0
    crc: int = 0
    pieces: int = 0
    documents: int = 0
    index_crc: int = 0
    logged: int = 0


class Output:
    """A file that appears under its name only when it is whole; `-` is standard output.

    Args:
        path: The final name.
        compression: `gzip`, `zstd` or `none`.
        resume: A checkpoint of an earlier session that `is_as_left` finds true, to go on from.
        indexed: Whether an index is written beside it; never for standard output.
        logs: Whether the format's end tells about every piece.

    Raises:
        OutputError: The folder is missing or not writable.
        DiskFullError: The disk is full.
    """

    def __init__(
        self,
        path: str,
        compression: Compression,
        resume: dict[str, int] | None = None,
        *,
        indexed: bool = False,
        logs: bool = False,
    ) -> None:
        self.path = path
        self.part = f"{path}.part"
        self.progress = Progress(**resume) if resume else Progress()
        self.log: PieceLog | None = None
        self._compression = compression
        self._file: RawIOBase | BinaryIO | None = None
        self._indexed = indexed and path != "-"
        self._index: Writer | None = None
        if logs or compression == "zstd":
            side = None if path == "-" else f"{self.part}.pieces"
            self.log = PieceLog(side, self.progress.logged)
        with self._explained():
            if path == "-":
                if sys.stdout is None:  # It was closed before Python started.
                    raise OutputError("standard output is closed; name a file instead of -")
                self._file = sys.stdout.buffer
            elif self.progress.size:
                self._file = open(self.part, "r+b", buffering=0)  # noqa: SIM115
                self._file.seek(self.progress.size)
                self._file.truncate()
                self._start_index()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what the system says into what a user can act on."""
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            raise output_error(self.path if self.path == "-" else self.part, error) from error

    def append(self, piece: Piece) -> None:
        """Append a piece."""
        done = self.progress
        if piece.written and piece.written.aside:
            self._copy(piece.written.aside, piece.written)
        elif piece.written:
            self._pass_over(piece.written)
        else:
            self._write(piece.data)
        done.crc = isal_zlib.crc32_combine(done.crc, piece.crc, piece.raw_size)
        done.raw_size += piece.raw_size
        if self._index is not None:
            offset = done.size - piece.size
            self._index.add(piece.first_id, offset, piece.raw_size, piece.documents, piece.crc)
        if self.log is not None:
            self.log.add(piece.size, piece.raw_size, piece.note)

    def _copy(self, path: str, data: Written) -> None:
        """Append data that stands in another file."""
        left = data.size
        with self._explained(), open(path, "rb", buffering=0) as file:
            file.seek(data.offset)
            while left and (read := file.read(min(left, _COPY_BYTES))):
                self._write(read)
                left -= len(read)
        if left:
            raise OutputError(f"{path}: is cut off", retry="")

    def _pass_over(self, data: Written) -> None:
        """Count data that stands in the file."""
        assert isinstance(self._file, RawIOBase)
        done = self.progress
        done.size = self._file.seek(data.size, os.SEEK_CUR)
        done.file_crc = isal_zlib.crc32_combine(done.file_crc, data.crc, data.size)

    def begin(self) -> int:
        """Start the file if there is none; the offset of the next piece, in bytes."""
        if self._file is None:
            self._write(b"")
        return self.progress.size

    def checkpoint(self) -> dict[str, int]:
        """How far the file has come: all of that is in the hands of the system."""
        if self._index is not None:
            self._index.flush()
            done = self._index.builder
            self.progress.pieces, self.progress.documents = done.pieces, done.documents
            self.progress.index_crc = done.crc
        if self.log is not None:
            with self._explained():
                self.progress.logged = self.log.save()
        return asdict(self.progress)

    def size_with(self, pieces: int, data_bytes: int) -> int:
        """Bytes of the finished file if so many more pieces of so many bytes were appended."""
        size = self.progress.size + data_bytes
        if self._compression == "gzip":
            fresh = 0 if self.progress.size else len(GZIP_HEADER)
            return size + fresh + len(LAST_BLOCK) + _TRAILER.size
        if self._compression == "zstd" and self.log is not None:
            return size + seekable.table_bytes(self.log.count + pieces)
        return size

    def _start_index(self) -> None:
        if not self._indexed:
            return
        done = self.progress
        go_on = done.size > 0
        begun = (done.pieces, done.documents, done.index_crc) if go_on else ()
        # An index that was lost does not fail the conversion: whoever opens the output makes it.
        with suppress(UnusableIndexError):
            self._index = Writer(self.path, Builder(*begun), go_on=go_on)

    def _write(self, data: bytes) -> None:
        if self.progress.size == 0 and self._compression == "gzip":
            data = GZIP_HEADER + data
        with self._explained():
            if self._file is None:
                self._file = open(self.part, "wb", buffering=0)  # noqa: SIM115
                self._start_index()
            write_all(self._file, data)
        self.progress.size += len(data)
        self.progress.file_crc = isal_zlib.crc32(data, self.progress.file_crc)

    def seal(self) -> int:
        """End the stream: what is left to do is to give the file its name.

        Returns:
            Its bytes.
        """
        last = b""
        if self._compression == "gzip":
            done = self.progress
            last = LAST_BLOCK + _TRAILER.pack(done.crc, done.raw_size & 0xFFFFFFFF)
        elif self._compression == "zstd" and self.log is not None:
            last = seekable.table((size, raw_size) for size, raw_size, _ in self.log)
        self._write(last)
        assert self._file is not None
        with self._explained():
            if self.path == "-":
                self._file.flush()
            else:
                os.fsync(self._file.fileno())
                self._file.close()
                if self._index is not None:
                    end = self.progress.size - len(last)
                    self._index.finish(end, self.part, self.progress.size)
        return self.progress.size

    def __enter__(self) -> Output:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._file is not None and self.path != "-" and not self._file.closed:
            self._file.close()
        if self._index is not None:
            self._index.close()

    def discard(self) -> None:
        """Remove what was written under the `.part` name."""
        if self._index is not None:
            self._index.discard()
        if self.path != "-":
            self.__exit__()
            Path(self.part).unlink(missing_ok=True)
            Path(f"{self.part}.pieces").unlink(missing_ok=True)


def output_error(path: str, error: OSError) -> So2docsError:
    """The error for a file that the system will not write."""
    if is_full(error):
        return DiskFullError(f"{path}: the disk is full", retry="free some room")
    return OutputError(f"{path}: cannot be written: {error.strerror or error}", retry="see to it")
