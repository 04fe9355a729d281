"""What some bytes are the start of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from so2docs.sources.compressed import open_bzip2, open_gzip, open_xz, open_zstd
from so2docs.sources.source import Reader


@dataclass(frozen=True, slots=True)
class Kind:
    """A form that dumps come in.

    Attributes:
        name: For messages, with an article.
        open: Makes a reader of what is inside, from a reader and a number of threads; None for an
            archive, which has to be searched.
        ratio: Bytes of a dump for each byte, about, where the form does not say.
        refused: Whether this program does not unpack it.
    """

    name: str
    open: Callable[[Reader, int], Reader] | None = None
    ratio: float = 1.0
    refused: bool = False


# Ratios of published dumps.
_KINDS: dict[bytes, Kind] = {
    b"\x1f\x8b\x08": Kind("a gzip file", open_gzip, 4.0),
    b"BZh": Kind("a bzip2 file", open_bzip2, 5.5),
    b"\xfd7zXZ\x00": Kind("an xz file", open_xz, 5.5),
    b"\x28\xb5\x2f\xfd": Kind("a zstd file", open_zstd, 4.5),
    b"7z\xbc\xaf\x27\x1c": Kind("a 7z archive"),
    b"PK\x03\x04": Kind("a zip archive"),
    b"PK\x05\x06": Kind("a zip archive"),
    b"Rar!\x1a\x07": Kind("a rar archive", refused=True),
    b"LZIP": Kind("an lzip file", refused=True),
    b"\x1f\x9d": Kind("a file of compress (.Z)", refused=True),
    b"\x04\x22\x4d\x18": Kind("an lz4 file", refused=True),
    b"SQLite format 3\x00": Kind("an SQLite database", refused=True),
}
_TAR_MAGIC, _TAR_OFFSET = b"ustar", 257


def kind_of(head: bytes) -> Kind | None:
    """What a file is that starts with these bytes; None for anything that may be XML."""
    for magic, kind in _KINDS.items():
        if head.startswith(magic):
            return kind
    if head.startswith(_TAR_MAGIC, _TAR_OFFSET):
        return Kind("a tar archive", refused=True)
    return None
