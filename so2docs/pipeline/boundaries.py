"""Where tasks of the second pass and files of the output begin and end."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from so2docs.counts import FILTERED, Counts
from so2docs.parse.keys import ANSWER, BUCKET_BITS, KEY, QUESTION, integers
from so2docs.parse.table_rows import unpack_votes
from so2docs.schema import OF_KIND, VOTE
from so2docs.spill import Spill
from so2docs.store.blocks import Block, BlockReader, check_blocks_match

PART_BYTES = 32 * 1024 * 1024
"""A bucket with more JSON than this is merged in parts, by ranges of question ids."""

PART_BYTES_NESTED = 11 * 1024 * 1024
"""The same where tables are nested: short rows take more memory besides their JSON than posts do.

A bucket of 36 MB, with 49,000 posts and comments, takes 213 MiB at once and 123 MiB in four parts,
in the same time."""

_FIELDS = 4
_IN_BUCKET = (1 << BUCKET_BITS) - 1

Blocks = list[tuple[str, Block]]
"""Blocks in the order of the dump, each with its file."""


class Part(NamedTuple):
    """A range of question ids that one task nests.

    Attributes:
        ids: The question ids.
        size: Bytes of their JSON.
        blocks: The blocks that hold them.
    """

    ids: range
    size: int
    blocks: Blocks


def divide(number: int, json_bytes: int, blocks: Blocks, *, nested: bool = False) -> list[Part]:
    """Divide a bucket into parts that are small enough for memory.

    Ids may cluster, so the keys of a large bucket are read. The parts depend on nothing but the
    rows: neither on chunks nor on blocks.

    Args:
        number: The bucket.
        json_bytes: Bytes of its JSON.
        blocks: Its blocks.
        nested: Whether tables are nested.

    Raises:
        SpillError: A block is damaged.
    """
    start, stop = number << BUCKET_BITS, (number + 1) << BUCKET_BITS
    limit = PART_BYTES_NESTED if nested else PART_BYTES
    if json_bytes <= limit:
        return [Part(range(start, stop), json_bytes, blocks)]
    found, spans = _question_sizes(blocks)
    sizes = sorted(found.items())
    parts: list[Part] = []
    for low, high in pairwise((start, *_halves(range(start, stop), sizes, limit), stop)):
        held = [
            block
            for block, (first, last) in zip(blocks, spans, strict=True)
            if first < high and last >= low
        ]
        size = sum(
            size for _, size in sizes[bisect_left(sizes, (low,)) : bisect_left(sizes, (high,))]
        )
        parts.append(Part(range(low, high), size, held))
    return parts


def _halves(ids: range, sizes: Sequence[tuple[int, int]], limit: int) -> Iterator[int]:
    """Where to cut a range of ids so that no part exceeds the limit, unless one id does.

    A range is cut in the middle while it is too large. A half without ids stays with the other.

    Args:
        ids: The range.
        sizes: The ids that occur, in ascending order, each with its size.
        limit: Largest size of a part.
    """
    if len(sizes) < 2 or sum(size for _, size in sizes) <= limit:
        return
    middle = (ids.start + ids.stop) // 2
    at = bisect_left(sizes, (middle,))
    yield from _halves(range(ids.start, middle), sizes[:at], limit)
    if 0 < at < len(sizes):
        yield middle
    yield from _halves(range(middle, ids.stop), sizes[at:], limit)


def _question_sizes(blocks: Blocks) -> tuple[dict[int, int], list[tuple[int, int]]]:
    """Bytes of JSON by question id, and the smallest and the largest of those in each block."""
    sizes = [0] * (
        1 << BUCKET_BITS
    )  # By the last bits of the id: the others are those of the bucket.
    question_ids: set[int] = set()
    spans: list[tuple[int, int]] = []
    with BlockReader() as reader, check_blocks_match(blocks):
        for path, block in blocks:
            fields = integers(reader.read_keys(path, block))
            ids = fields[::_FIELDS]
            of_block = set(ids)
            question_ids |= of_block
            spans.append((min(of_block), max(of_block)))
            if block.raw_size:  # Votes have no JSON.
                for question_id, size_and_kind in zip(
                    ids, fields[_FIELDS - 1 :: _FIELDS], strict=True
                ):
                    sizes[question_id & _IN_BUCKET] += size_and_kind >> 4
    return {number: sizes[number & _IN_BUCKET] for number in question_ids}, spans


def cuts(spill: Spill, buckets: list[tuple[int, int]], files: int) -> tuple[int, ...]:
    """Question ids that start the second file and those after it, in ascending order.

    The posts of all questions, in the order of their ids, are divided into parts of as many bytes
    of JSON: a question is in the part that its first byte is in. So the division depends on nothing
    but the posts. Only buckets with a border in them are looked into.

    Args:
        spill: The spill, after the first pass.
        buckets: All buckets in ascending order, each with the bytes of its JSON.
        files: Number of files.
    """
    boundaries: list[int] = []
    total = sum(size for _, size in buckets)
    before = 0
    for number, size in buckets:
        borders = [
            border
            for file in range(1, files)
            if before <= (border := -(-total * file // files)) < before + size
        ]
        if borders:
            boundaries += _cuts_in(spill, number, [border - before for border in borders])
        before += size
    last = (buckets[-1][0] + 1) << BUCKET_BITS if buckets else 0
    return tuple(boundaries + [last] * (files - 1 - len(boundaries)))


def _cuts_in(spill: Spill, bucket: int, borders: list[int]) -> list[int]:
    """For each number of bytes, the first question of a bucket with as many before it."""
    sizes, _ = _question_sizes(spill.blocks(bucket))
    boundaries: list[int] = []
    before = 0
    for question_id in sorted(sizes):
        while len(boundaries) < len(borders) and before >= borders[len(boundaries)]:
            boundaries.append(question_id)
        before += sizes[question_id]
    return boundaries + [(bucket + 1) << BUCKET_BITS] * (len(borders) - len(boundaries))


class Limit:
    """How many documents may still be written.

    Attributes:
        left: Their number; None if there is no limit.
    """

    def __init__(self, most: int | None, written: int = 0) -> None:
        self.left = None if most is None else most - written

    @property
    def is_reached(self) -> bool:
        """Whether no other document may be written."""
        return self.left == 0

    def take(self, documents: int) -> None:
        """Count documents that were written."""
        if self.left is not None:
            self.left -= documents

    def is_exceeded_by(self, documents: int) -> bool:
        """Whether so many would be too many."""
        return self.left is not None and documents > self.left


def left_out(spill: Spill, buckets: list[tuple[int, int]], next_id: int | None) -> Counts:
    """What no task looked at, but for posts that the first pass rejected.

    Args:
        spill: The spill.
        buckets: All buckets, each with the bytes of its JSON.
        next_id: The first question id that was not looked at; None if none was.

    Returns:
        Posts and rows of tables, as filtered.
    """
    counts = Counts()
    with BlockReader() as reader:
        for number, _ in buckets:
            if next_id is not None and (number + 1) << BUCKET_BITS <= next_id:
                continue
            for path, block in spill.blocks(number):
                for question_id, _, rank, kind in KEY.iter_unpack(reader.read_keys(path, block)):
                    if next_id is not None and question_id < next_id:
                        continue
                    if kind & 15 in (QUESTION, ANSWER):
                        counts.filtered += 1
                    elif kind & 15 in OF_KIND:
                        rows = unpack_votes(rank)[1] if kind & 15 == VOTE else 1
                        table = counts.tables.setdefault(OF_KIND[kind & 15].name, Counter())
                        table[FILTERED] += rows
    return counts
