"""What belongs together and stands in several ranges of a giant dump, joined in executors.

Rows of tables come with the questions of their posts, by ranges of post ids, and leave for the part
of the question. Users come with the parts that name them, by ranges of user ids.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import attrgetter

from so2docs.options.conversion import Options
from so2docs.passes.filing import Filing
from so2docs.posts.keys import BUCKET_BITS, KEY
from so2docs.posts.posts import Posts, new_bucket
from so2docs.schema import TABLES
from so2docs.spark.folders import temporary_folder
from so2docs.spark.frames import BLOCK, QUESTIONS, USERS, Groups, Row
from so2docs.spark.ranges import block_rows, wanted_rows
from so2docs.spill import SEQUENCE_BITS
from so2docs.store.blocks import Block, BlockReader, BlockWriter

_COMMENTS = TABLES["comments"].sequence << SEQUENCE_BITS


def find_questions(found: Groups, *, users: bool) -> Iterator[Row]:
    """Rows of tables, in blocks of the questions of their posts.

    Args:
        found: The questions of posts, then rows of tables, by ranges of post ids.
        users: Whether users are nested, too, so that those of comments are wanted.
    """
    for (site, _), of_range in found:
        questions: dict[int, int] = {}
        # What has one post keeps its order, which is all that the merge needs of it.
        for (kind, chunk), rows in groupby(of_range, lambda row: (row.kind, _table(row))):
            if kind == QUESTIONS:
                for row in rows:
                    questions.update(row.data)
                continue
            with temporary_folder() as folder:
                path = os.path.join(folder, "blocks")
                blocks = _file(path, rows, questions)
                yield from block_rows(BLOCK, site, chunk, path, blocks)
                if users and chunk == _COMMENTS:
                    yield from wanted_rows(site, path, blocks)


def _table(row: Row) -> int:
    """The first chunk of a row's table, which those of all its chunks become."""
    return row.chunk >> SEQUENCE_BITS << SEQUENCE_BITS


def _file(path: str, rows: Iterable[Row], questions: Mapping[int, int]) -> list[Block]:
    """File rows of a table under the questions of their posts."""
    with BlockReader() as reader, BlockWriter(path) as writer:
        posts = Posts(buckets=defaultdict(new_bucket))
        filing = Filing(Options(), posts, writer)
        given = f"{path}.given"
        for block in stored(given, rows):
            keys, json = reader.read(given, block)
            at = 0
            for _, post_id, rank, size_and_kind in KEY.iter_unpack(keys):
                question_id = questions.get(post_id, post_id)
                bucket = posts.buckets[question_id >> BUCKET_BITS]
                bucket.keys.extend(KEY.pack(question_id, post_id, rank, size_and_kind))
                bucket.json.extend(json[at : (at := at + (size_and_kind >> 4))])
            filing.flush()
        filing.finish()
    return writer.blocks


def stored(path: str, rows: Iterable[Row]) -> list[Block]:
    """Put the blocks of some rows into a file."""
    blocks, at = list[Block](), 0
    with open(path, "wb") as file:
        for row in rows:
            block, data = row.data
            blocks.append(block._replace(offset=at))
            at += file.write(data)
    return blocks


def find_users(found: Groups) -> Iterator[Row]:
    """The users of a range that each part names."""
    for (site, _), of_range in found:
        users: dict[int, bytes] = {}
        for (kind, part), rows in groupby(of_range, attrgetter("kind", "chunk")):
            if kind == USERS:
                for row in rows:
                    users.update(row.data)
                continue
            ids = set[int]().union(*(row.data for row in rows)) & users.keys()
            yield Row(USERS, site, part, 0, 0, {user_id: users[user_id] for user_id in ids})
