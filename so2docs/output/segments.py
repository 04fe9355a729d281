"""Segments: consecutive documents, compressed together, and the list of segments of a file.

Data is not sent between processes: a worker writes its segments to a temporary file, from which
they are copied, within the kernel if possible. Sending them through a pipe took a sixth of a
conversion at two jobs, and memory for waiting data.

The journal of a file lists its segments: the one list from which index, seek table and footer are
written. It takes a few bytes a segment in memory (of a dump of 100 GB, 5 MB, and 30 MB for Parquet)
and is saved next to the growing file at every checkpoint, so that a later session can resume.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from io import RawIOBase
from pathlib import Path
from typing import BinaryIO, NamedTuple

from isal import isal_zlib

from so2docs.errors import OutputError, flag
from so2docs.output.part_files import FileState, explain_errors, journal_path
from so2docs.store.disk import is_full, write_all

_COPY_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Stored:
    """Data of a segment in a temporary file.

    Attributes:
        path: The file.
        offset: Offset of the data in it.
        size: Its bytes.
        crc: Their CRC-32.
    """

    path: str
    offset: int
    size: int
    crc: int


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive documents, compressed.

    Attributes:
        data: Bytes to append to the output; empty if they are stored.
        raw_size: Bytes before compression.
        crc: CRC-32 of the bytes before compression.
        first_id: Question id of the first document.
        documents: Number of documents.
        note: Information on this segment for the end of the file, if any.
        stored: Position of the data, if it is in a temporary file.
        label: Label of its file, if files are split by date or share; empty otherwise.
    """

    data: bytes
    raw_size: int
    crc: int
    first_id: int = 0
    documents: int = 0
    note: bytes = b""
    stored: Stored | None = None
    label: str = ""

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return self.stored.size if self.stored else len(self.data)


def store(path: str, *groups: Iterable[Segment]) -> list[list[Segment]]:
    """Write the data of segments to a temporary file.

    Args:
        path: The file; it is not written if no segment has data.
        groups: Groups of segments.

    Returns:
        The same groups, with the position of the data instead of the data.

    Raises:
        OutputError: The file cannot be written.
        DiskFullError: The disk is full.
    """
    offset = 0
    stored_groups: list[list[Segment]] = []
    with explain_errors(path), open(path, "wb", buffering=0) as file:
        for group in groups:
            stored_groups.append([])
            for segment in group:
                write_all(file, segment.data)
                size = len(segment.data)
                place = Stored(path, offset, size, isal_zlib.crc32(segment.data))
                stored_groups[-1].append(replace(segment, data=b"", stored=place))
                offset += size
    return stored_groups


def temporary_files(*groups: Iterable[Segment]) -> set[str]:
    """The temporary files of segments."""
    return {segment.stored.path for group in groups for segment in group if segment.stored}


def remove(*groups: Iterable[Segment]) -> None:
    """Remove the temporary files of segments."""
    for path in temporary_files(*groups):
        Path(path).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Copy:
    """Bytes of a file to copy to another one.

    Attributes:
        source: The file to copy from.
        offset: Offset of the bytes in it.
        size: Their number.
        target: The file to copy to.
        at: Offset in the target.
    """

    source: str
    offset: int
    size: int
    target: str
    at: int

    def join(self, other: Copy) -> Copy | None:
        """Join two copies if the other continues this one."""
        end = replace(self, offset=self.offset + self.size, at=self.at + self.size, size=other.size)
        return replace(self, size=self.size + other.size) if end == other else None


def copy_all(copies: Iterable[Copy]) -> None:
    """Copy bytes between files.

    A process that is killed here may still write for a moment while another one resumes what it
    did: the same bytes at the same position, since a file that is started again is another file.

    Raises:
        OutputError: A source is cut off, or a target cannot be written.
        DiskFullError: The disk is full.
    """
    for copy in copies:
        with (
            explain_errors(copy.target),
            open(copy.source, "rb", buffering=0) as source,
            open(copy.target, "r+b", buffering=0) as target,
        ):
            source.seek(copy.offset)
            target.seek(copy.at)
            remaining = copy.size - _copy_in_kernel(source, target, copy.size)
            copy_by_reading(copy.source, source, target, remaining)


def _copy_in_kernel(source: RawIOBase, target: RawIOBase, size: int) -> int:
    """Copy without reading, if the system supports it; return the number of copied bytes."""
    total = 0
    while total < size and hasattr(os, "copy_file_range"):
        try:
            copied = os.copy_file_range(source.fileno(), target.fileno(), size - total)
        except OSError as error:
            if is_full(error):
                raise
            break
        if not copied:
            break
        total += copied
    return total


