"""Rows of the other tables -> members of the posts' JSON objects. Pure but for reading users.

Part of the merge: everything that belongs to a question is at hand. What is nested is put between
the last of a post's own keys and its closing brace, in the order `Comments`, `Links`, `Votes`,
`Bounties`, `Owner`, `LastEditor`. No JSON is parsed for it, but that of complete posts that are to
lose some.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

import orjson

from so2docs import history
from so2docs.counts import TableCounts
from so2docs.options.field_paths import Fields, choice_of_nested
from so2docs.parse.keys import REJECTED_ANSWER
from so2docs.parse.table_rows import unpack_votes
from so2docs.schema import (
    BOUNTIES,
    BOUNTY,
    BOUNTY_TYPES,
    OF_KIND,
    POSTS,
    TABLES,
    VOTE,
    VOTE_TYPES,
)

Buffer = bytes | memoryview

Post = tuple[int, int, int, int, Buffer]
"""Post id, order in the dump, rank, kind, JSON."""

Row = tuple[int, int, int, int, bytes]
"""Kind, post id, rank, order in the dump, JSON: sorted, rows are in the order of a post's lists."""

_EMPTY = len(b"{}")
_MAKERS = {"History": history.members}
"""By key, what makes the members of a post of its rows, where these are not copied."""

_MARKERS = {
    key: [(b'"%b":' % by.encode(), b'"%b":' % user.encode()) for by, user in users.items()]
    for key, users in (
        (POSTS.name, POSTS.users),
        *((table.name, table.users) for table in TABLES.values()),
        (BOUNTIES.key, {part.by: part.key for part in BOUNTIES.parts if part.by}),
    )
}
"""By table, the members that name users, and those that hold them."""

_OF_BOUNTIES = {VOTE_TYPES[kind] for kind in BOUNTY_TYPES}
_OWN = ("Id", "PostId")


class UserSource(Protocol):
    """A source of users."""

    def get(self, user_id: int) -> bytes | None:
        """Return the JSON object of a user, or None."""


