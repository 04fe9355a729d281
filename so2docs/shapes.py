"""What becomes of a typed row before it is JSON: its fields, its dates, its body.

The texts of comments stay as they are: in the dumps they are what was typed, a little Markdown, and
no HTML as bodies are.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from so2docs import bodies
from so2docs.attributes import DATES
from so2docs.posts import QUESTION, Shape
from so2docs.table_rows import TableShape

if TYPE_CHECKING:
    from so2docs.options import Options

Row = dict[str, Any]

_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?", re.ASCII)


def shape_of(options: Options) -> Shape | None:
    """What the options make of a row; None if that is nothing."""
    steps: list[Shape] = []
    if not options.filters.fields.is_all:
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


def shape_of_table(options: Options) -> TableShape | None:
    """What the options make of a row of another table; None if that is nothing."""
    return (lambda row, place: _with_dates(row)) if options.form.has_dates else None


def _choice(options: Options) -> Shape:
    fields = options.filters.fields
    has_question = lru_cache(maxsize=4096)(fields.has_question)
    has_answer = lru_cache(maxsize=4096)(fields.has_answer)

    def choose(row: Row) -> Row:
        has = has_question if row["PostTypeId"] == QUESTION else has_answer
        return {name: value for name, value in row.items() if has(name)}

    return choose


def _with_dates(row: Row) -> Row:
    """Dates as MongoDB's Extended JSON writes them; what is none stays as it is."""
    return {
        name: {"$date": f"{value}Z"} if name in DATES and _DATE.fullmatch(value) else value
        for name, value in row.items()
    }
