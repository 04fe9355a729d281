"""Where one file of the output ends and the next begins, when their number is given."""

from __future__ import annotations

from collections import Counter

from so2docs.posts.keys import BUCKET_BITS, KEY
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
