"""The columns of documents in formats with fixed columns, as a tree.

The columns of questions, answers and nested rows depend on the options alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any

import orjson

from so2docs.options.field_paths import Fields
from so2docs.schema import (
    ANSWER_ATTRIBUTES,
    ANSWERS,
    POSTS,
    QUESTION_ATTRIBUTES,
    TEXT,
    TEXTS,
    Attributes,
    Part,
    Shape,
    Type,
    select_parts,
)

Row = dict[str, Any]
"""A document, or an object in it."""

_NONE: set[str] = set()


@dataclass(frozen=True)
class ObjectColumns:
    """The columns of a document, or of the objects under one of its keys.

    The column `OTHER` is between attributes and parts.

    Attributes:
        is_post: Whether the object is a post, whose `Id` and `Answers` are never null.
        key: The key; empty for a document.
        shape: Shape of the value under the key.
    """

    attributes: Attributes
    parts: tuple[ObjectColumns, ...] = ()
    is_post: bool = False
    key: str = ""
    shape: Shape = "record"

    def is_required(self, name: str) -> bool:
        """Return whether a column is never null."""
        return self.is_post and name in ("Id", ANSWERS)

    def split(
        self, rows: list[Row], convert: Callable[[Type, list[Any]], Any]
    ) -> tuple[list[Any], list[str | None], list[list[Any]]]:
        """Split objects into columns; this removes the nested parts from the objects.

        `convert` converts the values of an attribute to a column, and raises `TypeError` or
        `ValueError` for values of another type.

        Returns:
            The columns of the attributes; the values of `OTHER`, which are the JSON of all values
            without a column or of another type; the values of each part, one for each object.
        """
        nested = [_nested_values(part, rows) for part in self.parts]
        misfits: dict[int, set[str]] = {}
        names = self.attributes.keys()
        columns = [
            _column(name, rows, misfits, partial(convert, kind))
            for name, kind in self.attributes.items()
        ]
        other = [
            orjson.dumps(
                {name: row[name] for name in row if name not in names or name in misfit}
            ).decode()
            if (misfit := misfits.get(index, _NONE)) or row.keys() - names
            else None
            for index, row in enumerate(rows)
        ]
        return columns, other, nested


def _nested_values(part: ObjectColumns, rows: list[Row]) -> list[Any]:
    values = [row.pop(part.key, None) for row in rows]
    if part.shape == "list":
        return [value or [] for value in values]
    if part.shape == "counts":
        none = dict.fromkeys(part.attributes, 0)
        return [none | (value or {}) for value in values]
    return values


def _column(
    name: str,
    rows: list[Row],
    misfits: dict[int, set[str]],
    convert: Callable[[list[Any]], Any],
) -> Any:
    """Convert the values of an attribute; add it to the `misfits` of rows with another type."""
    try:
        values = [*map(itemgetter(name), rows)]  # Fast path: most attributes are in every row.
    except KeyError:
        values = [row.get(name) for row in rows]
    try:
        return convert(values)
    except (TypeError, ValueError):
        pass
    for index, value in enumerate(values):
        try:
            convert([value])
        except (TypeError, ValueError):
            values[index] = None
            misfits.setdefault(index, set()).add(name)
    return convert(values)


def question_columns(
    fields: Fields,
    tables: Sequence[str],
    site: tuple[str, str] | None,
    *,
    is_attributed: bool,
) -> ObjectColumns:
    """Return the columns of a document; the site follows the attributes, as in the JSON object."""
    added: Attributes = {"Url": TEXT} if is_attributed else {}
    question = _post(fields, tables, "", QUESTION_ATTRIBUTES, added)
    attributes, parts = dict(question.attributes), question.parts
    if site is not None:
        attributes[site[0]] = TEXT
    if is_attributed:
        attributes["Licenses"] = TEXTS
        author: Attributes = {"DisplayName": TEXT, "Url": TEXT}
        parts = (*parts, ObjectColumns(author, key="Authors", shape="list"))
    if fields.has_answers:
        answers = _post(fields, tables, f"{ANSWERS}.", ANSWER_ATTRIBUTES, added)
        parts = (*parts, replace(answers, key=ANSWERS, shape="list"))
    return replace(question, attributes=attributes, parts=parts)


def _post(
    fields: Fields, tables: Sequence[str], prefix: str, names: Sequence[str], added: Attributes
) -> ObjectColumns:
    """Return the columns of a post (attributes, nested parts) in the order of the JSON object."""
    attributes = {name: POSTS.attributes[name] for name in names if fields.has(prefix + name)}
    return _object_columns(
        attributes, select_parts(tables, fields.has, prefix), added, is_post=True
    )


def _object_columns(
    attributes: Attributes,
    parts: Iterable[Part],
    added: Attributes,
    *,
    is_post: bool = False,
    key: str = "",
    shape: Shape = "record",
) -> ObjectColumns:
    values = {part.key: part.attributes[part.key] for part in parts if part.shape == "value"}
    inner = tuple(_part_columns(part, added) for part in parts if part.shape != "value")
    all_attributes = {**attributes, **values, **(added if is_post else {})}
    return ObjectColumns(all_attributes, inner, is_post, key, shape)


def _part_columns(part: Part, added: Attributes) -> ObjectColumns:
    attributes = {**part.attributes, **(added if part.by else {})}
    return _object_columns(attributes, part.parts, added, key=part.key, shape=part.shape)
