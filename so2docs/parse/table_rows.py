"""Rows of the other tables -> records under a post.

Pure functions over plain bytes and lists. A record is what a post is (`keys.KEY`): question id,
post id, rank, and the size of its JSON with a kind of its own. A comment or a link keeps its JSON,
and its own `Id` as the rank; of votes only the counts are kept, one record for each post and type,
without JSON: there are three times as many as all other rows together. A vote with the amount of a
bounty makes another record, with JSON.

A row whose post nobody knows is filed under that post's id, as if it were a question, so that the
merge is the only one to say which rows have no post.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Any

import orjson

from so2docs.parse.keys import BUCKET_BITS, KEY
from so2docs.parse.posts import Posts, Projection, number, stray_line
from so2docs.schema import (
    BADGE_CLASSES,
    BOUNTY,
    BOUNTY_TYPES,
    CONTENT,
    LINK_TYPES,
    STATES,
    TABLES,
    VOTE,
    Table,
)

Row = dict[str, Any]
FindQuestions = Callable[[Iterable[int]], dict[int, int]]
"""Question ids of those of some post ids that are in the dump."""

MOST_USERS = 1 << 61
"""Ids of users with badges are lower: the class takes two of 64 bits, the sign one."""

_WORDS = {
    "Id": "id",
    "PostId": "post_id",
    "VoteTypeId": "vote_type_id",
    "PostHistoryTypeId": "post_history_type_id",
    "UserId": "user_id",
    "Class": "class",
}
_COUNT_BITS = 32
_INT32 = 1 << 31


@lru_cache(maxsize=4096)
def _numbers(
    numbers: frozenset[str], names: tuple[str, ...]
) -> tuple[tuple[str, ...], Callable[[Row], tuple[str, ...]]]:
    """Names of a row's numbers, and what takes them out of it."""
    present = tuple(name for name in names if name in numbers)
    if len(present) > 1:
        return present, itemgetter(*present)
    return present, lambda row: tuple(row[name] for name in present)


def type_numbers(row: Row, numbers: frozenset[str]) -> None:
    """Replace the texts of a row's numbers by numbers; anything not of 64 bits stays unchanged."""
    names, take = _numbers(numbers, tuple(row))
    values = take(row)
    digits = "".join(values)
    if digits.isdigit() and digits.isascii() and all(0 < len(text) < 19 for text in values):
        row.update(zip(names, map(int, values), strict=True))
    else:
        row.update({name: number(row[name]) for name in names})


def unusable(row: Row, table: Table) -> str | None:
    """Why a typed row has no place, if it has none."""
    for name in table.required:
        if type(row.get(name)) is not int:
            problem = "invalid" if name in row else "missing"
            return f"{table.row}_{problem}_{_WORDS[name]}"
    if not table.reserved.isdisjoint(row):
        return f"{table.row}_reserved_attribute"
    if table.kind == VOTE and not -_INT32 <= row["VoteTypeId"] < _INT32:
        return "vote_invalid_vote_type_id"
    if table.name == "badges" and row["Class"] not in BADGE_CLASSES:
        return "badge_invalid_class"
    if table.name == "badges" and abs(row["UserId"]) >= MOST_USERS:
        return "badge_invalid_user_id"
    return None


def reject(posts: Posts, table: Table, rows: list[Row]) -> list[Row]:
    """Type rows, and put those that have no place with the strays.

    Returns:
        The others.
    """
    usable = []
    for row in rows:
        type_numbers(row, table.numbers)
        if reason := unusable(row, table):
            posts.strays += stray_line(reason, row)
            posts.stray_reasons[reason] += 1
        else:
            usable.append(row)
    return usable


def add_rows(
    posts: Posts,
    table: Table,
    rows: list[Row],
    questions: FindQuestions,
    projection: Projection | None = None,
) -> None:
    """Turn rows of a table, all but votes, into records.

    Args:
        posts: Where they go.
        table: The table that they are from.
        rows: Attributes of the rows, in the order of the table; they are changed in place.
        questions: Where the posts belong.
        projection: What to make of each before it is JSON.
    """
    usable: list[Row] = reject(posts, table, rows)
    places = questions({row["PostId"] for row in usable})
    buckets, pack, dumps, kind = posts.buckets, KEY.pack, orjson.dumps, table.kind
    prepare = _PREPARE.get(table.name)
    for row in usable:
        post_id: int = row["PostId"]
        rank: int = row["Id"]
        question_id = places.get(post_id, post_id)
        if prepare is not None and not prepare(row):
            posts.filtered += 1
            continue
        json = dumps(row if projection is None else projection(row))
        bucket = buckets[question_id >> BUCKET_BITS]
        bucket.keys.extend(pack(question_id, post_id, rank, len(json) << 4 | kind))
        bucket.json.extend(json)


def _name_link_type(row: Row) -> bool:
    if "LinkTypeId" in row:
        link_type = row["LinkTypeId"]
        row["LinkType"] = LINK_TYPES.get(link_type, str(link_type))
    return True


def _is_of_state(row: Row) -> bool:
    return row["PostHistoryTypeId"] in STATES


def _leave_text_out(row: Row) -> bool:
    if row["PostHistoryTypeId"] in CONTENT:
        row.pop("Text", None)
    return True


