"""Write one output file from independently compressed segments, and the index next to it.

This is the last step. Workers compress segments; the main process only appends them in order. The
file grows under the name `NAME.part`. When it is complete, the index is written, and both are
renamed to their final names, the index first, so that every output has an index.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import RawIOBase
from typing import BinaryIO, Self

from isal import isal_zlib

from so2docs.errors import explain
from so2docs.options.choices import Compression
from so2docs.output import index
from so2docs.output.compression import SEGMENT_BYTES, compress, stream_header, stream_trailer
from so2docs.output.new_files import NewFiles
from so2docs.output.part_files import FileState, finish_file, part_path
from so2docs.output.segments import Copy, Journal, Segment, copy_all, copy_by_reading
from so2docs.standard_streams import open_standard_output
from so2docs.store.disk import write_all


class Output:
    """An output file, which has a temporary name until it is complete; `-` is standard output.

    Args:
        files: The new files, to which the file is added once it is complete.
        path: The final name.
        compression: `gzip`, `zstd` or `none`.
        level: Compression level for bytes from `write`.
        indexed: Whether to write an index next to the file; never for standard output.

    Attributes:
        journal: The segments appended so far.
    """

    def __init__(
        self,
        files: NewFiles,
        path: str,
        compression: Compression,
        *,
        level: int = 2,
        indexed: bool = False,
    ) -> None:
        self.path = path
        self.journal = Journal(stream_header(compression))
        self.compression: Compression = compression
        self._files = files
        self._level = level
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._is_indexed = indexed and path != "-"
        self._index = index.index_path(path)
        self._file: RawIOBase | BinaryIO | None = None
        self._part = path if path == "-" else part_path(path)
        if path == "-":
            open_standard_output()  # Fail now if it is closed.

    def _open(self) -> RawIOBase | BinaryIO:
        if self._file is None:
            is_new = not self.journal.count
            if self.path == "-":
                self._file = open_standard_output()
            elif is_new:
                self._files.begin(self._index)
                self._file = open(self._files.begin(self.path), "xb", buffering=0)  # noqa: SIM115
            else:
                self._file = open(self._part, "r+b", buffering=0)  # noqa: SIM115
                self._file.seek(self.journal.end)
            if is_new:
                write_all(self._file, stream_header(self.compression))
        return self._file

    def write(self, data: bytes) -> None:
        """Buffer bytes; append the buffer as a segment once it has `SEGMENT_BYTES`."""
        self._held.append(data)
        self._held_bytes += len(data)
        if self._held_bytes >= SEGMENT_BYTES:
            self.end_segment()

    def end_segment(self) -> None:
        """Append the buffered bytes, if any, as a segment."""
        if self._held_bytes:
            raw = b"".join(self._held)
            self._held, self._held_bytes = [], 0
            self.append(compress(raw, self.compression, self._level, 0, 0))

    def append(self, segment: Segment) -> None:
        """Append a segment, whose data may be in memory or in a temporary file."""
        copy_all(self.place(segment))

    def place(self, segment: Segment) -> list[Copy]:
        """Append a segment; for data in a temporary file, return the copies to make later."""
        copies = []
        with explain(self._part):
            file = self._open()
            if not segment.path:
                write_all(file, segment.data)
            elif self.path == "-":
                with open(segment.path, "rb", buffering=0) as source:
                    source.seek(segment.offset)
                    copy_by_reading(segment.path, source, file, segment.size)
            else:
                at = self.journal.end
                file.seek(at + segment.size)
                copies = [Copy(segment.path, segment.offset, segment.size, self._part, at)]
        if self._is_indexed:
            with self._open_index() as index_file:
                index.add_answers(index_file, segment.answer_ids)
        self.journal.add(segment)
        return copies

    @contextmanager
    def _open_index(self) -> Iterator[BinaryIO]:
        """Open the unfinished index at its end."""
        path = part_path(self._index)
        with explain(path), open(path, "a+b") as file:
            yield file

    def seal(self, record: bytes = b"") -> FileState:
        """End the stream, and write the index, so that both files are ready to be renamed.

        The index stores `record`, the provenance, if it is not empty.
        """
        self.end_segment()
        journal = self.journal
        trailer = stream_trailer(self.compression, journal)
        size, crc = journal.end + len(trailer), isal_zlib.crc32(trailer, journal.crc)
        with explain(self._part):
            file = self._open()
            write_all(file, trailer)
            if self.path == "-":
                file.flush()
                return FileState("-", size, crc)
        self.close()
        state = finish_file(self.path, crc)
        self._files.add(self.path, state)
        if self._is_indexed or record:
            is_indexed = self._is_indexed
            with open(self._part, "rb") as part, self._open_index() as file:
                index.complete(file, journal, part, is_indexed=is_indexed, record=record, crc=crc)
            self._files.add(self._index, finish_file(self._index))
        return state

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the next append reopens it."""
        if self._file is not None and self.path != "-":
            self._file.close()
            self._file = None
