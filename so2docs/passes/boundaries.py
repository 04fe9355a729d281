"""Where one file of the output ends and the next begins, and where the last one ends."""

from __future__ import annotations

from collections import Counter

from so2docs.nest import FILTERED, Counts
from so2docs.passes import bucket
from so2docs.posts.keys import ANSWER, BUCKET_BITS, KEY, QUESTION
from so2docs.posts.table_rows import votes_of
from so2docs.schema import OF_KIND, VOTE
from so2docs.spill import Spill
from so2docs.store.blocks import BlockReader


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
    found: list[int] = []
    total = sum(size for _, size in buckets)
    before = 0
    for number, size in buckets:
        borders = [
            border
            for file in range(1, files)
            if before <= (border := -(-total * file // files)) < before + size
        ]
        if borders:
            found += _cuts_in(spill, number, [border - before for border in borders])
        before += size
    last = (buckets[-1][0] + 1) << BUCKET_BITS if buckets else 0
    return tuple(found + [last] * (files - 1 - len(found)))


def _cuts_in(spill: Spill, bucket: int, borders: list[int]) -> list[int]:
    """For each number of bytes, the first question of a bucket with as many before it."""
    sizes: Counter[int] = Counter()
    with BlockReader() as reader:
        for path, block in spill.blocks(bucket):
            for question_id, _, _, size_and_kind in KEY.iter_unpack(reader.read_keys(path, block)):
                sizes[question_id] += size_and_kind >> 4
    found: list[int] = []
    before = 0
    for question_id in sorted(sizes):
        while len(found) < len(borders) and before >= borders[len(found)]:
            found.append(question_id)
        before += sizes[question_id]
    return found + [(bucket + 1) << BUCKET_BITS] * (len(borders) - len(found))


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


def left_out(
    spill: Spill, buckets: list[tuple[int, int]], next_id: int | None, *, nested: bool
) -> tuple[int, Counts]:
    """What no task looked at, but for posts that the first pass rejected.

    Args:
        spill: The spill.
        buckets: All buckets, each with the bytes of its JSON.
        next_id: The first question id that was not looked at; None if none was.
        nested: Whether tables are nested.

    Returns:
        Number of posts, and of rows of each table.
    """
    posts, tables = 0, Counter[str]()
    with BlockReader() as reader:
        for number, json_bytes in buckets:
            end = bucket.parts(number, json_bytes, nested=nested)[-1].stop
            if next_id is not None and end <= next_id:
                continue
            for path, block in spill.blocks(number):
                for question_id, _, rank, kind in KEY.iter_unpack(reader.read_keys(path, block)):
                    if next_id is not None and question_id < next_id:
                        continue
                    if kind & 15 in (QUESTION, ANSWER):
                        posts += 1
                    elif kind & 15 in OF_KIND:
                        rows = votes_of(rank)[1] if kind & 15 == VOTE else 1
                        tables[OF_KIND[kind & 15].name] += rows
    return posts, {name: {FILTERED: rows} for name, rows in tables.items()}
