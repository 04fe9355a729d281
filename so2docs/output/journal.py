"""What an output consists of: the one list from which its index, seek table and footer are written.

A few bytes a segment, held in memory (of a dump of 100 GB, 5 MB, and 30 MB for Parquet) and saved
next to the growing file at every checkpoint, so that a later session can write the end. The side
file is only appended to; a checkpoint has its length and CRC-32.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from isal import isal_zlib

from so2docs.errors import OutputError, flag
from so2docs.output.part_files import explain_errors

_RECORD = struct.Struct("<qQQIII")


class JournalEntry(NamedTuple):
    """A segment of an output.

    Attributes:
        first_id: Question id of its first document.
        size: Its bytes in the file.
        raw_size: Its bytes before compression.
        crc: CRC-32 of those.
        documents: Number of its documents.
        note: What the end of the file has to say about it.
    """

    first_id: int
    size: int
    raw_size: int
    crc: int
    documents: int
    note: bytes


def journal_path(part: str) -> str:
    """The side file of a growing file."""
    return f"{part}.pieces"


class Journal:
    """The segments of one file.

    Args:
        path: Side file to save them in; None if no session will ever resume.
        saved: Bytes of the side file that count, which `matches_checkpoint` found true.

    Raises:
        OutputError: The side file cannot be read.
    """

    def __init__(self, path: str | None, saved: int = 0) -> None:
        self._path = path
        self._saved = 0
        self._records = bytearray()
        if path is not None and saved:
            try:
                self._records += Path(path).read_bytes()[:saved]
            except OSError as error:
                raise OutputError(
                    f"{path}: cannot be read ({error.strerror}); run again with "
                    f"{flag('restart', True)}"
                ) from error
            self._saved = len(self._records)
        self.crc = isal_zlib.crc32(self._records)
        self.count = self.note_bytes = 0
        for record in self:
            self.count += 1
            self.note_bytes += len(record.note)

    def __iter__(self) -> Iterator[JournalEntry]:
        at = 0
        while at < len(self._records):
            *numbers, length = _RECORD.unpack_from(self._records, at)
            at += _RECORD.size + length
            yield JournalEntry._make([*numbers, bytes(self._records[at - length : at])])

    def add(self, record: JournalEntry) -> None:
        """Add the segment that was appended to the file."""
        self._records += _RECORD.pack(*record[:-1], len(record.note)) + record.note
        self.count += 1
        self.note_bytes += len(record.note)

    def save(self) -> int:
        """Save what was added since the last time; the bytes of the side file that count.

        Raises:
            OutputError: The side file cannot be written.
            DiskFullError: The disk is full.
        """
        if self._path is not None and len(self._records) > self._saved:
            added = self._records[self._saved :]
            mode = "r+b" if self._saved else "wb"
            with explain_errors(self._path), open(self._path, mode) as file:
                file.seek(self._saved)
                file.write(added)
                file.truncate()
            self.crc = isal_zlib.crc32(added, self.crc)
            self._saved = len(self._records)
        return self._saved