def copy_by_reading(path: str, source: RawIOBase, target: RawIOBase | BinaryIO, size: int) -> None:
    """Copy the next bytes of an open file, whose name is `path`, to another one.

    Raises:
        OutputError: The source is cut off.
    """
    while size and (data := source.read(min(size, _COPY_BYTES))):
        write_all(target, data)
        size -= len(data)
    if size:
        raise OutputError(f"{path}: is cut off", retry="")


class Entry(NamedTuple):
    """A segment in a file.

    Attributes:
        first_id: Question id of its first document.
        offset: Bytes from the start of the file.
        size: Its bytes there.
        raw_size: Its bytes before compression.
        documents: Number of its documents.
        crc: CRC-32 of its bytes before compression.
        note: What the end of the file has to say about it.
    """

    first_id: int
    offset: int
    size: int
    raw_size: int
    documents: int
    crc: int
    note: bytes = b""


_RECORD = struct.Struct("<qQQIIII")
"""Of the saved journal: as in `Entry`, without the offset, then the CRC-32 of the segment in the
file and the length of the note, which follows."""


class Journal:
    """The segments of a file; all that is known of a file that grows follows from them.

    Args:
        path: The file.
        header: Its bytes before the first segment.
        saved: The journal of an earlier session, which `matches_checkpoint` found unchanged.

    Attributes:
        size: Bytes of the file so far.
        crc: CRC-32 of those.
        raw_size: Bytes of the segments before compression.
        raw_crc: CRC-32 of those.
        documents: Number of documents.
        count: Number of segments.
        note_bytes: Bytes of their notes.

    Raises:
        OutputError: The saved journal cannot be read.
    """

    def __init__(self, path: str, header: bytes = b"", saved: FileState | None = None) -> None:
        self._path = journal_path(path)
        self._start = self.size = len(header)
        self.crc = isal_zlib.crc32(header)
        self.raw_size = self.raw_crc = self.documents = self.count = self.note_bytes = 0
        self._records = bytearray()
        self._saved = self._saved_crc = 0
        if saved is not None and saved.size:
            try:
                self._records += Path(self._path).read_bytes()[: saved.size]
            except OSError as error:
                raise OutputError(
                    f"{self._path}: cannot be read ({error.strerror}); run again with "
                    f"{flag('restart', True)}"
                ) from error
            self._saved, self._saved_crc = len(self._records), isal_zlib.crc32(self._records)
            for entry, data_crc in self._entries():
                self._count(entry, data_crc)

    def _entries(self) -> Iterator[tuple[Entry, int]]:
        """Each entry with the CRC-32 of its bytes in the file."""
        at, offset = 0, self._start
        while at < len(self._records):
            record = _RECORD.unpack_from(self._records, at)
            first_id, size, raw_size, documents, crc, data_crc, length = record
            at += _RECORD.size + length
            note = bytes(self._records[at - length : at])
            yield Entry(first_id, offset, size, raw_size, documents, crc, note), data_crc
            offset += size

    def __iter__(self) -> Iterator[Entry]:
        return (entry for entry, _ in self._entries())

    def add(self, segment: Segment) -> None:
        """Add a segment that was appended to the file."""
        stored, note = segment.stored, segment.note
        data_crc = isal_zlib.crc32(segment.data) if stored is None else stored.crc
        entry = Entry(
            segment.first_id,
            self.size,
            segment.size,
            segment.raw_size,
            segment.documents,
            segment.crc,
            note,
        )
        self._records += _RECORD.pack(entry.first_id, *entry[2:-1], data_crc, len(note)) + note
        self._count(entry, data_crc)

    def _count(self, entry: Entry, data_crc: int) -> None:
        self.crc = isal_zlib.crc32_combine(self.crc, data_crc, entry.size)
        self.size += entry.size
        self.raw_crc = isal_zlib.crc32_combine(self.raw_crc, entry.crc, entry.raw_size)
        self.raw_size += entry.raw_size
        self.documents += entry.documents
        self.count += 1
        self.note_bytes += len(entry.note)

    def save(self) -> tuple[int, int]:
        """Save what was added since the last time; size and CRC-32 of the saved journal.

        Raises:
            OutputError: It cannot be written.
            DiskFullError: The disk is full.
        """
        if len(self._records) > self._saved:
            added = self._records[self._saved :]
            mode = "r+b" if self._saved else "wb"
            with explain_errors(self._path), open(self._path, mode) as file:
                file.seek(self._saved)
                file.write(added)
                file.truncate()
            self._saved_crc = isal_zlib.crc32(added, self._saved_crc)
            self._saved = len(self._records)
        return self._saved, self._saved_crc
