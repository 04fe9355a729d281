"""Counts of rows by outcome, for a chunk, a bucket or a whole conversion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import partial, reduce
from operator import iadd
from typing import Any, Self

_ADD, _KIND = "add", "kind"


def plural(count: int, noun: str) -> str:
    """Format a count with its noun: `1 file`, `1,200 files`."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def describe_part(count: int, total: int, noun: str) -> str:
    """Begin a statement about some of several: `1 of 20 rows has`, `3 of 20 rows have`."""
    return f"{count:,} of {plural(total, noun)} {'has' if count == 1 else 'have'}"


class Counts:
    """Base of dataclasses whose instances can be added up and converted to JSON.

    Addition adds numbers and nested counts, adds dictionaries key by key, and takes the union of
    sets. Other values, such as names, are kept from the left operand. None means "not counted",
    unlike 0. A field can replace addition by another function, as in `field(metadata=MOST)`.
    """

    __slots__ = ()

    def __iadd__(self, other: Counts) -> Self:
        for entry in fields(self):  # type: ignore[arg-type]
            if hasattr(other, entry.name):
                add = entry.metadata.get(_ADD, _sum)
                value = add(getattr(self, entry.name), getattr(other, entry.name))
                setattr(self, entry.name, value)
        return self

    @classmethod
    def total(cls, counts: Iterable[Counts]) -> Self:
        """Return the sum of several counts as an instance of this class.

        Of an instance of a different class, only the fields that this class has are added.
        """
        return reduce(iadd, counts, cls())

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-compatible values; the keys of each `Counter` are sorted."""
        return {field.name: _to_json(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Make an instance from the result of `as_dict`, which may have been saved as JSON.

        Raises:
            AttributeError, KeyError, TypeError, ValueError: The values are not those of `as_dict`.
        """
        made = {
            entry.name: _from_json(entry, values[entry.name])
            for entry in fields(cls)  # type: ignore[arg-type]
            if entry.name in values
        }
        return cls(**values | made)


def added_by(function: Any) -> dict[str, Any]:
    """Return field metadata that makes `function` combine two values of the field.

    The function must not change its second argument.
    """
    return {_ADD: function}


def _extreme(choose: Any, current: Any, added: Any) -> Any:
    return choose((value for value in (current, added) if value not in (None, "")), default=current)


LEAST, MOST = added_by(partial(_extreme, min)), added_by(partial(_extreme, max))
"""Metadata for fields that keep the smallest or the largest known value."""

KEEP = added_by(lambda current, _: current)
"""Metadata for fields that keep the value of the left operand."""


def _sum(current: Any, added: Any) -> Any:
    """Return the sum of two values; if `current` is mutable, it is changed in place."""
    if isinstance(added, Counts | dict | set):
        if current is None:
            return deepcopy(added)
        if isinstance(added, Counts):
            current += added
        elif isinstance(added, Counter | set):
            current.update(added)
        else:
            for name, value in added.items():
                current[name] = _sum(current.get(name), value)
    elif isinstance(added, int | float) and not isinstance(added, bool):
        return added if current is None else current + added
    return current


def _to_json(value: Any) -> Any:
    if isinstance(value, Counts):
        return value.as_dict()
    if isinstance(value, dict):
        items = sorted(value.items()) if isinstance(value, Counter) else value.items()
        return {str(key): _to_json(item) for key, item in items}
    return value


def _from_json(entry: Field[Any], value: Any) -> Any:
    """Convert the value of a field to the type of its default."""
    if entry.default_factory is MISSING:
        if not isinstance(value, _SCALARS.get(type(entry.default), object)):
            raise TypeError(f"{entry.name} is {value!r}")
        return value
    empty = entry.default_factory()
    if isinstance(empty, Counts):
        return empty.from_dict(value)
    if (kind := entry.metadata.get(_KIND)) is not None:
        return {name: kind.from_dict(part) for name, part in value.items()}
    if isinstance(empty, Counter) and not all(isinstance(part, int) for part in value.values()):
        raise TypeError(f"{entry.name} is {value!r}")
    return type(empty)(dict(value))


_SCALARS = {int: int, str: str, bool: bool, float: int | float}
"""Types that are checked, by the type of the default."""

_WITHOUT_POST = "_without_post"


