"""The rows that giant dumps are shuffled in: blocks, as they stand in a spill, and halves of joins.

All have the same columns, so that frames of them can be put together. A join is a cogroup in all
but name: rows of two kinds come sorted by site, range of ids and kind, so that what is known of a
range comes before those who ask. That takes less memory than to hold both sides.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

from so2docs.posts.keys import BUCKET_BITS, KEY, as_bytes, integers
from so2docs.schema import TABLES
from so2docs.spill import SEQUENCE_BITS
from so2docs.store.blocks import Block

PART_BITS = 3
"""A part holds 2^3 buckets, 131,072 question ids: 160 MB of JSON of a busy site, 50 MB of gzip."""

BLOCK, TOLD, QUESTIONS, ASKED, USERS, WANTED = range(6)
"""Kinds of rows: a block of a part; what a chunk tells; then two by two, in the order that a join
needs. Questions of posts by ranges of post ids, and the posts that a chunk of a table asks for;
users by ranges of user ids, and those that parts want."""

Row = tuple[Any, ...]

_NAMES = ("kind", "site", "part", "chunk", *Block._fields, "data")
_KINDS = {"data": "binary"}
NO_BLOCK = Block(None, 0, 0, 0, 0, 0, 0, 0)
COLUMNS = ", ".join(f"{name} {_KINDS.get(name, 'bigint')}" for name in _NAMES)
"""`site` is its number, `chunk` that of the spill. `part` is the one of the site, or the range of
post or user ids; null, as `bucket` is, of strays that belong to no question."""

_RANGE_BITS = BUCKET_BITS + PART_BITS
_RANGE = itemgetter("site", "part")
OF_USERS = TABLES["users"].sequence << SEQUENCE_BITS
"""Number of the chunk that the users of a part become."""

_BATCH_BYTES = 4 * 1024 * 1024


def row(
    kind: int, site: int, part: int | None, chunk: int, data: bytes, *, block: Block = NO_BLOCK
) -> Row:
    """A row."""
    return (kind, site, part, chunk, *block, data)


def batches(rows: Iterable[Row]) -> Iterator[Any]:
    """Rows in Arrow batches of some megabytes."""
    held: list[Row] = []
    size = 0
    for one in rows:
        held.append(one)
        size += len(one[-1])
        if size >= _BATCH_BYTES:
            yield _batch(held)
            held, size = [], 0
    if held:
        yield _batch(held)


def _batch(rows: list[Row]) -> Any:
    import pyarrow as pa

    types = [pa.binary() if name in _KINDS else pa.int64() for name in _NAMES]
    columns = zip(zip(*rows, strict=True), types, strict=True)
    return pa.record_batch([pa.array(values, kind) for values, kind in columns], _NAMES)


def rows_of(batches: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """The rows of Arrow batches, by name of the column; their bytes are not copied."""
    for some in batches:
        data = some.column("data")
        for number, values in enumerate(some.drop_columns(["data"]).to_pylist()):
            yield values | {"data": data[number].as_buffer()}


def by_range(pairs: Iterable[tuple[int, int]]) -> dict[int, bytes]:
    """Pairs of an id and something else, by the range that the id is in."""
    found: dict[int, array[int]] = defaultdict(lambda: array("q"))
    for pair in pairs:
        found[pair[0] >> _RANGE_BITS].extend(pair)
    return {number: as_bytes(numbers) for number, numbers in sorted(found.items())}


def pairs_in(data: Any) -> Iterable[tuple[int, int]]:
    """Such pairs."""
    numbers = integers(data)
    return zip(numbers[::2], numbers[1::2], strict=True)


def find_questions(rows: Iterable[Any]) -> Iterator[Any]:
    """For each chunk that asks for posts of a range, the questions of those that there are."""
    for _, of_range in groupby(rows_of(rows), _RANGE):
        questions: dict[int, int] = {}
        for one in of_range:
            if one["kind"] == QUESTIONS:
                questions.update(pairs_in(one["data"]))
                continue
            posts = (post_id for post_id, _ in pairs_in(one["data"]) if post_id in questions)
            pairs = array("q", (number for post in posts for number in (post, questions[post])))
            found = row(ASKED, one["site"], one["part"], one["chunk"], as_bytes(pairs))
            yield from batches([found])


def user_rows(
    users: Iterable[tuple[int, bytes]], site: int, part: int | None = None, chunk: int = OF_USERS
) -> list[Row]:
    """Users, each an id and a JSON object: a row for each range of ids, in `part` or as that."""
    ranges: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
    for user in users:
        ranges[user[0] >> _RANGE_BITS].append(user)
    rows = []
    for number, some in ranges.items():
        # As `UserRecords` takes them; the second id is what `repeats` looks at.
        keys = b"".join(KEY.pack(user_id, user_id, 0, len(json) << 4) for user_id, json in some)
        jsons = b"".join(json for _, json in some)
        block = NO_BLOCK._replace(offset=number, keys_size=len(keys), json_size=len(jsons))
        own = number if part is None else part
        rows.append(row(USERS, site, own, chunk, keys + jsons, block=block))
    return rows


def find_users(rows: Iterable[Any]) -> Iterator[Any]:
    """The users of a range that each part wants."""
    for (site, _), of_range in groupby(rows_of(rows), _RANGE):
        users: dict[int, bytes] = {}
        by_part: dict[int, set[int]] = defaultdict(set)
        for one in of_range:
            if one["kind"] == USERS:
                users.update(_users_in(bytes(one["data"]), one["keys_size"]))
                continue
            for user_id, part in pairs_in(one["data"]):
                if user_id in users:
                    by_part[part].add(user_id)
        for part, ids in by_part.items():
            wanted = ((user_id, users[user_id]) for user_id in sorted(ids))
            yield from batches(user_rows(wanted, site, part))


def _users_in(data: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    """Id and JSON of the users in a row whose JSON starts at a place."""
    for user_id, _, _, size in KEY.iter_unpack(data[:at]):
        yield user_id, data[at : (at := at + (size >> 4))]
