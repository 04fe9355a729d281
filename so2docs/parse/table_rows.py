"""Turn rows of tables other than posts into records that belong to a post.

Pure functions over plain bytes and lists. Records have keys like posts (`keys.KEY`): question id,
post id, rank, and size of the JSON with the kind of the table. The rank of a row is its `Id`,
except for votes. Votes are only counted, in one record without JSON for each post and type, since
there are three times as many votes as all other rows together. A vote with a bounty amount becomes
another record, with JSON.

A row with an unknown post is filed under the id of this post, as if it were a question. This
way, the merge alone decides which rows have no post.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import orjson

from so2docs.parse.keys import BY_OPTED_OUT, KEY, walk
from so2docs.parse.posts import Projection, RecordBuffer, not_integer, type_numbers
from so2docs.schema import (
    BADGE_CLASSES,
    BOUNTY,
    BOUNTY_TYPES,
    CONTENT,
    LINK_TYPES,
    STATES,
    TABLES,
    VOTE,
    Row,
    Table,
)

FindQuestions = Callable[[Iterable[int]], dict[int, int]]
"""Function that maps post ids to question ids; the result lacks posts that are not in the dump."""

_COUNT_BITS = 32
_INT32 = 1 << 31


def unusable(row: Row, table: Table) -> str | None:
    """Return the reason why a typed row cannot be used; None if it can."""
    for name in table.required:
        if type(row.get(name)) is not int:
            return f"{table.row}_{not_integer(row, name)}"
    if not table.reserved.isdisjoint(row):
        return f"{table.row}_reserved_attribute"
    if table.kind == VOTE and not -_INT32 <= row["VoteTypeId"] < _INT32:
        return "vote_invalid_vote_type_id"
    if table.name == "badges" and row["Class"] not in BADGE_CLASSES:
        return "badge_invalid_class"
    return None


def reject(buffer: RecordBuffer, table: Table, rows: list[Row]) -> list[Row]:
    """Convert the numbers of rows; add unusable rows to the strays, and return usable rows."""
    usable = []
    for row in rows:
        type_numbers(row, table.numbers)
        if reason := unusable(row, table):
            if BY_OPTED_OUT in row:
                buffer.filtered += 1
                continue
            buffer.add_stray(reason, row)
        else:
            usable.append(row)
    return usable


def add_rows(
    buffer: RecordBuffer,
    table: Table,
    usable: list[Row],
    questions: FindQuestions,
    projection: Projection | None = None,
) -> None:
    """Turn the typed rows that `reject` returns into records; the rows are changed in place."""
    places = questions({row["PostId"] for row in usable})
    prepare = _PREPARE.get(table.name)
    for row in usable:
        post_id: int = row["PostId"]
        if prepare is not None and not prepare(row):
            buffer.filtered += 1
            continue
        json = orjson.dumps(row if projection is None else projection(row))
        buffer.add(places.get(post_id, post_id), post_id, row["Id"], table.kind, json)


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
"""Functions that change a typed row before it becomes JSON, by table; False leaves the row out."""


def add_votes(
    buffer: RecordBuffer, rows: list[Row], questions: FindQuestions, record_kind: int = VOTE
) -> None:
    """Turn votes into records that count them by post and type; rows may be changed in place."""
    usable = reject(buffer, TABLES["votes"], rows)
    counts = Counter[tuple[int, int]]((row["PostId"], row["VoteTypeId"]) for row in usable)
    places = questions({post_id for post_id, _ in counts})
    for (post_id, kind), count in sorted(counts.items()):
        rank = pack_votes(kind, count)
        buffer.add(places.get(post_id, post_id), post_id, rank, record_kind, b"")


def add_bounties(
    buffer: RecordBuffer,
    rows: list[Row],
    questions: FindQuestions,
    projection: Projection | None = None,
) -> None:
    """Turn the votes with a bounty amount into bounty records, and skip unusable votes.

    The rows stay unchanged. `add_votes` counts all votes, and adds unusable votes to the strays.

    A bounty is offered on a question (`BountyStart`) and awarded to an answer (`BountyClose`). A
    bounty that ends without an award has no amount; it appears only in the vote counts.
    """
    table = TABLES["votes"]
    usable = []
    for row in (dict(row) for row in rows if "BountyAmount" in row):
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
        rank = rank if type(rank) is int else 0
        json = orjson.dumps(bounty if projection is None else projection(bounty))
        buffer.add(places.get(post_id, post_id), post_id, rank, BOUNTY, json)


def add_records(buffer: RecordBuffer, keys: bytes, json: bytes, questions: FindQuestions) -> None:
    """Add records that were made before the questions of their posts were known."""
    places = questions({post_id for _, post_id, *_ in walk(keys)})
    end = 0
    for _, post_id, rank, kind, start, end in walk(keys):
        buffer.add(places.get(post_id, post_id), post_id, rank, kind, json[start:end])
    if end != len(json):
        raise ValueError("keys and JSON do not match")


def count_votes(keys: bytes) -> bytes:
    """Add up the votes of each post and type into one record, in the order of the post ids."""
    counts: Counter[tuple[int, int, int]] = Counter()
    for question_id, post_id, rank, _ in KEY.iter_unpack(keys):
        kind, count = unpack_votes(rank)
        counts[post_id, question_id, kind] += count
    return b"".join(
        KEY.pack(question_id, post_id, pack_votes(kind, count), VOTE)
        for (post_id, question_id, kind), count in sorted(counts.items())
    )


def pack_votes(kind: int, count: int) -> int:
    """Pack a type, and a number of votes or badges of it, into the rank of a record."""
    return kind << _COUNT_BITS | count


def unpack_votes(rank: int) -> tuple[int, int]:
    """Unpack a rank that `pack_votes` made into the type and the number."""
    return rank >> _COUNT_BITS, rank & ((1 << _COUNT_BITS) - 1)
