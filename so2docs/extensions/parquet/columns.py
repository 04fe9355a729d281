"""The columns of documents in formats with fixed columns, as a tree.

The columns of questions, answers and nested rows depend on the options alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

import orjson

from so2docs.extensions.parquet.row_group import ELEMENTS, Column, Convert, Group, Node, Repeated
from so2docs.options.field_paths import Fields
from so2docs.schema import (
    ANSWER_ATTRIBUTES,
    ANSWERS,
    OTHER,
    POSTS,
    QUESTION_ATTRIBUTES,
    TEXT,
    TEXTS,
    Attributes,
    Part,
    Row,
    Type,
    select_parts,
)

_NONE: set[str] = set()


def question_columns(
    fields: Fields,
    tables: Mapping[str, bool],
    site: tuple[str, str] | None,
    *,
    is_attributed: bool,
) -> Group:
    """Return the columns of a document, in the order of the JSON object.

    Args:
        fields: The selected fields.
        tables: The tables to nest, and whether the dump has them. The columns of a table that it
            lacks contain only nulls, so that the files of all sites have the same columns.
        site: Name of the field for the site, and its value.
        is_attributed: Whether documents contain an attribution.
    """
    added: Attributes = {"Url": TEXT} if is_attributed else {}
    attributes, parts = _post(fields, tables, "", QUESTION_ATTRIBUTES, added)
    if site is not None:
        attributes[site[0]] = TEXT
    if is_attributed:
        attributes["Licenses"] = TEXTS
        authors = object_columns({"DisplayName": TEXT, "Url": TEXT}, name="element")
        parts.append(Repeated("Authors", authors, is_never_null=True))
    if fields.has_answers:
        answer = object_columns(
            *_post(fields, tables, f"{ANSWERS}.", ANSWER_ATTRIBUTES, added), "element", is_post=True
        )
        parts.append(Repeated(ANSWERS, answer, is_required=True, is_never_null=True))
    return replace(object_columns(attributes, parts, is_post=True), is_required=True)


def _post(
    fields: Fields,
    tables: Mapping[str, bool],
    prefix: str,
    names: Sequence[str],
    added: Attributes,
) -> tuple[dict[str, Type], list[Node]]:
    """Return the attributes and the nested parts of a post, in the order of the JSON object."""
    attributes = {name: POSTS.attributes[name] for name in names if fields.has(prefix + name)}
    values, parts = _divide(select_parts(tables, fields.has, prefix), tables, added)
    return {**attributes, **values, **added}, parts


def _divide(
    parts: Iterable[Part], tables: Mapping[str, bool], added: Attributes
) -> tuple[Attributes, list[Node]]:
    """Return the parts that are single values as attributes, and the columns of all others."""
    values = {part.key: part.attributes[part.key] for part in parts if part.shape == "value"}
    return values, [_part_columns(part, tables, added) for part in parts if part.shape != "value"]


def _part_columns(part: Part, tables: Mapping[str, bool], added: Attributes) -> Node:
    values, parts = _divide(part.parts, tables, added)
    attributes = {**part.attributes, **(added if part.by else {}), **values}
    if part.shape == "list":
        element = object_columns(attributes, parts, "element")
        return Repeated(part.key, element, is_never_null=tables[part.table])
    group = object_columns(attributes, parts, part.key)
    return replace(group, holds_counts=part.shape == "counts" and tables[part.table])


def object_columns(
    attributes: Attributes, parts: Sequence[Node] = (), name: str = "", *, is_post: bool = False
) -> Group:
    """Return the columns of objects: the attributes, then `OTHER`, then the parts.

    Args:
        attributes: Names and types of the attributes.
        parts: Columns of the nested parts.
        name: Key of the objects; empty for rows.
        is_post: Whether the objects are posts, whose `Id` is never null.
    """
    children: list[Node] = []
    for attribute, kind in attributes.items():
        is_required = is_post and attribute == "Id"
        if kind in ELEMENTS:
            children.append(Repeated(attribute, Column("element", ELEMENTS[kind]), is_required))
        else:
            children.append(Column(attribute, kind, is_required))
    children += [Column(OTHER, TEXT, is_other=True), *parts]
    return Group(name, tuple(children), partial(_split, attributes, tuple(parts)))


def _split(
    attributes: Attributes, parts: Sequence[Node], rows: list[Row], convert: Convert
) -> list[Any]:
    """Split objects into columns; this removes the nested parts from the objects.

    `OTHER` is the JSON of all values without a column or of another type.
    """
    nested = [_nested_values(part, rows) for part in parts]
    misfits: dict[int, set[str]] = {}
    names = attributes.keys()
    columns = [
        _column(name, rows, misfits, partial(convert, kind)) for name, kind in attributes.items()
    ]
    other = [
        orjson.dumps(
            {name: row[name] for name in row if name not in names or name in misfit}
        ).decode()
        if (misfit := misfits.get(index, _NONE)) or row.keys() - names
        else None
        for index, row in enumerate(rows)
    ]
    return [*columns, convert(TEXT, other), *nested]


def _nested_values(part: Node, rows: list[Row]) -> list[Any]:
    values = [row.pop(part.name, None) for row in rows]
    if isinstance(part, Repeated):
        return [value or [] for value in values] if part.is_never_null else values
    if isinstance(part, Group) and part.holds_counts:
        none = {child.name: 0 for child in part.children if child.name != OTHER}
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
