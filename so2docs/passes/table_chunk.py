"""What a worker does with a range of a table: its rows -> blocks by bucket of question ids.

The counterpart of `chunk` for the tables beside the posts. One plain object in, one out. Memory is
bounded by a slice, by what `chunk` holds before it writes, and by `_MOST_KEYS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from so2docs.errors import Place
from so2docs.options.conversion import Options
from so2docs.passes import chunk, strict
from so2docs.passes.chunk import ChunkTally, line_feeds
from so2docs.posts import core, rows, table_rows
from so2docs.posts.posts import Posts
from so2docs.posts.projection import shape_of_table
from so2docs.posts.table_rows import Row
from so2docs.schema import TABLES, VOTE
from so2docs.sources.dump import Dump, slices
from so2docs.store.blocks import Block, BlockWriter
from so2docs.store.id_map import IdMap
from so2docs.store.users import UserRecords

_MOST_KEYS = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class TableTask:
    """A range of a table to spill.

    Attributes:
        table: Name of the table.
        dump: Its file.
        chunk: Number of the range in the spill.
        start: Its first byte.
        end: The byte after it.
        path: File for its blocks.
        posts: The map from post ids to question ids; empty for a table that needs none.
        options: How to convert.
        room: Bytes that its blocks may take uncompressed.
    """

    table: str
    dump: Dump
    chunk: int
    start: int
    end: int
    path: str
    posts: str
    options: Options
    room: int = 0


@dataclass(slots=True)
class TableResult:
    """A range of a table that has been spilled, ready to be committed."""

    task: TableTask
    blocks: list[Block]
    tally: ChunkTally


def spill_table_chunk(task: TableTask) -> TableResult:
    """Parse a range of a table once and write its rows as blocks.

    Raises:
        MalformedDumpError: A row is not XML; lines in it count from the start of the range.
        ChangedDumpError: The table is not what it was.
        SpillError: The map of the posts is missing.
    """
    found, tally = Posts(), ChunkTally()
    with BlockWriter(task.path, task.room) as writer:
        if task.table == "users":
            shape = shape_of_table(task.options, task.table)
            users = UserRecords(found, writer, shape)

            def add_compiled(data: bytes) -> core.Added | None:
                done = core.read_users(data, task.dump.frame)
                if done is None:
                    return None
                users.add_compiled(*done[1:])
                return done[0]

            steps = _Steps(users.add, users.flush, add_compiled if shape is None else None)
            _read(task, found, tally, steps)
            users.finish()
        else:
            with IdMap(task.posts) as posts:
                _spill_records(task, found, tally, writer, posts)
        chunk.flush(found, writer, 0)
    tally.strays = dict(found.stray_reasons)
    return TableResult(task, writer.blocks, tally)


def _spill_records(
    task: TableTask, found: Posts, tally: ChunkTally, writer: BlockWriter, posts: IdMap
) -> None:
    """Spill a range of comments, links or votes."""
    table, find = TABLES[task.table], posts.find

    def add_compiled(data: bytes) -> core.Added | None:
        return core.add_canonical_records(data, task.dump.frame, table, found, find)

    if table.kind == VOTE:
        steps = _Steps(
            lambda some: table_rows.add_votes(found, some, find),
            lambda: _flush_counts(found, writer),
            add_compiled,
        )
    else:
        shape = shape_of_table(task.options, task.table)
        steps = _Steps(
            lambda some: table_rows.add_rows(found, table, some, find, shape),
            lambda: chunk.flush(found, writer, chunk.FULL_BLOCK),
            add_compiled if shape is None else None,
        )
    _read(task, found, tally, steps)


def _flush_counts(found: Posts, writer: BlockWriter) -> None:
    """Write the records of votes, which have no JSON, once there are many."""
    if sum(len(bucket.keys) for bucket in found.buckets.values()) >= _MOST_KEYS:
        chunk.flush(found, writer, 0)


@dataclass(frozen=True, slots=True)
class _Steps:
    """What happens to the rows of a table.

    Attributes:
        add: Takes rows.
        flush: Writes what was gathered, if it is much.
        add_compiled: Takes a slice, if its rows stay as they are; None if it is not canonical.
    """

    add: Callable[[list[Row]], None]
    flush: Callable[[], None]
    add_compiled: Callable[[bytes], core.Added | None] | None


def _read(task: TableTask, found: Posts, tally: ChunkTally, steps: _Steps) -> None:
    """Hand the rows of a range over, slice by slice, and release them now and then."""
    held = 0
    before: int | None = None
    compiled = steps.add_compiled if task.options.core == "compiled" else None
    for offset, data in slices(task.dump, task.start, task.end):
        if compiled is not None and (added := compiled(data)) is not None:
            tally.rows += added.rows
            tally.last_id = tally.last_id if added.last_id is None else added.last_id
        else:
            _parse(task, found, tally, steps, offset=offset, data=data)
        if task.options.strict and (tally.repaired or found.stray_reasons):
            place = Place(offset, tally.lines, before)
            raise strict.in_slice(task.dump, data, place, TABLES[task.table])
        before = tally.last_id
        tally.lines += line_feeds(data)
        held += len(data)
        if held >= chunk.FLUSH_EVERY:
            held = 0
            steps.flush()


def _parse(
    task: TableTask, found: Posts, tally: ChunkTally, steps: _Steps, *, offset: int, data: bytes
) -> None:
    """Take a slice by the reference."""
    for part in rows.parse(data, task.dump.frame):
        if isinstance(part, rows.Malformed):
            at = offset + part.position
            if not task.options.skip_malformed:
                raise chunk.malformed(task.dump, at, tally, data, part)
            tally.rows += 1
            reason, line = table_rows.malformed_line(TABLES[task.table], at, part.raw)
            found.strays += line
            found.stray_reasons[reason] += 1
        elif part.rows:
            tally.rows += len(part.rows)
            tally.repaired += part.repaired
            last_id = rows.row_id(part.rows[-1])
            tally.last_id = tally.last_id if last_id is None else last_id
            steps.add(part.rows)
