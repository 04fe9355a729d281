"""Posts of a bucket -> documents and strays. Pure functions over plain bytes and lists.

The middle of the second pass: everything that belongs to a range of question ids is in memory, is
sorted by (question id, post id), and each question is put before its answers. No JSON is parsed: a
document is made by joining the bytes of its posts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from so2docs.nest import Belongings, Counts, Nest, Record, added
from so2docs.options.choices import AnswersBy
from so2docs.posts.keys import ANSWER, BUCKET_BITS, KEY, QUESTION, REJECTED_QUESTION

Buffer = bytes | memoryview
Block = tuple[Buffer, Buffer]
"""Keys and JSON objects of some posts, in the order of the dump."""

_ANSWERS = b'"Answers":['
_COMMA = b","
_CLOSE = b"]"
_EMPTY = len(b"{}")
_KEPT = {QUESTION, ANSWER}
"""Kinds of posts that have not been counted as filtered by the first pass."""


@dataclass(slots=True)
class Tally:
    """What became of the posts of one or more buckets.

    Attributes:
        questions: Documents made.
        answers: Answers inside them.
        strays: Posts that no document holds, by reason.
        filtered: Answers of questions that a filter rejected, and what is beyond the limit.
        tables: What became of the rows of other tables.
        records: Records made of the documents, where a recipe makes some.
        without_record: Documents of which none was made.
    """

    questions: int = 0
    answers: int = 0
    strays: Counter[str] = field(default_factory=Counter)
    filtered: int = 0
    tables: Counts = field(default_factory=dict)
    records: int = 0
    without_record: int = 0


@dataclass(slots=True)
class Document:
    """A question with its answers.

    Attributes:
        question_id: Its id.
        parts: Buffers that make its JSON object when joined, all but the closing brace.
        size: Their bytes, about.
        period: Year or month of the question, where files go by date; empty for none.
    """

    question_id: int
    parts: list[Buffer]
    size: int
    period: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether the object has no members so far."""
        return len(self.parts) == 1 and len(self.parts[0]) == 1


_Post = Record


def sorted_posts(blocks: Iterable[Block], ids: range) -> list[_Post]:
    """Posts whose question id lies in `ids`, by question id, post id and place in the dump.

    Args:
        blocks: All blocks of the bucket, in the order of the dump.
        ids: The question ids to keep.
    """
    posts: list[_Post] = []
    low, high, order = ids.start, ids.stop, 0
    is_part = len(ids) < 1 << BUCKET_BITS
    for keys, json in blocks:
        view, at = memoryview(json), 0
        for question_id, post_id, rank, size_and_kind in KEY.iter_unpack(keys):
            end = at + (size_and_kind >> 4)
            if low <= question_id < high:
                # Of a part, the rest of the block must not stay in memory.
                post = memoryview(bytes(view[at:end])) if is_part else view[at:end]
                posts.append((question_id, post_id, order, rank, size_and_kind & 15, post))
            order += 1
            at = end
    posts.sort()
    return posts


class Nesting:
    """Nests the posts of one bucket; iterate over it, then look at `tally` and `strays`.

    Args:
        posts: What `sorted_posts` returns.
        answers_by: Order of the answers in a document.
        first_question_of: For post ids under several questions, the question id of the first one in
            the dump: the only one that stays.
        extra: Fields to put before the answers of each document, `"Name":value`, or nothing.
        limit: Most documents; all posts after them are filtered.
        with_answers: Whether documents have `Answers` at all.
        nest: Puts the rows of other tables into the posts, if any were asked for.
    """

    def __init__(
        self,
        posts: list[_Post],
        answers_by: AnswersBy = "id",
        first_question_of: Mapping[int, int] | None = None,
        *,
        extra: bytes = b"",
        limit: int | None = None,
        with_answers: bool = True,
        nest: Nest | None = None,
    ) -> None:
        self.tally = Tally()
        self.strays: list[bytes] = []
        self._limit = limit
        self._with_answers = with_answers
        self._posts = posts
        self._by_votes = answers_by == "votes"
        self._first_question_of = first_question_of or {}
        self._nested = nest
        self._is_left_out = False
        fields = [extra] if extra else []
        fields += [_ANSWERS] if with_answers else []
        self._open = b"".join(_COMMA + field for field in fields)

    def __iter__(self) -> Iterator[Document]:
        group: list[_Post] = []
        for post in self._posts:
            if group and group[0][0] != post[0]:
                yield from self._nest(group)
                group = []
            group.append(post)
        if group:
            yield from self._nest(group)
        if self._nested is not None:
            self.tally.tables = added({}, self._nested.counts)

    def _nest(self, group: list[_Post]) -> Iterator[Document]:
        """The document of what belongs to one question id, unless the question is missing."""
        if self._nested is None:
            yield from self._nest_posts(group, None)
            return
        posts, taken = self._nested.take(group)
        self._is_left_out = self.tally.questions == self._limit
        if posts:
            yield from self._nest_posts(posts, taken)
        self.strays += self._nested.reject_left(taken, filtered=self._is_left_out)

    def _nest_posts(self, group: list[_Post], taken: Belongings | None) -> Iterator[Document]:
        question_id = group[0][0]
        if self.tally.questions == self._limit:
            self.tally.filtered += sum(post[4] in _KEPT for post in group)
            return
        is_alone = len(group) == 1 and not self._first_question_of and group[0][4] == QUESTION
        found = (group[0], [], []) if is_alone else self._without_repeats(group)
        question, answers, repeated = found
        if question is None:
            self._reject(repeated, answers)
            return
        if repeated:
            self._reject(repeated, [])
        if question[4] == REJECTED_QUESTION:
            self.tally.filtered += len(answers)
            self._is_left_out = True
            return
        if self._by_votes and len(answers) > 1:
            accepted = question[3]
            answers.sort(key=lambda post: (post[1] != accepted, -post[3], post[1]))
        if self._nested is not None and taken is not None:
            question = self._nested.with_nested_rows(question, taken)
            answers = [self._nested.with_nested_rows(answer, taken) for answer in answers]
        self.tally.questions += 1
        self.tally.answers += len(answers)
        json = question[5]
        size = len(json)
        parts: list[Buffer] = [json[:-1]]
        if self._open:
            parts.append(self._open if size > _EMPTY else self._open[1:])
        if not self._with_answers:
            yield Document(question_id, parts, size)
            return
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
            if post[1] == previous_id or self._first_question_of.get(post[1], post[0]) != post[0]:
                repeated.append(post)
            elif post[4] == ANSWER:
                answers.append(post)
            elif post[4] in (QUESTION, REJECTED_QUESTION):
                question = post
            previous_id = post[1]
        return question, answers, repeated

    def _reject(self, repeated: list[_Post], orphans: list[_Post]) -> None:
        """Keep what no document holds, in the order of post id and dump."""
        reasons = [(post, "repeated_id") for post in repeated if post[4] in _KEPT]
        reasons += [(post, "question_not_in_dump") for post in orphans]
        for post, reason in sorted(reasons):
            self.tally.strays[reason] += 1
            self.strays.append(b'{"reason":"%b","row":%b}\n' % (reason.encode(), bytes(post[5])))
