"""Keep lists: mark the posts that a list of users or posts names, while posts are parsed."""

from __future__ import annotations

import re
from collections.abc import Iterable

from so2docs.options.table import Filters
from so2docs.parse import rows
from so2docs.parse.keys import LISTED, PAIR_BYTES, integers
from so2docs.parse.opt_outs import unpack_ids
from so2docs.parse.posts import RecordBuffer, number
from so2docs.parse.row_filter import find_ids
from so2docs.schema import Row

_OWNER = re.compile(rb' OwnerUserId="(-?[0-9]{1,19})"')
_WORDS = PAIR_BYTES // 8


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
            for question_id, post_id in zip(both[::_WORDS], both[1::_WORDS], strict=True):
                if post_id in self._post_ids:
                    self._add(question_id, post_id, self._number_of_posts)

    def _add(self, question_id: int, post_id: int, list_number: int) -> None:
        self._buffer.add(question_id, post_id, list_number, LISTED, b"")
