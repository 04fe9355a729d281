"""One output file from independently compressed segments, with its index next to it.

Last in the flow. A worker compresses a segment on its own; the main process only appends them in
order. The file grows under `NAME.part`, and so does its index; both get their names when they are
whole, the index first, so that there is no output without one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from isal import isal_zlib

from so2docs.options.choices import Compression
from so2docs.output import index, journal
from so2docs.output.compression import stream_header, stream_trailer, trailer_bytes
from so2docs.output.journal import Journal, JournalEntry
from so2docs.output.part_files import (
    CompleteFile,
    Copy,
    PartFile,
    begins_with,
    copy_all,
    part_path,
    remove,
)
from so2docs.output.segments import Segment


@dataclass(slots=True, frozen=True)
class FileProgress:
    """How far an output file has been written: what a checkpoint keeps, in JSON types only.

    Attributes:
        size: Bytes in the `.part` file.
        file_crc: CRC-32 of those.
        raw_size: Bytes before compression.
        crc: CRC-32 of those.
        journal_size: Bytes of the saved journal, where there is one.
        journal_crc: CRC-32 of those.
    """

    size: int = 0
    file_crc: int = 0
    raw_size: int = 0
    crc: int = 0
    journal_size: int = 0
    journal_crc: int = 0

    def to_json(self) -> dict[str, int]:
        """All fields by name."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, int]) -> FileProgress:
        """Parse the result of `to_json`."""
        return cls(**values)


class Output:
    """A file that appears under its name only when it is whole; `-` is standard output.

    Args:
        path: The final name.
        compression: `gzip`, `zstd` or `none`.
        resume: A checkpoint of an earlier session that `matches_checkpoint` finds true.
        indexed: Whether an index is written next to it; never for standard output.
        logs: Whether what is written at the end tells about every segment.

    Raises:
        OutputError: The folder is missing or not writable.
        DiskFullError: The disk is full.
    """

    def __init__(
        self,
        path: str,
        compression: Compression,
        resume: FileProgress | None = None,
        *,
        indexed: bool = False,
        logs: bool = False,
    ) -> None:
        before = resume or FileProgress()
        self.path = path
        self.file = PartFile(path, before.size, before.file_crc)
        self.raw_size = before.raw_size
        self._crc = before.crc
        self._compression = compression
        self._is_indexed = indexed and path != "-"
        is_saved = path != "-" and (indexed or logs or compression == "zstd")
        side = journal.journal_path(self.file.part) if is_saved else None
        self.journal = Journal(side, before.journal_size)

    def _start(self) -> None:
        if not self.file.size:
            self.file.write(stream_header(self._compression))

    def append(self, segment: Segment) -> None:
        """Append a segment."""
        copy_all(self.place(segment))

    def place(self, segment: Segment) -> list[Copy]:
        """Append a segment, but for its data where that is in a file.

        Returns:
            What is to be copied before the file is sealed.
        """
        self._start()
        copies = []
        stored = segment.stored
        if stored is None:
            self.file.write(segment.data)
        elif self.path == "-":
            self.file.copy(stored.path, stored.offset, stored.size, stored.crc)
        else:
            copies = [self.file.place(stored.path, stored.offset, stored.size, stored.crc)]
        self._crc = isal_zlib.crc32_combine(self._crc, segment.crc, segment.raw_size)
        self.raw_size += segment.raw_size
        self.journal.add(
            JournalEntry(
                segment.first_id,
                segment.size,
                segment.raw_size,
                segment.crc,
                segment.documents,
                segment.note,
            )
        )
        return copies

    def checkpoint(self) -> FileProgress:
        """How far the file has come, once all is copied that has its place."""
        saved = self.journal.save()
        file = self.file
        crc = self.journal.crc if saved else 0
        return FileProgress(file.size, file.crc, self.raw_size, self._crc, saved, crc)

    def size_with(self, segments: int, data_bytes: int) -> int:
        """Size of the finished file after more segments with a total size."""
        fresh = 0 if self.file.size else len(stream_header(self._compression))
        end = trailer_bytes(self._compression, self.journal.count + segments)
        return self.file.size + data_bytes + fresh + end

    def seal(self, record: bytes = b"", label: str = "") -> CompleteFile:
        """End the stream: what is left to do is to give file and index their names.

        Args:
            record: How it was made, for the index.
            label: What of the file's name is its own.
        """
        self._start()
        end = self.file.size
        self.file.write(stream_trailer(self._compression, self.journal, self._crc, self.raw_size))
        complete = self.file.finish(label)
        if self._is_indexed or (record and self.path != "-"):
            entries = self.journal if self._is_indexed else None
            complete = replace(
                complete, index=index.write(self.path, entries, end, self.file.part, record)
            )
        return complete

    def __enter__(self) -> Output:
        return self

    def __exit__(self, *exception: object) -> None:
        self.file.close()

    def discard(self) -> None:
        """Remove what was written under the `.part` name."""
        self.file.discard()
        if self.path != "-":
            remove_journal(self.path)
            remove(part_path(index.index_path(self.path)))


def remove_journal(path: str) -> None:
    """Remove the journal of a file that has its name."""
    remove(journal.journal_path(part_path(path)))


def matches_checkpoint(path: str, progress: FileProgress | None) -> bool:
    """Whether the `.part` file of an output, and its journal, begin as a checkpoint says."""
    if progress is None or not progress.size:
        return True
    part = part_path(path)
    return begins_with(part, progress.size, progress.file_crc) and (
        not progress.journal_size
        or begins_with(journal.journal_path(part), progress.journal_size, progress.journal_crc)
    )
