"""Make the index of an output that lacks it, byte for byte as the conversion writes it.

One pass over the output finds its segments.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator
from io import BytesIO
from itertools import pairwise
from typing import BinaryIO

import orjson
from isal import isal_zlib

from so2docs.dump.compressed import is_damage
from so2docs.errors import OutputError, flag
from so2docs.output import index
from so2docs.output.compression import (
    GZIP_HEADER,
    SEGMENT_BYTES,
    read_seek_table,
    stream_header,
    stream_trailer,
    trailer_bytes,
)
from so2docs.output.segments import Journal, Segment
from so2docs.progress import bar, log
from so2docs.reader.reading import (
    MOST_LINE_BYTES,
    SegmentReader,
    decompress_frame,
    describe_foreign,
)
from so2docs.zstd import ZstdError

_FLUSH = b"\x00\x00\xff\xff"
_EMPTY_BLOCK = b"\x00" + _FLUSH
_EMPTY_LAST_BLOCK = b"\x01" + _FLUSH
_PART_BYTES = 2 * 1024 * 1024
_LARGEST_SEGMENT = 16 * 1024 * 1024

Found = Iterator[tuple[int, bytes]]
"""The segments of a file in order, each with its size in the file and its uncompressed lines."""


def build(reader: SegmentReader, reason: str, *, progress: bool = False) -> bytes:
    """Read a whole output and return its index as bytes; log `reason` as the cause."""
    name, file = reader.path, reader.file
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    found = {"gzip": _gzip_segments, "zstd": _zstd_segments, "none": _plain_segments}
    made, journal = BytesIO(), Journal(stream_header(reader.compression))
    last: list[int] = []
    with bar("indexing", size, shown=progress) as progress_bar:
        for length, raw in found[reader.compression](name, file, size):
            progress_bar.update(length)
            ids: list[int] = []
            try:
                index.add_answers(made, index.pack_answer_ids(_parse(raw, ids)))
                first_id = ids[0]
            except (orjson.JSONDecodeError, AttributeError, LookupError, TypeError):
                if not journal.count and (foreign := describe_foreign(raw)):
                    raise OutputError(f"{name}: {foreign}") from None
                raise line_error(name, journal.end) from None
            for before, after in pairwise([*last, *ids]):
                if after <= before:
                    raise OutputError(
                        f"{name}: question {after} comes after question {before}, but outputs are "
                        "in ascending order of Id; convert the dump again"
                    )
            if not journal.count:
                log.warning("%s: %s; building an index in one pass over the file", name, reason)
            last = ids[-1:]
            crc = isal_zlib.crc32(raw)
            journal.add(Segment(first_id, 0, length, len(raw), len(ids), crc))
    file.seek(journal.end)
    if file.read() != stream_trailer(reader.compression, journal):
        raise _damage_error(name, "at its end")
    index.complete(made, journal, file)
    return made.getvalue()


def _parse(lines: bytes, ids: list[int]) -> Iterator[dict[str, object]]:
    """Yield the documents of a segment, and append their ids to a list."""
    for line in lines.splitlines():
        document = orjson.loads(line)
        ids.append(operator.index(document["Id"]))
        yield document


def _plain_segments(name: str, file: BinaryIO, size: int) -> Found:
    """Split an uncompressed output into segments of whole lines, about a megabyte each."""
    while raw := b"".join(file.readlines(SEGMENT_BYTES)):
        yield len(raw), raw


def _gzip_segments(name: str, file: BinaryIO, size: int) -> Found:
    """Yield the segments of a gzip output, each ended by a flush of the compressor."""
    if file.read(len(GZIP_HEADER)) != GZIP_HEADER:
        raise _foreign(name)
    start, end, part_bytes = len(GZIP_HEADER), size - trailer_bytes("gzip", 0), _PART_BYTES
    while start < end:
        file.seek(start)
        data = file.read(min(part_bytes, end - start))
        is_last, before = start + len(data) == end, start
        for length, raw in find_flushes(name, data, is_last=is_last):
            yield length, raw
            start += length
        if start == before:
            if start == len(GZIP_HEADER) and part_bytes == _LARGEST_SEGMENT:
                raise _foreign(name)
            if is_last or part_bytes == _LARGEST_SEGMENT:
                raise _damage_error(name, f"after byte {start:,}")
            part_bytes *= 2


def find_flushes(name: str, data: bytes, *, is_last: bool) -> Found:
    """Yield the complete segments at the start of a part of a file."""
    start = searched = 0
    while (at := data.find(_FLUSH, searched)) >= 0:
        searched = at + 1
        end = at + len(_FLUSH)
        raw = _inflate(name, data[start:end])
        if raw is None:
            continue
        while data.startswith(_EMPTY_BLOCK, end):  # ISA-L sometimes flushes twice.
            end += len(_EMPTY_BLOCK)
        if end + len(_EMPTY_BLOCK) > len(data) and not is_last:
            return  # The second flush may follow in the next part.
        yield end - start, raw
        start = searched = end


def _zstd_segments(name: str, file: BinaryIO, size: int) -> Found:
    """Yield the segments of a zstd output, each a frame in the seek table at its end."""
    frames = read_seek_table(file, size)
    if frames is None or any(max(sizes) > MOST_LINE_BYTES for sizes in frames):
        raise _foreign(name)
    file.seek(0)
    for length, raw_size in frames:
        offset = file.tell()
        try:
            yield length, decompress_frame(file.read(length), raw_size)
        except ZstdError:
            raise _damage_error(name, f"after byte {offset:,}") from None


def _inflate(name: str, data: bytes) -> bytes | None:
    """Decompress a segment; None if the bytes are not a complete segment."""
    stream = isal_zlib.decompressobj(-15)
    try:
        raw = stream.decompress(data + _EMPTY_LAST_BLOCK, MOST_LINE_BYTES)
    except Exception as error:
        if not is_damage(error):
            raise
        return None
    if len(raw) >= MOST_LINE_BYTES:
        raise _foreign(name)
    return raw if stream.eof and not stream.unused_data and raw.endswith(b"\n") else None


def _foreign(name: str) -> OutputError:
    return OutputError(
        f"{name}: is truncated, or was not compressed by so2docs, so single documents cannot be "
        "looked up; unpack it (gunzip -k, zstd -d) and open the .jsonl, or read all of it with "
        "so2docs.read"
    )


def _damage_error(name: str, where: str) -> OutputError:
    return OutputError(f"{name}: is damaged or truncated {where}; convert the dump again")


def line_error(name: str, offset: int) -> OutputError:
    """Return the error for lines at an offset that are not documents."""
    return OutputError(
        f"{name}: after byte {offset:,}, a line is not a document with an Id; if "
        f"{flag('fields')} or {flag('drop_fields')} left it out, convert again with Id"
    )
