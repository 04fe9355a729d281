"""Posts of a bucket -> documents and strays. Pure functions over plain bytes and lists.

The middle of the second pass: everything that belongs to a range of question ids is in memory, is
sorted by (question id, post id), and each question is put before its answers. No JSON is parsed: a
document is made by joining the bytes of its posts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import orjson

from so2docs.posts import ANSWER, KEY, QUESTION

AnswersBy = Literal["id", "votes"]

Buffer = bytes | memoryview
Block = tuple[Buffer, Buffer]
"""Keys and JSON objects of some posts, in the order of the dump."""

_OPEN = b',"Answers":['
_COMMA = b","
_CLOSE = b"]}\n"


@dataclass(slots=True)
class Tally:
    """What became of the posts of one or more buckets.

    Attributes:
        questions: Documents made.
        answers: Answers inside them.
        strays: Posts that no document holds, by reason.
    """

    questions: int = 0
    answers: int = 0
    strays: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Document:
    """A question with its answers: buffers that make its line when joined."""

    question_id: int
    parts: list[Buffer]
    size: int


_Post = tuple[int, int, int, int, int, memoryview]
"""Question id, post id, order in the dump, rank, kind, JSON."""


def sorted_posts(blocks: Iterable[Block], ids: range) -> list[_Post]:
    """Posts whose question id lies in `ids`, by question id, post id and place in the dump.

    Args:
        blocks: All blocks of the bucket, in the order of the dump.
        ids: The question ids to keep.
    """
    posts: list[_Post] = []
    low, high, order = ids.start, ids.stop, 0
    for keys, json in blocks:
        view, at = memoryview(json), 0
        for question_id, post_id, rank, size_and_kind in KEY.iter_unpack(keys):
            end = at + (size_and_kind >> 4)
            if low <= question_id < high:
                posts.append((question_id, post_id, order, rank, size_and_kind & 15, view[at:end]))
            order += 1
            at = end
    posts.sort()
    return posts


class Nesting:
    """Nests the posts of one bucket; iterate over it, then look at `tally` and `strays`.

    Args:
        posts: What `sorted_posts` returns.
        answers_by: Order of the answers in a document.
        owners: For post ids that stand under several questions, the question id of the first one in
            the dump: the only one that stays.
        site: Name of the site, for an attribute `Site` before the answers; none if None.
    """

    def __init__(
        self,
        posts: list[_Post],
        answers_by: AnswersBy = "id",
        owners: Mapping[int, int] | None = None,
        site: str | None = None,
    ) -> None:
        self.tally = Tally()
        self.strays: list[bytes] = []
        self._posts = posts
        self._by_votes = answers_by == "votes"
        self._owners = owners or {}
        self._open = _OPEN if site is None else b',"Site":' + orjson.dumps(site) + _OPEN

    def __iter__(self) -> Iterator[Document]:
        group: list[_Post] = []
        for post in self._posts:
            if group and group[0][0] != post[0]:
                yield from self._nest(group)
                group = []
            group.append(post)
        if group:
            yield from self._nest(group)

    def _nest(self, group: list[_Post]) -> Iterator[Document]:
        """The document of the posts of one question id, unless the question is missing."""
        question_id = group[0][0]
        if len(group) > 1 or self._owners:
            question, answers, repeated = self._without_repeats(group)
        elif group[0][4] == QUESTION:
            question, answers, repeated = group[0], [], []
        else:
            question, answers, repeated = None, group, []
        if question is None:
            self._set_aside(repeated, answers)
            return
        if repeated:
            self._set_aside(repeated, [])
        if self._by_votes and len(answers) > 1:
            accepted = question[3]
            answers.sort(key=lambda post: (post[1] != accepted, -post[3], post[1]))
        self.tally.questions += 1
        self.tally.answers += len(answers)
        json = question[5]
        parts: list[Buffer] = [json[:-1], self._open]
        size = len(json)
        for post in answers:
            parts += (post[5], _COMMA)
            size += len(post[5])
        if answers:
            parts.pop()
        parts.append(_CLOSE)
        yield Document(question_id, parts, size)

    def _without_repeats(self, group: list[_Post]) -> tuple[_Post | None, list[_Post], list[_Post]]:
        """The question, the answers, and the posts whose id an earlier row of the dump has."""
        question: _Post | None = None
        answers: list[_Post] = []
        repeated: list[_Post] = []
        previous_id: int | None = None
        for post in group:
            if post[1] == previous_id or self._owners.get(post[1], post[0]) != post[0]:
                repeated.append(post)
            elif post[4] == ANSWER:
                answers.append(post)
            else:
                question = post
            previous_id = post[1]
        return question, answers, repeated

    def _set_aside(self, repeated: list[_Post], orphans: list[_Post]) -> None:
        """Keep what no document holds, in the order of post id and dump."""
        reasons = [(post, "repeated_id") for post in repeated]
        reasons += [(post, "question_not_in_dump") for post in orphans]
        for post, reason in sorted(reasons):
            self.tally.strays[reason] += 1
            self.strays.append(b'{"reason":"%b","row":%b}\n' % (reason.encode(), bytes(post[5])))
