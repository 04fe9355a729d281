"""A choice of fields as a tree that grows with the names that turn up; for rows and whole posts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from so2docs.options.field_paths import Fields
from so2docs.schema import POST_PARTS

Json = dict[str, Any]

_MOST_NAMES = 4096


class FieldChoice(dict[str, "bool | FieldChoice"]):
    """What stays of the objects at a path: by name all of it, nothing, or a choice.

    Args:
        fields: The choice of fields.
        path: The path; empty for a question.
        also: Paths below it that stay whatever was chosen.
    """

    def __init__(self, fields: Fields, path: str = "", also: Collection[str] = ()) -> None:
        self._fields, self._path, self._also = fields, path, also

    def __missing__(self, name: str) -> bool | FieldChoice:
        path = f"{self._path}.{name}" if self._path else name
        stays: bool | FieldChoice = path in self._also or self._fields.has_whole(path)
        if not stays and self._fields.has(path):
            stays = FieldChoice(self._fields, path)
        if len(self) < _MOST_NAMES:  # A dump has a few dozen; an attack has as many as it likes.
            self[name] = stays
        return stays

    def of(self, json: Json) -> Json:
        """What stays of an object, in the order of its members."""
        fields = {}
        for name, value in json.items():
            stays = self[name]
            if stays is True:
                fields[name] = value
            elif stays is not False:
                lists = isinstance(value, list)
                fields[name] = [stays.of(item) for item in value] if lists else stays.of(value)
        return fields


def choice_of_nested(fields: Fields, tables: Sequence[str], path: str) -> FieldChoice | None:
    """What stays of complete posts; None if that is all that is nested in them.

    Args:
        fields: The choice of fields.
        tables: Names of the tables that are nested.
        path: Where the posts are: nothing for questions, or `Answers`.
    """
    prefix = f"{path}." if path else ""
    names = [part.key for part in POST_PARTS]
    paths = [prefix + name for name in (*names, *fields.hidden(tables))]
    return None if all(map(fields.has_whole, paths)) else FieldChoice(fields, path)
