"""Write one output file from independently compressed segments, and the index next to it.

This is the last step. Workers compress segments; the main process only appends them in order. When
the file is complete, the index is written; both are renamed together with the other new files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from io import RawIOBase
from typing import BinaryIO

from isal import isal_zlib

from so2docs.errors import explain
from so2docs.options.choices import Compression
from so2docs.output import index
from so2docs.output.compression import SEGMENT_BYTES, compress, stream_header, stream_trailer
from so2docs.output.new_files import NewFiles
from so2docs.output.segments import Journal, Segment, copy_data
from so2docs.standard_streams import open_standard_output
from so2docs.store.disk import write_all

_LEVEL = 2
"""Compression level for bytes from `write`."""


class Output:
    """An output file, which is open only while it is written to; `-` is standard output.

    Args:
        files: The new files, to which the file is added once it is complete.
        path: The final name.
        compression: `gzip`, `zstd` or `none`.
        indexed: Whether to write an index next to the file; never for standard output.

    Attributes:
        journal: The segments appended so far.
    """

    def __init__(
        self, files: NewFiles, path: str, compression: Compression, *, indexed: bool = False
    ) -> None:
        self.path = path
        self.journal = Journal(stream_header(compression))
        self.compression: Compression = compression
        self._files = files
        self._held = bytearray()
        self._is_indexed = indexed and path != "-"
        self._index = index.index_path(path)
        self._part = self._index_part = "-"
        if path == "-":
            open_standard_output()  # Fail now if it is closed.
        else:
            self._part, self._index_part = map(files.unfinished, (path, self._index))

    @contextmanager
    def _opened(self) -> Iterator[RawIOBase | BinaryIO]:
        """Open the file at its end; a new file gets the header of the stream."""
        is_new = not self.journal.count
        opened: AbstractContextManager[RawIOBase | BinaryIO]
        with explain(self._part):
            if self.path == "-":
                opened = nullcontext(open_standard_output())
            else:
                opened = open(self._part, "xb" if is_new else "r+b", buffering=0)  # noqa: SIM115
            with opened as file:
                if is_new:
                    write_all(file, stream_header(self.compression))
                elif self.path != "-":
                    file.seek(self.journal.end)
                yield file

    def write(self, data: bytes) -> None:
        """Buffer bytes; append the buffer as a segment once it has `SEGMENT_BYTES`."""
        self._held += data
        if len(self._held) >= SEGMENT_BYTES:
            self._end_segment()

    def _end_segment(self) -> None:
        if self._held:
            self.append(compress(bytes(self._held), self.compression, _LEVEL))
            self._held.clear()

    def append(self, segment: Segment) -> None:
        """Append a segment, whose data may be in memory or in a temporary file."""
        with self._opened() as file:
            if segment.path:
                copy_data(segment, file)
            else:
                write_all(file, segment.data)
        if self._is_indexed:
            with self._opened_index() as index_file:
                index.add_answers(index_file, segment.answer_ids)
        self.journal.add(segment)

    @contextmanager
    def _opened_index(self) -> Iterator[BinaryIO]:
        """Open the unfinished index at its end."""
        with explain(self._index_part), open(self._index_part, "a+b") as file:
            yield file

    def seal(self, record: bytes = b"") -> int:
        """End the stream, and write the index, so that both files are ready to be renamed.

        Args:
            record: The provenance, which the index stores; empty for none.

        Returns:
            The size of the file in bytes.
        """
        self._end_segment()
        journal = self.journal
        trailer = stream_trailer(self.compression, journal)
        crc = isal_zlib.crc32(trailer, journal.crc)
        with self._opened() as file:
            write_all(file, trailer)
            file.flush()
        if self.path != "-":
            self._files.add(self.path, crc)
            if self._is_indexed or record:
                is_indexed = self._is_indexed
                with open(self._part, "rb") as part, self._opened_index() as file:
                    index.complete(
                        file, journal, part, is_indexed=is_indexed, record=record, crc=crc
                    )
                self._files.add(self._index)
        return journal.end + len(trailer)
