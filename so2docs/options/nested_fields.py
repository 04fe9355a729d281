"""What stays of what is nested in a post: the choice of fields, made up once for many posts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from so2docs.options.field_paths import COMMENT_USER, USER_IDS, Fields
from so2docs.schema import OF_KIND, USER_ATTRIBUTES

_USER_ID = "UserId"


@dataclass(frozen=True, slots=True)
class UserKey:
    """Where a user goes, and by what they are found.

    Attributes:
        key: Where they go.
        marker: What stands before their id in a JSON object: the attribute, in quotes, and a colon.
        kept: What stays of them; None for everything.
    """

    key: str
    marker: bytes
    kept: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class UserKeys:
    """The users of an object.

    Attributes:
        keys: Those that it gets.
        hidden: Attributes with an id that is needed to find one, and is then left out.
    """

    keys: tuple[UserKey, ...]
    hidden: frozenset[str]


class NestedFields:
    """What stays of what is nested in questions, or in answers.

    Attributes:
        keys: Of the tables of which something stays.
        users: The users of a post.
        comment_users: Those of a comment.

    Args:
        fields: The choice of fields.
        prefix: What stands before the names of such posts' fields.
    """

    def __init__(self, fields: Fields, prefix: str) -> None:
        self._fields = fields
        self._votes = f"{prefix}Votes"
        self._has_all_votes = fields.has_whole(self._votes)
        self.keys = {table.key for table in OF_KIND.values() if fields.has(prefix + table.key)}
        self.users = self._user_keys(prefix, USER_IDS)
        self.comment_users = self._user_keys(f"{prefix}Comments.", {_USER_ID: COMMENT_USER})

    def _user_keys(self, prefix: str, names: Mapping[str, str]) -> UserKeys:
        has = self._fields.has
        wanted = {name: key for name, key in names.items() if has(prefix + key)}
        keys = [
            UserKey(key, b'"%b":' % name.encode(), self._kept(prefix + key))
            for name, key in wanted.items()
        ]
        return UserKeys(tuple(keys), frozenset(name for name in wanted if not has(prefix + name)))

    def _kept(self, path: str) -> frozenset[str] | None:
        if self._fields.has_whole(path):
            return None
        return frozenset(name for name in USER_ATTRIBUTES if self._fields.has(f"{path}.{name}"))

    def votes(self, by_name: Mapping[str, int]) -> Mapping[str, int]:
        """Those of some votes that stay."""
        if self._has_all_votes:
            return by_name
        has = self._fields.has
        return {name: n for name, n in by_name.items() if has(f"{self._votes}.{name}")}
