"""Nesting by the compiled core: it sorts and joins, and leaves to `merge` what needs a thought."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from struct import Struct
from typing import NamedTuple

from so2docs.counts import NESTED
from so2docs.merge import Block, Document, Nesting, Records
from so2docs.nest import Nest, Post, Row
from so2docs.options.choices import AnswersBy
from so2docs.posts import joining
from so2docs.posts.keys import BUCKET_BITS
from so2docs.schema import COMMENT, LINK, OF_KIND, VOTE
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


class JoinedNesting(Nesting):
    """Nests the posts of one bucket, as `merge.Nesting` does.

    Args:
        blocks: All blocks of the bucket, in the order of the dump.
        ids: The question ids to keep.
        answers_by: As for `merge.Nesting`, like the others.
        users: Where users are looked up, if they are nested.
        run: How documents are joined to runs; None if each comes by itself.

    Raises:
        ValueError: Keys and JSON of a block do not belong together.
    """

    def __init__(
        self,
        blocks: Iterable[Block],
        ids: range,
        answers_by: AnswersBy = "id",
        first_question_of: Mapping[int, int] | None = None,
        *,
        extra: bytes = b"",
        limit: int | None = None,
        with_answers: bool = True,
        nest: Nest | None = None,
        users: Users | None = None,
        run: Run | None = None,
    ) -> None:
        super().__init__(
            Records(),
            answers_by,
            first_question_of,
            extra=extra,
            limit=limit,
            with_answers=with_answers,
            nest=nest,
        )
        if len(ids) < 1 << BUCKET_BITS:
            blocks = (joining.select_records(block, ids) for block in blocks)
        self._blocks = list(blocks)
        self._sorted = joining.sort_records(self._blocks)
        self._users = users
        self._run = run

    def _documents(self) -> Iterator[Document]:
        form = self._form()
        at, end, enough = 0, len(self._sorted) // _RECORD.size, ENOUGH_BYTES
        left = 0  # Of the segment.
        while at < end:
            if self._run is not None:
                enough = left = left if left > 0 else self._run.size
            for group in joining.join_records(self._blocks, self._sorted, at, enough, form):
                if group.document is None or self.counts.questions == self._limit:
                    found = self._by_reference(range(at, at + group.records))
                else:
                    self._count(group)
                    run = 0 if self._run is None else group.documents
                    found = Document(group.question_id, [group.document], group.size, run=run)
                at += group.records
                if found is not None:
                    left -= found.size
                    yield found

    def _form(self) -> joining.JoinedForm:
        nested = () if self._nest is None else self._nest.counts
        user_ids, users = array("q"), None
        if self._users is not None:
            user_ids = joining.user_ids(self._blocks, self._sorted)
            users = self._users.get_all(user_ids)
        return joining.JoinedForm(
            self._open,
            self._with_answers,
            self._by_votes,
            [kind for kind, table in OF_KIND.items() if table.name in nested],
            array("q", sorted(self._first_question_of)),
            user_ids,
            users,
            b"" if self._run is None else self._run.closing,
        )

    def _count(self, group: joining.JoinedGroup) -> None:
        self.counts.questions += group.documents
        self.counts.answers += group.posts - group.documents
        if self._nest is not None:
            found = {COMMENT: group.comments, LINK: group.links, VOTE: group.votes}
            for kind, rows in found.items():
                if rows:
                    self._nest.counts[OF_KIND[kind].name][NESTED] += rows

    def _by_reference(self, numbers: range) -> Document | None:
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
        return self._of(question_id, posts, rows)
