"""What a worker does: a range of the dump -> blocks (first pass), a bucket -> pieces (second pass).

Both functions take one plain object and return one, so that any engine can run them. Memory of the
first is bounded by `_MOST_BUFFERED` and a slice, of the second by `PART_BYTES` or one document.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from so2docs import merge, output, posts, repeats, rows
from so2docs.dump import Dump, slices
from so2docs.errors import MalformedDumpError, Place
from so2docs.merge import AnswersBy, Buffer, Tally
from so2docs.output import PIECE_BYTES, Compression, Piece
from so2docs.posts import BUCKET_BITS, Posts
from so2docs.spill import Block, BlockReader, BlockWriter

PART_BYTES = 64 * 1024 * 1024
"""A bucket with more JSON than this is merged in parts, by ranges of question ids."""

_FLUSH_EVERY = 4 * 1024 * 1024
_FULL_BLOCK = 512 * 1024
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
        skip_malformed: Whether rows that are not XML become strays instead of an error.
    """

    dump: Dump
    chunk: int
    start: int
    end: int
    path: str
    skip_malformed: bool = False


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
    """

    rows: int = 0
    lines: int = 0
    last_id: int | None = None
    repaired: int = 0
    strays: dict[str, int] = field(default_factory=dict)
    other_types: dict[str, int] = field(default_factory=dict)
    owners: dict[str, int] = field(default_factory=dict)


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
        ChangedDumpError: The dump is not what it was.
    """
    found, tally, held = Posts(), ChunkTally(), 0
    with BlockWriter(task.path) as writer:
        for offset, data in slices(task.dump, task.start, task.end):
            _add_slice(task, offset, data, found, tally)
            tally.lines += data.count(b"\n")
            held += len(data)
            if held >= _FLUSH_EVERY:
                held = 0
                _flush(found, writer, _FULL_BLOCK)
        _flush(found, writer, 0)
    tally.strays = dict(found.stray_reasons)
    tally.other_types = {str(kind): count for kind, count in found.other_types.items()}
    pages, owners = repeats.of_chunk(found.pairs)
    tally.owners = {str(post_id): question_id for post_id, question_id in owners.items()}
    return ChunkResult(task, writer.blocks, tally, pages)


def _add_slice(task: ChunkTask, offset: int, data: bytes, found: Posts, tally: ChunkTally) -> None:
    for part in rows.parse(data, task.dump.frame):
        if isinstance(part, rows.Malformed):
            at = offset + part.position
            if not task.skip_malformed:
                raise _malformed(task, at, tally, data, part)
            tally.rows += 1
            found.strays += posts.malformed_line(at, part.raw)
            found.stray_reasons["malformed_row"] += 1
        elif part.rows:
            tally.rows += len(part.rows)
            tally.repaired += part.repaired
            last_id = rows.row_id(part.rows[-1])
            tally.last_id = tally.last_id if last_id is None else last_id
            posts.add(found, part.rows)


def _malformed(
    task: ChunkTask, at: int, tally: ChunkTally, data: bytes, part: rows.Malformed
) -> MalformedDumpError:
    opening, closing = task.dump.frame
    return MalformedDumpError(
        task.dump.path,
        f"is not well-formed XML ({part.problem}) in the row",
        Place(at, tally.lines + data.count(b"\n", 0, part.position), tally.last_id),
        advice="download the dump again, or leave such rows out with --skip-malformed",
        excerpt=opening + b"\n" + part.raw + closing,
    )


def _flush(found: Posts, writer: BlockWriter, least: int) -> None:
    """Write the buckets that hold at least `least` bytes; all, if too much is held in all."""
    buckets = found.buckets
    if sum(len(bucket.json) for bucket in buckets.values()) > _MOST_BUFFERED:
        least = 0
    for number in sorted(number for number, bucket in buckets.items() if len(bucket.json) >= least):
        bucket = buckets.pop(number)
        writer.write(number, bucket.keys, bucket.json)
    if found.strays and len(found.strays) >= least:
        writer.write(None, bytearray(), found.strays)
        found.strays = bytearray()


@dataclass(frozen=True, slots=True)
class BucketTask:
    """A range of question ids to nest.

    Attributes:
        ids: The question ids.
        blocks: The blocks of their bucket in the order of the dump, each with its file.
        answers_by: Order of the answers in a document.
        owners: For post ids under several questions, the one that stays.
        compression: Of the output.
        level: Of the compression.
    """

    ids: range
    blocks: list[tuple[str, Block]]
    answers_by: AnswersBy
    owners: dict[int, int]
    compression: Compression
    level: int


@dataclass(slots=True)
class BucketResult:
    """Documents of a range of question ids, ready to be appended."""

    ids: range
    pieces: list[Piece]
    strays: list[bytes]
    tally: Tally


def parts(bucket: int, json_bytes: int) -> list[range]:
    """Ranges of question ids to merge a bucket in, each small enough for memory."""
    share = 1 << BUCKET_BITS
    while json_bytes > PART_BYTES and share > 1:
        json_bytes //= 2
        share //= 2
    first = bucket << BUCKET_BITS
    return [range(at, at + share) for at in range(first, first + (1 << BUCKET_BITS), share)]


def nesting(task: BucketTask) -> merge.Nesting:
    """Read the blocks of a bucket, sorted and ready to be nested."""
    with BlockReader() as reader:
        blocks = (reader.read(path, block) for path, block in task.blocks)
        return merge.Nesting(merge.sorted_posts(blocks, task.ids), task.answers_by, task.owners)


def merge_bucket(task: BucketTask) -> BucketResult:
    """Nest a range of question ids, and compress the documents.

    Raises:
        SpillError: A block is damaged.
    """
    nested = nesting(task)
    pieces: list[Piece] = []
    lines: list[Buffer] = []
    size = count = first_id = 0
    for document in nested:
        if not count:
            first_id = document.question_id
        lines += document.parts
        size += document.size
        count += 1
        if size >= PIECE_BYTES:
            pieces.append(
                output.compress(b"".join(lines), task.compression, task.level, first_id, count)
            )
            lines, size, count = [], 0, 0
    if count:
        pieces.append(
            output.compress(b"".join(lines), task.compression, task.level, first_id, count)
        )
    return BucketResult(task.ids, pieces, nested.strays, nested.tally)


def _piece(task: BucketTask, lines: list[Buffer], first_id: int, documents: int) -> Piece:
    return output.compress(b"".join(lines), task.compression, task.level, first_id, documents)
