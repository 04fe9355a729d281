"""Header and trailer of a compressed file, around its segments.

A gzip stream (RFC 1952) is one member: raw deflate data (RFC 1951) of each segment ended on a byte
boundary by a full flush, an empty final block, and the CRC-32 of all joined from those of the
segments. Some readers stop after the first member of a file, so there is only one. A zstd stream is
a frame for each segment and, at the end, a table of the frames, which readers skip that do not know
it.
"""

from __future__ import annotations

import struct

from so2docs.options.choices import Compression
from so2docs.output import seekable
from so2docs.output.compression import GZIP_HEADER, LAST_BLOCK
from so2docs.output.journal import Journal

_TRAILER = struct.Struct("<II")


def start(compression: Compression) -> bytes:
    """The bytes before the first segment."""
    return GZIP_HEADER if compression == "gzip" else b""


def end(compression: Compression, journal: Journal, crc: int, raw_size: int) -> bytes:
    """The bytes after the last segment.

    Args:
        compression: Of the file.
        journal: Its segments.
        crc: CRC-32 of all bytes before compression.
        raw_size: Number of those.
    """
    if compression == "gzip":
        return gzip_end(crc, raw_size)
    if compression == "zstd":
        return seekable.table((record.size, record.raw_size) for record in journal)
    return b""


def gzip_end(crc: int, raw_size: int) -> bytes:
    """The bytes after the last segment of a gzip file; arguments as those of `end`."""
    return LAST_BLOCK + _TRAILER.pack(crc, raw_size & 0xFFFFFFFF)


def end_bytes(compression: Compression, segments: int) -> int:
    """Bytes of `end` after so many segments."""
    if compression == "gzip":
        return len(LAST_BLOCK) + _TRAILER.size
    return seekable.table_bytes(segments) if compression == "zstd" else 0
