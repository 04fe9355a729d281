"""What a worker of the second pass does: the blocks of a bucket -> compressed pieces of documents.

One plain object in, one out, so that any engine can run it. Memory is bounded by `PART_BYTES`, or
by one document if that is larger.
"""

from __future__ import annotations

from dataclasses import dataclass

from so2docs import merge, output
from so2docs.merge import Buffer, Tally
from so2docs.options import Options
from so2docs.output import PIECE_BYTES, Compression, Piece
from so2docs.posts import BUCKET_BITS
from so2docs.spill import Block, BlockReader

PART_BYTES = 64 * 1024 * 1024
"""A bucket with more JSON than this is merged in parts, by ranges of question ids."""


@dataclass(frozen=True, slots=True)
class BucketTask:
    """A range of question ids to nest.

    Attributes:
        ids: The question ids.
        blocks: The blocks of their bucket in the order of the dump, each with its file.
        owners: For post ids under several questions, the one that stays.
        compression: Of the output.
        options: How to convert.
    """

    ids: range
    blocks: list[tuple[str, Block]]
    owners: dict[int, int]
    compression: Compression
    options: Options


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
        return merge.Nesting(
            merge.sorted_posts(blocks, task.ids),
            task.options.answers_by,
            task.owners,
            task.options.site,
        )


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
            pieces.append(_piece(task, lines, first_id, count))
            lines, size, count = [], 0, 0
    if count:
        pieces.append(_piece(task, lines, first_id, count))
    return BucketResult(task.ids, pieces, nested.strays, nested.tally)


def _piece(task: BucketTask, lines: list[Buffer], first_id: int, documents: int) -> Piece:
    return output.compress(
        b"".join(lines), task.compression, task.options.level, first_id, documents
    )
