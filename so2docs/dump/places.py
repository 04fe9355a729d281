"""Places in a compressed stream at which a resumed conversion can start decompressing.

A bzip2 block, or an LZMA2 block that resets the dictionary, does not depend on earlier bytes. A
place records the checksums of all earlier bytes, so that the whole stream can still be checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Place(NamedTuple):
    """The start of a block.

    Attributes:
        offset: Number of decompressed bytes before the block, from the start of the stream or of
            the archive member; negative for a block that starts before the member.
        packed: Number of compressed bits (bzip2) or bytes (LZMA2) before the block.
        level: Level of the bzip2 stream; 0 at the start of the data, and for LZMA2.
        combined: Checksum of the earlier blocks of the bzip2 stream.
        crc: CRC-32 of the earlier bytes of the member.
    """

    offset: int = 0
    packed: int = 0
    level: int = 0
    combined: int = 0
    crc: int = 0


START = Place()

Mark = Callable[[Place], object]
"""Function called with the place of a block before the first byte of the block is returned."""


class Restart(NamedTuple):
    """The first chunk that a resumed session reads from a stream.

    Attributes:
        chunk: Number of the chunk; all chunks before it are committed.
        offset: Number of decompressed bytes before the chunk.
        head: Bytes before the first row, decoded as Latin-1 for JSON.
        place: Place at which decompression starts, at or before the chunk.
    """

    chunk: int
    offset: int
    head: str
    place: Place

    @classmethod
    def from_json(cls, value: Any) -> Restart | None:
        """Make a restart from its JSON form; return None for null."""
        return value and cls(value[0], value[1], value[2], Place(*value[3]))
