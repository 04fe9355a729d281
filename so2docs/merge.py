"""Merge the posts of a bucket into documents and strays. Pure functions on bytes and lists.

This is the core of the second pass. All records of a range of question ids are in memory and
grouped by question id, and each question is followed by its answers. No JSON is parsed: a document
is the concatenated bytes of its posts.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Protocol

from so2docs.counts import RowCounts, TableCounts
from so2docs.domain import rank_by_votes
from so2docs.nest import Buffer, Nest, NestedRow, Post
from so2docs.options.choices import AnswersBy
from so2docs.parse.keys import (
    ANSWER,
    BUCKET_BITS,
    KEY,
    LISTED,
    QUESTION,
    REJECTED_QUESTION,
    integers,
    kinds_in,
    walk,
)
from so2docs.parse.table_rows import count_votes, unpack_votes
from so2docs.schema import COMMENT, OF_KIND, VOTE

BlockData = tuple[bytes, bytes]
"""Keys and JSON objects of posts, in the order of the dump."""

_MOST_VOTE_BYTES = 2 * 1024 * 1024
"""Maximum bytes of vote records in memory before they are added up."""

_LAST_FIELD = 8
"""Bytes of the last integer of a key; keys are little-endian."""

_ANSWERS = b'"Answers":['
_EMPTY = len(b"{}")
_KEPT = {QUESTION, ANSWER}
"""Kinds of posts that the first pass has not counted as filtered."""


@dataclass(slots=True)
class Document:
    """A question with its answers, or a run of several documents.

    Attributes:
        question_id: Id of the question; the first id of a run.
        parts: Buffers of the JSON object without its closing brace; for a run, the complete lines.
        size: Approximate size of the buffers, in bytes.
        label: Label of its output file, if the output is split by date or share; else empty.
        run: Number of documents in a run; 0 for a single document.
    """

    question_id: int
    parts: list[Buffer]
    size: int
    label: str = ""
    run: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether the object has no members yet."""
        return len(self.parts) == 1 and len(self.parts[0]) == 1


class Records(Protocol):
    """Records to be nested by this module or by the compiled core."""

    def documents(self, nesting: DocumentBuilder) -> Iterator[Document]:
        """Nest all records, in ascending order of question id."""


@dataclass(slots=True)
class GatheredRecords:
    """Posts in the order of the dump, and rows of other tables, by question id."""

    posts: dict[int, list[Post]] = field(default_factory=lambda: defaultdict(list))
    rows: dict[int, list[NestedRow]] = field(default_factory=lambda: defaultdict(list))

    def documents(self, nesting: DocumentBuilder) -> Iterator[Document]:
        """Nest all records, one question after the other; this is the reference implementation."""
        for question_id in sorted(self.posts.keys() | self.rows.keys()):
            group = sorted(self.posts.get(question_id, ()))
            if document := nesting.nest_group(question_id, group, self.rows.get(question_id, ())):
                yield document


def merge_votes(
    blocks: Iterable[BlockData], count_votes: Callable[[bytes], bytes]
) -> Iterator[BlockData]:
    """Merge the blocks of votes into one, so that memory depends on posts, not on votes.

    Yields:
        The blocks of all other kinds, unchanged; then one block of votes, if there are any votes.
    """
    parts: list[bytes] = []
    size, limit = 0, _MOST_VOTE_BYTES
    for keys, json in blocks:
        if json or not keys or keys[-_LAST_FIELD] & 15 != VOTE:
            yield keys, json
            continue
        parts.append(keys)
        size += len(keys)
        if size > limit:
            parts = [count_votes(b"".join(parts))]
            size = len(parts[0])
            limit = max(_MOST_VOTE_BYTES, 2 * size)
    if parts:
        yield count_votes(b"".join(parts)), b""


def count_filtered(keys: bytes, counts: RowCounts) -> None:
    """Count the posts and rows with these keys as filtered, except those already counted."""
    kinds = kinds_in(keys)
    for kind, count in Counter(kinds).items():
        if kind in _KEPT:
            counts.filtered += count
        elif kind in OF_KIND:
            table = counts.tables.setdefault(OF_KIND[kind].name, TableCounts())
            if kind == VOTE:
                ranks = zip(integers(keys)[2::4], kinds, strict=True)
                table.filtered += sum(unpack_votes(rank)[1] for rank, k in ranks if k == VOTE)
            else:
                table.filtered += count


