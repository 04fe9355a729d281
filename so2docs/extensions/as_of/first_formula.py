"""Find the oldest post of a dump whose body marks a formula, and the delimiter of this formula."""

from __future__ import annotations

import re
from collections.abc import Iterable

from so2docs.extensions.as_of.existence import read_dates
from so2docs.parse.rows import Rows, parse
from so2docs.plugin import POSTS

_NOTE = "first formula"
_MARK = re.compile(r'"math-container">(\\?\$)')
_MAY_BE_MARKED = re.compile(rb"math-container|&#(?!x[9AD];)")
"""The mark, or a character reference that publishers do not use, which may be a part of it."""


def note_first_formula(notes: dict[str, str], data: bytes) -> None:
    """Note date and delimiter of the first formula of a slice, unless an older one is noted.

    A slice is parsed if it may have an older mark, however it is written.
    """
    if not _MAY_BE_MARKED.search(data):
        return
    dates = read_dates(data, POSTS.dated_by)
    if notes and dates and min(dates).decode() >= notes[_NOTE].rpartition(" ")[0]:
        return
    for part in parse(data):
        for row in part.rows if isinstance(part, Rows) else ():
            if match := _MARK.search(row.get("Body", "")):
                note = f"{row.get(POSTS.dated_by, '')} {match[1]}"
                notes[_NOTE] = min(note, notes.get(_NOTE, note))


def choose_first(notes: Iterable[dict[str, str]]) -> tuple[str, str]:
    """Return date and delimiter of the first formula of all chunks; empty without one."""
    first = min((note[_NOTE] for note in notes if _NOTE in note), default=" ")
    date, _, sign = first.rpartition(" ")
    return date, sign
