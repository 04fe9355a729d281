"""Segments (consecutive documents, compressed together) and the list of the segments of a file.

Data is not sent between processes: a worker writes segments to a temporary file, and the main
process copies the data from there, within the kernel if possible. Sending data through a pipe took
a sixth of the time of a conversion with two jobs, and memory for waiting data.

The journal of a growing file lists its segments; index, seek table and footer are written from this
list. It takes 32 bytes per segment in memory: for a dump of 100 GB, 5 MB. Parquet adds its notes.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from io import RawIOBase
from mmap import mmap
from pathlib import Path
from typing import BinaryIO, NamedTuple

from isal import isal_zlib

from so2docs.errors import OutputError, explain, is_full
from so2docs.store.disk import write_all

_COPY_BYTES = 256 * 1024


class Segment(NamedTuple):
    """Consecutive documents, compressed together: in memory, in a temporary file, or in an output.

    Attributes:
        first_id: Question id of the first document.
        offset: Offset in the temporary file or the output.
        size: Size after compression, in bytes.
        raw_size: Size before compression, in bytes.
        crc: CRC-32 of the bytes before compression.
        note: Information about this segment for the footer of the file, if any.
        data: The bytes to append to the output; empty for data in a file.
        path: The temporary file with the data; empty for data in memory or in the output.
        data_crc: CRC-32 of the data; 0 if the segment comes from an index.
        label: Label of the output file, if files are split by date or share; empty otherwise.
        answer_ids: The low 32 bits of the id of each answer, for the index.
    """

    first_id: int
    offset: int
    size: int
    raw_size: int
    documents: int
    crc: int
    note: bytes = b""
    data: bytes = b""
    path: str = ""
    data_crc: int = 0
    label: str = ""
    answer_ids: bytes = b""

    @classmethod
    def of(
        cls, data: bytes, raw_size: int, crc: int, first_id: int = 0, documents: int = 0
    ) -> Segment:
        """Make a segment in memory from compressed bytes; `crc` is that of the raw bytes."""
        data_crc = isal_zlib.crc32(data)
        return cls(first_id, 0, len(data), raw_size, documents, crc, b"", data, "", data_crc)


def store(path: str, *groups: Iterable[Segment]) -> list[list[Segment]]:
    """Write the data of segments to a temporary file, and return the segments without it."""
    offset = 0
    stored_groups: list[list[Segment]] = []
    with explain(path), open(path, "wb", buffering=0) as file:
        for group in groups:
            stored_groups.append([])
            for segment in group:
                write_all(file, segment.data)
                stored_groups[-1].append(segment._replace(data=b"", path=path, offset=offset))
                offset += segment.size
    return stored_groups


def remove(*groups: Iterable[Segment]) -> None:
    """Remove the temporary files that contain the data of segments."""
    for path in {segment.path for group in groups for segment in group if segment.path}:
        Path(path).unlink(missing_ok=True)


def copy_data(segment: Segment, target: RawIOBase | BinaryIO) -> None:
    """Copy the data of a segment from its temporary file to the position of an open file."""
    with open(segment.path, "rb", buffering=0) as source:
        source.seek(segment.offset)
        remaining = segment.size - _copy_in_kernel(source, target, segment.size)
        while remaining and (data := source.read(min(remaining, _COPY_BYTES))):
            write_all(target, data)
            remaining -= len(data)
    if remaining:
        raise OutputError(f"{segment.path}: is truncated", retry="")


def _copy_in_kernel(source: RawIOBase, target: RawIOBase | BinaryIO, size: int) -> int:
    """Copy up to `size` bytes within the kernel, if supported; return how many were copied."""
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


ENTRY = struct.Struct("<qqqII")
"""A segment in a list: question id of its first document, offset, size before compression, number
of documents, CRC-32 of the bytes before compression."""


class SegmentList:
    """The segments of a file in order, with 32 bytes for each.

    Attributes:
        count: Number of segments.
        end: End of the last segment in the file.
    """

    def __init__(self, entries: bytes | bytearray | mmap, start: int, count: int, end: int) -> None:
        """Wrap a list of `count` segments that begins at `start` in `entries`."""
        self._entries, self._start = entries, start
        self.count = count
        self.end = end

    def __getitem__(self, number: int) -> Segment:
        first_id, offset, raw_size, documents, crc = self._unpack(number)
        end = self.end if number == self.count - 1 else self._unpack(number + 1)[1]
        return Segment(first_id, offset, end - offset, raw_size, documents, crc)

    def __iter__(self) -> Iterator[Segment]:
        return map(self.__getitem__, range(self.count))

    def _unpack(self, number: int) -> tuple[int, int, int, int, int]:
        return ENTRY.unpack_from(self._entries, self._start + number * ENTRY.size)

    def first_id(self, number: int) -> int:
        """Return the question id of the first document of a segment."""
        return self._unpack(number)[0]


class Journal(SegmentList):
    """The segments of a growing file, and the totals derived from them.

    Attributes:
        entries: The list of segments, as `SegmentList` reads it and the index contains it.
        notes: The note of each segment.
        note_bytes: Size of all notes, in bytes.
        crc: CRC-32 of the file so far.
        raw_size: Size of the segments before compression, in bytes.
        raw_crc: CRC-32 of the segments before compression.
        documents: Number of documents.
    """

    def __init__(self, header: bytes = b"") -> None:
        self.entries = bytearray()
        super().__init__(self.entries, 0, 0, len(header))
        self.notes: list[bytes] = []
        self.crc = isal_zlib.crc32(header)
        self.raw_size = self.raw_crc = self.documents = self.note_bytes = 0

    def add(self, segment: Segment) -> None:
        """Record a segment that was appended to the file."""
        numbers = segment.raw_size, segment.documents, segment.crc
        self.entries += ENTRY.pack(segment.first_id, self.end, *numbers)
        self.notes.append(segment.note)
        self.crc = isal_zlib.crc32_combine(self.crc, segment.data_crc, segment.size)
        self.end += segment.size
        self.raw_crc = isal_zlib.crc32_combine(self.raw_crc, segment.crc, segment.raw_size)
        self.raw_size += segment.raw_size
        self.documents += segment.documents
        self.count += 1
        self.note_bytes += len(segment.note)
