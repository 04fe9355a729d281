"""The pieces of an output whose end tells about each of them: a zstd seek table, a Parquet footer.

A few bytes a piece, held in memory (of a dump of 100 GB, 2 MB for zstd and about 30 MB for Parquet)
and saved next to the growing file at every checkpoint, so that a later session can write the end.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from so2docs.errors import OutputError

_RECORD = struct.Struct("<QQI")


class LoggedPiece(NamedTuple):
    """A piece of an output: its bytes in the file and before compression, and its note."""

    size: int
    raw_size: int
    note: bytes


class PieceLog:
    """The pieces of one file.

    Args:
        path: Side file to save them in; None if no session will ever go on with the file.
        saved: Bytes of the side file that count.

    Raises:
        OutputError: The side file is missing or too short.
    """

    def __init__(self, path: str | None, saved: int = 0) -> None:
        self.note_bytes = 0
        self._path = None if path is None else Path(path)
        self._saved = saved
        self._records = bytearray()
        if self._path is not None and saved:
            with suppress(OSError):
                self._records += self._path.read_bytes()[:saved]
            if len(self._records) < saved:
                raise OutputError(f"{path}: is missing or too short; run again with --restart")
        self.count = 0
        for piece in self:
            self.count += 1
            self.note_bytes += len(piece.note)

    def __iter__(self) -> Iterator[LoggedPiece]:
        at = 0
        while at < len(self._records):
            size, raw_size, length = _RECORD.unpack_from(self._records, at)
            at += _RECORD.size + length
            yield LoggedPiece(size, raw_size, bytes(self._records[at - length : at]))

    def add(self, size: int, raw_size: int, note: bytes) -> None:
        """Add the piece that was appended to the file."""
        self._records += _RECORD.pack(size, raw_size, len(note)) + note
        self.count += 1
        self.note_bytes += len(note)

    def save(self) -> int:
        """Save what was added since the last time; the bytes of the side file that count."""
        if self._path is not None and len(self._records) > self._saved:
            with open(self._path, "r+b" if self._saved else "wb") as file:
                file.seek(self._saved)
                file.write(self._records[self._saved :])
                file.truncate()
            self._saved = len(self._records)
        return self._saved
