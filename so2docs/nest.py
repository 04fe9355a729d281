"""Nest rows of other tables in the JSON of posts, as members. No files are read except for users.

This is a part of the merge, which has all records of a question in memory. New members follow the
last attribute of a post, in the order of `schema.POST_PARTS`. JSON is parsed only to remove fields
from complete posts, and to convert the history.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

from so2docs.counts import TableCounts
from so2docs.options.field_paths import Fields, choice_of_nested
from so2docs.parse.keys import BY_OPTED_OUT, REJECTED_ANSWER
from so2docs.parse.table_rows import unpack_votes
from so2docs.registry import find_hook, has_hook
from so2docs.schema import (
    BOUNTIES,
    BOUNTY,
    BOUNTY_TYPES,
    MEMBERS,
    OF_KIND,
    POSTS,
    TABLES,
    VOTE,
    VOTE_TYPES,
    Table,
)

Buffer = bytes | memoryview

Post = tuple[int, int, int, int, Buffer]
"""Post id, order in the dump, rank, kind, JSON."""

NestedRow = tuple[int, int, int, int, bytes]
"""Kind, post id, rank, order in the dump, JSON: rows sort in the order of a post's lists."""

_EMPTY = len(b"{}")


FindUser = Callable[[Any], bytes | None]
"""Function that returns the JSON of the user with an id; None for an unknown user."""

MakeMembers = Callable[[Table, Iterable[bytes], FindUser | None], list[bytes]]
"""Function that makes the JSON members of a post from its rows of a table."""


_MARKERS = {
    key: [(b'"%b":' % by.encode(), b'"%b":' % user.encode()) for by, user in users.items()]
    for key, users in (
        (POSTS.name, POSTS.users),
        *((table.name, table.users) for table in TABLES.values()),
        (BOUNTIES.key, {part.by: part.key for part in BOUNTIES.parts if part.by}),
    )
}
"""Attributes with user ids, and the members for these users, by table."""

_OF_BOUNTIES = {VOTE_TYPES[kind] for kind in BOUNTY_TYPES}
_OWN = ("Id", "PostId")
_BY_OPTED_OUT = b'"%b":""}' % BY_OPTED_OUT.encode()
"""End of a row by a dropped user; it cannot occur in a string, where quotes have a backslash."""


