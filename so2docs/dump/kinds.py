"""Recognize files by their first bytes: kind, encoding, and root element."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from so2docs.errors import DumpError, Location, MalformedDumpError
from so2docs.schema import DUMP, Table


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file, such as a gzip file or a 7z archive.

    Attributes:
        name: Name for messages, with an article.
        extension: Usual extension of the names of such files; empty if they are refused.
        ratio: Approximate number of decompressed bytes per byte of the file.
        refused: Advice for the error if the kind is not supported; empty if it is.
    """

    name: str
    extension: str = ""
    ratio: float = 1.0
    refused: str = ""

    @property
    def is_archive(self) -> bool:
        """Whether the file may contain several files."""
        return self.extension in {"7z", "zip"}


GZIP = b"\x1f\x8b"
BZIP2 = b"BZh"
ZSTD = b"\x28\xb5\x2f\xfd"
SQLITE = b"SQLite format 3\x00"
PARQUET = b"PAR1"

UNPACK = "unpack it first, such as with 7z x"
GIVE_DUMP = "give the Posts.xml of a dump, or the archive of its site"

# Compression ratios, as measured on published dumps.
_KINDS: dict[bytes, Kind] = {
    GZIP + b"\x08": Kind("a gzip file", "gz", 4.0),
    BZIP2: Kind("a bzip2 file", "bz2", 5.5),
    b"\xfd7zXZ\x00": Kind("an xz file", "xz", 5.5),
    ZSTD: Kind("a zstd file", "zst", 4.5),
    b"7z\xbc\xaf\x27\x1c": Kind("a 7z archive", "7z", 4.0),
    b"PK\x03\x04": Kind("a zip archive", "zip", 4.0),
    b"PK\x05\x06": Kind("a zip archive", "zip", 4.0),
    b"Rar!\x1a\x07": Kind("a rar archive", refused=UNPACK),
    b"\x04\x22\x4d\x18": Kind("an LZ4 file", refused=UNPACK),
    b"\x1f\x9d": Kind("a file of compress (.Z)", refused=UNPACK),
    b"LZIP": Kind("an lzip file", refused=UNPACK),
    b"]\x00\x00": Kind("an lzma file", refused=UNPACK),
    b"\x00\x05\x16\x07": Kind(
        "a file of attributes that macOS writes", refused="give the file without ._ in its name"
    ),
    SQLITE: Kind("an SQLite database", refused=GIVE_DUMP),
    PARQUET: Kind("a Parquet file", refused=GIVE_DUMP),
    b"d8:announce": Kind("a torrent", refused="download the files it lists, then give one"),
    b"version https://git-lfs.github.com/": Kind(
        "a Git LFS pointer instead of the file", refused="fetch the file with git lfs pull"
    ),
    b"so2docs index ": Kind("the index of an output", refused=GIVE_DUMP),
}
_SKIPPABLE_FRAME = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
"""The start of a zstd file that does not start with compressed data, such as one of pzstd
(RFC 8878, 3.1.2)."""
_TAR_MAGIC, _TAR_OFFSET = b"ustar", 257


def detect_kind(head: bytes) -> Kind | None:
    """Detect the kind of a file from its first bytes; None for XML and for unknown content."""
    for magic, kind in _KINDS.items():
        if head.startswith(magic):
            return kind
    if _SKIPPABLE_FRAME.match(head):
        return _KINDS[ZSTD]
    if head.startswith(_TAR_MAGIC, _TAR_OFFSET):
        return Kind("a tar archive", refused=UNPACK)
    return None


def refuse(name: str, kind: Kind) -> None:
    """Raise a `DumpError` if files of a kind are not read."""
    if kind.refused:
        raise DumpError(name, f"is {kind.name}, not XML", advice=kind.refused)


_STARTS = {
    codecs.BOM_UTF8: None,
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    b"<\x00": "utf-16-le",
    b"\x00<": "utf-16-be",
}
_DECLARATION = re.compile(rb"""\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._:-]+)["']""")
# .NET declares UTF-16 in files that are not in UTF-16.
_SAME_AS_UTF_8 = (b"utf-8", b"utf8", b"us-ascii", b"ascii", b"utf-16")


def detect_encoding(name: str, head: bytes) -> str | None:
    """Detect the encoding of a dump (XML 1.0, appendix F); None for UTF-8."""
    for start, encoding in _STARTS.items():
        if head.startswith(start):
            return encoding
    declared = _DECLARATION.match(head)
    if declared is None or declared[1].lower() in _SAME_AS_UTF_8:
        return None
    label = declared[1].decode()
    problem = f"is encoded as {label}, but only UTF-8 and UTF-16 are read"
    raise DumpError(name, problem, advice=f"convert it first: iconv -f {label} -t UTF-8")


SITES = "sites"
"""Root element of `Sites.xml`, which every release contains."""
_ROOTS = {
    "error": ("an error message from a server", "download it again"),
    SITES: ("the list of sites of a release", GIVE_DUMP),
    "files": ("the list of files of an item on archive.org", GIVE_DUMP),
    "metadata": ("the description of an item on archive.org", GIVE_DUMP),
    "html": ("a web page", "a failed download may leave one; download it again"),
}
_TABLE_ROOTS = {table.root for table in DUMP.values()}


def check_root(path: str, root: str, table: Table) -> None:
    """Raise a `DumpError` if the root element belongs to a different table or format than `table`.

    An unknown root element, such as <table>, is accepted.
    """
    name = root.rpartition(":")[2].lower()
    expected = f"expected <{table.root}>"
    if name == table.root:
        return
    if name == "row":
        raise piece_error(path, f"starts with <row>, {expected} around the rows", table)
    if name in _TABLE_ROOTS:
        problem = f"holds <{name}>, {expected}"
        raise DumpError(path, problem, advice=f"give the {table.file} of the dump")
    if name in _ROOTS:
        description, advice = _ROOTS[name]
        raise DumpError(path, f"is {description} (<{root}>), {expected}", advice=advice)


def piece_error(path: str, problem: str, table: Table) -> MalformedDumpError:
    """Make the error for rows without a root element."""
    return MalformedDumpError(
        path,
        problem,
        Location(0, 1, row=table.row),
        advice=f"if it is a part of a {table.file} that was split, join the parts with cat and "
        "convert the result",
    )
