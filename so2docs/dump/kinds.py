"""Recognize kinds of files: tables of a dump by their file names, all others by their first bytes.

Other kinds are compressed files, archives, and files that are not dumps, such as databases.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from so2docs.errors import DumpError, Location, MalformedDumpError
from so2docs.options.sites import COPY, NUMBER
from so2docs.schema import DUMP, Table

PACKED = ("7z", "zip", "gz", "bz2", "xz", "zst")
"""Extensions of compressed dumps and archives."""

_PACKED = f"(?:{'|'.join(PACKED)})"
_TABLE = re.compile(
    rf"(?:.*[-_.])?(?:{'|'.join(table.stem for table in DUMP.values())})(?:\.xml)?\.7z",
    re.IGNORECASE,
)
_ARCHIVE = re.compile(r".*\.7z", re.IGNORECASE)
_SAVED_AS = re.compile(rf"{COPY}?((?:\.xml)?\.{_PACKED}|\.xml){NUMBER}?$", re.IGNORECASE)
_MOST_NAMES = 12


def members_with(table: Table, names: Sequence[str]) -> list[str]:
    """Select the names of files that may contain a table, ignoring case: its file or its archive.

    An archive without the name of a table, such as the archive of a site, may contain any table.

    Returns:
        One name if the choice is unambiguous; otherwise, none or several.
    """
    names = [name for name in names if not _base(name).startswith("._")]  # Written by macOS.
    named = _match_names(table, names, "(?:.*[-_.])?")
    return named or _topmost([name for name in names if _is_of_site(name)])


def files_with(table: Table, names: Sequence[str], prefix: str) -> list[str]:
    """Select the names of files that start with `prefix` and may contain a table."""
    return _match_names(table, names, re.escape(prefix), plain=re.escape(prefix))


def _match_names(table: Table, names: Sequence[str], packed: str, plain: str = "") -> list[str]:
    patterns = (
        rf"{plain}{table.stem}\.xml",
        rf"{packed}{table.stem}(?:\.xml)?\.{_PACKED}",
    )
    for base in (_base, _without_mark):
        for pattern in patterns:
            matches = re.compile(pattern, re.IGNORECASE).fullmatch
            if matching := [name for name in names if matches(base(name))]:
                return _topmost(matching)
    return []


def table_prefix(table: Table, name: str) -> str | None:
    """Return the prefix of a table's file name, such as `stackoverflow.com-`; it may be empty.

    Returns None if the file does not belong to this table.
    """
    pattern = rf"(.*[-_.])?{table.stem}(?:\.xml)?(?:\.{_PACKED})?"
    match = re.fullmatch(pattern, _without_mark(name), re.IGNORECASE)
    return None if match is None else match[1] or ""


def _base(name: str) -> str:
    return name.rpartition("/")[2]


def _without_mark(name: str) -> str:
    """Return the name of a file without the mark of a copy: `a (1).7z` and `a.7z.1` give `a.7z`."""
    return _SAVED_AS.sub(r"\1", _base(name))


def _is_of_site(name: str) -> bool:
    """Whether a file is named as the archive of a site, not of one of its tables."""
    base = _without_mark(name)
    return bool(_ARCHIVE.fullmatch(base)) and not _TABLE.fullmatch(base)


def _topmost(names: list[str]) -> list[str]:
    """Select the paths that are nearest to the root of a tree."""
    depth = min((name.count("/") for name in names), default=0)
    return [name for name in names if name.count("/") == depth]


def join_names(names: Iterable[str]) -> str:
    """Join names for a message; after the first twelve, only count the names."""
    listed = list(names)
    if not listed:
        return "nothing"
    hidden = len(listed) - _MOST_NAMES
    return ", ".join(listed[:_MOST_NAMES]) + (f" and {hidden:,} more" if hidden > 0 else "")


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
_GIVE_DUMP = "give the Posts.xml of a dump, or the archive of its site"
_GIVE_OUTPUT = f"to read it, use so2docs show or so2docs inspect; otherwise, {_GIVE_DUMP}"

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
    SQLITE: Kind("an SQLite database", refused=_GIVE_DUMP),
    PARQUET: Kind("a Parquet file", refused=_GIVE_DUMP),
    b"d8:announce": Kind("a torrent", refused="download the files it lists, then give one"),
    b"version https://git-lfs.github.com/": Kind(
        "a Git LFS pointer instead of the file", refused="fetch the file with git lfs pull"
    ),
    b"so2docs index ": Kind("the index of an output", refused=_GIVE_DUMP),
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


_BLANK = b"\xef\xbb\xbf \t\r\n"
_ROW = re.compile(rb"<row[ \t\r\n]")
_PAGE = re.compile(rb"<(?:!doctype[ \t\r\n]+)?html[ \t\r\n/>]", re.IGNORECASE)
SITES = "sites"
"""Root element of `Sites.xml`, which every release contains."""
_ROOTS = {
    "error": ("an error message from a server", "download it again"),
    SITES: ("the list of sites of a release", _GIVE_DUMP),
    "files": ("the list of files of an item on archive.org", _GIVE_DUMP),
    "metadata": ("the description of an item on archive.org", _GIVE_DUMP),
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
        raise _piece(path, f"starts with <row>, {expected} around the rows", table)
    if name in _TABLE_ROOTS:
        problem = f"holds <{name}>, {expected}"
        raise DumpError(path, problem, advice=f"give the {table.file} of the dump")
    if name in _ROOTS:
        description, advice = _ROOTS[name]
        raise DumpError(path, f"is {description} (<{root}>), {expected}", advice=advice)


def check_head(path: str, head: bytes, table: Table) -> None:
    """Raise a `DumpError` if a file without a root element is of a known kind, such as JSON."""
    start = head[:65536].lstrip(_BLANK)
    if _PAGE.match(start):
        check_root(path, "html", table)
    if start[:1] in (b"{", b"["):
        is_output = b'"PostTypeId":' in start or b'"Answers":' in start
        raise DumpError(
            path,
            f"is JSON{' that so2docs wrote' if is_output else ''}, not a {table.file}",
            advice=_GIVE_OUTPUT if is_output else _GIVE_DUMP,
        )
    if _ROW.search(head):
        raise _piece(
            path, f"starts in the middle of the rows, expected <{table.root}> before them", table
        )


def _piece(path: str, problem: str, table: Table) -> MalformedDumpError:
    """Make the error for rows without a root element."""
    return MalformedDumpError(
        path,
        problem,
        Location(0, 1, row=table.row),
        advice=f"if it is a part of a {table.file} that was split, join the parts with cat and "
        "convert the result",
    )
