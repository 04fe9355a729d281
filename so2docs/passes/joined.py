"""Nesting by the compiled core: it sorts and joins, and leaves to `merge` what needs a thought."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from so2docs.merge import Document, Nesting, Records
from so2docs.nest import Post
from so2docs.options.choices import AnswersBy
from so2docs.posts import core

ENOUGH_BYTES = 1 << 20
"""Posts that are joined at a time."""

_POST = Struct("=5q")
"""Question id, post id, number of the block << 40 | offset, rank, size << 4 | kind."""
_OFFSET = (1 << 40) - 1


class JoinedNesting(Nesting):
    """Nests the posts of one bucket, as `merge.Nesting` does, without the rows of other tables.

    Args:
        blocks: All blocks of the bucket, in the order of the dump.
        answers_by: As for `merge.Nesting`, like the others.

    Raises:
        ValueError: Keys and JSON of a block do not belong together.
    """

    def __init__(
        self,
        blocks: list[tuple[bytes, bytes]],
        answers_by: AnswersBy = "id",
        *,
        extra: bytes = b"",
        limit: int | None = None,
        with_answers: bool = True,
    ) -> None:
        super().__init__(Records(), answers_by, extra=extra, limit=limit, with_answers=with_answers)
        self._blocks = blocks
        self._posts = core.sort_posts(blocks)

    def __iter__(self) -> Iterator[Document]:
        posts = self._posts
        form = core.JoinedForm(self._open, self._with_answers, self._by_votes)
        at, end = 0, len(posts) // _POST.size
        while at < end:
            groups = core.join_posts(self._blocks, posts, at, ENOUGH_BYTES, form)
            for question_id, count, size, document in groups:
                if document is None or self.tally.questions == self._limit:
                    group = [self._post(posts, number) for number in range(at, at + count)]
                    nested, _ = self._nested(question_id, group)
                    if nested:
                        yield self._document(nested, {})
                else:
                    self.tally.questions += 1
                    self.tally.answers += count - 1
                    yield Document(question_id, [document], size)
                at += count

    def _post(self, posts: bytearray, number: int) -> Post:
        _, post_id, place, rank, size_and_kind = _POST.unpack_from(posts, number * _POST.size)
        start = place & _OFFSET
        json = memoryview(self._blocks[place >> 40][1])[start : start + (size_and_kind >> 4)]
        return (post_id, place, rank, size_and_kind & 15, json)
