"""Ranges of giant dumps and of their tables, in executors: blocks as rows of a data frame.

`spill_chunk` does the work, into a temporary file; its blocks leave as they are, a row each with
the part of the site that it belongs to, which is what Spark shuffles by.

Memory: what `spill_chunk` takes, and a batch of rows.
"""

from __future__ import annotations

import os
import pickle
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from so2docs.errors import ChangedDumpError, So2docsError
from so2docs.options.conversion import Options
from so2docs.passes.chunk import ChunkResult, ChunkTask, spill_chunk
from so2docs.passes.worker import peak_memory
from so2docs.posts import repeats
from so2docs.posts.core import resolve
from so2docs.posts.keys import KEY, as_bytes, integers
from so2docs.schema import POSTS, TABLES, Table
from so2docs.sources import storage
from so2docs.sources.dump import Chunk, Dump, open_dump
from so2docs.sources.kinds import DumpFile
from so2docs.spark.folders import temporary_folder
from so2docs.spark.frames import (
    ASKED,
    BLOCK,
    PART_BITS,
    QUESTIONS,
    TOLD,
    WANTED,
    Row,
    batches,
    by_range,
    pairs_in,
    row,
    rows_of,
    user_rows,
)
from so2docs.spark.jobs import outcome
from so2docs.spark.summaries import Told
from so2docs.spill import REJECTED, SEQUENCE_BITS
from so2docs.store.blocks import Block, BlockReader
from so2docs.store.id_runs import IdMapWriter
from so2docs.store.users import CHECK_BYTES

Keys = tuple[Block, bytes]
_USERS = TABLES["users"]
_FIELDS = KEY.size // 8
_NOT_COMPRESSED = 1 << 62

# Inside a JSON string each quote has a backslash before it, so these are attributes.
_USER_ID = re.compile(rb'"(?:Owner|LastEditor|)UserId":(-?[0-9]+)')


@dataclass(frozen=True, slots=True)
class RangeTask:
    """A range of a dump.

    Attributes:
        site: Number of the site.
        table: The table.
        chunk: The range, in the file that was looked at.
        options: How to convert.
    """

    site: int
    table: Table
    chunk: Chunk
    options: Options

    @property
    def number(self) -> int:
        """Number of the chunk in the spill."""
        return (self.table.sequence << SEQUENCE_BITS) + self.chunk.number


def spilled(task: RangeTask, questions: Iterable[tuple[int, int]] = ()) -> Iterator[Any]:
    """The rows of a range, in Arrow batches.

    Args:
        task: The range.
        questions: Posts that the rows of a table belong to, each with its question.
    """
    with temporary_folder() as folder, BlockReader() as reader:
        path, posts = os.path.join(folder, "blocks"), _as_map(folder, questions)
        result = outcome(lambda given: _spill(given, path, posts), task)
        told: Told | So2docsError
        if isinstance(result, So2docsError):
            told = result
        else:
            # Only tables have a use for them.
            blocks = result.blocks if task.options.nest else []
            keys = [(block, reader.read_keys(path, block)) for block in blocks]
            told = _told(task, result, keys)
            yield from batches(_block_rows(task, path, result.blocks))
            yield from batches(_join_rows(task, path, result, keys, reader))
        yield from batches([row(TOLD, task.site, None, task.number, pickle.dumps(told))])


def asked(task: RangeTask) -> Iterator[Any]:
    """The posts that the rows of a range of a table belong to, in Arrow batches."""
    ids: set[int] = set()
    with temporary_folder() as folder, BlockReader() as reader:
        path, nothing = os.path.join(folder, "blocks"), _as_map(folder, ())
        result = outcome(lambda given: _spill(given, path, nothing, room=_NOT_COMPRESSED), task)
        # What is wrong with it is found again when the rows are needed.
        if not isinstance(result, So2docsError):
            for block in result.blocks:
                ids.update(integers(reader.read_keys(path, block))[1::_FIELDS])
    # A chunk that asks for nothing is read, too.
    found = by_range((post_id, 0) for post_id in sorted(ids)) or {0: b""}
    site, chunk = task.site, task.number
    yield from batches(row(ASKED, site, part, chunk, data) for part, data in found.items())


def with_questions(found: Iterable[Any], tasks: Mapping[tuple[int, int], RangeTask]) -> Any:
    """The rows of ranges of tables, in Arrow batches.

    Args:
        found: What `frames.find_questions` has found, sorted by site and chunk.
        tasks: The ranges by site and chunk.
    """
    for key, of_range in groupby(rows_of(found), itemgetter("site", "chunk")):
        yield from spilled(tasks[key], (pair for one in of_range for pair in pairs_in(one["data"])))


