"""What a worker of the first pass does: a range of the dump -> blocks of posts by bucket.

One plain object in, one out, so that any engine can run it. Memory is bounded by a slice and
`_MOST_BUFFERED`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from so2docs.errors import MalformedDumpError, Place
from so2docs.options.conversion import Options
from so2docs.passes import strict
from so2docs.posts import core, posts, repeats, rows
from so2docs.posts.posts import Posts
from so2docs.posts.projection import shape_of
from so2docs.posts.row_filter import Selection
from so2docs.sources.dump import Dump, slices
from so2docs.sources.ending import closes_within
from so2docs.spill import REJECTED
from so2docs.store.blocks import Block, BlockWriter

FLUSH_EVERY = 4 * 1024 * 1024
FULL_BLOCK = 512 * 1024
_MOST_BUFFERED = 48 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ChunkTask:
    """A range of a dump to spill.

    Attributes:
        dump: The dump.
        chunk: Number of the range, from 0.
        start: Its first byte.
        end: The byte after it.
        path: File for its blocks.
        options: How to convert.
        room: Bytes that its blocks may take uncompressed.
    """

    dump: Dump
    chunk: int
    start: int
    end: int
    path: str
    options: Options
    room: int = 0


@dataclass(slots=True)
class ChunkTally:
    """What stands in a chunk, in JSON types only.

    Attributes:
        rows: Rows, whatever became of them.
        lines: Line feeds.
        last_id: `Id` of the last row that has one.
        repaired: Characters replaced by U+FFFD.
        strays: Rows without a usable key, by reason.
        other_types: Rows that are neither questions nor answers, by type.
        owners: Post ids under several questions, each with the first of them.
        filtered: Rows that a filter has rejected.
    """

    rows: int = 0
    lines: int = 0
    last_id: int | None = None
    repaired: int = 0
    strays: dict[str, int] = field(default_factory=dict)
    other_types: dict[str, int] = field(default_factory=dict)
    owners: dict[str, int] = field(default_factory=dict)
    filtered: int = 0


@dataclass(slots=True)
class ChunkResult:
    """A chunk that has been spilled, ready to be committed."""

    task: ChunkTask
    blocks: list[Block]
    tally: ChunkTally
    pages: repeats.Pages


def spill_chunk(task: ChunkTask) -> ChunkResult:
    """Parse a chunk once and write its posts as blocks.

    Raises:
        MalformedDumpError: A row is not XML; lines in it count from the start of the chunk.
        StrictError: Something is to be repaired or left out, and `strict` forbids it.
        ChangedDumpError: The dump is not what it was.
    """
    reserved = task.options.reserved
    found, tally, held, last_id = Posts(reserved=reserved), ChunkTally(), 0, None
    steps = _Steps(task)
    with BlockWriter(task.path, task.room) as writer:
        for offset, data in slices(task.dump, task.start, task.end):
            _add_slice(steps, offset, data, found, tally)
            if task.options.strict and (tally.repaired or found.stray_reasons):
                place = Place(offset, tally.lines, last_id)
                raise strict.in_slice(task.dump, data, place, reserved=reserved)
            last_id = tally.last_id
            tally.lines += line_feeds(data)
            held += len(data)
            if held >= FLUSH_EVERY:
                held = 0
                flush(found, writer, FULL_BLOCK)
        flush(found, writer, 0)
    tally.filtered = found.filtered
    tally.strays = dict(found.stray_reasons)
    tally.other_types = {str(kind): count for kind, count in found.other_types.items()}
    pages, owners = repeats.of_chunk(found.pairs)
    tally.owners = {str(post_id): question_id for post_id, question_id in owners.items()}
    return ChunkResult(task, writer.blocks, tally, pages)


def line_feeds(data: bytes) -> int:
    """Number of line feeds, where they are far apart: four times as fast as `data.count`."""
    count, at = 0, -1
    while (at := data.find(b"\n", at + 1)) >= 0:
        count += 1
    return count


class _Steps:
    """What happens to rows before they are posts: most conversions keep them as they are."""

    def __init__(self, task: ChunkTask) -> None:
        options = task.options
        self.task = task
        self.is_compiled = options.core == "compiled" and not options.needs_rows
        self.shape = shape_of(options)
        self.selection = None
        if options.filters.select:
            keys = options.needs_all_keys
            self.selection = Selection(options.filters, self.shape, all_keys=keys)


def _add_slice(steps: _Steps, offset: int, data: bytes, found: Posts, tally: ChunkTally) -> None:
    task = steps.task
    added = core.add_canonical(data, task.dump.frame, found) if steps.is_compiled else None
    if added is not None:
        tally.rows += added.rows
        tally.last_id = tally.last_id if added.last_id is None else added.last_id
        return
    for part in rows.parse(data, task.dump.frame):
        if isinstance(part, rows.Malformed):
            at = offset + part.position
            if not task.options.skip_malformed:
                raise malformed(task.dump, at, tally, data, part)
            tally.rows += 1
            found.strays += posts.malformed_line(at, part.raw)
            found.stray_reasons["malformed_row"] += 1
            continue
        tally.repaired += part.repaired
        if part.rows:
            tally.rows += len(part.rows)
            last_id = rows.row_id(part.rows[-1])
            tally.last_id = tally.last_id if last_id is None else last_id
            if steps.selection is None:
                posts.add(found, part.rows, steps.shape)
            else:
                steps.selection.add(found, part.rows)


def malformed(
    dump: Dump, at: int, tally: ChunkTally, data: bytes, part: rows.Malformed
) -> MalformedDumpError:
    """The error for a row of a chunk that is not XML; its line counts from the chunk's start."""
    opening, closing = dump.frame
    problem, advice = part.problem, "download the dump again"
    if closes_within(part.raw, dump.frame):
        problem = f"content after its closing {closing.decode(errors='replace')}"
        advice = "are these two files in one? convert them one by one"
    return MalformedDumpError(
        dump.path,
        f"is not well-formed XML ({problem}) in the row",
        Place(at, tally.lines + data.count(b"\n", 0, part.position), tally.last_id),
        advice=f"{advice}, or leave such rows out with --skip-malformed",
        excerpt=opening + b"\n" + part.raw + closing,
    )


def flush(found: Posts, writer: BlockWriter, least: int) -> None:
    """Write the buckets that hold at least `least` bytes; all, if too much is held in all."""
    buckets = found.buckets
    if sum(len(bucket.json) for bucket in buckets.values()) > _MOST_BUFFERED:
        least = 0
    for number in sorted(number for number, bucket in buckets.items() if len(bucket.json) >= least):
        bucket = buckets.pop(number)
        writer.write(number, bucket.keys, bucket.json)
    if found.rejected and len(found.rejected) >= least:
        writer.write(REJECTED, found.rejected, bytearray())
        found.rejected = bytearray()
    if found.strays and len(found.strays) >= least:
        writer.write(None, bytearray(), found.strays)
        found.strays = bytearray()