class Nest:
    """Nests the rows of other tables into the posts of one bucket.

    Attributes:
        counts: Counts of the rows, by result.
        leaves_out: Whether fields of complete posts are left out.

    Args:
        tables: Names of the requested tables.
        users: Source of users, if they are nested.
        fields: The selected fields.
    """

    def __init__(
        self,
        tables: Sequence[str],
        users: UserSource | None = None,
        fields: Fields | None = None,
    ) -> None:
        self.counts = {name: TableCounts() for name in tables}
        self._tables = [table for table in TABLES.values() if table.kind and table.name in tables]
        self._users = None if users is None else _KnownUsers(users)
        choices = [choice_of_nested(fields or Fields(), tables, path) for path in ("Answers", "")]
        self._of_answers, self._of_questions = choices
        self.leaves_out = any(choice is not None for choice in choices)

    def complete(
        self, question_id: int, posts: Iterable[Post], rows: Mapping[int, list[Row]]
    ) -> list[Buffer]:
        """Nest the rows of a document into its posts.

        Args:
            question_id: The id of the question.
            posts: The question and its answers.
            rows: Rows of tables by post id, sorted.
        """
        return [
            self._complete(bytes(json), rows.get(post_id, ()), is_question=post_id == question_id)
            for post_id, _, _, _, json in posts
        ]

    def _complete(self, json: bytes, rows: Iterable[Row], *, is_question: bool) -> bytes:
        rows_by_kind: dict[int, list[Any]] = defaultdict(list)
        for kind, _, rank, _, row in rows:
            rows_by_kind[kind].append(rank if kind == VOTE else row)
        members, totals = [], {}
        for table in self._tables:
            rows_of_table = rows_by_kind[table.kind]
            totals[table.name] = len(rows_of_table)
            if make := _MAKERS.get(table.key):
                members += make(table, rows_of_table, self._find_user)
                continue
            if table.kind == VOTE:
                totals[table.name], value = _votes(tuple(rows_of_table))
                members.append(b'"%b":%b' % (table.key.encode(), value))
                if bounties := rows_by_kind[BOUNTY]:
                    members.append(self._list(BOUNTIES.key, BOUNTIES.key, bounties))
            else:
                members.append(self._list(table.key, table.name, rows_of_table))
        if self._users is not None:
            members += self._users.members(json, _MARKERS[POSTS.name])
        if members:
            comma = b"," if len(json) > _EMPTY else b""
            json = b"%b%b%b}" % (json[:-1], comma, b",".join(members))
        return self._chosen(json, totals, is_question=is_question)

    @property
    def made(self) -> dict[int, bytes]:
        """By kind, the members of a post without such rows, where more is made than a list."""
        return {
            table.kind: b",".join(_MAKERS[table.key](table, (), None))
            for table in self._tables
            if table.key in _MAKERS
        }

    def _find_user(self, user_id: object) -> bytes | None:
        return None if self._users is None else self._users[str(user_id).encode()]

    def _list(self, key: str, name: str, rows: list[bytes]) -> bytes:
        """The member that holds the rows of `name`, with their users inside."""
        users, markers = self._users, _MARKERS[name]
        if users is not None and markers:
            rows = [b",".join((row[:-1], *users.members(row, markers))) + b"}" for row in rows]
        return b'"%b":[%b]' % (key.encode(), b",".join(rows))

    def _chosen(self, json: bytes, totals: Mapping[str, int], *, is_question: bool) -> bytes:
        """Select the fields of a complete post, after its rows are counted."""
        choice = self._of_questions if is_question else self._of_answers
        if choice is None:
            for table in self._tables:
                self.counts[table.name].nested += totals[table.name]
            return json
        post = choice.of(orjson.loads(json))
        for table in self._tables:
            total = totals[table.name]
            if table.kind == VOTE:
                votes = post.get(table.key, {})
                stay = sum(votes.values())
                if _OF_BOUNTIES.isdisjoint(votes):
                    stay += len(post.get(BOUNTIES.key, ()))
            else:
                stay = total if any(part.key in post for part in table.parts) else 0
            self.counts[table.name].nested += stay
            self.counts[table.name].filtered += total - stay
        return orjson.dumps(post)

    def reject(
        self, question_id: int, posts: Sequence[Post], rows: Iterable[Row], *, filtered: bool
    ) -> list[bytes]:
        """Count the rows that belong to no post of a document.

        Args:
            question_id: The question id in their keys.
            posts: The posts with this question id.
            rows: The rows.
            filtered: Whether a filter left out the question, and not only some of its answers.

        Returns:
            Lines for the side file; none for filtered rows.
        """
        post_ids = {post_id for post_id, *_ in posts}
        rejected = {post_id for post_id, _, _, kind, _ in posts if kind == REJECTED_ANSWER}
        lines: list[bytes] = []
        votes: Counter[tuple[int, int]] = Counter()
        for kind, post_id, rank, _, json in sorted(rows):
            if kind == BOUNTY:  # It is counted as the vote that it was made of.
                continue
            table = OF_KIND[kind]
            vote_type, count = unpack_votes(rank) if kind == VOTE else (0, 1)
            if filtered or post_id in rejected:
                self.counts[table.name].filtered += count
                continue
            reason = f"{table.row}_without_post"
            self.counts[table.name].strays[reason] += count
            if kind == VOTE:
                votes[post_id, vote_type] += count
                continue
            own = _own(json, kind)
            if post_id in post_ids:
                own = self._chosen_row(own, table.key, is_question=post_id == question_id)
            lines.append(b'{"reason":"%b","row":%b}\n' % (reason.encode(), own))
        for (post_id, vote_type), count in votes.items():
            row_of_all = {"PostId": post_id, "VoteTypeId": vote_type}
            line = {"reason": "vote_without_post", "count": count, "row": row_of_all}
            lines.append(orjson.dumps(line) + b"\n")
        return lines

    def _chosen_row(self, json: bytes, key: str, *, is_question: bool) -> bytes:
        """Select the fields of a row whose post is known; those that identify the row stay."""
        choice = self._of_questions if is_question else self._of_answers
        stays = True if choice is None else choice[key]
        if stays is True:
            return json
        row = orjson.loads(json)
        if stays is False:
            return orjson.dumps({name: row[name] for name in row if name in _OWN})
        return orjson.dumps(stays.of(row))


class _KnownUsers(dict[bytes, bytes | None]):
    """Users by the digits of their ids, each looked up once."""

    def __init__(self, users: UserSource) -> None:
        self._source = users

    def __missing__(self, digits: bytes) -> bytes | None:
        try:
            user = self._source.get(int(digits))
        except ValueError:  # It is no number but some text of the dump.
            return None
        self[digits] = user
        return user

    def members(self, json: bytes, markers: Iterable[tuple[bytes, bytes]]) -> list[bytes]:
        """The users that an object names, as members of it."""
        return [
            key + user for marker, key in markers if (user := self._named(json, marker)) is not None
        ]

    def _named(self, json: bytes, marker: bytes) -> bytes | None:
        """The user whose id is in a JSON object.

        Inside a JSON string each quote has a backslash before it, so the marker is nowhere else.
        """
        # It comes after the long texts.
        at = json.rfind(marker)
        if at < 0:
            return None
        start = at + len(marker)
        # Without a comma this ends before the closing brace.
        return self[json[start : json.find(b",", start)]]


@lru_cache(maxsize=1 << 12)
def _votes(ranks: tuple[int, ...]) -> tuple[int, bytes]:
    """Number and JSON object of the votes of a post: most posts have some of few combinations."""
    counts: Counter[int] = Counter()
    for rank in ranks:
        vote_type, count = unpack_votes(rank)
        counts[vote_type] += count
    # In ascending number of the type.
    by_name = {VOTE_TYPES.get(kind, str(kind)): counts[kind] for kind in sorted(counts)}
    return counts.total(), orjson.dumps(by_name)


def _own(json: bytes, kind: int) -> bytes:
    """A row without what it got when it was read, such as `LinkType`, which is its last member.

    Inside a JSON string each quote has a backslash before it, so the marker is nowhere else.
    """
    for name in OF_KIND[kind].given:
        json, got, _ = json.partition(b',"%b":' % name.encode())
        return json + b"}" if got else json
    return json
