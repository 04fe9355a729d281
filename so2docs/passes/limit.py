"""At most so many documents: those with the lowest ids, whoever merges them."""

from __future__ import annotations

from collections import Counter

from so2docs.nest import FILTERED, Counts
from so2docs.passes import bucket
from so2docs.posts.keys import ANSWER, KEY, QUESTION
from so2docs.posts.table_rows import votes_of
from so2docs.schema import OF_KIND, VOTE
from so2docs.spill import Spill
from so2docs.store.blocks import BlockReader


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
