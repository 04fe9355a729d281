"""Nesting by the compiled core: it sorts and joins, and leaves to `merge` what needs a thought."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import NamedTuple

from so2docs.counts import NESTED, Counts
from so2docs.merge import Block, Document, DocumentBuilder, merge_votes
from so2docs.nest import Post, Row
from so2docs.parse import joining
from so2docs.parse.keys import BUCKET_BITS
from so2docs.schema import COMMENT, MEMBERS, OF_KIND
from so2docs.store.users import Users

ENOUGH_BYTES = 1 << 20
"""Records and documents that are joined at a time."""

_RECORD = Struct("=6q")
"""Question id, post id, rank, size << 4 | kind, number of the block << 40 | offset, order."""
_OFFSET = (1 << 40) - 1


class Run(NamedTuple):
    """How documents are joined to runs, where nobody looks at each of them.

    Attributes:
        closing: What ends each document in the file.
        size: Bytes of documents after which another segment starts; no run goes beyond that.
    """

    closing: bytes
    size: int


class JoinedRecords:
    """The records of one bucket, nested as `merge.GatheredRecords` are.

    Args:
        blocks: All blocks of the bucket, in the order of the dump.
        ids: The question ids to keep.
        users: Where users are looked up, if they are nested.
        run: How documents are joined to runs; None if each comes by itself.

    Raises:
        ValueError: Keys and JSON of a block do not belong together.
    """

    def __init__(
        self,
        blocks: Iterable[Block],
        ids: range,
        *,
        users: Users | None = None,
        run: Run | None = None,
    ) -> None:
        if len(ids) < 1 << BUCKET_BITS:
            blocks = (joining.select_records(block, ids) for block in blocks)
        self._blocks = list(merge_votes(blocks, joining.count_votes))
        self._sorted = joining.sort_records(self._blocks)
        self._users = users
        self._run = run

    def documents(self, nesting: DocumentBuilder) -> Iterator[Document]:
        """Nest all records; groups that the compiled core does not take, by the reference."""
        form = self._form(nesting)
        at, end, enough = 0, len(self._sorted) // _RECORD.size, ENOUGH_BYTES
        left = 0  # Of the segment.
        while at < end:
            if self._run is not None:
                enough = left = left if left > 0 else self._run.size
            for group in joining.join_records(self._blocks, self._sorted, at, enough, form):
                if group.document is None or nesting.is_full:
                    found = self._by_reference(nesting, range(at, at + group.records))
                else:
                    _count(nesting.counts, group)
                    run = 0 if self._run is None else group.documents
                    found = Document(group.question_id, [group.document], group.size, run=run)
                at += group.records
                if found is not None:
                    left -= found.size
                    yield found

    def _form(self, nesting: DocumentBuilder) -> joining.JoinedForm:
        nested = nesting.counts.tables
        user_ids, users = array("q"), None
        if self._users is not None:
            user_ids = joining.user_ids(self._blocks, self._sorted)
            users = self._users.get_all(user_ids)
        return joining.JoinedForm(
            nesting.opening,
            nesting.with_answers,
            nesting.by_votes,
            kinds=[kind for kind, (table, _) in MEMBERS.items() if table in nested],
            made={} if nesting.nest is None else nesting.nest.made,
            repeated=array("q", sorted(nesting.first_question_of)),
            user_ids=user_ids,
            users=users,
            closing=b"" if self._run is None else self._run.closing,
        )

    def _by_reference(self, nesting: DocumentBuilder, numbers: range) -> Document | None:
        posts: list[Post] = []
        rows: list[Row] = []
        question_id = 0
        for number in numbers:
            question_id, post_id, rank, size_and_kind, place, order = _RECORD.unpack_from(
                self._sorted, number * _RECORD.size
            )
            start, kind = place & _OFFSET, size_and_kind & 15
            json = self._blocks[place >> 40][1][start : start + (size_and_kind >> 4)]
            if kind >= COMMENT:
                rows.append((kind, post_id, rank, order, json))
            else:
                posts.append((post_id, order, rank, kind, json))
        return nesting.nest_group(question_id, posts, rows)


def _count(counts: Counts, group: joining.JoinedGroup) -> None:
    counts.questions += group.documents
    counts.answers += group.posts - group.documents
    for kind, table in OF_KIND.items():
        if rows := group.counts[kind]:
            counts.tables[table.name][NESTED] += rows
