"""Choose the questions to write after the first pass, by keep lists, a sample, or a limit.

The first pass adds a mark for each post that a keep list names to the bucket of its question. The
worker that merges a bucket therefore decides by the keys of this bucket alone, and nothing that
grows with the dump is sent to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from so2docs.options.table import Filters
from so2docs.parse.filters import choose_sample, sample_key
from so2docs.parse.keys import LISTED, QUESTION, REJECTED_ANSWER, integers, kinds_in
from so2docs.store.blocks import BlockReader

if TYPE_CHECKING:
    from so2docs.spill import Spill

_FIELDS = 4
_GREATEST_ID = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Selection:
    """The questions to write.

    Attributes:
        lists: Number of keep lists; each must name the question or one of its answers.
        greatest: The greatest id of a question within a limit, or key of one in a sample; None for
            all questions.
        is_sample: Whether the questions are a sample, and not the first ones.
    """

    lists: int
    greatest: int | None = None
    is_sample: bool = False

    def includes(self, ids: range) -> bool:
        """Whether all questions of a range are selected."""
        is_by_id = not self.lists and not self.is_sample
        return is_by_id and self.greatest is not None and ids.stop <= self.greatest + 1

    def choose(self, keys: Iterable[bytes]) -> set[int]:
        """Choose questions of a bucket; `keys` are those of all its blocks."""
        if self.lists or self.is_sample:
            ids = {*self._read_kinds(keys)}
        else:
            ids = {number for of_block in keys for number in integers(of_block)[::_FIELDS]}
        if self.greatest is None:
            return ids
        place = sample_key if self.is_sample else int
        return {number for number in ids if place(number) <= self.greatest}

    def choose_written(self, keys: Iterable[bytes]) -> list[int]:
        """Choose those questions of a bucket that pass the filters, so that they are written."""
        return [number for number, kind in self._read_kinds(keys).items() if kind == QUESTION]

    def _read_kinds(self, keys: Iterable[bytes]) -> dict[int, int]:
        """Return the kind of each question that all lists name, as of its first row."""
        kinds: dict[int, int] = {}
        named: defaultdict[int, int] = defaultdict(int)
        for keys_of_block in keys:
            fields = integers(keys_of_block)
            columns = (fields[number::_FIELDS] for number in range(_FIELDS - 1))
            records = zip(*columns, kinds_in(keys_of_block), strict=True)
            for question_id, post_id, rank, kind in records:
                if kind == LISTED:
                    named[question_id] |= 1 << rank
                elif question_id == post_id and kind <= REJECTED_ANSWER:
                    kinds.setdefault(question_id, kind)
        every = (1 << self.lists) - 1
        return {number: kind for number, kind in kinds.items() if named[number] == every}


def select(spill: Spill, filters: Filters) -> Selection | None:
    """Return the questions to write; None for all questions.

    A sample, and a limit, count questions that pass all other filters.
    """
    lists = sum(listed is not None for listed in (filters.keep_users, filters.keep_posts))
    listed = Selection(lists)
    if filters.sample_size is not None:
        sample = choose_sample(_read_written(spill, listed), filters.sample_size)
        return Selection(lists, max(sample, default=0), is_sample=True)
    if filters.limit is not None:
        within = islice(_read_written(spill, listed), filters.limit - 1, None)
        return Selection(lists, next(within, _GREATEST_ID))
    return listed if lists else None


def _read_written(spill: Spill, listed: Selection) -> Iterator[int]:
    """Yield the ids of the questions that pass the filters, in ascending order."""
    with BlockReader() as reader:
        for number, _ in spill.buckets():
            keys = (reader.read_keys(path, block) for path, block in spill.blocks(number))
            yield from sorted(listed.choose_written(keys))
