"""Records of a bucket -> documents by the compiled core, and what it is told about them.

The reference is `merge.gather`, `merge.DocumentBuilder` and `nest.Nest`. What the compiled core
does not take it leaves to them, a question at a time.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import orjson

from so2docs.schema import BOUNTY, MEMBERS, OF_KIND, VOTE_TYPES

try:
    from so2docs.parse import _core
except ImportError:  # No C compiler was there when the package was installed.
    _core = None  # type: ignore[assignment]

_KINDS = 16
"""A kind has four bits."""

Block = tuple[bytes, bytes]
"""Keys and JSON objects of some records, in the order of the dump."""

_VOTE_NAMES = tuple(orjson.dumps(VOTE_TYPES.get(kind, str(kind))) + b":" for kind in range(64))
"""By type of votes, its name as a key; types beyond them are left to the reference."""


_NAMING = 1 << BOUNTY | sum(
    1 << kind for kind, table in OF_KIND.items() if table.users == {"UserId": "User"}
)


class JoinedForm(NamedTuple):
    """How documents are joined.

    Attributes:
        opening: Bytes between the fields of a question and its answers.
        with_answers: Whether documents have answers.
        by_votes: Whether these are ordered by votes, not by id.
        kinds: Those of the rows that are nested.
        made: By kind, the members of a post without such rows; those of posts that have some are
            for the reference.
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
    """What the compiled core made of the records of a question id, or of those of a run.

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


def count_votes(keys: bytes) -> bytes:
    """Add up the votes of each post and type; see `_core.count_votes`."""
    return _core.count_votes(keys)


def sort_records(blocks: list[Block]) -> bytearray:
    """Sort the records of a bucket by question, post, table and rank; see `_core.sort_records`."""
    return _core.sort_records(blocks)


def user_ids(blocks: list[Block], records: bytearray) -> array[int]:
    """The ids of the users of some records, in ascending order; see `_core.user_ids`."""
    return array("q", _core.user_ids(blocks, records, _NAMING))


def join_records(
    blocks: list[Block], records: bytearray, first: int, enough: int, form: JoinedForm
) -> Iterator[JoinedGroup]:
    """Join the records of some question ids into documents; see `_core.join_records`."""
    members = [_member(kind, form) for kind in range(_KINDS)]
    found = _core.join_records(
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
        form.repeated,
        form.user_ids,
        form.users,
    )
    return map(_group, found)


def _group(group: tuple[int, int, int, int, bytes | None, bytes, int]) -> JoinedGroup:
    *first, counts, documents = group
    return JoinedGroup._make((*first, array("q", counts), documents))


def _as_bits(kinds: Iterable[int]) -> int:
    return sum(1 << kind for kind in kinds)


def _member(kind: int, form: JoinedForm) -> bytes:
    """What the compiled core writes for a kind of rows, before the rows."""
    if kind in form.made:
        return form.made[kind]
    return b'"%b":' % MEMBERS[kind][1].encode() if kind in form.kinds else b""
