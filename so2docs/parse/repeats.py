"""Find post ids that occur several times in a dump, under different questions.

Repeats under one question are in one bucket, where the merge finds them. This module finds
repeats under different questions, with a set of all ids: one bit for each id, in pages of 4,096.
The size of the set depends on the ids, not on the number of rows; the set takes 13 MB for the 80
million ids of Stack Overflow. Workers make the pages of each chunk, and the main process only
combines them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

from so2docs.parse.keys import KEY

_PAGE_BITS = 12
_PAGE = 1 << _PAGE_BITS
_AT_ONCE = 1_000_000

Pages = dict[int, int]
"""A set of ids: integers with a bit for each id, by `id >> 12`."""


def _as_pages(ids: list[int]) -> Pages:
    """Convert sorted ids to pages."""
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


def of_chunk(question_ids: array[int], post_ids: array[int]) -> tuple[Pages, dict[int, int]]:
    """Collect the post ids of a chunk, and find those under several questions.

    Args:
        question_ids: Question id of every post in the chunk.
        post_ids: Ids of these posts.

    Returns:
        The pages of the post ids, and the first question id of each post id with several questions
        in the chunk.
    """
    ids = sorted(set(post_ids))
    first: dict[int, int] = {}
    first_questions: dict[int, int] = {}
    if len(ids) < len(post_ids):
        for question_id, post_id in zip(question_ids, post_ids, strict=True):
            if first.setdefault(post_id, question_id) != question_id:
                first_questions[post_id] = first[post_id]
    return _as_pages(ids), first_questions


class SeenIds:
    """The post ids of all chunks added so far.

    Attributes:
        repeated: The ids that occur in several chunks.
    """

    def __init__(self) -> None:
        self._pages: Pages = {}
        self.repeated: Pages = {}

    def add(self, pages: Pages) -> None:
        """Add the ids of a chunk, as returned by `of_chunk`."""
        for page, bits in pages.items():
            earlier = self._pages.get(page, 0)
            if common := earlier & bits:
                self.repeated[page] = self.repeated.get(page, 0) | common
            self._pages[page] = earlier | bits

    def add_one(self, number: int) -> None:
        """Add a single id, as if it were a chunk."""
        self.add({number >> _PAGE_BITS: 1 << (number & (_PAGE - 1))})

    def __contains__(self, number: int) -> bool:
        return bool(self._pages.get(number >> _PAGE_BITS, 0) >> (number & (_PAGE - 1)) & 1)


def ids_in_pages(pages: Pages) -> Iterator[int]:
    """Yield the ids of pages, in ascending order."""
    for page, bits in sorted(pages.items()):
        remaining = bits
        while remaining:
            lowest = remaining & -remaining
            yield page << _PAGE_BITS | lowest.bit_length() - 1
            remaining ^= lowest


def first_questions(
    all_keys: Callable[[], Iterable[tuple[int, bytes]]],
    repeated: Pages,
    within: Mapping[int, Mapping[int, int]],
    at_once: int = _AT_ONCE,
) -> dict[int, int]:
    """Find the first question of each post id that occurs under several questions.

    Args:
        all_keys: Yields the keys of all blocks with their chunks, in the order of the chunks.
        repeated: The post ids that occur in several chunks.
        within: For each chunk, the first questions of repeated ids, as returned by `of_chunk`.
        at_once: Number of ids to look up in one pass over the keys, which bounds the memory.

    Returns:
        Question ids by post id.
    """
    first_by_post: dict[int, int] = {}
    for _, of_one in sorted(within.items()):
        for post_id, question_id in of_one.items():
            first_by_post.setdefault(post_id, question_id)
    ids = ids_in_pages(repeated)
    while wanted := set(islice(ids, at_once)):
        first: dict[int, int] = {}
        for chunk, packed in all_keys():
            of_chunk = within.get(chunk, {})
            for question_id, post_id, _, _ in KEY.iter_unpack(packed):
                if post_id not in wanted:
                    continue
                question = of_chunk.get(post_id, question_id)
                # Only repeats under different questions matter here: the merge handles those under
                # the same question, which are in the same bucket.
                if first.setdefault(post_id, question) != question or post_id in first_by_post:
                    first_by_post[post_id] = first[post_id]
    return first_by_post
