"""Compress the segments of an output separately, in workers, and join them into one stream.

Each segment can follow any other. A gzip stream (RFC 1952) is one member, because some readers stop
after the first member of a file. It contains the raw deflate data (RFC 1951) of each segment, which
a full flush ends on a byte boundary. At the end are an empty final block and the CRC-32 of all
data, combined from the CRC-32 of each segment. A zstd stream contains one frame (RFC 8878) for each
segment and ends with a table of the frames, as described in contrib/seekable_format of the zstd
project. The table is a skippable frame, which all readers ignore.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from isal import isal_zlib

from so2docs.dump.kinds import GZIP, ZSTD
from so2docs.options.choices import Compression
from so2docs.output.segments import Journal, Segment
from so2docs.zstd import CompressionParameter, frame_compressor

SEGMENT_BYTES = 1024 * 1024
"""Approximate size of a segment of the output before compression."""

# No file name, no time, and "unknown" as the operating system, so that the bytes depend only on the
# documents.
GZIP_HEADER = GZIP + b"\x08\x00\x00\x00\x00\x00\x00\xff"
LAST_BLOCK = b"\x03\x00"
_STARTS: dict[bytes, Compression] = {
    GZIP: "gzip",
    ZSTD[:2]: "zstd",
    b"\x5e\x2a": "zstd",  # A skippable frame: the seek table of an output without documents.
}
_ISAL_LEVELS = 3
_NOWHERE = b"\0"


def compress(
    raw: bytes, compression: Compression, level: int, first_id: int = 0, documents: int = 0
) -> Segment:
    """Compress a segment so that it can follow any other segment and be decompressed alone.

    Args:
        raw: Uncompressed bytes of the segment.
        compression: `gzip`, `zstd` or `none`.
        level: zstd or gzip level. Levels 0 to 3 of gzip use ISA-L (its level 2 is about fifteen
            times as fast as zlib level 6); levels 4 to 9 use zlib.
        first_id: Question id of the first document.
        documents: Number of documents.
    """
    data = raw
    if compression == "zstd":
        data = frame_compressor(level, {CompressionParameter.checksum_flag: 1})(raw)
    elif compression == "gzip":
        data = _deflate(raw, level)
    return Segment.of(data, len(raw), isal_zlib.crc32(raw), first_id, documents)


def detect_compression(start: bytes) -> Compression:
    """Detect the compression of a line-based file from its first two bytes; `none` if unknown."""
    return _STARTS.get(start[:2], "none")


def _deflate(raw: bytes, level: int) -> bytes:
    if level <= _ISAL_LEVELS and _NOWHERE not in raw:
        # Always set a dictionary. Without one, ISA-L 2.32 hashes the third string of a stream from
        # a stale register, which holds the memory address of the stream. At levels 1 and 2, about
        # one stream in ten thousand would therefore differ between runs. The data never refers to
        # this dictionary, since no text contains its bytes.
        deflate = isal_zlib.compressobj(level, isal_zlib.DEFLATED, -15, zdict=_NOWHERE * 8)
        return deflate.compress(raw) + deflate.flush(isal_zlib.Z_FULL_FLUSH)
    slow = zlib.compressobj(max(level, 1), zlib.DEFLATED, -15)
    return slow.compress(raw) + slow.flush(zlib.Z_FULL_FLUSH)


def compress_lines(
    lines: Iterable[bytes], compression: Compression, level: int
) -> Iterator[Segment]:
    """Group lines into segments of about `SEGMENT_BYTES`, and yield each segment compressed."""
    held: list[bytes] = []
    size = 0
    for line in lines:
        held.append(line)
        size += len(line)
        if size >= SEGMENT_BYTES:
            yield compress(b"".join(held), compression, level)
            held, size = [], 0
    if held:
        yield compress(b"".join(held), compression, level)


_SKIPPABLE_MAGIC = 0x184D2A5E
_SEEKABLE_MAGIC = 0x8F92EAB1
_HEADER = struct.Struct("<II")
_ENTRY = struct.Struct("<II")
_FOOTER = struct.Struct("<IBI")


def _seek_table(journal: Journal) -> bytes:
    """Make the seek table of a zstd stream, with the sizes of each frame."""
    entries = [_ENTRY.pack(segment.size, segment.raw_size) for segment in journal]
    footer = _FOOTER.pack(len(entries), 0, _SEEKABLE_MAGIC)
    header = _HEADER.pack(_SKIPPABLE_MAGIC, _seek_table_bytes(len(entries)) - _HEADER.size)
    return b"".join([header, *entries, footer])


def read_seek_table(file: BinaryIO, size: int) -> list[tuple[int, int]] | None:
    """Read the sizes of the frames from the end of a zstd file; None without a seek table."""
    file.seek(max(0, size - _FOOTER.size))
    footer = file.read()
    frames, _, magic = _FOOTER.unpack(footer.rjust(_FOOTER.size))
    start = size - _seek_table_bytes(frames)
    if magic != _SEEKABLE_MAGIC or start < 0:
        return None
    file.seek(start + _HEADER.size)
    return [*_ENTRY.iter_unpack(file.read(frames * _ENTRY.size))]


def _seek_table_bytes(frames: int) -> int:
    """Return the size of a seek table with n frames, in bytes."""
    return _HEADER.size + frames * _ENTRY.size + _FOOTER.size


_TRAILER = struct.Struct("<II")


def stream_header(compression: Compression) -> bytes:
    """Return the bytes before the first segment: the gzip header, or nothing."""
    return GZIP_HEADER if compression == "gzip" else b""


def stream_trailer(compression: Compression, journal: Journal) -> bytes:
    """Return the bytes after the last segment: end of a gzip file, zstd seek table, or nothing."""
    if compression == "gzip":
        return LAST_BLOCK + _TRAILER.pack(journal.raw_crc, journal.raw_size & 0xFFFFFFFF)
    return _seek_table(journal) if compression == "zstd" else b""


def trailer_bytes(compression: Compression, segments: int) -> int:
    """Return the number of bytes that `stream_trailer` returns for n segments."""
    if compression == "gzip":
        return len(LAST_BLOCK) + _TRAILER.size
    return _seek_table_bytes(segments) if compression == "zstd" else 0
