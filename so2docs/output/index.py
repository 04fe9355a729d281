r"""The index next to an output, to find a document by its id, or by the id of an answer.

`.OUTPUT.index` is a small binary file in little-endian order. Equal outputs have equal indexes.

    header   "so2docs index 4\n"
    answers  for each segment, the number of answers, and the low 32 bits of the id of each answer
    entries  one per segment, in the order of the file: question id of its first document, offset of
             its (compressed) bytes, size before compression, number of documents, CRC-32 of the
             bytes before compression
    record   the provenance of the output as JSON; empty if it is not known
    footer   number of segments, number of documents, end of the last segment, size of the output,
             CRC-32 of the output, CRC-32 of its last 64 KiB, size of the record, CRC-32 of the
             index up to here

For outputs without lookup by id (JSON arrays, bulk lines), the index has no answers, no entries,
and -1 as the number of documents.

The last bytes of a gzip output contain the CRC-32 and the length of all documents, so the index of
another file, or of an earlier state of this file, is rejected. An entry takes 32 bytes for about a
megabyte of documents, and an answer 4 bytes: about 1 % of a compressed output. The answers are
written while the output grows, and read through a memory map, so they are never in memory.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from mmap import ACCESS_READ, mmap
from typing import Any, BinaryIO

import orjson
from isal import isal_zlib

from so2docs.errors import So2docsError, convert_error
from so2docs.output.part_files import INDEX, crc_of, side_file
from so2docs.output.segments import ENTRY, Journal, SegmentList
from so2docs.parse.core import compiled

HEADER = b"so2docs index 4\n"
_FOOTER = struct.Struct("<qqqqIIII")
_COUNT = struct.Struct("<I")
_ANSWER_BYTES = 4
_LOW_BITS = 0xFFFFFFFF
_TAIL_BYTES = 64 * 1024


class UnusableIndexError(So2docsError):
    """An index is missing, damaged, or of another file or version; the message says which."""


class UnfitIndexError(UnusableIndexError):
    """An index belongs to another file, or to another state of this file."""


def index_path(output: str) -> str:
    """Return the path of the index of an output."""
    return side_file(output, INDEX)


def tail_crc(file: BinaryIO, size: int) -> int:
    """Return the CRC-32 of the last 64 KiB of a file."""
    file.seek(max(0, size - _TAIL_BYTES))
    return isal_zlib.crc32(file.read(_TAIL_BYTES))


def find_answer_ids(lines: bytes) -> bytes:
    """Return the ids of the answers in lines of documents, as the index contains them."""
    ids = None if compiled is None else compiled.answer_ids(lines)
    return pack_answer_ids(map(orjson.loads, lines.splitlines())) if ids is None else ids


def pack_answer_ids(documents: Iterable[Mapping[str, Any]]) -> bytes:
    """Return the low 32 bits of the id of each answer in documents; answers may have no id."""
    ids = [
        answer["Id"] & _LOW_BITS
        for document in documents
        for answer in document.get("Answers", ())
        if "Id" in answer
    ]
    return struct.pack(f"<{len(ids)}I", *ids)


def _begin(file: BinaryIO) -> None:
    """Write the header unless it is there."""
    if not file.tell():
        file.write(HEADER)


def add_answers(file: BinaryIO, ids: bytes) -> None:
    """Append the answers of the next segment to an unfinished index, which may be empty."""
    _begin(file)
    file.write(_COUNT.pack(len(ids) // _ANSWER_BYTES) + ids)


def complete(
    file: BinaryIO,
    journal: Journal,
    output: BinaryIO,
    *,
    is_indexed: bool = True,
    record: bytes = b"",
    crc: int | None = None,
) -> None:
    """Complete the index of a complete output.

    Args:
        file: The unfinished index, with the answers of all segments; open for reading too.
        journal: The segments of the output.
        output: The open output.
        is_indexed: Whether documents can be looked up.
        record: The provenance as JSON; empty if unknown.
        crc: CRC-32 of the output; if None, the output is read again to compute it.
    """
    _begin(file)
    size = output.seek(0, os.SEEK_END)
    if crc is None:
        output.seek(0)
        crc = crc_of(output, size)
    counts = (journal.count, journal.documents) if is_indexed else (0, -1)
    file.write(journal.entries if is_indexed else b"")
    numbers = *counts, journal.end, size, crc, tail_crc(output, size), len(record)
    file.write(record + _FOOTER.pack(*numbers, 0)[:-4])
    index_size = file.tell()
    file.seek(0)
    file.write(struct.pack("<I", crc_of(file, index_size)))


class Index(SegmentList):
    """An index, which lists the segments of an output.

    Attributes:
        documents: Number of documents; -1 for an output without lookup.
        record: The provenance of the output; empty if unknown.
        tail: CRC-32 of the last 64 KiB of the output.
    """

    def __init__(self, data: bytes | mmap) -> None:
        """Parse and check the bytes of an index."""
        if data[: len(HEADER)] != HEADER:
            raise UnusableIndexError("its index was not written by this version of so2docs")
        footer = len(data) - _FOOTER.size
        with memoryview(data) as view:
            crc = isal_zlib.crc32(view[:-4])
        if footer < len(HEADER) or crc != int.from_bytes(data[-4:], "little"):
            raise UnusableIndexError("its index is damaged")
        numbers: tuple[int, ...] = _FOOTER.unpack_from(data, footer)
        count, self.documents, end, self.size, self.crc, self.tail, length, _ = numbers
        start = footer - length - count * ENTRY.size
        super().__init__(data, start, count, end)
        self.record = data[footer - length : footer]

    def check(self, file: BinaryIO) -> None:
        """Raise `UnfitIndexError` unless the index belongs to this file in its present state."""
        size = file.seek(0, os.SEEK_END)
        if size != self.size or tail_crc(file, size) != self.tail:
            raise UnfitIndexError(
                "its index belongs to another file, or to an earlier version of this file"
            )

    def find(self, question_id: int) -> int | None:
        """Find the segment that would contain a question; None if the id precedes all segments."""
        segment = bisect_right(range(self.count), question_id, key=self.first_id) - 1
        return None if segment < 0 else segment

    def find_answer(self, answer_id: int) -> Iterator[int]:
        """Yield each segment with an answer whose id has the same low 32 bits."""
        wanted, start = _COUNT.pack(answer_id & _LOW_BITS), len(HEADER)
        for segment in range(self.count):
            start += _COUNT.size
            (answers,) = _COUNT.unpack_from(self._entries, start - _COUNT.size)
            ids = self._entries[start : start + answers * _ANSWER_BYTES]
            at = ids.find(wanted)
            while at % _ANSWER_BYTES and at > 0:
                at = ids.find(wanted, at + 1)
            if at >= 0:
                yield segment
            start += len(ids)


def load(output: str, file: BinaryIO) -> Index:
    """Load the index next to an output, and check that it belongs to the open `file`.

    Raises:
        UnusableIndexError: The index is missing or damaged, or belongs to another file or version.
        So2docsError: The index cannot be read.
    """
    path = index_path(output)
    try:
        with open(path, "rb") as index_file:
            is_empty = not os.fstat(index_file.fileno()).st_size
            data = b"" if is_empty else mmap(index_file.fileno(), 0, access=ACCESS_READ)
    except FileNotFoundError:
        raise UnusableIndexError("there is no index next to it") from None
    except OSError as error:
        raise convert_error(error, path, "cannot be read") from error
    index = Index(data)
    index.check(file)
    return index


def read_record(output: str) -> bytes:
    """Read the provenance in the index next to an output; empty without a usable index."""
    with suppress(UnusableIndexError), open(output, "rb") as file:
        return load(output, file).record
    return b""
