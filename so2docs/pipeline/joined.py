"""Nesting by the compiled core: it sorts and joins, and leaves to `merge` what needs a thought.

The reference is `merge.gather`, `merge.DocumentBuilder` and `nest.Nest`. What the compiled core
does not take it leaves to them, a question at a time.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from struct import Struct
from types import MappingProxyType
from typing import NamedTuple

import orjson

from so2docs.counts import RowCounts
from so2docs.merge import Block, Document, DocumentBuilder, merge_votes
from so2docs.nest import Post, Row
from so2docs.parse.keys import BUCKET_BITS
from so2docs.schema import (
    BOUNTY,
    CLOSE_REASONS,
    COMMENT,
    HISTORY_TYPES,
    MEMBERS,
    OF_KIND,
    VOTE_TYPES,
)
from so2docs.store.users import Users

try:
    from so2docs.parse import _core
except ImportError:  # No C compiler was there when the package was installed.
    _core = None  # type: ignore[assignment]

_KINDS = 16
"""A kind has four bits."""

_VOTE_NAMES = tuple(orjson.dumps(VOTE_TYPES.get(kind, str(kind))) + b":" for kind in range(64))
"""By type of votes, its name as a key; types beyond them are left to the reference."""

_EVENT_NAMES = tuple(orjson.dumps(HISTORY_TYPES.get(kind, str(kind))) for kind in range(128))
"""By type of events, its name; types beyond them are left to the reference."""

_REASON_NAMES = tuple(
    orjson.dumps(CLOSE_REASONS[number]) if number in CLOSE_REASONS else b"" for number in range(128)
)
"""By reason to close a post, its name, if it has one."""

_NAMING = 1 << BOUNTY | sum(
    1 << kind for kind, table in OF_KIND.items() if table.users == {"UserId": "User"}
)


class JoinedForm(NamedTuple):
    """How documents are joined.

    Attributes:
        opening: Bytes between the fields of a question and its answers.
        with_answers: Whether to write answers.
        by_votes: Whether to sort answers by votes, not by id.
        kinds: Those of the rows that are nested.
        made: By kind, the members of a post without such rows, where more is made than a list.
        repeated: Ids of posts under several questions, in ascending order.
        user_ids: Ids of users, in ascending order.
        users: The JSON of each of those, None where nobody has the id; or None, where no users are
            nested.
        closing: Bytes after each document, where those that follow each other are joined to a run.
    """

    opening: bytes
    with_answers: bool
    by_votes: bool
    kinds: Sequence[int] = ()
    made: Mapping[int, bytes] = MappingProxyType({})
    repeated: array[int] = array("q")
    user_ids: array[int] = array("q")
    users: list[bytes | None] | None = None
    closing: bytes = b""


class JoinedGroup(NamedTuple):
    """The result of the compiled core for the records of a question id, or of a run.

    Attributes:
        question_id: The question id; of a run, the first.
        records: Their number.
        posts: The number of posts in the document.
        size: Bytes of those that are shown.
        document: It, without the closing brace; None if that is for the reference to decide. Or the
            documents of the run, each with what closes it.
        counts: Number of rows and votes in it, by kind.
        documents: Number of documents.
    """

    question_id: int
    records: int
    posts: int
    size: int
    document: bytes | None
    counts: array[int]
    documents: int


def select_records(block: Block, ids: range) -> Block:
    """The records of a block that belong to some question ids; see `_core.select_records`."""
    return _core.select_records(block, ids.start, ids.stop)


def add_sizes(keys: bytes, sizes: array[int]) -> tuple[int, int]:
    """Add the size of each record to that of its question; see `_core.add_sizes`."""
    return _core.add_sizes(keys, sizes)


def count_votes(keys: bytes) -> bytes:
    """Add up the votes of each post and type; see `_core.count_votes`."""
    return _core.count_votes(keys)


def sort_records(blocks: list[Block]) -> bytearray:
    """Sort the records of a bucket by question, post, table and rank; see `_core.sort_records`."""
    return _core.sort_records(blocks)


def collect_user_ids(blocks: list[Block], records: bytearray) -> array[int]:
    """The ids of the users of some records, in ascending order; see `_core.user_ids`."""
    return array("q", _core.user_ids(blocks, records, _NAMING))


def join_records(
    blocks: list[Block], records: bytearray, first: int, enough: int, form: JoinedForm
) -> Iterator[JoinedGroup]:
    """Join the records of some question ids into documents; see `_core.join_records`."""
    members = [_member(kind, form) for kind in range(_KINDS)]
    joined = _core.join_records(
        blocks,
        records,
        first,
        enough,
        form.opening,
        form.closing,
        form.with_answers,
        form.by_votes,
        _as_bits(form.kinds),
        _NAMING,
        _as_bits(form.made),
        tuple(members),
        _VOTE_NAMES,
        _EVENT_NAMES,
        _REASON_NAMES,
        form.repeated,
        form.user_ids,
        form.users,
    )
    return map(_group, joined)


def _group(group: tuple[int, int, int, int, bytes | None, bytes, int]) -> JoinedGroup:
    *first, counts, documents = group
    return JoinedGroup._make((*first, array("q", counts), documents))


def _as_bits(kinds: Iterable[int]) -> int:
    return sum(1 << kind for kind in kinds)


def _member(kind: int, form: JoinedForm) -> bytes:
    """The bytes that the compiled core writes before the rows of a kind."""
    if kind in form.made:
        return form.made[kind]
    return b'"%b":' % MEMBERS[kind][1].encode() if kind in form.kinds else b""


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
            blocks = (select_records(block, ids) for block in blocks)
        self._blocks = list(merge_votes(blocks, count_votes))
        self._sorted = sort_records(self._blocks)
        self._users = users
        self._run = run

    def documents(self, nesting: DocumentBuilder) -> Iterator[Document]:
        """Nest all records; groups that the compiled core does not take, by the reference."""
        form = self._form(nesting)
        at, end, enough = 0, len(self._sorted) // _RECORD.size, ENOUGH_BYTES
        remaining = 0  # Of the segment.
        while at < end:
            if self._run is not None:
                enough = remaining = remaining if remaining > 0 else self._run.size
            for group in join_records(self._blocks, self._sorted, at, enough, form):
                if group.document is None or nesting.is_full:
                    document = self._by_reference(nesting, range(at, at + group.records))
                else:
                    _count(nesting.counts, group)
                    run = 0 if self._run is None else group.documents
                    document = Document(group.question_id, [group.document], group.size, run=run)
                at += group.records
                if document is not None:
                    remaining -= document.size
                    yield document

    def _form(self, nesting: DocumentBuilder) -> JoinedForm:
        nested = nesting.counts.tables
        user_ids, users = array("q"), None
        if self._users is not None:
            user_ids = collect_user_ids(self._blocks, self._sorted)
            users = self._users.get_all(user_ids)
        return JoinedForm(
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


def _count(counts: RowCounts, group: JoinedGroup) -> None:
    counts.questions += group.documents
    counts.answers += group.posts - group.documents
    for kind, table in OF_KIND.items():
        if rows := group.counts[kind]:
            counts.tables[table.name].nested += rows
