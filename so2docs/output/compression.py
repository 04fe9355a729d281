"""Segments of the output are compressed on their own, in a worker.

Each can follow any other: gzip segments are raw deflate data (RFC 1951) that ends on a byte
boundary with a full flush, zstd segments are frames (RFC 8878).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

import zstandard
from isal import isal_zlib

from so2docs.options.choices import Compression
from so2docs.output.segments import Segment

SEGMENT_BYTES = 1024 * 1024
"""A segment of the output is about this long before compression."""

# No file name, no time, "unknown" operating system: the bytes depend on the documents only.
GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
LAST_BLOCK = b"\x03\x00"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_STARTS: dict[bytes, Compression] = {
    GZIP_HEADER[:2]: "gzip",
    ZSTD_MAGIC[:2]: "zstd",
    b"\x5e\x2a": "zstd",  # A frame to skip: the table of an output without documents.
}
_ISAL_LEVELS = 3
_NOWHERE = b"\0"


def compress(
    raw: bytes, compression: Compression, level: int, first_id: int = 0, documents: int = 0
) -> Segment:
    """Compress a segment so that it can follow any other and be inflated on its own.

    Args:
        raw: Whole lines.
        compression: `gzip`, `zstd` or `none`.
        level: Of zstd; or of gzip: 0 to 3 for ISA-L (2 is about fifteen times as fast as zlib's
            6), 4 to 9 for zlib.
        first_id: Question id of its first document.
        documents: Number of its documents.
    """
    crc = isal_zlib.crc32(raw)
    if compression == "none":
        return Segment(raw, len(raw), crc, first_id, documents)
    if compression == "zstd":
        frame = zstandard.ZstdCompressor(level=level, write_checksum=True).compress(raw)
        return Segment(frame, len(raw), crc, first_id, documents)
    return Segment(_deflate(raw, level), len(raw), crc, first_id, documents)


def detect_compression(start: bytes) -> Compression:
    """How a file of lines is compressed that starts with these bytes, of which two tell."""
    return _STARTS.get(start[:2], "none")


def _deflate(raw: bytes, level: int) -> bytes:
    if level <= _ISAL_LEVELS and _NOWHERE not in raw:
        # Without a dictionary, ISA-L 2.32 hashes the third string of a stream from a stale
        # register, the address of the stream: at levels 1 and 2 about one stream in ten thousand
        # comes out with other bytes. Nothing can refer to this one, since no text has such bytes.
        deflate = isal_zlib.compressobj(level, isal_zlib.DEFLATED, -15, zdict=_NOWHERE * 8)
        return deflate.compress(raw) + deflate.flush(isal_zlib.Z_FULL_FLUSH)
    slow = zlib.compressobj(max(level, 1), zlib.DEFLATED, -15)
    return slow.compress(raw) + slow.flush(zlib.Z_FULL_FLUSH)


def compress_lines(
    lines: Iterable[bytes], compression: Compression, level: int
) -> Iterator[Segment]:
    """Compress lines in segments of the usual size, for a file that is written line by line."""
    pending: list[bytes] = []
    size = 0
    for line in lines:
        pending.append(line)
        size += len(line)
        if size >= SEGMENT_BYTES:
            yield compress(b"".join(pending), compression, level)
            pending, size = [], 0
    if pending:
        yield compress(b"".join(pending), compression, level)
