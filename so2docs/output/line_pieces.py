"""Lines -> compressed pieces of an output, for files that are written line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from so2docs.options.choices import Compression
from so2docs.output.compression import PIECE_BYTES, Piece, compress


def compress_lines(lines: Iterable[bytes], compression: Compression, level: int) -> Iterator[Piece]:
    """Compress lines in pieces of the usual size."""
    held: list[bytes] = []
    size = 0
    for line in lines:
        held.append(line)
        size += len(line)
        if size >= PIECE_BYTES:
            yield compress(b"".join(held), compression, level)
            held, size = [], 0
    if held:
        yield compress(b"".join(held), compression, level)