_PREPARE: dict[str, Callable[[Row], bool]] = {
    "links": _name_link_type,
    "closings": _is_of_state,
    "history": _leave_text_out,
}
"""By table, what happens to a typed row before it is JSON, and whether it was asked for."""


def add_votes(posts: Posts, rows: list[Row], questions: FindQuestions) -> None:
    """Turn rows of votes into records that count them by post and type.

    Args:
        posts: Where they go.
        rows: Attributes of the rows; only those with a value out of the ordinary are changed.
        questions: Where the posts belong.
    """
    try:
        pairs = list(map(itemgetter("PostId", "VoteTypeId"), rows))
    except KeyError:
        pairs = []
    texts = list(chain.from_iterable(pairs))
    digits = "".join(texts)
    sizes = set(map(len, texts))
    # Numbers of up to nine digits are post ids and types of votes without a closer look.
    if not (digits.isascii() and digits.isdigit() and min(sizes) > 0 and max(sizes) < 10):
        usable = reject(posts, TABLES["votes"], rows)
        pairs = [(str(row["PostId"]), str(row["VoteTypeId"])) for row in usable]
    counts = [(int(post), int(kind), count) for (post, kind), count in Counter(pairs).items()]
    places = questions({post_id for post_id, _, _ in counts})
    buckets, pack = posts.buckets, KEY.pack
    for post_id, kind, count in sorted(counts):
        question_id = places.get(post_id, post_id)
        bucket = buckets[question_id >> BUCKET_BITS]
        bucket.keys.extend(pack(question_id, post_id, kind << _COUNT_BITS | count, VOTE))


def with_bounty(rows: Iterable[Row]) -> list[Row]:
    """Copies of the votes that name the amount of a bounty."""
    return [dict(row) for row in rows if "BountyAmount" in row]


def add_bounties(
    posts: Posts,
    rows: list[Row],
    questions: FindQuestions,
    projection: Projection | None = None,
) -> None:
    """Turn votes into the bounties that they tell of; `add_votes` counts and rejects them.

    A bounty is offered on a question (`BountyStart`), and awarded to an answer (`BountyClose`). One
    that ends without an award has no amount, and is told by the counts of votes alone.

    Args:
        posts: Where they go.
        rows: Attributes of the rows that name an amount; they are changed in place.
        questions: Where the posts belong.
        projection: What to make of each before it is JSON.
    """
    table = TABLES["votes"]
    usable = []
    for row in rows:
        type_numbers(row, table.numbers)
        amount = row["BountyAmount"]
        if not unusable(row, table) and row["VoteTypeId"] in BOUNTY_TYPES and type(amount) is int:
            usable.append(row)
    places = questions({row["PostId"] for row in usable})
    for row in usable:
        post_id: int = row["PostId"]
        rank = row.get("Id")
        bounty = {"Amount": row["BountyAmount"]}
        if "CreationDate" in row:
            bounty["CreationDate"] = row["CreationDate"]
        if type(row.get("UserId")) is int:
            bounty["UserId"] = row["UserId"]
        json = orjson.dumps(bounty if projection is None else projection(bounty))
        question_id = places.get(post_id, post_id)
        bucket = posts.buckets[question_id >> BUCKET_BITS]
        key = (question_id, post_id, rank if type(rank) is int else 0, len(json) << 4 | BOUNTY)
        bucket.keys.extend(KEY.pack(*key))
        bucket.json.extend(json)


def add_records(posts: Posts, keys: bytes, json: bytes, questions: FindQuestions) -> None:
    """File records that were made while the questions of their posts were not known.

    Args:
        posts: Where they go.
        keys: Their keys.
        json: Their JSON.
        questions: Where the posts belong.

    Raises:
        ValueError: Keys and JSON do not belong together.
    """
    places = questions({post_id for _, post_id, _, _ in KEY.iter_unpack(keys)})
    buckets, at = posts.buckets, 0
    for _, post_id, rank, size_and_kind in KEY.iter_unpack(keys):
        question_id = places.get(post_id, post_id)
        end = at + (size_and_kind >> 4)
        bucket = buckets[question_id >> BUCKET_BITS]
        bucket.keys.extend(KEY.pack(question_id, post_id, rank, size_and_kind))
        bucket.json.extend(json[at:end])
        at = end
    if at != len(json):
        raise ValueError("keys and JSON do not belong together")


def count_votes(keys: bytes) -> bytes:
    """Add up the votes of each post and type.

    Args:
        keys: Records that count votes.

    Returns:
        One record for each post and type, in the order of the posts.
    """
    counts: Counter[tuple[int, int, int]] = Counter()
    for question_id, post_id, rank, _ in KEY.iter_unpack(keys):
        kind, count = unpack_votes(rank)
        counts[post_id, question_id, kind] += count
    return b"".join(
        KEY.pack(question_id, post_id, kind << _COUNT_BITS | count, VOTE)
        for (post_id, question_id, kind), count in sorted(counts.items())
    )


def unpack_votes(rank: int) -> tuple[int, int]:
    """Type and number of the votes that a record counts."""
    return rank >> _COUNT_BITS, rank & ((1 << _COUNT_BITS) - 1)
