"""Post ids that stand more than once in a dump, under different questions.

Repeats under one question meet in their bucket, where the merge sees them. The others are found
here: a set of all ids seen, one bit an id in pages of 4,096, which takes 13 MB for the 80 million
ids of Stack Overflow and grows with the ids, not with the rows. A chunk brings its own pages, so
that the main process only combines them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping

from so2docs.posts import KEY

_PAGE_BITS = 12
_PAGE = 1 << _PAGE_BITS

Pages = dict[int, int]
"""Bits of the ids by `id >> 12`."""


def _as_pages(ids: list[int]) -> Pages:
    """Pages of ids that are sorted."""
    pages: Pages = {}
    flags, current = bytearray(b"0") * _PAGE, None
    for post_id in ids:
        if post_id >> _PAGE_BITS != current:
            if current is not None:
                pages[current] = int(flags, 2)
            current = post_id >> _PAGE_BITS
            flags = bytearray(b"0") * _PAGE
        flags[~(post_id & (_PAGE - 1))] = 0x31
    if current is not None:
        pages[current] = int(flags, 2)
    return pages


def of_chunk(pairs: bytearray) -> tuple[Pages, dict[int, int]]:
    """What a chunk tells about its ids.

    Args:
        pairs: Question id and post id of each post, as 64-bit integers, in the order of the dump.

    Returns:
        The pages of its post ids; and for each id that stands under several questions within the
        chunk, the question id of the first.
    """
    both = array("q", bytes(pairs))
    ids = sorted(set(both[1::2]))
    first: dict[int, int] = {}
    owners: dict[int, int] = {}
    if 2 * len(ids) < len(both):
        for question_id, post_id in zip(both[::2], both[1::2], strict=True):
            if first.setdefault(post_id, question_id) != question_id:
                owners[post_id] = first[post_id]
    return _as_pages(ids), owners


def pairs(keys: bytes) -> bytearray:
    """Question id and post id of each key."""
    both = array("q", keys)
    found = array("q", bytes(len(keys) // 2))
    found[::2], found[1::2] = both[::4], both[1::4]
    return bytearray(found.tobytes())


class SeenIds:
    """The ids of all chunks so far."""

    def __init__(self) -> None:
        self._pages: Pages = {}

    def add(self, pages: Pages) -> set[int]:
        """Add the ids of a chunk.

        Returns:
            Those that an earlier chunk had.
        """
        repeated: set[int] = set()
        for page, bits in pages.items():
            seen = self._pages.get(page, 0)
            if common := seen & bits:
                repeated.update(_ids(page, common))
            self._pages[page] = seen | bits
        return repeated


def _ids(page: int, bits: int) -> Iterable[int]:
    while bits:
        lowest = bits & -bits
        yield page << _PAGE_BITS | lowest.bit_length() - 1
        bits ^= lowest


def owners(
    keys: Iterable[tuple[int, bytes]], repeated: set[int], within: Mapping[int, Mapping[int, int]]
) -> dict[int, int]:
    """The first question in the dump of each post id that stands in several chunks.

    Args:
        keys: The keys of all blocks, each with its chunk, in the order of the chunks.
        repeated: The post ids that stand in several chunks.
        within: By chunk, what `of_chunk` says of ids under several questions of that chunk.

    Returns:
        Question ids by post id, also for the ids of `within`.
    """
    first: dict[int, int] = {}
    for chunk, packed in keys:
        for question_id, post_id, _, _ in KEY.iter_unpack(packed):
            if post_id in repeated and post_id not in first:
                first[post_id] = within.get(chunk, {}).get(post_id, question_id)
    for _, of_one in sorted(within.items()):
        for post_id, question_id in of_one.items():
            first.setdefault(post_id, question_id)
    return first
