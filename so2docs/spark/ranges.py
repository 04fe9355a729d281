"""Ranges of giant dumps and of their tables, in executors: blocks as rows of a data frame.

`spill_chunk` does the work, into a temporary file; its blocks leave as they are, a row each with
the part of the site that they belong to, which is what Spark shuffles by. Rows of a table leave by
the ids of their posts, and join their questions (`parts`) before they go to a part.

Memory: what `spill_chunk` takes, and a batch of rows.
"""

from __future__ import annotations

import os
import pickle
import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from zstandard import compress, decompress

from so2docs.errors import ChangedDumpError, So2docsError
from so2docs.passes.chunk import ChunkResult, ChunkTask, spill_chunk
from so2docs.passes.worker import peak_memory
from so2docs.posts import repeats
from so2docs.posts.core import resolve
from so2docs.posts.keys import BUCKET_BITS, as_bytes, integers
from so2docs.schema import POSTS
from so2docs.sources import storage
from so2docs.sources.dump import Dump, open_dump
from so2docs.sources.kinds import DumpFile
from so2docs.spark import frames
from so2docs.spark.folders import temporary_folder
from so2docs.spark.frames import PART_BITS, RANGE_BITS, Row, outcome
from so2docs.spill import REJECTED, SEQUENCE_BITS
from so2docs.store.blocks import Block, BlockReader
from so2docs.store.id_runs import IdMapWriter
from so2docs.store.users import CHECK_BYTES

RangeTask = tuple[int, ChunkTask]
"""Number of a site, and a range of its posts or of a table as they were looked at."""

RangeResult = tuple[ChunkResult | So2docsError, set[int], int]
"""What was counted in a range, or why nothing was; parts of the site, or ranges of post ids, that
its blocks belong to; and most resident memory of the process so far, in bytes. Packed, since the
ids of a range are 8 MB of bits, nearly all 0, where a large dump is not in their order."""

# Inside a JSON string each quote has a backslash before it, so these are attributes.
_USER_ID = re.compile(rb'"(?:Owner|LastEditor|)UserId":(-?[0-9]+)')


def read(given: RangeTask) -> Iterator[Row]:
    """The rows of a range: its blocks, what joins need to know of it, and a `RangeResult`."""
    site, task = given
    number = (task.table.sequence << SEQUENCE_BITS) + task.chunk.number
    parts: set[int] = set()
    with temporary_folder() as folder:
        path = os.path.join(folder, "blocks")
        found = outcome(lambda own: _spill(own, path), task)
        if isinstance(found, ChunkResult):
            kind = frames.ROWS if task.table.kind else frames.BLOCK
            for row in block_rows(kind, site, number, path, found.blocks):
                if row.part is not None:
                    parts.add(row.part)
                yield row
            for kind, part, data in _join_data(found) if task.options.nest else ():
                yield Row(kind, site, part, number, 0, data)
            if task.table == POSTS and "users" in task.options.nest:
                yield from wanted_rows(site, path, found.blocks)
            found.blocks = []
    result: RangeResult = found, parts, peak_memory()
    yield Row(frames.RESULT, site, None, number, 0, compress(pickle.dumps(result)))


def unpacked(result: bytes) -> RangeResult:
    """What a range told."""
    found: RangeResult = pickle.loads(decompress(result))
    return found


def _spill(task: ChunkTask, path: str) -> ChunkResult:
    known = f"{path}.posts"
    with IdMapWriter(known) as posts:  # Rows whose post nobody knows are filed under its id.
        posts.finish()
    chunk = task.chunk._replace(dump=_same_dump(task))
    options = replace(task.options, core=resolve(task.options.core))
    task = replace(task, chunk=chunk, path=path, options=options, posts_map=known)
    result = spill_chunk(task)
    chunk.dump.check_unchanged()
    return result


def _same_dump(task: ChunkTask) -> Dump:
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
            yield Row(frames.BLOCK if part is None else kind, site, part, chunk, block.offset, data)


def wanted_rows(site: int, path: str, blocks: Iterable[Block]) -> Iterator[Row]:
    """The users that posts or comments name, by range of their ids and part that names them."""
    wanted: dict[tuple[int, int], set[int]] = defaultdict(set)
    with BlockReader() as reader:
        for block in blocks:
            if block.bucket is not None and block.raw_size:
                _, json = reader.read(path, block)
                for user_id in set(map(int, _USER_ID.findall(json))):
                    wanted[user_id >> RANGE_BITS, block.bucket >> PART_BITS].add(user_id)
    for (ids, part), some in wanted.items():
        yield Row(frames.WANTED, site, ids, part, 0, some)


def _join_data(found: ChunkResult) -> Iterator[tuple[int, int, object]]:
    """What other ranges need to know of one of posts or users: kind of row, range of ids, data."""
    task = found.task
    if task.table.kind:
        return
    with BlockReader() as reader:
        keys = [integers(reader.read_keys(task.path, block)) for block in found.blocks]
    if task.table == POSTS and {*task.options.nest} - {"users"}:
        questions: dict[int, array[int]] = defaultdict(lambda: array("q"))
        pairs = [zip(of_block[1::4], of_block[::4], strict=True) for of_block in keys]
        for of_some in (*pairs, found.tally.first_questions.items()):  # What comes last stays.
            for pair in of_some:
                questions[pair[0] >> RANGE_BITS].extend(pair)
        yield from ((frames.QUESTIONS, ids, some) for ids, some in questions.items())
    elif task.table != POSTS:
        data, users = Path(task.path).read_bytes(), defaultdict[int, dict[int, bytes]](dict)
        places: array[int] = array("q")
        for of_block in keys:
            for user_id, at in zip(of_block[::4], of_block[1::4], strict=True):
                places.extend((at, user_id))
                json = data[at + CHECK_BYTES : data.index(b"\n", at)]
                users[user_id >> BUCKET_BITS][user_id] = json
        # A user who stands there twice is like a post under two questions.
        found.pages, found.tally.first_questions = repeats.of_chunk(bytearray(as_bytes(places)))
        yield from ((frames.USERS, of >> PART_BITS, some) for of, some in users.items())
