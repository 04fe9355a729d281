"""Turn rows into posts: convert types and tags, and make keys and JSON. Pure functions.

A chunk becomes a `Bucket` of bytes for each range of question ids. A post is a record of four
64-bit integers in `keys` and a JSON object in `json`, in the order of the dump. Tests compare the
compiled core with this module.
"""

from __future__ import annotations

import re
import struct
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache, partial
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from so2docs.domain import MOMENT
from so2docs.parse.keys import ANSWER, BUCKET_BITS, KEY, PAIR_BYTES, QUESTION
from so2docs.schema import BOOLEAN, DATE, INTEGER, NUMBERS, RESERVED, TEXT, TEXTS

Projection = Callable[[dict[str, Any]], dict[str, Any]]
"""Function that changes a typed row before it becomes JSON."""

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INT64 = 1 << 63
_NESTED = {"1", "2"}
_STRICT_INTEGER = orjson.OPT_STRICT_INTEGER
"""Option with which orjson rejects numbers above 53 bits. This is cheaper than checking each
number; `_add_carefully` handles rejected rows."""


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
        rejected: Keys of rejected posts without a bucket, which are needed only to find repeated
            ids.
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
    rejected: bytearray = field(default_factory=bytearray)
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

    def add_stray(self, reason: str, row: dict[str, Any]) -> None:
        """Add a typed row without a usable key to the strays."""
        self.strays += stray_line(reason, row)
        self.stray_reasons[reason] += 1


_WORDS = {
    "Id": "id",
    "ParentId": "parent_id",
    "PostTypeId": "post_type_id",
    "PostId": "post_id",
    "VoteTypeId": "vote_type_id",
    "PostHistoryTypeId": "post_history_type_id",
    "UserId": "user_id",
    "Class": "class",
}
"""The words in reasons for strays, by attribute."""


class _Plan(NamedTuple):
    """How to convert rows with the same attribute names; made once for each set of names."""

    numbers: tuple[str, ...]
    values: Callable[[dict[str, Any]], tuple[str, ...]]
    has_tags: bool
    is_reserved: bool


_Plans = dict[tuple[str, ...], _Plan]


@lru_cache(maxsize=4)
def _plans_without(reserved: frozenset[str]) -> _Plans:
    """Return the cache of plans by attribute names; a dump has a few dozen sets of names."""
    return {}


_MOST_PLANS = 4096
_WIDEST_KEPT = 64


def _make_plan(names: tuple[str, ...], reserved: frozenset[str]) -> _Plan:
    numbers = tuple(name for name in names if name in NUMBERS)
    values: Callable[[dict[str, Any]], tuple[str, ...]]
    values = itemgetter(*numbers) if len(numbers) > 1 else lambda row: (row[numbers[0]],)
    plan = _Plan(numbers, values, "Tags" in names, not reserved.isdisjoint(names))
    # Do not cache plans for very wide rows: a malicious file may have any number of them.
    if len(names) <= _WIDEST_KEPT:
        plans = _plans_without(reserved)
        if len(plans) >= _MOST_PLANS:
            plans.clear()
        plans[names] = plan
    return plan


def number(text: str) -> int | str:
    """Convert a text to a 64-bit integer, or return it unchanged if that is impossible."""
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


def convert_types(row: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of a row, with integers and lists of tags instead of their texts."""
    return {
        name: number(value)
        if name in NUMBERS
        else tags(value)
        if name == "Tags" and isinstance(value, str)
        else value
        for name, value in row.items()
    }


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
    buckets, pairs, pack, dumps = buffer.buckets, buffer.pairs, KEY.pack, orjson.dumps
    reserved = buffer.reserved
    known_plan = _plans_without(reserved).get
    last_bucket, keys, jsons = None, bytearray(), bytearray()
    for row in rows:
        names = tuple(row)
        number_names, values_of, has_tags, is_reserved = known_plan(names) or _make_plan(
            names, reserved
        )
        kind = row.get("PostTypeId")
        if kind not in _NESTED or is_reserved:
            _add_carefully(buffer, row, projection)
            continue
        values = values_of(row)
        digits = "".join(values)
        try:
            # int() accepts only a single leading minus sign.
            if not (digits.isdigit() or digits.replace("-", "").isdigit()) or not digits.isascii():
                raise ValueError
            row.update(zip(number_names, map(int, values)))  # noqa: B905
            if has_tags:
                row["Tags"] = tags(row["Tags"])
            post_id = row["Id"]
            if kind == "1":
                question_id, rank, kind = post_id, row.get("AcceptedAnswerId", post_id), QUESTION
            else:
                question_id, rank, kind = row["ParentId"], row.get("Score", 0), ANSWER
            json = dumps(row if projection is None else projection(row), None, _STRICT_INTEGER)
            key = pack(question_id, post_id, rank, len(json) << 4 | kind)
        except (ValueError, KeyError, TypeError, struct.error):
            row.update(zip(number_names, values, strict=True))
            _add_carefully(buffer, row, projection)
            continue
        buffer.add_day(row)
        number = question_id >> BUCKET_BITS
        if number != last_bucket:
            last_bucket, (keys, jsons) = number, buckets[number]
        keys += key
        jsons += json
        pairs += key[:PAIR_BYTES]


def _add_carefully(
    buffer: RecordBuffer, row: dict[str, Any], projection: Projection | None
) -> None:
    """Add one row with any attributes; a row without a usable key becomes a stray."""
    row.update(convert_types(row))
    if reason := _unusable(row, buffer.reserved):
        buffer.add_stray(reason, row)
        return
    kind = row["PostTypeId"]
    if kind not in (QUESTION, ANSWER):
        buffer.other_types[kind] += 1
        return
    buffer.add_day(row)
    post_id = row["Id"]
    if kind == QUESTION:
        question_id, rank = post_id, row.get("AcceptedAnswerId")
    else:
        question_id, rank = row["ParentId"], row.get("Score")
    if not isinstance(rank, int):
        rank = post_id if kind == QUESTION else 0
    json = orjson.dumps(row if projection is None else projection(row))
    record = KEY.pack(question_id, post_id, rank, len(json) << 4 | kind)
    bucket = buffer.buckets[question_id >> BUCKET_BITS]
    bucket.keys.extend(record)
    bucket.json.extend(json)
    buffer.pairs += record[:PAIR_BYTES]


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
    return f"{'invalid' if name in row else 'missing'}_{_WORDS[name]}"
