"""Records of the other tables -> parts of the posts' JSON objects. Pure but for reading users.

Part of the merge: everything that belongs to a question is at hand. What is nested is put between
the last of a post's own keys and its closing brace, in the order `Comments`, `Links`, `Votes`,
`Owner`, `LastEditor`; no JSON is parsed for it, unless some of it is to be left out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import orjson

from so2docs.options.field_paths import Fields
from so2docs.options.nested_fields import NestedFields, UserKey, UserKeys
from so2docs.posts.keys import QUESTION, REJECTED_ANSWER
from so2docs.posts.table_rows import votes_of
from so2docs.schema import COMMENT, OF_KIND, TABLES, VOTE, VOTE_TYPES, Table

Record = tuple[int, int, int, int, int, memoryview | bytes]
"""Question id, post id, order in the dump, rank, kind, JSON: as a post in the merge."""

Counts = dict[str, dict[str, int]]
"""By table, the number of rows that were `nested` or `filtered`, and of strays by reason."""

_NO_VOTES: Counter[int] = Counter()
NESTED, FILTERED = "nested", "filtered"

_LONGEST_NUMBER = 21
_EMPTY = len(b"{}")


class UserSource(Protocol):
    """Where users are looked up."""

    def get(self, user_id: int) -> bytes | None:
        """The JSON object of a user; None if there is none."""


@dataclass(slots=True)
class Belongings:
    """The records of one question id, by post."""

    comments: dict[int, list[Record]] = field(default_factory=lambda: defaultdict(list))
    links: dict[int, list[Record]] = field(default_factory=lambda: defaultdict(list))
    votes: dict[int, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    rejected: set[int] = field(default_factory=set)


class Nest:
    """Puts the rows of other tables into the posts of one bucket.

    Attributes:
        counts: What became of the rows.

    Args:
        tables: Names of the tables that were asked for.
        users: Where to look users up, if they were.
        fields: What stays of it all.
    """

    def __init__(
        self,
        tables: Sequence[str],
        users: UserSource | None = None,
        fields: Fields | None = None,
    ) -> None:
        self.counts: dict[str, Counter[str]] = {name: Counter() for name in tables}
        self._wanted = [table for table in TABLES.values() if table.kind and table.name in tables]
        self._users = users
        self._questions = NestedFields(fields or Fields(), "")
        self._answers = NestedFields(fields or Fields(), "Answers.")
        self._chosen: dict[tuple[int, frozenset[str]], bytes] = {}

    def take(self, group: list[Record]) -> tuple[list[Record], Belongings]:
        """Part the posts of a question id from what belongs to them."""
        posts: list[Record] = []
        taken = Belongings()
        for record in group:
            kind = record[4]
            if kind <= REJECTED_ANSWER:
                posts.append(record)
                if kind == REJECTED_ANSWER:
                    taken.rejected.add(record[1])
            elif kind == VOTE:
                vote_type, count = votes_of(record[3])
                taken.votes[record[1]][vote_type] += count
            else:
                (taken.comments if kind == COMMENT else taken.links)[record[1]].append(record)
        return posts, taken

    def with_nested_rows(self, post: Record, taken: Belongings) -> Record:
        """A post with all that belongs to it inside, which is removed from `taken`."""
        json, post_id = bytes(post[5]), post[1]
        place = self._questions if post[4] == QUESTION else self._answers
        parts: list[tuple[str, bytes]] = []
        for table in self._wanted:
            if table.kind == VOTE:
                value = self._votes(taken.votes.pop(post_id, _NO_VOTES), place)
            else:
                by_post = taken.comments if table.kind == COMMENT else taken.links
                value = self._rows(table, by_post.pop(post_id, []), place)
            if table.key in place.keys:
                parts.append((table.key, value))
        if self._users is not None:
            own, parts_of_users = self._with_users(json, place.users)
            return (*post[:5], _joined(own, parts + parts_of_users))
        return (*post[:5], _joined(json, parts))

    def _votes(self, counted: Counter[int], place: NestedFields) -> bytes:
        """The counts that stay; the others are filtered."""
        if not counted:
            return b"{}"
        total = counted.total()
        # In ascending number of the type.
        by_name = {VOTE_TYPES.get(kind, str(kind)): counted[kind] for kind in sorted(counted)}
        kept = place.votes(by_name)
        nested = sum(kept.values())
        self.counts["votes"][NESTED] += nested
        self.counts["votes"][FILTERED] += total - nested
        return orjson.dumps(kept)

    def _rows(self, table: Table, rows: list[Record], place: NestedFields) -> bytes:
        """The rows of a post in ascending `Id`, and in the order of the table where that is one."""
        counts = self.counts[table.name]
        counts[NESTED if table.key in place.keys else FILTERED] += len(rows)
        if not rows or table.key not in place.keys:
            return b"[]"
        rows.sort(key=lambda row: (row[3], row[2]))
        users = place.comment_users
        if self._users is None or table.kind != COMMENT or not users.keys:
            return b"[%b]" % b",".join([row[5] for row in rows])
        return b"[%b]" % b",".join([self._comment(bytes(row[5]), users) for row in rows])

    def _comment(self, json: bytes, users: UserKeys) -> bytes:
        """A comment with its user inside."""
        if users.hidden:
            return _joined(*self._with_users(json, users))
        # There are more of these than of all else: the short way saves 3 % with all tables.
        (key,) = users.keys
        user = self._user(json, key)
        return json if user is None else b'%b,"%b":%b}' % (json[:-1], key.key.encode(), user)

    def _with_users(self, json: bytes, users: UserKeys) -> tuple[bytes, list[tuple[str, bytes]]]:
        """An object without the ids that are left out, and the users that they are of."""
        found = [(key.key, user) for key in users.keys if (user := self._user(json, key))]
        if users.hidden:
            row = orjson.loads(json)
            json = orjson.dumps({name: row[name] for name in row if name not in users.hidden})
        return json, found

    def _user(self, json: bytes, key: UserKey) -> bytes | None:
        """The user whose id stands in a JSON object.

        Inside a JSON string each quote has a backslash before it, so the marker is nowhere else.
        """
        assert self._users is not None
        at = json.find(key.marker)
        if at < 0:
            return None
        start = at + len(key.marker)
        number = json[start : start + _LONGEST_NUMBER].partition(b",")[0].rstrip(b"}")
        if not number.lstrip(b"-").isdigit():
            return None
        user = self._users.get(int(number))
        if user is None or key.kept is None:
            return user
        place = int(number), key.kept
        if place not in self._chosen:
            known = orjson.loads(user)
            chosen = {name: known[name] for name in known if name in key.kept}
            self._chosen[place] = orjson.dumps(chosen)
        return self._chosen[place]

    def reject_left(self, taken: Belongings, *, filtered: bool = False) -> list[bytes]:
        """Count what is left in `taken`, which belongs to no post of a document.

        Args:
            taken: The rest of a question id.
            filtered: Whether the question was left out on purpose, not only some of its answers.

        Returns:
            Lines for the side file; none for what was filtered out.
        """
        left: list[Record] = []
        for rows in (*taken.comments.values(), *taken.links.values()):
            if filtered or rows[0][1] in taken.rejected:
                self.counts[OF_KIND[rows[0][4]].name][FILTERED] += len(rows)
            else:
                left += rows
        for post_id in list(taken.votes):
            if filtered or post_id in taken.rejected:
                self.counts["votes"][FILTERED] += sum(taken.votes.pop(post_id).values())
        lines = []
        for row in sorted(left, key=lambda row: (row[4], row[1], row[3], row[2])):
            table = OF_KIND[row[4]]
            reason = f"{table.row}_without_post"
            self.counts[table.name][reason] += 1
            own = _own(bytes(row[5]), table)
            lines.append(b'{"reason":"%b","row":%b}\n' % (reason.encode(), own))
        for post_id, counted in sorted(taken.votes.items()):
            for vote_type, count in sorted(counted.items()):
                self.counts["votes"]["vote_without_post"] += count
                row_of_all = {"PostId": post_id, "VoteTypeId": vote_type}
                line = {"reason": "vote_without_post", "count": count, "row": row_of_all}
                lines.append(orjson.dumps(line) + b"\n")
        return lines


def _own(json: bytes, table: Table) -> bytes:
    """A row without what it got when it was read, such as `LinkType`, which is its last member.

    Inside a JSON string each quote has a backslash before it, so the marker is nowhere else.
    """
    attributes, got, _ = json.partition(b',"%b":' % table.reserved.encode())
    return attributes + b"}" if got else json


def _joined(json: bytes, parts: Sequence[tuple[str, bytes]]) -> bytes:
    """An object with more members at its end."""
    members = b",".join([b'"%b":%b' % (key.encode(), value) for key, value in parts])
    if not members:
        return json
    return b"%b%b%b}" % (json[:-1], b"," if len(json) > _EMPTY else b"", members)


def added(total: Counts, more: Mapping[str, Mapping[str, int]]) -> Counts:
    """Both counts together."""
    return {
        name: dict(Counter(total.get(name, {})) + Counter(more.get(name, {})))
        for name in {**total, **more}
    }
