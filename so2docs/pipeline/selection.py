"""Choose the questions to write after the first pass, by keep lists, a sample, or a limit.

The first pass adds a mark for each post that a keep list names to the bucket of its question
(`KeepLists`). The worker that merges a bucket therefore decides by the keys of this bucket alone
(`Selection`), and nothing that grows with the dump is sent to it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from so2docs.options.table import Filters
from so2docs.parse import rows
from so2docs.parse.filters import choose_sample, sample_key
from so2docs.parse.keys import LISTED, QUESTION, REJECTED_ANSWER, integers, kinds_in
from so2docs.parse.opt_outs import unpack_ids
from so2docs.parse.posts import RecordBuffer, number
from so2docs.parse.row_filter import find_ids
from so2docs.schema import Row
from so2docs.store.blocks import BlockReader

if TYPE_CHECKING:
    from so2docs.spill import Spill

_FIELDS = 4
_GREATEST_ID = (1 << 63) - 1
_OWNER = re.compile(rb' OwnerUserId="(-?[0-9]{1,19})"')


class KeepLists:
    """Adds a mark to the bucket of each post of a chunk that a list names.

    The rank of a mark is the number of the list: that of users is the first one, if it is given.
    """

    def __init__(self, filters: Filters, buffer: RecordBuffer) -> None:
        self._user_ids = unpack_ids(filters.keep_users)
        self._post_ids = unpack_ids(filters.keep_posts)
        self._number_of_posts = int(filters.keep_users is not None)
        self._buffer = buffer

    def mark_slice(self, data: bytes) -> None:
        """Mark the posts of the listed users in a slice of canonical rows."""
        if self._user_ids and not self._user_ids.isdisjoint(map(int, _OWNER.findall(data))):
            for part in rows.parse(data):
                if isinstance(part, rows.Rows):
                    self.mark(part.rows)

    def mark(self, rows_of_posts: Iterable[Row]) -> None:
        """Mark the posts of the listed users in parsed rows; their values are strings."""
        if not self._user_ids:
            return
        for row in rows_of_posts:
            if number(row.get("OwnerUserId", "")) in self._user_ids:
                ids = find_ids(row, self._buffer.reserved)
                if ids is not None:
                    self._add(ids[1], ids[2], 0)

    def mark_posts(self) -> None:
        """Mark the listed posts of the chunk."""
        if self._post_ids:
            both = integers(self._buffer.pairs)
            for question_id, post_id in zip(both[::2], both[1::2], strict=True):
                if post_id in self._post_ids:
                    self._add(question_id, post_id, self._number_of_posts)

    def _add(self, question_id: int, post_id: int, list_number: int) -> None:
        self._buffer.add(question_id, post_id, list_number, LISTED, b"")


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
