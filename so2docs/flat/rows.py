"""Rows as dictionaries of texts -> typed values. Pure; the reference of the compiled core."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import orjson

from so2docs.parse.posts import number, tags
from so2docs.schema import BOOLEAN, DATE, INTEGER, TEXT, TEXTS, Attributes

Row = dict[str, str]

_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,3}))?", re.ASCII)
_BOOLEANS = {"true": True, "false": False}


def milliseconds(text: str) -> int | None:
    """Milliseconds from 1970 to a date of a dump (UTC); None if it is not a date."""
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    try:
        year, month, day, hour, minute, second = map(int, match.groups()[:6])
        seconds = datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
    except ValueError:
        return None
    return int(seconds) * 1000 + int((match[7] or "0").ljust(3, "0"))


def _integer(text: str) -> int | None:
    value = number(text)
    return value if isinstance(value, int) else None


READ: dict[str, Callable[[str], Any]] = {
    INTEGER: _integer,
    TEXT: str,
    DATE: milliseconds,
    BOOLEAN: lambda text: _BOOLEANS.get(text.lower()),
    TEXTS: tags,
}
"""From the text of an attribute to its value by type; None if it has another type."""


def typed_values(row: Row, attributes: Attributes) -> list[Any]:
    """The values of a row in the order of the attributes, and one for everything else.

    Args:
        row: Its attributes.
        attributes: Names and types of the columns.

    Returns:
        A value for each attribute, None where the row has none, or one of another type; and last
        the text of a JSON object with those, and with attributes that are no column, or None.
    """
    values = [READ[kind](row[name]) if name in row else None for name, kind in attributes.items()]
    fits = {name for name, value in zip(attributes, values, strict=True) if value is not None}
    other = {name: text for name, text in row.items() if name not in fits}
    return [*values, orjson.dumps(other).decode() if other else None]


def why_stray(row: Row, key: str, what: str) -> str | None:
    """Why a row is a stray: it has no `Id`, or not a number; None if it has one.

    Args:
        row: Its attributes.
        key: The attribute that every row must have.
        what: What a row of its table is called.
    """
    if key not in row:
        return f"{what}_missing_{key.lower()}"
    return f"{what}_invalid_{key.lower()}" if _integer(row[key]) is None else None
