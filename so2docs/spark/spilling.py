"""The first stage, in an executor: a range of a dump or of a table -> records for the shuffle.

`spill_chunk` and `spill_table_chunk` do the work, into a temporary file; its blocks leave as they
are. An error of the dump is a record too: tried again it would be the same, and it concerns one
site only.

Memory: what `spill_chunk` takes, and the compressed blocks of one chunk, which PySpark holds (twice
for a moment) while it hands them over: 139 MiB in all with chunks of 32 MiB, 187 with 128.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from so2docs.errors import ChangedDumpError, DumpError
from so2docs.passes.chunk import ChunkTask, spill_chunk
from so2docs.passes.first_pass import complete_place
from so2docs.passes.table_chunk import TableTask, spill_table_chunk
from so2docs.passes.worker import peak_memory
from so2docs.posts.posts import KEY
from so2docs.schema import TABLES
from so2docs.sources.dump import Chunk, Dump
from so2docs.sources.opening import open_source
from so2docs.sources.stream import AnyDump, StreamDump
from so2docs.spark.plan import PART_BITS, Layout, RangeTask, Site, Stream, chunk_bytes
from so2docs.spark.records import Ended, Placed, Tallied, sorted_out, temporary_folder
from so2docs.spark.references import References
from so2docs.spill import SEQUENCE_BITS
from so2docs.store.blocks import Block, BlockReader
from so2docs.store.id_runs import IdMapWriter
from so2docs.store.users import CHECK_BYTES


def records(layout: Layout) -> Callable[[Iterable[RangeTask]], Iterator[Placed]]:
    """What a task of the first stage runs: ranges in, records with their partitions out."""

    def spill(tasks: Iterable[RangeTask]) -> Iterator[Placed]:
        for task in tasks:
            with temporary_folder() as folder:
                if task.table:
                    yield from _of_table(task, os.path.join(folder, "blocks"), layout)
                elif isinstance(task.site.dump, Stream):
                    yield from _of_stream(task.site, task.site.dump, folder, layout)
                else:
                    yield from _of_posts(task, task.site.dump, folder, layout)

    return spill


def _of_posts(task: RangeTask, dump: Dump, folder: str, layout: Layout) -> Iterator[Placed]:
    try:
        chunk = Chunk(task.chunk, dump, task.start, task.end)
        yield from _spilled(task.site, chunk, folder, layout)
    except DumpError as error:
        yield _failed(task.site, task.chunk, error, layout)


def _of_stream(site: Site, stream: Stream, folder: str, layout: Layout) -> Iterator[Placed]:
    """Decompress a stream once, and spill it piece by piece."""
    number, before = 0, list[dict[str, Any]]()
    dump: AnyDump | None = None
    try:
        dump = open_source(stream.path, work_dir=folder)
        if not isinstance(dump, StreamDump) or dump.identity != stream.identity:
            raise ChangedDumpError(stream.path, "changed while being read")
        for chunk in dump.chunks(chunk_bytes(site, stream), (), Path(folder)):
            for partition, record in _spilled(site, chunk, folder, layout):
                if isinstance(record, Tallied):
                    before.append(record.tally)
                yield partition, record
            dump.progress(chunk)
            number = chunk.number + 1
        dump.check_end()
        ended = dump.end_state
        assert ended is not None
        yield (
            layout.of_tallies(site.number),
            Ended(site.number, ended["size"], ended["repaired"]),
        )
    except DumpError as error:
        if dump is not None:
            complete_place(error, dump, before)
        yield _failed(site, number, error, layout)
    finally:
        if dump is not None:
            dump.close()


def _spilled(site: Site, chunk: Chunk, folder: str, layout: Layout) -> Iterator[Placed]:
    """The records of a chunk of posts."""
    path = os.path.join(folder, "blocks")
    number, dump, start, end = chunk
    result = spill_chunk(ChunkTask(dump, number, start, end, path, site.options))

    def partition_of(block: Block) -> int:
        return layout.of_bucket(site.number, block.bucket)

    yield from sorted_out(path, result.blocks, site.number, number, partition_of)
    if site.tables:
        yield from _references(site, number, path, result.blocks, layout)
    tally = asdict(result.tally)
    buckets = {block.bucket for block in result.blocks if block.bucket is not None}
    tallied = Tallied(site.number, number, tally, result.pages, buckets, None, peak_memory())
    yield layout.of_tallies(site.number), tallied


def _references(
    site: Site, chunk: int, path: str, blocks: list[Block], layout: Layout
) -> Iterator[Placed]:
    """What the rows of tables, and the users, need to know of a chunk of posts."""
    references = References(site, layout)
    with BlockReader() as reader:
        for block in blocks:
            if block.bucket is not None:
                keys, json = reader.read(path, block)
                references.add_answers(keys)
                references.add_users(json, block.bucket >> PART_BITS)
    yield from references.records(chunk, f"{path}.references")


def _of_table(task: RangeTask, path: str, layout: Layout) -> Iterator[Placed]:
    site, table = task.site, TABLES[task.table]
    number = (table.sequence << SEQUENCE_BITS) + task.chunk
    posts = f"{path}.map"
    with IdMapWriter(posts) as nothing:
        # Without any question to be found, rows are filed under the id of their post.
        nothing.finish()
    dump = site.tables[task.table]
    try:
        result = spill_table_chunk(
            TableTask(task.table, dump, number, task.start, task.end, path, posts, site.options)
        )
    except DumpError as error:
        yield _failed(site, number, error, layout)
        return
    blocks = result.blocks
    if not table.kind:
        yield from _users(site, number, path, [one for one in blocks if not one.raw_size], layout)
        blocks = [one for one in blocks if one.raw_size]

    def partition_of(block: Block) -> int:
        return layout.of_post(site.number, block.bucket)

    yield from sorted_out(path, blocks, site.number, number, partition_of)
    buckets = {block.bucket for block in blocks if block.bucket is not None}
    tallied = Tallied(site.number, number, asdict(result.tally), {}, buckets, None, peak_memory())
    yield layout.of_tallies(site.number), tallied


def _users(
    site: Site, number: int, path: str, keys: list[Block], layout: Layout
) -> Iterator[Placed]:
    """The users of a chunk, filed under their ids.

    Args:
        site: The site.
        number: Number of the chunk.
        path: File that starts with their lines.
        keys: The block that follows, with the id and the place of each.
        layout: Where they go.
    """
    users = References(site, layout)
    with BlockReader() as reader:
        for block in keys:
            lines = reader.bytes_at(path, 0, block.offset)
            for user_id, start, _, _ in KEY.iter_unpack(reader.read_keys(path, block)):
                users.add_user(
                    user_id, start, lines[start + CHECK_BYTES : lines.index(b"\n", start)]
                )
    yield from users.records(number, f"{path}.users")


def _failed(site: Site, chunk: int, error: DumpError, layout: Layout) -> Placed:
    tallied = Tallied(site.number, chunk, {}, {}, set(), error, peak_memory())
    return layout.of_tallies(site.number), tallied