@dataclass(slots=True)
class TableCounts(Counts):
    """Counts of the rows of a table other than the posts, by outcome.

    Attributes:
        rows: Number of rows in the table.
        nested: Rows in documents; for users, all rows that are neither filtered nor strays.
        filtered: Rows left out by filters, including all rows of filtered posts.
        strays: Strays, by reason.
        is_nested: Whether documents contain the rows; if not, all of them count as filtered.
        bytes: Size of the decompressed table file.
    """

    rows: int = 0
    nested: int = 0
    filtered: int = 0
    strays: Counter[str] = field(default_factory=Counter)
    is_nested: bool = field(default=True, metadata=KEEP)
    bytes: int = 0

    @property
    def without_post(self) -> int:
        """Rows whose post is missing and was not filtered out; every dump has such rows."""
        return sum(self.strays[reason] for reason in self.strays if reason.endswith(_WITHOUT_POST))

    def __str__(self) -> str:
        filtered = f", filtered {self.filtered:,}" if self.filtered else ""
        without_post = self.without_post
        missing = f", {describe_part(without_post, self.rows, 'row')} no post" * bool(without_post)
        reasons = {
            reason: count
            for reason, count in self.strays.items()
            if not reason.endswith(_WITHOUT_POST)
        }
        strays = f", strays {list_by_name(reasons)}" if reasons else ""
        return f"{self.nested:,} of {self.rows:,}{filtered}{missing}{strays}"


@dataclass(slots=True, kw_only=True)
class RowCounts(Counts):
    """Counts of the posts of a dump and of the rows of its tables, by outcome.

    Attributes:
        rows: Number of rows in `Posts.xml`.
        questions: Documents written.
        answers: Answers nested in documents.
        strays: Rows of `Posts.xml` that belong to no document, by reason.
        other_types: Posts other than questions and answers, by the name of their type.
        filtered: Questions and answers left out by the filters.
        dropped: Posts in `drop_posts`, and posts and comments of users in `drop_users`; they are
            also counted as filtered.
        records: Records made by the recipe; None without a recipe.
        without_record: Documents from which the recipe made no record; None without a recipe.
        linked_elsewhere: Documents left out by `without_linked`, also counted in `without_record`;
            None without this option.
        unchanged: With `as_of`, questions and answers whose body is that of the dump.
        restored: With `as_of`, questions and answers whose body comes from a revision.
        first_day: The day on which the oldest kept post was created; empty if unknown.
        last_day: The day on which the latest kept post was created; empty if unknown.
        last_row: With `as_of`, the date of the latest row of all tables that were read.
        repaired_characters: Number of characters that XML forbids and that were replaced by U+FFFD.
        tables: Counts of each requested table, by name.
    """

    rows: int = 0
    questions: int = 0
    answers: int = 0
    strays: Counter[str] = field(default_factory=Counter)
    other_types: Counter[str] = field(default_factory=Counter)
    filtered: int = 0
    dropped: int = 0
    records: int | None = None
    without_record: int | None = None
    linked_elsewhere: int | None = None
    unchanged: int | None = None
    restored: int | None = None
    first_day: str = field(default="", metadata=LEAST)
    last_day: str = field(default="", metadata=MOST)
    last_row: str | None = field(default=None, metadata=MOST)
    repaired_characters: int = 0
    tables: dict[str, TableCounts] = field(default_factory=dict, metadata={_KIND: TableCounts})


@dataclass(slots=True, kw_only=True)
class ChunkTally(RowCounts):
    """Row counts of a parsed chunk, and data needed to combine chunks.

    Attributes:
        lines: Number of line feeds.
        last_id: `Id` of the last row with an `Id`.
        notes: What a step noted, for its preparation of the second pass.
    """

    lines: int = 0
    last_id: int | None = None
    notes: dict[str, str] = field(default_factory=dict)

    def count_rows(self, count: int, last_id: int | None = None) -> None:
        """Add `count` rows, the last one with `last_id`; None if it has no usable `Id`."""
        self.rows += count
        if last_id is not None:
            self.last_id = last_id


def list_by_name(counts: dict[str, int]) -> str:
    """Format the sum of counts with its parts, such as `3 (malformed_row 1, repeated_id 2)`."""
    total = sum(counts.values())
    if not total:
        return "0"
    names = ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))
    return f"{total:,} ({names})"
