"""What becomes of a typed row before it is JSON: its fields and its dates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from so2docs.domain import is_date
from so2docs.options.field_choice import FieldChoice
from so2docs.parse.keys import QUESTION
from so2docs.parse.posts import Projection
from so2docs.schema import ANSWERS, DATES

if TYPE_CHECKING:
    from so2docs.options.table import Options

Row = dict[str, Any]


def make_projection(options: Options) -> Projection | None:
    """What the options make of a row; None if that is nothing."""
    steps: list[Projection] = []
    if not options.filters.fields.has_whole_posts:
        steps.append(_choice(options))
    if options.form.has_dates:
        steps.append(_with_dates)
    if len(steps) < 2:
        return steps[0] if steps else None

    def all_steps(row: Row) -> Row:
        for step in steps:
            row = step(row)
        return row

    return all_steps


def projection_of_table(options: Options) -> Projection | None:
    """What the options make of a row of a table; None if that is nothing.

    Its fields are chosen when it is nested: only then is it known where.
    """
    return _with_dates if options.form.has_dates else None


def _choice(options: Options) -> Projection:
    fields = options.filters.fields
    needed = fields.hidden(options.nest)
    questions = FieldChoice(fields, also=needed)
    answers = FieldChoice(fields, ANSWERS, needed)

    def choose(row: Row) -> Row:
        return (questions if row["PostTypeId"] == QUESTION else answers).of(row)

    return choose


def _with_dates(row: Row) -> Row:
    """Dates as MongoDB's Extended JSON writes them; anything else stays unchanged."""
    return {
        name: {"$date": f"{value}Z"} if name in DATES and is_date(value) else value
        for name, value in row.items()
    }
