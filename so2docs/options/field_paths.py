"""Which attributes of questions, answers and what is nested in them a document has.

A name is a path from the question on: `Title`, `Comments.Text`, `Answers.Owner.DisplayName`. It
stands for all that is below it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from so2docs.errors import OptionError, flag
from so2docs.schema import (
    ANSWER_ATTRIBUTES,
    ANSWERS,
    COMMENT_USER,
    NESTED,
    OF_KIND,
    QUESTION_ATTRIBUTES,
    TABLES,
    USER_ATTRIBUTES,
    USER_IDS,
)

_INSIDE = f"{ANSWERS}."
_QUESTION = frozenset({*QUESTION_ATTRIBUTES, *ANSWER_ATTRIBUTES})

_USER_OF_COMMENT = f"{TABLES['comments'].key}.{COMMENT_USER}"
_NESTED_NAMES = tuple(
    path
    for key, names in {**NESTED, _USER_OF_COMMENT: USER_ATTRIBUTES}.items()
    for path in (key, *(f"{key}.{name}" for name in names))
)
_PARTS_OF = {table.name: (table.key,) for table in OF_KIND.values()} | {
    "users": (*USER_IDS.values(), _USER_OF_COMMENT)
}
_ALLOWED = (
    *QUESTION_ATTRIBUTES,
    *_NESTED_NAMES,
    ANSWERS,
    *(f"{_INSIDE}{name}" for name in (*ANSWER_ATTRIBUTES, *_NESTED_NAMES)),
)


_EXAMPLES = (
    "fields have the names of the dump's attributes, such as Title, Score or Answers.Body, and of "
    f"{', '.join(NESTED)}, such as Comments.Text"
)


@dataclass(frozen=True, slots=True)
class Fields:
    """A choice of fields: those to keep, or those to leave out, or all.

    Attributes:
        kept: Names such as `Title`, `Answers` (all of them) or `Answers.Body`; None for all.
        left_out: Names in the same form.
    """

    kept: tuple[str, ...] | None = None
    left_out: tuple[str, ...] = ()

    @property
    def has_whole_posts(self) -> bool:
        """Whether every attribute of the posts themselves stays."""
        return self.kept is None and all(_part(name) in NESTED for name in self.left_out)

    @property
    def has_answers(self) -> bool:
        """Whether documents have answers at all."""
        return self.has(ANSWERS)

    def has(self, path: str) -> bool:
        """Whether documents have what such a name stands for, or anything of it."""
        if self.kept is None:
            return not any(name in self.left_out for name in _upwards(path))
        return any(name in self.kept for name in _upwards(path)) or any(
            name.startswith(f"{path}.") for name in self.kept
        )

    def has_whole(self, path: str) -> bool:
        """Whether documents have all that such a name stands for."""
        if self.kept is None:
            return self.has(path) and not any(n.startswith(f"{path}.") for n in self.left_out)
        return any(name in self.kept for name in _upwards(path))

    def has_question(self, name: str) -> bool:
        """Whether questions have this attribute."""
        return self.has(name)

    def has_answer(self, name: str) -> bool:
        """Whether answers have this attribute."""
        return self.has(f"{_INSIDE}{name}")

    def hidden(self, nest: Sequence[str]) -> list[str]:
        """Ids of users that posts in documents do not have, but that are needed to find users.

        Args:
            nest: Names of the tables to nest.
        """
        if "users" not in nest:
            return []
        return [
            f"{place}{name}"
            for place in ("", _INSIDE)
            for name, user in USER_IDS.items()
            if self.has(f"{place}{user}") and not self.has(f"{place}{name}")
        ]

    def check_nested(self, nest: Sequence[str]) -> None:
        """Check the choice against the tables to nest.

        Raises:
            OptionError: A name belongs to a table that is not among them, or nothing of one stays.
        """
        option = "without" if self.kept is None else "fields"
        for name in (*(self.kept or ()), *self.left_out):
            for table in _tables_of(name.removeprefix(_INSIDE)):
                if table not in nest:
                    raise OptionError(f"{flag(option, name)} needs {flag('nest', table)}")
        for table in nest:
            parts = [part for part in _PARTS_OF[table] if part in NESTED or "comments" in nest]
            if not any(self.has(f"{place}{part}") for place in ("", _INSIDE) for part in parts):
                hint = f"name {' or '.join(parts)}, or leave" if self.kept else "leave"
                raise OptionError(
                    f"{flag(option)} leaves nothing of the {table} to nest: {hint} "
                    f"{flag('nest', table)} out"
                )


ALL_FIELDS = Fields()
"""Every one that there is."""


def _upwards(path: str) -> Iterator[str]:
    """A path, and all that it is below."""
    yield path
    while "." in path:
        path = path.rpartition(".")[0]
        yield path


def _part(name: str) -> str:
    """The first step of a path from the post on."""
    return name.removeprefix(_INSIDE).partition(".")[0]


def _tables_of(path: str) -> list[str]:
    """Tables that there has to be for a path of a post, if it is nested."""
    return [
        table for table, parts in _PARTS_OF.items() if any(part in _upwards(path) for part in parts)
    ]


def names_of(option: str, given: str | Iterable[str]) -> tuple[str, ...]:
    """Names of fields that an option gives, with commas between them or as a sequence.

    Raises:
        OptionError: One is unknown.
    """
    parts = [given] if isinstance(given, str) else given
    each = (name.strip() for part in parts for name in part.split(","))
    names = tuple(dict.fromkeys(name for name in each if name))
    for name in names:
        if not _is_allowed(name):
            by_lower = {allowed.lower(): allowed for allowed in _ALLOWED}
            similar = difflib.get_close_matches(name.lower(), by_lower, 1, 0.7)
            hint = f"did you mean {by_lower[similar[0]]}?" if similar else _EXAMPLES
            raise OptionError(f"{flag(option)}: there is no field {name!r}; {hint}")
    return names


def _is_allowed(name: str) -> bool:
    """Whether there is such a field; types of votes without a name are named by their number."""
    inner = name.removeprefix(_INSIDE)
    is_number = inner.removeprefix("Votes.").lstrip("-").isdecimal() and inner.startswith("Votes.")
    return name in _ALLOWED or inner in _QUESTION or is_number
