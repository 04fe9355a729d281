"""Turn rows into posts: convert types and tags, and make keys and JSON. Pure functions.

A chunk becomes a `Bucket` of bytes for each range of question ids. A post is a record of four
64-bit integers in `keys` and a JSON object in `json`, in the order of the dump. Tests compare the
compiled core with this module.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache, partial
from typing import Any, NamedTuple

import orjson

from so2docs.domain import MOMENT
from so2docs.parse.keys import ANSWER, BUCKET_BITS, KEY, PAIR, QUESTION
from so2docs.schema import BOOLEAN, DATE, INTEGER, NUMBERS, RESERVED, TEXT, TEXTS

Projection = Callable[[dict[str, Any]], dict[str, Any]]
"""Function that changes a typed row before it becomes JSON."""

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_BETWEEN_WORDS = re.compile("(?<=[a-z])(?=[A-Z])")
_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INT64 = 1 << 63
_CERTAIN_DIGITS = 19
"""Digits of 2^63: numbers with fewer digits always fit into 64 bits."""


class Bucket(NamedTuple):
    """Posts of one range of question ids: the keys, and the concatenated JSON objects."""

    keys: bytearray
    json: bytearray


def new_bucket() -> Bucket:
    """Make an empty bucket."""
    return Bucket(bytearray(), bytearray())


@dataclass(slots=True)
class RecordBuffer:
    """Posts or records made from rows, in the order of the dump.

    Attributes:
        buckets: Posts by bucket number (`question id >> BUCKET_BITS`); missing buckets are made on
            access.
        pairs: Question id and post id of every post, as 64-bit integers, in the order of the dump.
        strays: Lines of the side file for rows without a usable key.
        stray_reasons: Number of these rows by reason.
        other_types: Number of rows of each post type other than questions and answers.
        filtered: Number of rows rejected by a filter.
        dropped: Number of posts and comments filtered because a list to drop names their author or
            the post itself.
        reserved: Names forbidden for attributes, since documents use them for other values.
        first_day: The day on which the oldest post was created; empty if unknown.
        last_day: The day on which the latest post was created; empty if unknown.
    """

    buckets: defaultdict[int, Bucket] = field(default_factory=partial(defaultdict, new_bucket))
    pairs: bytearray = field(default_factory=bytearray)
    strays: bytearray = field(default_factory=bytearray)
    stray_reasons: Counter[str] = field(default_factory=Counter)
    other_types: Counter[int] = field(default_factory=Counter)
    filtered: int = 0
    dropped: int = 0
    reserved: frozenset[str] = RESERVED
    first_day: str = ""
    last_day: str = ""

    def add_days(self, first: str, last: str) -> None:
        """Add the first and the last day of some posts; empty days are unknown."""
        self.first_day = min(filter(None, (self.first_day, first)), default="")
        self.last_day = max(self.last_day, last)

    def add_day(self, row: dict[str, Any]) -> None:
        """Add the day on which a post was created, if it is known."""
        date = row.get("CreationDate")
        if isinstance(date, str) and (day := _DAY.match(date)):
            self.add_days(day[0], day[0])

    def add(self, question_id: int, post_id: int, rank: int, kind: int, json: bytes) -> bytes:
        """Add a record to the bucket of its question, and return its key."""
        bucket = self.buckets[question_id >> BUCKET_BITS]
        key = KEY.pack(question_id, post_id, rank, len(json) << 4 | kind)
        bucket.keys.extend(key)
        bucket.json.extend(json)
        return key

    def add_stray(self, reason: str, row: dict[str, Any]) -> None:
        """Add a typed row without a usable key to the strays."""
        self.strays += stray_line(reason, row)
        self.stray_reasons[reason] += 1


def number(text: str) -> int | str:
    """Convert a text to a 64-bit integer, or return it unchanged if that is impossible."""
    if text.isdecimal() and text.isascii() and len(text) < _CERTAIN_DIGITS:
        return int(text)
    if _INTEGER.fullmatch(text) and len(text) < 4000:
        value = int(text)
        if -_INT64 <= value < _INT64:
            return value
    return text


def tags(text: str) -> list[str]:
    """Split tags in either notation, `<a><b>` (until 2023) or `|a|b|`; other text is one tag."""
    if len(text) > 1:
        if text[0] == "|" and text[-1] == "|":
            return text[1:-1].split("|")
        if text[0] == "<" and text[-1] == ">":
            return text[1:-1].split("><")
    return [text] if text else []


_EPOCH = date(1970, 1, 1).toordinal()
_BOOLEANS = {"true": True, "false": False}


def milliseconds(text: str) -> int | None:
    """Convert a date of a dump (UTC) to Unix time in milliseconds; None if it is not a date."""
    match = MOMENT.fullmatch(text)
    days = None if match is None else _days(match[1])
    if match is None or days is None:
        return None
    seconds = ((days * 24 + int(match[2])) * 60 + int(match[3])) * 60 + int(match[4])
    return seconds * 1000 + int((match[5] or "0").ljust(3, "0"))


@lru_cache(1 << 14)
def _days(day: str) -> int | None:
    """Return the number of days since 1970; None if the day does not exist."""
    try:
        return date.fromisoformat(day).toordinal() - _EPOCH
    except ValueError:
        return None


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
"""Parsers of attributes, by type; they return None for a text that does not fit the type."""


def type_numbers(row: dict[str, Any], numbers: frozenset[str]) -> None:
    """Convert the numbers of a row in place; text that is not a 64-bit integer stays unchanged."""
    for name in numbers.intersection(row):
        row[name] = number(row[name])


def stray_line(reason: str, row: dict[str, Any]) -> bytes:
    """Return the line of the side file for a typed row that belongs to no document."""
    return orjson.dumps({"reason": reason, "row": row}) + b"\n"


def malformed_line(offset: int, raw: bytes, reason: str = "malformed_row") -> bytes:
    """Return the line of the side file for a row that is not XML, with its offset in the dump."""
    text = raw.decode(errors="replace")
    return orjson.dumps({"reason": reason, "offset": offset, "text": text}) + b"\n"


def add(
    buffer: RecordBuffer, rows: list[dict[str, Any]], projection: Projection | None = None
) -> None:
    """Turn rows into posts; rows without a usable key become strays.

    Args:
        buffer: The buffer to add the posts and strays to.
        rows: Attributes of the rows, in the order of the dump; they are changed in place.
        projection: Changes each row before it becomes JSON.
    """
    for row in rows:
        type_numbers(row, NUMBERS)
        if "Tags" in row:
            row["Tags"] = tags(row["Tags"])
        if reason := _unusable(row, buffer.reserved):
            buffer.add_stray(reason, row)
            continue
        kind = row["PostTypeId"]
        if kind not in (QUESTION, ANSWER):
            buffer.other_types[kind] += 1
            continue
        buffer.add_day(row)
        post_id = row["Id"]
        if kind == QUESTION:
            question_id, rank, unranked = post_id, row.get("AcceptedAnswerId"), post_id
        else:
            question_id, rank, unranked = row["ParentId"], row.get("Score"), 0
        if not isinstance(rank, int):
            rank = unranked
        json = orjson.dumps(row if projection is None else projection(row))
        buffer.pairs += buffer.add(question_id, post_id, rank, kind, json)[: PAIR.size]


def _unusable(row: dict[str, Any], reserved: frozenset[str]) -> str | None:
    """Return the reason why a typed row cannot be used; None if it can, or is of another type."""
    kind = row.get("PostTypeId")
    if not isinstance(kind, int):
        return not_integer(row, "PostTypeId")
    if kind not in (QUESTION, ANSWER):
        return None
    if not isinstance(row.get("Id"), int):
        return not_integer(row, "Id")
    if not reserved.isdisjoint(row):
        return "reserved_attribute"
    if kind == ANSWER and not isinstance(row.get("ParentId"), int):
        return not_integer(row, "ParentId") if "ParentId" in row else "answer_without_parent_id"
    return None


def not_integer(row: dict[str, Any], name: str) -> str:
    """Return the reason why a row without an integer of this name cannot be used."""
    words = _BETWEEN_WORDS.sub("_", name).lower()
    return f"{'invalid' if name in row else 'missing'}_{words}"
