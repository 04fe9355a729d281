"""Opt-outs: decide for every row of a dump whether it concerns listed users or posts.

All decisions are made here, for rows of all tables, nested or stray, and for rows that are not XML.
A row of a listed post or by a listed user is left out. Listed ids are removed from the other rows.
Pure functions over plain bytes and dictionaries.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson

from so2docs.counts import ChunkTally
from so2docs.escape import unescape
from so2docs.options.option import IdList
from so2docs.options.table import Options, PartFilters
from so2docs.parse.id_set import IdSet, IdSetWriter, to_pages
from so2docs.parse.keys import BY_OPTED_OUT
from so2docs.parse.posts import RecordBuffer, number
from so2docs.schema import COMMENT, CONTENT, POSTS, TABLES, Row, Table

Ids = frozenset[int] | IdSet

_HISTORY = TABLES["history"].file
_AUTHORS = {"posts": "OwnerUserId", "comments": "UserId", "users": "Id", "badges": "UserId"}
"""Attribute with the author of a row, by table; rows by listed authors are left out."""

_POST_IDS = {"posts": ("Id", "ParentId"), "links": ("PostId", "RelatedPostId")}
"""Attributes with post ids, by table; tables without an entry only have `PostId`. Rows of listed
posts are left out."""

_FORGOTTEN_USERS = {
    "posts": ("LastEditorUserId", "LastEditorDisplayName"),
    "votes": ("UserId", "UserDisplayName"),
    _HISTORY: ("UserId", "UserDisplayName"),
}
"""Attributes that identify a user other than the author, by table. All of them are removed if the
first contains the id of a listed user."""

_FORGOTTEN_POSTS = {"posts": ("AcceptedAnswerId",), "tags": ("ExcerptPostId", "WikiPostId")}
"""Attributes that are removed if they contain the id of a listed post, by table."""

_ALL_POST_IDS = frozenset(
    {"PostId", "ParentId", "RelatedPostId", "AcceptedAnswerId", "ExcerptPostId", "WikiPostId"}
)
_SUGGESTED = 24
_ROLLBACK = "Rollback to ["

_ATTRIBUTE = re.compile(r"\b([A-Za-z]{2,40})\s*+=\s*+[\"']?+\s*+([+-]?\d{1,19})(?!\d)", re.ASCII)
_USER_IN_JSON = re.compile(r'"(?:User)?Id"\s*+:\s*+"?([+-]?\d{1,19})(?!\d)', re.ASCII)
_ORIGINALS = re.compile(r'"OriginalQuestionIds"([^\]]*)')
_SUGGESTION = re.compile(r"Proposed by ([^<>]{0,2000}?) edit id of")
_USER_IDS = ("Id", "UserId")
_BETWEEN_USERS = re.compile(r"[\s,]+")
_DIGITS = re.compile(r"\d{1,19}", re.ASCII)


class OptOuts:
    """Applies the lists of users and posts to drop to the rows of one table.

    Attributes:
        needs_rows: Whether every row has to be checked, not only strays. Rows whose only reference
            to a listed post is `PostId` need no check: they are left out when they are nested.
    """

    def __init__(self, filters: PartFilters, table: Table | None) -> None:
        self._users, self._posts = unpack_ids(filters.drop_users), unpack_ids(filters.drop_posts)
        name = "" if table is None else table.name
        self._is_history = table is not None and table.file == _HISTORY
        self._is_of_posts = table == POSTS
        self._is_counted = table == POSTS or (table is not None and table.kind == COMMENT)
        self._author = _AUTHORS.get(name, "")
        self._post_ids = _POST_IDS.get(name, ("PostId",))
        self._forgotten = _FORGOTTEN_USERS.get(_HISTORY if self._is_history else name, ())
        self._forgotten_posts = _FORGOTTEN_POSTS.get(name, ())
        self._users_by_id = name in ("users", "")
        self._posts_by_id = name in ("posts", "")
        names_posts = self._is_history or name in (*_POST_IDS, *_FORGOTTEN_POSTS)
        self.needs_rows = bool(self._users and name != "links") or bool(self._posts and names_posts)

    def __bool__(self) -> bool:
        return bool(self._users or self._posts)

    def filter(self, rows: list[Row], buffer: RecordBuffer | ChunkTally) -> list[Row]:
        """Return the rows to keep, and count all other rows as filtered."""
        if not self:
            return rows
        remaining = [row for row in rows if not self.drops(row, buffer)]
        buffer.filtered += len(rows) - len(remaining)
        return remaining

    def drops(self, row: Row, buffer: RecordBuffer | ChunkTally) -> bool:
        """Decide whether to leave a row out; remove listed ids from a row that is kept.

        A post or comment counts as dropped if its author or the post itself is listed.

        Args:
            row: Attributes of the row as strings, changed in place.
            buffer: The counts to add to.
        """
        is_listed = _number(row, self._author) in self._users or (
            self._is_of_posts and _number(row, "Id") in self._posts
        )
        if is_listed or any(_number(row, name) in self._posts for name in self._post_ids):
            buffer.dropped += is_listed and self._is_counted
            return True
        self._forget(row)
        return False

    def drops_malformed(self, raw: bytes, buffer: RecordBuffer | ChunkTally) -> bool:
        """Decide whether to leave out a row that is not XML; if so, add it to the counts."""
        is_dropped = self.mentions(raw)
        buffer.filtered += is_dropped
        buffer.dropped += is_dropped and self._is_counted
        return is_dropped

    def mentions(self, raw: bytes) -> bool:
        """Whether the bytes of a malformed row contain a listed id where rows have such ids."""
        if not self:
            return False
        text = unescape(raw.decode(errors="replace"))
        for name, digits in _ATTRIBUTE.findall(text):
            is_user = name.endswith("UserId") or (self._users_by_id and name == "Id")
            is_post = name in _ALL_POST_IDS or (self._posts_by_id and name == "Id")
            value = int(digits)
            if (is_user and value in self._users) or (is_post and value in self._posts):
                return True
        if self._posts_by_id and not self._users_by_id:
            return False
        proposed = (self._names_users(match[1]) for match in _SUGGESTION.finditer(text))
        return self._names_in_json(text) or any(proposed)

    def lists_user(self, user_id: int) -> bool:
        """Whether `user_id` is in the list of users to drop."""
        return user_id in self._users

    def _forget(self, row: Row) -> None:
        for name in self._forgotten_posts:
            if _number(row, name) in self._posts:
                del row[name]
        if self._is_history:
            self._forget_others(row)
        if self._forgotten and _number(row, self._forgotten[0]) in self._users:
            for name in self._forgotten:
                row.pop(name, None)
            if self._is_history:
                self._forget_words(row)

    def _forget_words(self, row: Row) -> None:
        """Remove the comment of an edit from the row of a listed user, and mark the row.

        Documents keep the texts of a post's history, because later texts build on them. A row
        without a document is left out, because its text is by this user alone.
        """
        row[BY_OPTED_OUT] = ""
        is_edit = number(row.get("PostHistoryTypeId", "")) in CONTENT
        if is_edit and not row.get("Comment", "").startswith(_ROLLBACK):
            row.pop("Comment", None)

    def _forget_others(self, row: Row) -> None:
        """Remove listed voters, proposers, approvers and original questions from a history row."""
        kind = number(row.get("PostHistoryTypeId", ""))
        if kind == _SUGGESTED and self._names_users(row.get("Comment", "")):
            del row["Comment"]
        if kind not in CONTENT and self._names_in_json(row.get("Text", "")):
            text = self._prune_text(row.pop("Text"))
            if text is not None:
                row["Text"] = text

    def _names_users(self, comment: str) -> bool:
        """Whether the comment of a suggested edit names a listed user: `80 approved by 90, 91`."""
        users = _BETWEEN_USERS.split(comment.partition(" edit id of")[0])
        return any(number(user) in self._users for user in users)

    def _names_in_json(self, text: str) -> bool:
        users = map(int, _USER_IN_JSON.findall(text))
        lists = (_DIGITS.findall(ids) for ids in _ORIGINALS.findall(text))
        return not self._users.isdisjoint(users) or not self._posts.isdisjoint(
            int(digits) for ids in lists for digits in ids
        )

    def _prune_text(self, text: str) -> str | None:
        """Remove listed users and questions from JSON; None if it is invalid or still names one."""
        try:
            pruned = orjson.dumps(self._prune(orjson.loads(text))).decode()
        except (orjson.JSONDecodeError, orjson.JSONEncodeError, RecursionError):
            return None
        return None if self._names_in_json(pruned) else pruned

    def _prune(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._prune(item) for item in value if not self._is_listed(item)]
        if not isinstance(value, dict):
            return value
        return {
            key: self._without_posts(item) if key == "OriginalQuestionIds" else self._prune(item)
            for key, item in value.items()
            if not self._is_listed(item)
        }

    def _is_listed(self, value: Any) -> bool:
        if not isinstance(value, dict):
            return False
        return any(number(str(value[name])) in self._users for name in _USER_IDS if name in value)

    def _without_posts(self, ids: Any) -> Any:
        if not isinstance(ids, list):
            return ids
        return [post_id for post_id in ids if number(str(post_id)) not in self._posts]


def _number(row: Row, name: str) -> int | str | None:
    """Return the value of an attribute, as an integer if possible; None if missing."""
    return number(row[name].strip()) if name in row else None


def unpack_ids(listed: IdList | None) -> Ids:
    """Return the ids in a list; an empty set if there is no list."""
    if listed is None:
        return frozenset()
    return IdSet(listed.path) if listed.path else _unpack(listed.packed)


@lru_cache(maxsize=4)
def _unpack(packed: bytes) -> frozenset[int]:
    return frozenset(array("q", packed))


def store_lists(options: Options, folder: Path) -> Options:
    """Write the lists of users and posts to files, so that workers get only their paths."""
    lists: dict[str, Any] = {}
    for name in ("keep_users", "keep_posts", "drop_users", "drop_posts"):
        listed: IdList | None = getattr(options.filters, name)
        if listed is not None:
            with IdSetWriter(str(folder / f"{name}.map")) as ids:
                ids.add(to_pages(listed.ids))
                ids.finish()
            lists[name] = IdList(b"", ids.path)
    return replace(options, filters=replace(options.filters, **lists)) if lists else options