def select_questions(
    keys: bytes, json: bytes, ids: range, question_ids: Set[int], counts: RowCounts
) -> BlockData:
    """Select the records of some questions in a block, and count all others as filtered.

    Args:
        keys: Keys of the block.
        json: JSON of the block.
        ids: The question ids to look at.
        question_ids: The questions to select.
        counts: Counts to which the records of all other questions are added.
    """
    selected_keys, selected, filtered = bytearray(), bytearray(), bytearray()
    for number, (question_id, _, _, kind, start, end) in enumerate(walk(keys)):
        key = keys[number * KEY.size : (number + 1) * KEY.size]
        if kind == LISTED or question_id not in ids:
            continue
        if question_id in question_ids:
            selected_keys += key
            selected += json[start:end]
        else:
            filtered += key
    count_filtered(bytes(filtered), counts)
    return bytes(selected_keys), bytes(selected)


def gather(blocks: Iterable[BlockData], ids: range) -> GatheredRecords:
    """Collect the posts and rows whose question ids are in `ids`.

    Raises:
        ValueError, struct.error: Keys and JSON of a block do not match.
    """
    records = GatheredRecords()
    posts, rows = records.posts, records.rows
    low, high, order = ids.start, ids.stop, 0
    is_part = len(ids) < 1 << BUCKET_BITS
    for keys, json in merge_votes(blocks, count_votes):
        # For a part, copy the JSON that is needed, a fraction of the block, so that the block can
        # be freed.
        view, end = json if is_part else memoryview(json), 0
        for question_id, post_id, rank, kind, start, end in walk(keys):
            if low <= question_id < high:
                if kind >= COMMENT:
                    rows[question_id].append((kind, post_id, rank, order, json[start:end]))
                else:
                    posts[question_id].append((post_id, order, rank, kind, view[start:end]))
            order += 1
        if end != len(json):
            raise ValueError("keys and JSON do not match")
    return records


def add_sizes(keys: bytes, sizes: array[int]) -> tuple[int, int]:
    """Add the size of each record to the size of its question.

    Args:
        keys: Keys of a bucket, at least one.
        sizes: Bytes of JSON, indexed by the low bits of the question id; -1 for an id without
            records. Changed in place.

    Returns:
        The lowest and the highest question id.

    Raises:
        ValueError, struct.error: There are no keys, or a size is negative.
    """
    question_ids = set[int]()
    for question_id, _, _, _, start, end in walk(keys):
        if end < start:
            raise ValueError("keys and JSON do not match")
        at = question_id & (len(sizes) - 1)
        sizes[at] = max(0, sizes[at]) + end - start
        question_ids.add(question_id)
    return min(question_ids), max(question_ids)


