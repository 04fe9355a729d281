"""What a file is, by its first bytes: a dump, or an output, and one of which format."""

from __future__ import annotations

import os
import zlib

import zstandard

from so2docs.dump.compressed import is_damage
from so2docs.dump.storage import unreadable_output
from so2docs.output.compression import detect_compression

_HEAD_BYTES = 64 * 1024
BLANK = b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n"  # Also what a byte order mark is, and half of UTF-16.

_OTHER_FORMATS = (
    (b"PAR1", "Parquet", "DuckDB, pandas or pyarrow"),
    (b"SQLite format 3\x00", "an SQLite database", "so2docs serve or sqlite3"),
    (b"[", "a JSON array", "jq or json.load"),
    (b'{"BuildVersion"', "an import file of RavenDB", "RavenDB"),
    (b'{"index"', "bulk lines for Elasticsearch", "Elasticsearch or OpenSearch"),
)
"""First bytes of what is not read back, what it is, and what reads it."""


def read_start(path: str) -> bytes:
    """The first bytes of a file, decompressed if it is gzip or zstd; none if it is damaged.

    Raises:
        OutputError: It cannot be read.
    """
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise unreadable_output(path, error) from error
    compression = detect_compression(head)
    try:
        if compression == "gzip":
            return zlib.decompressobj(31).decompress(head, _HEAD_BYTES)
        if compression == "zstd":
            frames = zstandard.ZstdDecompressor()
            with frames.stream_reader(head, read_across_frames=True) as unpacked:
                return unpacked.read(_HEAD_BYTES)
    except Exception as error:
        if not is_damage(error):
            raise
        return b""
    return head


def is_output(path: str, start: bytes) -> bool:
    """Whether a file is an output, of any format; what is none is to be read as a dump.

    Args:
        path: Its name, which decides where the bytes do not tell: a damaged or an empty file.
        start: Its first bytes, as `start_of` gives them.
    """
    text = start.lstrip(BLANK)
    if text.startswith(b"{") or not_read_back(start) is not None:
        return True
    return ".json" in os.path.basename(path) and not text.startswith(b"<")


def not_read_back(start: bytes) -> tuple[str, str] | None:
    """What the file is that starts so, and what reads it, if documents are not read from it."""
    text = start.lstrip(BLANK)
    for magic, what, reader in _OTHER_FORMATS:
        if text.startswith(magic):
            return what, reader
    return None
