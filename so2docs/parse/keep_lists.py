"""Keep lists: find the questions selected by a list of users or posts, while posts are parsed."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from so2docs.options.table import Filters
from so2docs.parse import rows
from so2docs.parse.keys import PAIR_BYTES, integers
from so2docs.parse.opt_outs import unpack_ids
from so2docs.parse.posts import number
from so2docs.parse.row_filter import find_ids
from so2docs.schema import Row

_OWNER = re.compile(rb' OwnerUserId="(-?[0-9]{1,19})"')
_WORDS = PAIR_BYTES // 8

Found = dict[str, dict[int, int]]
"""The posts that each list selects, by list name: a map from post id to question id."""


class KeepLists:
    """Collects the posts of a chunk that the lists select."""

    def __init__(self, filters: Filters, reserved: frozenset[str]) -> None:
        self._users, self._posts = filters.keep_users, filters.keep_posts
        self._user_ids, self._post_ids = unpack_ids(self._users), unpack_ids(self._posts)
        self._reserved = reserved
        self._of_users: dict[int, int] = {}

    def look_at_slice(self, data: bytes) -> None:
        """Collect the posts of the listed users from a slice of canonical rows."""
        if self._user_ids and not self._user_ids.isdisjoint(map(int, _OWNER.findall(data))):
            for part in rows.parse(data):
                if isinstance(part, rows.Rows):
                    self.look_at(part.rows)

    def look_at(self, rows_of_posts: Iterable[Row]) -> None:
        """Collect the posts of the listed users from parsed rows; their values are strings."""
        if not self._user_ids:
            return
        for row in rows_of_posts:
            if number(row.get("OwnerUserId", "")) in self._user_ids:
                ids = find_ids(row, self._reserved)
                if ids is not None:
                    self._of_users.setdefault(ids[2], ids[1])

    def found(self, pairs: bytes | bytearray) -> Found:
        """Return the posts of the chunk that the lists select.

        Args:
            pairs: Question id and post id of every post in the chunk, as 64-bit integers.
        """
        by_list: Found = {}
        if self._users is not None:
            by_list["users"] = self._of_users
        if self._posts is not None:
            both = integers(pairs)
            of_posts = by_list["posts"] = {}
            for question_id, post_id in zip(both[::_WORDS], both[1::_WORDS], strict=True):
                if post_id in self._post_ids:
                    of_posts.setdefault(post_id, question_id)
        return by_list


class Kept(NamedTuple):
    """The questions to write, if keep lists or the size of a sample restrict them.

    Attributes:
        question_ids: The candidate questions, in ascending order.
        posts: For each keep list, the pairs of question id and post id of the selected posts,
            sorted; a question is written if every list selects the question or one of its answers.
    """

    question_ids: Sequence[int]
    posts: list[list[tuple[int, int]]]

    def within(self, ids: range) -> Kept:
        """Select the questions and posts in a range of question ids."""
        start, stop = (bisect_left(self.question_ids, end) for end in (ids.start, ids.stop))
        posts = [
            of_list[bisect_left(of_list, (ids.start,)) : bisect_left(of_list, (ids.stop,))]
            for of_list in self.posts
        ]
        return Kept(self.question_ids[start:stop], posts)

    @property
    def post_ids(self) -> list[frozenset[int]]:
        """The ids of the selected posts, for each list."""
        return [frozenset(post_id for _, post_id in of_list) for of_list in self.posts]


def combine(filters: Filters, chunks: Iterable[Found]) -> Kept | None:
    """Return the questions to write, given the posts found in each chunk; None without lists."""
    names = [name for name in ("users", "posts") if getattr(filters, f"keep_{name}") is not None]
    if not names:
        return None
    by_list: Found = {name: {} for name in names}
    for chunk in chunks:
        for name, posts in chunk.items():
            for post_id, question_id in posts.items():
                by_list[name].setdefault(post_id, question_id)
    questions = set.intersection(*({*posts.values()} for posts in by_list.values()))
    return Kept(
        sorted(questions),
        [sorted((q, p) for p, q in posts.items() if q in questions) for posts in by_list.values()],
    )
