"""Records of the other tables -> parts of the posts' JSON objects. Pure but for reading users.

Part of the merge: everything that belongs to a question is at hand. What is nested is put between
the last of a post's own keys and its closing brace, in the order `Comments`, `Links`, `Votes`,
`Owner`, `LastEditor`; no JSON is parsed for it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import orjson

from so2docs.posts import REJECTED_ANSWER
from so2docs.table_rows import votes_of
from so2docs.tables import COMMENT, OF_KIND, TABLES, VOTE, VOTE_TYPES

Record = tuple[int, int, int, int, int, memoryview | bytes]
"""Question id, post id, order in the dump, rank, kind, JSON: as a post in the merge."""

Counts = dict[str, dict[str, int]]
"""By table, the number of rows that were `nested` or `filtered`, and of strays by reason."""

NESTED, FILTERED = "nested", "filtered"

_USER_KEYS = ((b"Owner", b'"OwnerUserId":'), (b"LastEditor", b'"LastEditorUserId":'))
_COMMENT_USER = b'"UserId":'
_LONGEST_NUMBER = 21
_EMPTY = len(b"{}")


class UserSource(Protocol):
    """Where users are looked up."""

    def get(self, user_id: int) -> bytes | None:
        """The JSON object of a user; None if there is none."""


@dataclass(slots=True)
class Taken:
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
    """

    def __init__(self, tables: Sequence[str], users: UserSource | None = None) -> None:
        self.counts: dict[str, Counter[str]] = {name: Counter() for name in tables}
        self._wanted = [table for table in TABLES.values() if table.kind and table.name in tables]
        self._users = users

    def take(self, group: list[Record]) -> tuple[list[Record], Taken]:
        """Part the posts of a question id from what belongs to them."""
        posts: list[Record] = []
        taken = Taken()
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

    def dressed(self, post: Record, taken: Taken) -> Record:
        """A post with all that belongs to it inside, which is removed from `taken`."""
        json, post_id = bytes(post[5]), post[1]
        parts = [json[:-1]]
        for table in self._wanted:
            if table.kind == VOTE:
                counted = taken.votes.pop(post_id, None) or Counter()
                self.counts[table.name][NESTED] += sum(counted.values())
                value = _votes_by_name(counted) if counted else b"{}"
            else:
                by_post = taken.comments if table.kind == COMMENT else taken.links
                rows = by_post.pop(post_id, None) or []
                self.counts[table.name][NESTED] += len(rows)
                value = self._array(rows) if rows else b"[]"
            parts.append(b',"%b":%b' % (table.key.encode(), value))
        if self._users is not None:
            for key, name in _USER_KEYS:
                if user := self._user(json, name):
                    parts.append(b',"%b":%b' % (key, user))
        parts.append(b"}")
        if len(json) == _EMPTY and len(parts) > len((b"{", b"}")):
            parts[1] = parts[1].removeprefix(b",")
        return (*post[:5], b"".join(parts))

    def _array(self, rows: list[Record]) -> bytes:
        """The rows of a post in ascending `Id`, and in the order of the table where that is one."""
        rows.sort(key=lambda row: (row[3], row[2]))
        if self._users is None or rows[0][4] != COMMENT:
            return b"[%b]" % b",".join([row[5] for row in rows])
        comments = []
        for row in rows:
            json = bytes(row[5])
            user = self._user(json, _COMMENT_USER)
            comments.append(json if user is None else b'%b,"User":%b}' % (json[:-1], user))
        return b"[%b]" % b",".join(comments)

    def _user(self, json: bytes, name: bytes) -> bytes | None:
        """The user whose id stands in a JSON object behind a key, given with quotes and colon.

        Inside a JSON string each quote has a backslash before it, so the key is nowhere else.
        """
        assert self._users is not None
        at = json.find(name)
        if at < 0:
            return None
        start = at + len(name)
        number = json[start : start + _LONGEST_NUMBER].partition(b",")[0].rstrip(b"}")
        return self._users.get(int(number)) if number.lstrip(b"-").isdigit() else None

    def set_aside(self, taken: Taken, *, filtered: bool = False) -> list[bytes]:
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
            lines.append(b'{"reason":"%b","row":%b}\n' % (reason.encode(), bytes(row[5])))
        for post_id, counted in sorted(taken.votes.items()):
            for vote_type, count in sorted(counted.items()):
                self.counts["votes"]["vote_without_post"] += count
                row_of_all = {"PostId": post_id, "VoteTypeId": vote_type}
                line = {"reason": "vote_without_post", "count": count, "row": row_of_all}
                lines.append(orjson.dumps(line) + b"\n")
        return lines


def _votes_by_name(counted: Mapping[int, int]) -> bytes:
    """Counts in ascending number of the type, by its name."""
    return orjson.dumps(
        {VOTE_TYPES.get(kind, str(kind)): counted[kind] for kind in sorted(counted)}
    )


def added(total: Counts, more: Mapping[str, Mapping[str, int]]) -> Counts:
    """Both counts together."""
    return {
        name: dict(Counter(total.get(name, {})) + Counter(more.get(name, {})))
        for name in {**total, **more}
    }