def _spill(task: RangeTask, path: str, posts_map: str, *, room: int = 0) -> ChunkResult:
    chunk = task.chunk._replace(dump=_same_dump(task))
    options = replace(task.options, core=resolve(task.options.core))
    result = spill_chunk(ChunkTask(chunk, path, options, task.table, posts_map, room))
    chunk.dump.check_unchanged()
    return result


def _same_dump(task: RangeTask) -> Dump:
    """The dump as this machine has it, which may be a copy.

    Raises:
        ChangedDumpError: It is not the one that was looked at.
    """
    dump = task.chunk.dump
    found = open_dump(dump.path, DumpFile(task.table.file, task.table.name))
    is_same = (found.size, found.start, found.end) == (dump.size, dump.start, dump.end)
    if not is_same or (storage.is_url(dump.path) and found.identity != dump.identity):
        raise ChangedDumpError(
            dump.path, f"changed while being read ({dump.size:,} bytes before, {found.size:,} now)"
        )
    return found


def _as_map(folder: str, pairs: Iterable[tuple[int, int]]) -> str:
    """Path of a map of those pairs."""
    path = os.path.join(folder, "posts.map")
    known = dict(pairs)
    with IdMapWriter(path) as found:
        found.add(list(known), list(known.values()))
        found.finish()
    return path


def _told(task: RangeTask, result: ChunkResult, keys: list[Keys]) -> Told:
    numbers = {block.bucket for block in result.blocks} - {None, REJECTED}
    parts = {number >> PART_BITS for number in numbers if number is not None}
    pages, is_repeated = result.pages, False
    if task.table == _USERS:
        ids = [number for _, of_block in keys for number in integers(of_block)[::_FIELDS]]
        is_repeated = len(set(ids)) < len(ids)
        pages, _ = repeats.of_chunk(bytearray(as_bytes(array("q", sorted(ids * 2)))))
    core = resolve(task.options.core)
    return Told(result.tally, pages, is_repeated, parts, peak_memory(), core)


def _part(block: Block) -> int | None:
    return None if block.bucket is None else block.bucket >> PART_BITS


def _block_rows(task: RangeTask, path: str, blocks: list[Block]) -> Iterator[Row]:
    """The blocks that are merged: not what rejected posts and users have of their own."""
    with open(path, "rb") as file:
        for block in blocks:
            if block.bucket == REJECTED or (block.bucket is None and not block.raw_size):
                continue
            file.seek(block.offset)
            data = file.read(block.keys_size + block.json_size)
            yield row(BLOCK, task.site, _part(block), task.number, data, block=block)


def _join_rows(
    task: RangeTask,
    path: str,
    result: ChunkResult,
    keys: list[Keys],
    reader: BlockReader,
) -> Iterator[Row]:
    """What other tables need to know of a range."""
    site, number, nest = task.site, task.number, task.options.nest
    if task.table == _USERS:
        yield from user_rows(_users(path, keys), site, chunk=number)
    elif _USERS.name in nest and task.table in (POSTS, TABLES["comments"]):
        wanted = by_range(sorted(_wanted_users(path, result.blocks, reader)))
        yield from (row(WANTED, site, part, number, data) for part, data in wanted.items())
    if task.table == POSTS and set(nest) - {_USERS.name}:
        questions = dict(result.tally.first_questions)
        for _, of_block in keys:
            numbers = integers(of_block)
            for post_id, question_id in zip(numbers[1::_FIELDS], numbers[::_FIELDS], strict=True):
                questions.setdefault(post_id, question_id)
        for part, data in by_range(questions.items()).items():
            yield row(QUESTIONS, site, part, number, data)


def _users(path: str, keys: list[Keys]) -> Iterator[tuple[int, bytes]]:
    """Id and JSON of each user of a range."""
    data = Path(path).read_bytes()
    for _, of_block in keys:
        for user_id, at, _, _ in KEY.iter_unpack(of_block):
            yield user_id, data[at + CHECK_BYTES : data.index(b"\n", at)]


def _wanted_users(path: str, blocks: list[Block], reader: BlockReader) -> set[tuple[int, int]]:
    """The users of posts or comments, each with the part of the site that names them."""
    found: set[tuple[int, int]] = set()
    for block in blocks:
        part = _part(block)
        if part is not None and block.raw_size:
            _, json = reader.read(path, block)
            found.update((user_id, part) for user_id in set(map(int, _USER_ID.findall(json))))
    return found
