"""What a worker of the second pass does: the blocks of a bucket -> compressed pieces of documents.

One plain object in, one out, so that any engine can run it. Memory is bounded by `PART_BYTES`, or
by one document if that is larger.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from so2docs import merge, output
from so2docs.merge import Buffer, Tally
from so2docs.nested import Nest
from so2docs.options import Options
from so2docs.output import PIECE_BYTES, Compression, Piece
from so2docs.posts import BUCKET_BITS
from so2docs.spill import Block, BlockReader
from so2docs.users import Users, UserTable

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
        users: Where the users are, if they are to be nested.
    """

    ids: range
    blocks: list[tuple[str, Block]]
    owners: dict[int, int]
    compression: Compression
    options: Options
    users: UserTable | None = None


@dataclass(slots=True)
class BucketResult:
    """Documents of a range of question ids, ready to be appended."""

    ids: range
    pieces: list[Piece]
    strays: list[bytes]
    tally: Tally


PART_BYTES_NESTED = PART_BYTES // 6
"""The same where tables are nested: short rows take more memory beside their JSON than posts do.

A bucket of 36 MB, with 49,000 posts and comments, takes 213 MiB at once and 123 MiB in four parts,
in the same time."""


def parts(bucket: int, json_bytes: int, *, nested: bool = False) -> list[range]:
    """Ranges of question ids to merge a bucket in, each small enough for memory."""
    share, limit = 1 << BUCKET_BITS, PART_BYTES_NESTED if nested else PART_BYTES
    while json_bytes > limit and share > 1:
        json_bytes //= 2
        share //= 2
    first = bucket << BUCKET_BITS
    return [range(at, at + share) for at in range(first, first + (1 << BUCKET_BITS), share)]


@contextmanager
def nesting(task: BucketTask) -> Iterator[merge.Nesting]:
    """Read the blocks of a bucket, sorted and ready to be nested."""
    options = task.options
    with BlockReader() as reader:
        blocks = (reader.read(path, block) for path, block in task.blocks)
        posts = merge.sorted_posts(blocks, task.ids)
    with nullcontext() if task.users is None else Users(task.users) as users:
        nest = Nest(options.nest, users) if options.nest else None
        yield merge.Nesting(posts, options.answers_by, task.owners, nest)


def merge_bucket(task: BucketTask) -> BucketResult:
    """Nest a range of question ids, and compress the documents.

    Raises:
        SpillError: A block is damaged.
    """
    with nesting(task) as nested:
        pieces = _pieces(task, nested)
        return BucketResult(task.ids, pieces, nested.strays, nested.tally)


def _pieces(task: BucketTask, documents: Iterable[merge.Document]) -> list[Piece]:
    """Compress documents in pieces of the usual size."""
    pieces: list[Piece] = []
    lines: list[Buffer] = []
    size = count = first_id = 0
    for document in documents:
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
    return pieces


def _piece(task: BucketTask, lines: list[Buffer], first_id: int, documents: int) -> Piece:
    return output.compress(
        b"".join(lines), task.compression, task.options.level, first_id, documents
    )
