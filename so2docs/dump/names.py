"""Recognize the tables of a dump by the names of files and of members of archives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

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
