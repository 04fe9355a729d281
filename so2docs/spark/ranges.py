"""Ranges of giant dumps and of their tables, in executors: blocks as rows of a data frame.

`spill_chunk` does the work, into a temporary file; its blocks leave as they are, a row each with
the part of the site that they belong to, which is what Spark shuffles by. Rows of a table leave by
the ids of their posts, and join their questions (`joins`) before they go to a part.

Memory: what `spill_chunk` takes, and a batch of rows.
"""

from __future__ import annotations

import os
import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from so2docs.errors import ChangedDumpError, So2docsError
from so2docs.options.conversion import Options
from so2docs.passes.chunk import ChunkResult, ChunkTask, spill_chunk
from so2docs.passes.worker import peak_memory
from so2docs.posts import repeats
from so2docs.posts.core import resolve
from so2docs.posts.keys import BUCKET_BITS, as_bytes, integers
from so2docs.schema import POSTS, TABLES, Table
from so2docs.sources import storage
from so2docs.sources.dump import Chunk, Dump, open_dump
from so2docs.sources.kinds import DumpFile
from so2docs.spark.folders import temporary_folder
from so2docs.spark.frames import (
    BLOCK,
    PART_BITS,
    QUESTIONS,
    RANGE_BITS,
    RESULT,
    ROWS,
    USERS,
    WANTED,
    Row,
)
from so2docs.spark.jobs import outcome
from so2docs.spill import REJECTED, SEQUENCE_BITS
from so2docs.store.blocks import Block, BlockReader
from so2docs.store.id_runs import IdMapWriter
from so2docs.store.users import CHECK_BYTES

_USERS = TABLES["users"]

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


@dataclass(frozen=True, slots=True)
class RangeResult:
    """What a range tells the driver.

    Attributes:
        found: What was counted in it, or why nothing was; without its blocks.
        parts: Parts of the site, or ranges of post ids, that the blocks belong to.
        peak: Most resident memory of the process so far, in bytes.
    """

    found: ChunkResult | So2docsError
    parts: set[int]
    peak: int


def read(task: RangeTask) -> Iterator[Row]:
    """The rows of a range: its blocks, what joins need to know of it, and a `RangeResult`."""
    parts: set[int] = set()
    with temporary_folder() as folder:
        path = os.path.join(folder, "blocks")
        found = outcome(lambda given: _spill(given, path), task)
        if isinstance(found, ChunkResult):
            kind = ROWS if task.table.kind else BLOCK
            for row in block_rows(kind, task.site, task.number, path, found.blocks):
                if row.part is not None:
                    parts.add(row.part)
                yield row
            if task.options.nest:
                yield from _join_rows(task, path, found)
            found.blocks = []
    result = RangeResult(found, parts, peak_memory())
    yield Row(RESULT, task.site, None, task.number, 0, result)


def _spill(task: RangeTask, path: str) -> ChunkResult:
    known = f"{path}.posts"
    with IdMapWriter(known) as posts:  # Rows whose post nobody knows are filed under its id.
        posts.finish()
    chunk = task.chunk._replace(dump=_same_dump(task))
    options = replace(task.options, core=resolve(task.options.core))
    result = spill_chunk(ChunkTask(chunk, path, options, task.table, known))
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


def block_rows(
    kind: int, site: int, chunk: int, path: str, blocks: Iterable[Block]
) -> Iterator[Row]:
    """The blocks in a file that are merged: not what rejected posts and users have of their own."""
    with open(path, "rb") as file:
        for block in blocks:
            if block.bucket == REJECTED or (block.bucket is None and not block.raw_size):
                continue
            part = None if block.bucket is None else block.bucket >> PART_BITS
            file.seek(block.offset)
            data = block, file.read(block.keys_size + block.json_size)
            yield Row(BLOCK if part is None else kind, site, part, chunk, block.offset, data)


def wanted_rows(site: int, path: str, blocks: Iterable[Block]) -> Iterator[Row]:
    """The users that posts or comments name, by range of their ids and part that names them."""
    wanted: dict[tuple[int, int], set[int]] = defaultdict(set)
    with BlockReader() as reader:
        for block in blocks:
            if block.bucket is not None and block.raw_size:
                _, json = reader.read(path, block)
                for user_id in set(map(int, _USER_ID.findall(json))):
                    wanted[user_id >> RANGE_BITS, block.bucket >> PART_BITS].add(user_id)
    return (Row(WANTED, site, of, part, 0, ids) for (of, part), ids in wanted.items())


def _join_rows(task: RangeTask, path: str, found: ChunkResult) -> Iterator[Row]:
    """What other tables need to know of a range of posts or users."""
    with BlockReader() as reader:
        keys = [integers(reader.read_keys(path, block)) for block in found.blocks]
    if task.table == _USERS:
        yield from _user_rows(task, path, found, keys)
    if task.table == POSTS and _USERS.name in task.options.nest:
        yield from wanted_rows(task.site, path, found.blocks)
    if task.table == POSTS and {*task.options.nest} - {_USERS.name}:
        questions: dict[int, dict[int, int]] = defaultdict(dict)
        pairs = [zip(of_block[1::4], of_block[::4], strict=True) for of_block in keys]
        for of_some in (*pairs, found.tally.first_questions.items()):
            for post_id, question_id in of_some:
                questions[post_id >> RANGE_BITS][post_id] = question_id
        for of, some in questions.items():
            yield Row(QUESTIONS, task.site, of, task.number, 0, some)


def _user_rows(
    task: RangeTask, path: str, found: ChunkResult, keys: list[array[int]]
) -> Iterator[Row]:
    """The JSON of the users of a range by id; what is repeated among those ids is noted."""
    data, users = Path(path).read_bytes(), defaultdict[int, dict[int, bytes]](dict)
    pairs: array[int] = array("q")
    for of_block in keys:
        for user_id, at in zip(of_block[::4], of_block[1::4], strict=True):
            pairs.extend((at, user_id))
            line = data[at + CHECK_BYTES : data.index(b"\n", at)]
            users[user_id >> BUCKET_BITS][user_id] = line
    found.pages, found.tally.first_questions = repeats.of_chunk(bytearray(as_bytes(pairs)))
    for bucket, some in users.items():
        yield Row(USERS, task.site, bucket >> PART_BITS, task.number, 0, some)
