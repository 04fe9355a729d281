"""Choose the questions to write after the first pass: those of keep lists, and of a sample.

The first pass adds a mark for each post that a keep list names to the bucket of its question. The
worker that merges a bucket therefore decides by the keys of this bucket alone, and nothing that
grows with the dump is sent to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from so2docs.options.table import Filters
from so2docs.parse.filters import Sample, sample_key
from so2docs.parse.keys import LISTED, QUESTION, REJECTED_ANSWER, integers, kinds_in
from so2docs.store.blocks import BlockReader

if TYPE_CHECKING:
    from so2docs.spill import Spill

_FIELDS = 4


@dataclass(frozen=True, slots=True)
class Selection:
    """The questions to write.

    Attributes:
        lists: Number of keep lists; each must name the question or one of its answers.
        greatest_key: The greatest key of a question in the sample; None without a sample.
    """

    lists: int
    greatest_key: int | None = None

    def choose(self, keys: Iterable[bytes]) -> set[int]:
        """Choose questions of a bucket; `keys` are those of all its blocks."""
        return {
            question_id
            for question_id in self._read_kinds(keys)
            if self.greatest_key is None or sample_key(question_id) <= self.greatest_key
        }

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

    A sample has questions that pass all other filters.
    """
    lists = sum(listed is not None for listed in (filters.keep_users, filters.keep_posts))
    if filters.sample_size is None:
        return Selection(lists) if lists else None
    sample, listed = Sample(filters.sample_size), Selection(lists)
    with BlockReader() as reader:
        for number, _ in spill.buckets():
            keys = (reader.read_keys(path, block) for path, block in spill.blocks(number))
            sample.add(listed.choose_written(keys))
    return Selection(lists, sample.greatest_key())
