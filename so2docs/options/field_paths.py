"""Selection of the attributes of questions, answers and nested rows.

A name is a path from the question: `Title`, `Comments.Text`, `Answers.Owner.DisplayName`. It
includes everything below this path. `FieldChoice` applies a selection to documents.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from so2docs.errors import OptionError, did_you_mean, flag
from so2docs.schema import (
    ANSWER_ATTRIBUTES,
    ANSWERS,
    AS_OF,
    POST_PARTS,
    POSTS,
    QUESTION_ATTRIBUTES,
    paths,
)

_INSIDE = f"{ANSWERS}."
_PARTS = dict(paths())
_KEYS = tuple(dict.fromkeys(part.key for part in POST_PARTS))
_COUNTED = tuple(f"{path}." for path, part in _PARTS.items() if part.shape == "counts")
_TABLES_AT = {path: [p.table for at, p in paths() if at == path] for path in _PARTS}
_NESTED_NAMES = tuple(
    path
    for key, part in _PARTS.items()
    for path in (key, *(f"{key}.{name}" for name in part.attributes if part.shape != "value"))
)
_ALLOWED = (
    *QUESTION_ATTRIBUTES,
    *_NESTED_NAMES,
    ANSWERS,
    *(f"{_INSIDE}{name}" for name in (*ANSWER_ATTRIBUTES, *_NESTED_NAMES)),
)


_EXAMPLES = (
    "fields are attributes, such as Title or Answers.Body, or members of "
    f"{', '.join(_KEYS)}, such as Comments.Text"
)


@dataclass(frozen=True, slots=True)
class Fields:
    """A selection of fields: the fields to keep, the fields to leave out, or all fields.

    Attributes:
        kept: Names of the fields to keep, such as `Title`, `Answers` (all attributes) or
            `Answers.Body`; None for all fields.
        left_out: Names of the fields to leave out.
    """

    kept: tuple[str, ...] | None = None
    left_out: tuple[str, ...] = ()

    @property
    def has_whole_posts(self) -> bool:
        """Whether all attributes of the posts themselves are kept."""
        return self.kept is None and all(
            name.removeprefix(_INSIDE).partition(".")[0] in _KEYS for name in self.left_out
        )

    @property
    def has_answers(self) -> bool:
        """Whether documents have answers."""
        return self.has(ANSWERS)

    def has(self, path: str) -> bool:
        """Whether documents have the field at this path, or any part of it."""
        if self.kept is None:
            return not any(name in self.left_out for name in _upwards(path))
        return any(name in self.kept for name in _upwards(path)) or any(
            name.startswith(f"{path}.") for name in self.kept
        )

    def has_whole(self, path: str) -> bool:
        """Whether documents have the whole field at this path."""
        if self.kept is None:
            return self.has(path) and not any(n.startswith(f"{path}.") for n in self.left_out)
        return any(name in self.kept for name in _upwards(path))

    def has_answer(self, name: str) -> bool:
        """Whether answers have this attribute."""
        return self.has(f"{_INSIDE}{name}")

    def hidden(self, nest: Sequence[str]) -> list[str]:
        """List the fields with user ids that are needed to look up users, but are not selected."""
        if "users" not in nest:
            return []
        return [
            f"{prefix}{name}"
            for prefix in ("", _INSIDE)
            for name, user in POSTS.users.items()
            if self.has(f"{prefix}{user}") and not self.has(f"{prefix}{name}")
        ]

    def check_nested(self, nest: Sequence[str]) -> None:
        """Check that the selected fields agree with the tables to nest.

        Raises:
            OptionError: A field needs a table that is not nested.
        """
        option = "drop_fields" if self.kept is None else "fields"
        for name in (*(self.kept or ()), *self.left_out):
            for path in _upwards(name.removeprefix(_INSIDE)):
                tables = _TABLES_AT.get(path, ())
                if tables and not any(table in nest for table in tables):
                    if AS_OF in tables:
                        raise OptionError(f"{flag(option, name)} needs {flag('as_of')}")
                    raise OptionError(f"{flag(option, name)} needs {flag('nest', tables[0])}")


ALL_FIELDS = Fields()
"""The selection of all fields."""


def _upwards(path: str) -> Iterator[str]:
    """Yield a path and all paths above it."""
    yield path
    while "." in path:
        path = path.rpartition(".")[0]
        yield path


def parse_field_names(
    option: str, value: str | Iterable[str], also: Collection[str] = ()
) -> tuple[str, ...]:
    """Parse names of fields, given as a sequence or separated by commas.

    Raises:
        OptionError: A name is neither a field nor in `also`.
    """
    parts = [value] if isinstance(value, str) else value
    each = (name.strip() for part in parts for name in part.split(","))
    names = tuple(dict.fromkeys(name for name in each if name))
    for name in names:
        if name not in also and not _is_allowed(name):
            hint = did_you_mean(name, _ALLOWED) or f"; {_EXAMPLES}"
            raise OptionError(f"{flag(option)}: there is no field {name!r}{hint}")
    return names


def _is_allowed(name: str) -> bool:
    """Whether a field exists. For a vote type without a name, the field is the type's number."""
    inner = name.removeprefix(_INSIDE)
    is_counted = any(inner.startswith(path) for path in _COUNTED)
    is_number = is_counted and inner.rpartition(".")[2].lstrip("-").isdecimal()
    return name in _ALLOWED or inner in POSTS.attributes or is_number


Json = dict[str, Any]

_MOST_NAMES = 4096


class FieldChoice(dict[str, "bool | FieldChoice"]):
    """The decision for each field of the objects at a path: keep it, omit it, or select from it."""

    def __init__(self, fields: Fields, path: str = "", also: Collection[str] = ()) -> None:
        self._fields, self._path, self._also = fields, path, also

    def __missing__(self, name: str) -> bool | FieldChoice:
        path = f"{self._path}.{name}" if self._path else name
        stays: bool | FieldChoice = path in self._also or self._fields.has_whole(path)
        if not stays and self._fields.has(path):
            stays = FieldChoice(self._fields, path)
        # Dumps have a few dozen names, but a malicious file may have any number, so limit the
        # cache.
        if len(self) < _MOST_NAMES:
            self[name] = stays
        return stays

    def of(self, json: Json) -> Json:
        """Return the selected fields of an object, in the order of its members."""
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
    """Make the selection of fields for the posts at a path; None if all nested fields are kept."""
    prefix = f"{path}." if path else ""
    names = [part.key for part in POST_PARTS]
    paths = [prefix + name for name in (*names, *fields.hidden(tables))]
    return None if all(map(fields.has_whole, paths)) else FieldChoice(fields, path)
