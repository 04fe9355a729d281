"""What a worker of the first pass does: a range of a table -> blocks by bucket of question ids.

One plain object in, one out, so that any engine can run it. Memory is bounded by a slice and by
what `filing` holds before it writes.
"""

from __future__ import annotations

from dataclasses import dataclass

from so2docs.dump.dump import Chunk, Dump, closes_within, slices
from so2docs.errors import Location, MalformedDumpError, flag
from so2docs.options.table import Options
from so2docs.parse import core, posts, repeats, rows
from so2docs.pipeline import strict
from so2docs.pipeline.filing import RowSink, open_sink
from so2docs.schema import POSTS, TYPE_NAMES, Table
from so2docs.store.blocks import Block, BlockReader, BlockWriter, check_blocks_match
from so2docs.store.tally import ChunkTally

_FLUSH_EVERY = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ChunkTask:
    """A range of a table to spill.

    Attributes:
        chunk: The range.
        path: File for its blocks.
        options: How to convert.
        table: What it is a range of.
        posts_map: The map from post ids to question ids; empty while they are not known, and for a
            table that needs none.
        room: Bytes that its blocks may take uncompressed.
    """

    chunk: Chunk
    path: str
    options: Options
    table: Table = POSTS
    posts_map: str = ""
    room: int = 0


@dataclass(slots=True)
class ChunkResult:
    """A chunk that has been spilled, ready to be committed.

    Attributes:
        task: What was asked for.
        blocks: The blocks.
        tally: What was counted in it.
        pages: The ids of its posts.
    """

    task: ChunkTask
    blocks: list[Block]
    tally: ChunkTally
    pages: repeats.Pages


def spill_chunk(task: ChunkTask) -> ChunkResult:
    """Parse a chunk once and write its rows as blocks.

    Raises:
        MalformedDumpError: A row is not XML; lines in it count from the start of the chunk.
        StrictError: Something is to be repaired or left out, and `strict` forbids it.
        ChangedDumpError: The dump is not what it was.
        SpillError: The map of the posts is missing.
    """
    _, dump, start, end = task.chunk
    tally, held, options = ChunkTally(), 0, task.options
    with (
        BlockWriter(task.path, task.room) as writer,
        open_sink(task.table, options, task.posts_map, writer) as steps,
    ):
        found = steps.found
        for offset, data in slices(dump, start, end):
            last_id = tally.last_id
            _file_slice(task, steps, tally, offset, data)
            if options.strict and (tally.counts.repaired or found.stray_reasons):
                location = Location(offset, tally.lines, last_id)
                raise strict.in_slice(dump, data, location, task.table, options.reserved)
            tally.lines += core.count_lines(data)
            held += len(data)
            if held >= _FLUSH_EVERY:
                held = 0
                steps.flush()
    tally.counts.filtered, tally.counts.dropped = found.filtered, found.dropped
    tally.counts.strays.update(found.stray_reasons)
    for kind, count in found.other_types.items():
        tally.counts.other_types[TYPE_NAMES.get(kind, f"PostTypeId {kind}")] += count
    pages, tally.first_questions = repeats.of_chunk(found.pairs)
    return ChunkResult(task, writer.blocks, tally, pages)


@dataclass(frozen=True, slots=True)
class FilingTask:
    """A chunk whose rows were kept in the order of their table, to be filed.

    Attributes:
        number: Its number in the spill, once it is filed.
        blocks: The blocks that it was kept in, each with its file.
        path: File for the blocks to write.
        options: How to convert.
        table: What it is a range of.
        posts_map: The map from post ids to question ids.
        room: Bytes that its blocks may take uncompressed.
    """

    number: int
    blocks: list[tuple[str, Block]]
    path: str
    options: Options
    table: Table
    posts_map: str
    room: int


def file_kept_chunk(task: FilingTask) -> tuple[FilingTask, list[Block]]:
    """File the rows of a chunk under the questions of their posts.

    Returns:
        The task, and the blocks that were written.

    Raises:
        SpillError: A block is damaged, or the map of the posts is missing.
    """
    with (
        BlockWriter(task.path, task.room) as writer,
        open_sink(task.table, task.options, task.posts_map, writer) as steps,
        BlockReader() as reader,
        check_blocks_match(task.blocks),
    ):
        for path, block in task.blocks:
            keys, json = reader.read(path, block)
            if block.bucket is None:
                writer.write(None, bytearray(keys), bytearray(json))
            else:
                steps.add_records(keys, json)
                steps.flush()
    return task, writer.blocks


def _file_slice(
    task: ChunkTask, steps: RowSink, tally: ChunkTally, offset: int, data: bytes
) -> None:
    """File a slice by the compiled core if it can be, and by the reference otherwise."""
    added = steps.add_compiled(data)
    if added is not None:
        tally.counts.rows += added.rows
        tally.last_id = tally.last_id if added.last_id is None else added.last_id
        return
    for part in rows.parse(data):
        if isinstance(part, rows.Malformed):
            at = offset + part.position
            if not (task.options.skip_malformed and part.can_be_skipped):
                raise malformed_error(task.chunk.dump, at, tally, data, part)
            tally.counts.rows += 1
            steps.found.strays += posts.malformed_line(at, part.raw, steps.malformed)
            steps.found.stray_reasons[steps.malformed] += 1
            continue
        tally.counts.repaired += part.repaired
        if part.rows:
            tally.counts.rows += len(part.rows)
            last_id = rows.row_id(part.rows[-1])
            tally.last_id = tally.last_id if last_id is None else last_id
            steps.add(part.rows)


def malformed_error(
    dump: Dump, at: int, tally: ChunkTally, data: bytes, part: rows.Malformed
) -> MalformedDumpError:
    """The error for a row of a chunk that is not XML; its line counts from the chunk's start."""
    opening, closing = dump.frame
    problem, advice = part.problem, "download the dump again"
    if closes_within(part.raw, dump.frame):
        problem = f"content after its closing {closing.decode(errors='replace')}"
        advice = "if two dumps were joined, split them and convert each"
    problem = f"is not well-formed XML ({problem}) in the row"
    advice += f", or leave such rows out with {flag('skip_malformed', True)}"
    if not part.can_be_skipped:
        problem, advice = f"has {part.problem}", "remove it from the dump"
    return MalformedDumpError(
        dump.path,
        problem,
        Location(at, tally.lines + data.count(b"\n", 0, part.position), tally.last_id),
        advice=advice,
        excerpt=opening + b"\n" + part.raw + closing,
    )
