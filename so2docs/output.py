"""One output file from independently compressed pieces.

Last in the flow. A worker compresses a piece on its own; the main process only appends the pieces
in order. The gzip stream (RFC 1952) is one member: raw deflate data (RFC 1951) of each piece ended
on a byte boundary by a full flush, an empty final block, and the CRC-32 of all joined from those of
the pieces. Some readers stop after the first member of a file, so there is only one.

The file grows under `NAME.part` and gets its final name when it is whole.
"""

from __future__ import annotations

import os
import struct
import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from isal import isal_zlib

from so2docs.errors import OutputError

Compression = Literal["gzip", "none"]

PIECE_BYTES = 1024 * 1024
"""A piece of the output is about this long before compression."""

# No file name, no time, "unknown" operating system: the bytes depend on the documents only.
_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_LAST_BLOCK = b"\x03\x00"
_ISAL_LEVELS = 3


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive documents, compressed.

    Attributes:
        data: Bytes to append to the output.
        raw_size: Bytes before compression.
        crc: CRC-32 of the bytes before compression.
        first_id: Question id of the first document.
        documents: Number of documents.
    """

    data: bytes
    raw_size: int
    crc: int
    first_id: int = 0
    documents: int = 0


def compression_of(path: str) -> Compression:
    """How an output of this name is compressed: `.jsonl` and standard output (`-`) are not."""
    return "none" if path == "-" or path.endswith((".jsonl", ".ndjson", ".json")) else "gzip"


def compress(
    raw: bytes, compression: Compression, level: int, first_id: int = 0, documents: int = 0
) -> Piece:
    """Compress a piece so that it can follow any other and be inflated on its own.

    Args:
        raw: Whole lines.
        compression: `gzip` or `none`.
        level: 0 to 3 for ISA-L (2 is about fifteen times as fast as zlib's 6), 4 to 9 for zlib.
        first_id: Question id of its first document.
        documents: Number of its documents.
    """
    crc = isal_zlib.crc32(raw)
    if compression == "none":
        return Piece(raw, len(raw), crc, first_id, documents)
    if level <= _ISAL_LEVELS:
        deflate = isal_zlib.compressobj(level, isal_zlib.DEFLATED, -15)
        data = deflate.compress(raw) + deflate.flush(isal_zlib.Z_FULL_FLUSH)
    else:
        slow = zlib.compressobj(level, zlib.DEFLATED, -15)
        data = slow.compress(raw) + slow.flush(zlib.Z_FULL_FLUSH)
    return Piece(data, len(raw), crc, first_id, documents)


def compress_lines(lines: Iterable[bytes], compression: Compression, level: int) -> Iterator[Piece]:
    """Compress lines in pieces of the usual size."""
    held: list[bytes] = []
    size = 0
    for line in lines:
        held.append(line)
        size += len(line)
        if size >= PIECE_BYTES:
            yield compress(b"".join(held), compression, level)
            held, size = [], 0
    if held:
        yield compress(b"".join(held), compression, level)


@dataclass(slots=True)
class Progress:
    """How far an output has been written: what a checkpoint keeps.

    Attributes:
        size: Bytes in the `.part` file.
        raw_size: Bytes before compression.
        crc: CRC-32 of those.
    """

    size: int = 0
    raw_size: int = 0
    crc: int = 0


class Output:
    """A file that appears under its name only when it is whole; `-` is standard output.

    Args:
        path: The final name.
        compression: `gzip` or `none`.
        resume: A checkpoint of an earlier session, to go on from there.

    Raises:
        OutputError: The folder is missing or not writable, or the `.part` file is not what the
            checkpoint says.
    """

    def __init__(
        self, path: str, compression: Compression, resume: dict[str, int] | None = None
    ) -> None:
        self.path = path
        self.part = f"{path}.part"
        self.progress = Progress(**resume) if resume else Progress()
        self._compression = compression
        self._file: BinaryIO | None = None
        try:
            if path == "-":
                self._file = sys.stdout.buffer
            elif resume and resume["size"]:
                self._file = open(self.part, "r+b")  # noqa: SIM115
                if self._file.seek(0, os.SEEK_END) < self.progress.size:
                    raise OutputError(
                        f"{self.part}: is shorter than the checkpoint says; "
                        "run again with --restart"
                    )
                self._file.seek(self.progress.size)
                self._file.truncate()
        except OSError as error:
            raise _output_error(self.part, error) from error

    def append(self, piece: Piece) -> None:
        """Append a piece."""
        if self._file is None:
            self._start()
        self._write(piece.data)
        done = self.progress
        done.crc = isal_zlib.crc32_combine(done.crc, piece.crc, piece.raw_size)
        done.raw_size += piece.raw_size

    def checkpoint(self) -> dict[str, int]:
        """Hand all bytes to the system, and say how far the file has come."""
        if self._file is not None:
            self._file.flush()
        return asdict(self.progress)

    def _start(self) -> None:
        try:
            self._file = open(self.part, "wb")  # noqa: SIM115
        except OSError as error:
            raise _output_error(self.part, error) from error

    def _write(self, data: bytes) -> None:
        assert self._file is not None
        if self.progress.size == 0 and self._compression == "gzip":
            data = _GZIP_HEADER + data
        self._file.write(data)
        self.progress.size += len(data)

    def finish(self) -> int:
        """End the stream and give the file its name.

        Returns:
            Its bytes.
        """
        if self._file is None:
            self._start()
        assert self._file is not None
        if self._compression == "gzip":
            trailer = struct.pack("<II", self.progress.crc, self.progress.raw_size & 0xFFFFFFFF)
            self._write(_LAST_BLOCK + trailer)
        self._file.flush()
        if self.path != "-":
            os.fsync(self._file.fileno())
            self._file.close()
            os.replace(self.part, self.path)
        return self.progress.size

    def __enter__(self) -> Output:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._file is not None and self.path != "-" and not self._file.closed:
            self._file.close()

    def discard(self) -> None:
        """Remove what was written under the `.part` name."""
        if self.path != "-":
            self.__exit__()
            Path(self.part).unlink(missing_ok=True)


def _output_error(path: str, error: OSError) -> OutputError:
    return OutputError(f"{path}: cannot be written: {error.strerror or error}")
