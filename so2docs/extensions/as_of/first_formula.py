"""Find the oldest post of a dump whose body marks a formula, and the delimiter of this formula."""

from __future__ import annotations

import re
from collections.abc import Iterable

from so2docs.extensions.as_of.existence import read_dates
from so2docs.parse.rows import Rows, parse
from so2docs.schema import POSTS

_NOTE = "first formula"
_MARK = re.compile(r'"math-container">(\\?\$)')
_MAY_BE_MARKED = re.compile(rb"math-container|&#(?!x[9AD];)")
"""The mark, or a character reference that publishers do not use, which may be a part of it."""


class FirstFormula:
    """Looks at the slices of a chunk, whatever the filters are.

    Attributes:
        notes: Date and delimiter of the first formula, by a name; empty without one.
    """

    def __init__(self) -> None:
        self.notes: dict[str, str] = {}

    def look_at(self, data: bytes) -> None:
        """Look at a slice; it is parsed if it may have an older mark, however it is written."""
        if not _MAY_BE_MARKED.search(data):
            return
        dates = read_dates(data, POSTS.dated_by)
        if self.notes and dates and min(dates).decode() >= self.notes[_NOTE].rpartition(" ")[0]:
            return
        for part in parse(data):
            for row in part.rows if isinstance(part, Rows) else ():
                if match := _MARK.search(row.get("Body", "")):
                    note = f"{row.get(POSTS.dated_by, '')} {match[1]}"
                    self.notes[_NOTE] = min(note, self.notes.get(_NOTE, note))


def choose_first(notes: Iterable[dict[str, str]]) -> tuple[str, str]:
    """Return date and delimiter of the first formula of all chunks; empty without one."""
    first = min((note[_NOTE] for note in notes if _NOTE in note), default=" ")
    date, _, sign = first.rpartition(" ")
    return date, sign
