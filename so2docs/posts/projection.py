"""What becomes of a typed row before it is JSON: its fields, its dates, its body.

The texts of comments stay as they are: in the dumps they are what was typed, a little Markdown, and
no HTML as bodies are.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import TYPE_CHECKING, Any

from so2docs.options.field_paths import Fields
from so2docs.posts import bodies
from so2docs.posts.keys import QUESTION
from so2docs.posts.posts import Shape
from so2docs.posts.table_rows import TableShape
from so2docs.schema import DATES, TABLES

if TYPE_CHECKING:
    from so2docs.options.conversion import Options

Row = dict[str, Any]

_MOST_NAMES = 4096
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?", re.ASCII)


def shape_of(options: Options) -> Shape | None:
    """What the options make of a row; None if that is nothing."""
    steps: list[Shape] = []
    if not options.filters.fields.has_whole_posts:
        steps.append(_choice(options))
    body = bodies.converter(options.body)
    if body is not None:
        steps.append(lambda row: {**row, "Body": body(row["Body"])} if "Body" in row else row)
    if options.form.has_dates:
        steps.append(_with_dates)
    if len(steps) < 2:
        return steps[0] if steps else None

    def all_steps(row: Row) -> Row:
        for step in steps:
            row = step(row)
        return row

    return all_steps


def shape_of_table(options: Options, table: str) -> TableShape | None:
    """What the options make of a row of a table; None if that is nothing.

    Users are chosen from where they are put, since there are several such places.
    """
    choose = None if table == "users" else _choice_of_table(options, TABLES[table].key)
    if choose is None:
        return (lambda row, place: _with_dates(row)) if options.form.has_dates else None
    if not options.form.has_dates:
        return choose
    return lambda row, place: _with_dates(choose(row, place))


def _choice_of_table(options: Options, key: str) -> TableShape | None:
    """What stays of the rows that a post holds under a key."""
    fields, hidden = options.filters.fields, options.filters.fields.hidden(options.nest)
    places = {True: key, False: f"Answers.{key}"}
    if all(fields.has_whole(path) for path in places.values()):
        return None
    # Of what is left out as a whole, enough stays to say which row it was.
    kept = {
        place: _Kept(fields, path, hidden, () if fields.has(path) else ("Id", "PostId"))
        for place, path in places.items()
    }

    def choose(row: Row, place: bool | None) -> Row:
        if place is None:  # It will be a stray, which has all that is known of it.
            return row
        names = kept[place]
        return {name: value for name, value in row.items() if names[name]}

    return choose


class _Kept(dict[str, bool]):
    """Whether what stands at a path has an attribute of this name."""

    def __init__(
        self, fields: Fields, path: str, hidden: Container[str], least: Container[str] = ()
    ) -> None:
        self._fields, self._path, self._hidden, self._least = fields, path, hidden, least

    def __missing__(self, name: str) -> bool:
        path = f"{self._path}.{name}" if self._path else name
        kept = self._fields.has(path) or path in self._hidden or name in self._least
        if len(self) < _MOST_NAMES:
            self[name] = kept
        return kept


def _choice(options: Options) -> Shape:
    fields = options.filters.fields
    hidden = fields.hidden(options.nest)
    questions, answers = _Kept(fields, "", hidden), _Kept(fields, "Answers", hidden)

    def choose(row: Row) -> Row:
        kept = questions if row["PostTypeId"] == QUESTION else answers
        return {name: value for name, value in row.items() if kept[name]}

    return choose


def _with_dates(row: Row) -> Row:
    """Dates as MongoDB's Extended JSON writes them; what is none stays as it is."""
    return {
        name: {"$date": f"{value}Z"} if name in DATES and _DATE.fullmatch(value) else value
        for name, value in row.items()
    }
