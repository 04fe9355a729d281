"""The table at the end of a zstd stream that says where each of its frames starts.

As the zstd project's contrib/seekable_format describes it: a skippable frame, which every reader
passes over, so that the stream is a normal one and each piece can still be found by its place.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

_SKIPPABLE_MAGIC = 0x184D2A5E
_SEEKABLE_MAGIC = 0x8F92EAB1
_HEADER = struct.Struct("<II")
_ENTRY = struct.Struct("<II")
_FOOTER = struct.Struct("<IBI")


def table(frames: Iterable[tuple[int, int]]) -> bytes:
    """The seek table of a stream.

    Args:
        frames: Compressed and uncompressed size of each frame.
    """
    entries = [_ENTRY.pack(*sizes) for sizes in frames]
    footer = _FOOTER.pack(len(entries), 0, _SEEKABLE_MAGIC)
    header = _HEADER.pack(_SKIPPABLE_MAGIC, table_bytes(len(entries)) - _HEADER.size)
    return b"".join([header, *entries, footer])


def is_table(data: bytes) -> bool:
    """Whether bytes start with a frame that readers skip, such as the table."""
    return data[:4] == struct.pack("<I", _SKIPPABLE_MAGIC)


def table_bytes(frames: int) -> int:
    """Bytes of the seek table of so many frames."""
    return _HEADER.size + frames * _ENTRY.size + _FOOTER.size