class Nest:
    """Nests the rows of other tables into the posts of one bucket.

    Attributes:
        counts: For each table, counts of its rows by result.
        leaves_out: Whether fields are removed from posts after their rows are nested.

    Args:
        tables: Names of the tables to nest.
        find_user: Finds users, if they are nested.
        fields: The selected fields.
        dropped_posts: Ids of posts whose rows are never strays.
    """

    def __init__(
        self,
        tables: Sequence[str],
        find_user: FindUser | None = None,
        fields: Fields | None = None,
        dropped_posts: Container[int] = (),
    ) -> None:
        self._dropped_posts = dropped_posts
        self.counts = {name: TableCounts() for name in tables}
        self._tables = [table for table in TABLES.values() if table.kind and table.name in tables]
        # Rows of tables without such a function are copied.
        self._makers: dict[str, MakeMembers] = {
            table.key: find_hook(f"members of {table.key}")
            for table in self._tables
            if has_hook(f"members of {table.key}")
        }
        self._users = None if find_user is None else _KnownUsers(find_user)
        choices = [choice_of_nested(fields or Fields(), tables, path) for path in ("Answers", "")]
        self._of_answers, self._of_questions = choices
        self.leaves_out = any(choice is not None for choice in choices)

    def complete(
        self, question_id: int, posts: Iterable[Post], rows: Mapping[int, list[NestedRow]]
    ) -> list[Buffer]:
        """Nest the rows of a document, given by post id, into its posts; return their JSON."""
        return [
            self._complete(bytes(json), rows.get(post_id, ()), is_question=post_id == question_id)
            for post_id, _, _, _, json in posts
        ]

    def _complete(self, json: bytes, rows: Iterable[NestedRow], *, is_question: bool) -> bytes:
        rows_by_kind: dict[int, list[Any]] = defaultdict(list)
        for kind, _, rank, _, row in rows:
            rows_by_kind[kind].append(rank if kind == VOTE else row)
        members, totals = [], {}
        for table in self._tables:
            rows_of_table = rows_by_kind[table.kind]
            totals[table.name] = len(rows_of_table)
            if make := self._makers.get(table.key):
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
    def kinds(self) -> list[int]:
        """The kinds of the nested rows."""
        names = {table.name for table in self._tables}
        return [kind for kind, (table, _) in MEMBERS.items() if table in names]

    @property
    def made(self) -> dict[int, bytes]:
        """The JSON members of a post without rows, such as `"History":[]`, by kind.

        Contains only tables that become more than one list of rows.
        """
        return {
            table.kind: b",".join(self._makers[table.key](table, (), None))
            for table in self._tables
            if table.key in self._makers
        }

    def _find_user(self, user_id: object) -> bytes | None:
        return None if self._users is None else self._users[str(user_id).encode()]

    def _list(self, key: str, name: str, rows: list[bytes]) -> bytes:
        """Return the member `key`: a list of rows of the table `name`, with their users."""
        users, markers = self._users, _MARKERS[name]
        if users is not None and markers:
            rows = [b",".join((row[:-1], *users.members(row, markers))) + b"}" for row in rows]
        return b'"%b":[%b]' % (key.encode(), b",".join(rows))

    def _chosen(self, json: bytes, totals: Mapping[str, int], *, is_question: bool) -> bytes:
        """Select the fields of a complete post, and count its rows as nested or filtered."""
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
        self, question_id: int, posts: Sequence[Post], rows: Iterable[NestedRow], *, filtered: bool
    ) -> list[bytes]:
        """Count the rows that belong to no post of a document; return lines for the side file."""
        post_ids = {post_id for post_id, *_ in posts}
        rejected = {post_id for post_id, _, _, kind, _ in posts if kind == REJECTED_ANSWER}
        rows = sorted(rows)
        # If a dropped user wrote one of these rows, drop all rows of the same kind for the same
        # post, because they may repeat its text.
        opted_out = {row[:2] for row in rows if row[-1].endswith(_BY_OPTED_OUT)}
        lines: list[bytes] = []
        votes: Counter[tuple[int, int]] = Counter()
        for kind, post_id, rank, _, json in rows:
            if kind == BOUNTY:  # Skip bounties, which are already counted as votes.
                continue
            table = OF_KIND[kind]
            vote_type, count = unpack_votes(rank) if kind == VOTE else (0, 1)
            is_dropped = post_id in self._dropped_posts or (kind, post_id) in opted_out
            if filtered or is_dropped or post_id in rejected:
                self.counts[table.name].filtered += count
                continue
            reason = f"{table.row}_without_post"
            self.counts[table.name].strays[reason] += count
            if kind == VOTE:
                votes[post_id, vote_type] += count
                continue
            original = _original(json, kind)
            if post_id in post_ids:
                original = self._chosen_row(original, table.key, is_question=post_id == question_id)
            lines.append(b'{"reason":"%b","row":%b}\n' % (reason.encode(), original))
        for (post_id, vote_type), count in votes.items():
            row_of_all = {"PostId": post_id, "VoteTypeId": vote_type}
            line = {"reason": "vote_without_post", "count": count, "row": row_of_all}
            lines.append(orjson.dumps(line) + b"\n")
        return lines

    def _chosen_row(self, json: bytes, key: str, *, is_question: bool) -> bytes:
        """Select the fields of a row with a known post; the ids of the row stay."""
        choice = self._of_questions if is_question else self._of_answers
        stays = True if choice is None else choice[key]
        if stays is True:
            return json
        row = orjson.loads(json)
        if stays is False:
            return orjson.dumps({name: row[name] for name in row if name in _OWN})
        return orjson.dumps(stays.of(row))


class _KnownUsers(dict[bytes, bytes | None]):
    """A cache of users by the digits of their ids."""

    def __init__(self, find: FindUser) -> None:
        self._find = find

    def __missing__(self, digits: bytes) -> bytes | None:
        try:
            user = self._find(int(digits))
        except ValueError:  # In the dump, this id is not a number.
            return None
        self[digits] = user
        return user

    def members(self, json: bytes, markers: Iterable[tuple[bytes, bytes]]) -> list[bytes]:
        """Return the members to add to a JSON object for the users that it references."""
        return [
            key + user for marker, key in markers if (user := self._named(json, marker)) is not None
        ]

    def _named(self, json: bytes, marker: bytes) -> bytes | None:
        """Return the JSON of the user whose id follows `marker` in an object; None if not found.

        In JSON strings, each quote has a backslash before it, so the marker cannot occur in them.
        """
        # Search from the end, because the id comes after the long texts.
        at = json.rfind(marker)
        if at < 0:
            return None
        start = at + len(marker)
        # If no comma follows, the slice ends before the closing brace, the last byte.
        return self[json[start : json.find(b",", start)]]


@lru_cache(maxsize=1 << 12)
def _votes(ranks: tuple[int, ...]) -> tuple[int, bytes]:
    """Return the total of a post's votes, and the votes by type as JSON; results are cached."""
    counts: Counter[int] = Counter()
    for rank in ranks:
        vote_type, count = unpack_votes(rank)
        counts[vote_type] += count
    # Sort by the number of the vote type.
    by_name = {VOTE_TYPES.get(kind, str(kind)): counts[kind] for kind in sorted(counts)}
    return counts.total(), orjson.dumps(by_name)


def _original(json: bytes, kind: int) -> bytes:
    """Strip the fields added when the row was read (`LinkType`, always last).

    In JSON strings, each quote has a backslash before it, so the marker cannot occur in them.
    """
    for name in OF_KIND[kind].given:
        json, got, _ = json.partition(b',"%b":' % name.encode())
        return json + b"}" if got else json
    return json
