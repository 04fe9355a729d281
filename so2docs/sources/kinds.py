"""What some bytes are the start of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """A form that dumps come in.

    Attributes:
        name: For messages, with an article.
        ratio: Bytes of a dump for each byte, about, where the form does not say.
        refused: Whether this program does not unpack it.
        is_archive: Whether there may be several files in it.
    """

    name: str
    ratio: float = 1.0
    refused: bool = False
    is_archive: bool = False


# Ratios of published dumps.
_KINDS: dict[bytes, Kind] = {
    b"\x1f\x8b\x08": Kind("a gzip file", 4.0),
    b"BZh": Kind("a bzip2 file", 5.5),
    b"\xfd7zXZ\x00": Kind("an xz file", 5.5),
    b"\x28\xb5\x2f\xfd": Kind("a zstd file", 4.5),
    b"7z\xbc\xaf\x27\x1c": Kind("a 7z archive", is_archive=True),
    b"PK\x03\x04": Kind("a zip archive", is_archive=True),
    b"PK\x05\x06": Kind("a zip archive", is_archive=True),
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