class DocumentBuilder:
    """Nests the posts of one bucket; iterate over it, then read `counts` and `strays`.

    Args:
        records: The posts of the bucket, and the rows that belong to them.
        answers_by: Order of the answers in a document.
        extra: Fields before the answers of each document, such as `"Name":value`; may be empty.
        with_answers: Whether documents have `Answers` at all.
        nest: Nests the rows of other tables into posts; None if no tables are nested.

    Attributes:
        counts: Counts of the records so far, by result.
        strays: Lines for the side file.
        opening: Bytes between the fields of a question and its answers.
    """

    def __init__(
        self,
        records: Records,
        answers_by: AnswersBy = "id",
        *,
        extra: bytes = b"",
        with_answers: bool = True,
        nest: Nest | None = None,
    ) -> None:
        self.counts = RowCounts()
        self.strays: list[bytes] = []
        self.with_answers = with_answers
        self._records = records
        self.by_votes = answers_by == "votes"
        self.nest = nest
        if nest is not None:
            self.counts.tables = nest.counts
        fields = (extra, _ANSWERS if with_answers else b"")
        self.opening = b"".join(b"," + field for field in fields if field)

    def __iter__(self) -> Iterator[Document]:
        return self._records.documents(self)

    def count(self, questions: int, answers: int, rows: Sequence[int]) -> None:
        """Count documents that the compiled core made; `rows` are their nested rows by kind."""
        self.counts.questions += questions
        self.counts.answers += answers
        if self.nest is not None:
            for kind, table in OF_KIND.items():
                if rows[kind]:
                    self.counts.tables[table.name].nested += rows[kind]

    def nest_group(
        self, question_id: int, group: list[Post], rows: Sequence[NestedRow]
    ) -> Document | None:
        """Make a document from sorted posts and rows; None if there is no question to write.

        Collects the strays, and counts the rows left out.
        """
        nested, is_left_out = self._nest(group)
        document = self._document(nested, _by_post(rows)) if nested else None
        if self.nest is not None and rows:
            post_ids = {post_id for post_id, *_ in nested}
            orphans = [row for row in rows if row[1] not in post_ids]
            self.strays += self.nest.reject(question_id, group, orphans, filtered=is_left_out)
        return document

    def _nest(self, group: list[Post]) -> tuple[list[Post], bool]:
        """Return the posts of a document, question first, and whether it was filtered.

        If there is no document to write, the list is empty.
        """
        if len(group) == 1 and group[0][3] == QUESTION:
            return group, False
        question, answers, repeated = _split_group(group)
        if question is None or repeated:
            self._reject(repeated, [] if question else answers)
        if question is None:
            return [], False
        if question[3] == REJECTED_QUESTION:
            self.counts.filtered += len(answers)
            return [], True
        return [question, *answers], False

    def _document(self, posts: list[Post], rows: Mapping[int, list[NestedRow]]) -> Document:
        question_id, _, accepted, _, _ = posts[0]
        if self.by_votes and len(posts) > 2:
            places = enumerate(posts)
            order = sorted(
                (*rank_by_votes(post_id, score, accepted), at)
                for at, (post_id, _, score, _, _) in places
                if at
            )
            posts = [posts[0], *(posts[at] for *_, at in order)]
        self.counts.questions += 1
        self.counts.answers += len(posts) - 1
        jsons: list[Buffer] = [json for _, _, _, _, json in posts]
        if self.nest is not None:
            jsons = self.nest.complete(question_id, posts, rows)
        size = len(jsons[0])
        parts: list[Buffer] = [jsons[0][:-1]]
        if self.opening:
            parts.append(self.opening if size > _EMPTY else self.opening[1:])
        if self.with_answers:
            for json in jsons[1:]:
                parts += (json, b",")
                size += len(json)
            if len(jsons) > 1:
                parts.pop()
            parts.append(b"]")
        return Document(question_id, parts, size)

    def _reject(self, repeated: list[Post], orphans: list[Post]) -> None:
        """Add repeated posts and orphans to the strays, sorted by post id, then in dump order."""
        reasons = [(post, "repeated_id") for post in repeated if post[3] in _KEPT]
        reasons += [(post, "question_not_in_dump") for post in orphans]
        for (_, _, _, _, json), reason in sorted(reasons):
            self.counts.strays[reason] += 1
            self.strays.append(b'{"reason":"%b","row":%b}\n' % (reason.encode(), bytes(json)))


def _split_group(group: list[Post]) -> tuple[Post | None, list[Post], list[Post]]:
    """Return the question (None if missing), its answers, and posts that repeat an id."""
    question: Post | None = None
    answers: list[Post] = []
    repeated: list[Post] = []
    previous_id: int | None = None
    for post in group:
        post_id, _, _, kind, _ = post
        if post_id == previous_id:
            repeated.append(post)
        elif kind == ANSWER:
            answers.append(post)
        elif kind in (QUESTION, REJECTED_QUESTION):
            question = post
        previous_id = post_id
    return question, answers, repeated


def _by_post(rows: Iterable[NestedRow]) -> dict[int, list[NestedRow]]:
    """Group rows of tables by post id; each group is sorted as its rows are nested."""
    by_post = defaultdict[int, list[NestedRow]](list)
    for row in sorted(rows):
        by_post[row[1]].append(row)
    return by_post
