"""Segments: consecutive documents, compressed on their own, in a worker, and appended by another.

Data never travels between processes: a worker puts its segments into a temporary file, from which
the main process appends them, within the kernel where that can be. Sent through a pipe, they took a
sixth of a conversion at two jobs, and memory for what waited there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from isal import isal_zlib

from so2docs.output.part_files import explain_errors
from so2docs.store.disk import write_all


@dataclass(frozen=True, slots=True)
class Stored:
    """Data of a segment in a temporary file.

    Attributes:
        path: The file.
        offset: Where in it the data starts.
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
        note: What the end of the file has to say about this segment, if anything.
        stored: Where the data is, if it is in a temporary file.
        period: Year or month of all its questions, where files are split by date; empty for none.
    """

    data: bytes
    raw_size: int
    crc: int
    first_id: int = 0
    documents: int = 0
    note: bytes = b""
    stored: Stored | None = None
    period: str = ""

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return self.stored.size if self.stored else len(self.data)


def store(path: str, *groups: Iterable[Segment]) -> list[list[Segment]]:
    """Write the data of segments to a temporary file.

    Args:
        path: The file; it is not written if no segment has data.
        groups: Segments.

    Returns:
        The same groups, with the place of the data instead of the data.

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
    """The temporary files that segments are in."""
    return {segment.stored.path for group in groups for segment in group if segment.stored}


def remove(*groups: Iterable[Segment]) -> None:
    """Remove the temporary files of segments."""
    for path in temporary_files(*groups):
        Path(path).unlink(missing_ok=True)
