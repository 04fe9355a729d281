"""The columns of documents and of records in Parquet, as Arrow schemas.

The columns of questions, answers and nested rows depend on the options alone; those of a recipe's
records come from their JSON Schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from so2docs.options.field_paths import Fields
from so2docs.plugin import ANSWERS, POSTS, OptionError, flag
from so2docs.schema import (
    ANSWER_ATTRIBUTES,
    BOOLEAN,
    DATE,
    INTEGER,
    INTEGERS,
    OTHER,
    QUESTION_ATTRIBUTES,
    TEXT,
    TEXTS,
    Attributes,
    Part,
    Type,
    select_parts,
)

TYPES: dict[Type, pa.DataType] = {
    INTEGER: pa.int64(),
    TEXT: pa.string(),
    DATE: pa.timestamp("ms", tz="UTC"),
    BOOLEAN: pa.bool_(),
    TEXTS: pa.list_(pa.field("element", pa.string())),
    INTEGERS: pa.list_(pa.field("element", pa.int64())),
}
"""The Arrow types of attributes."""

_AUTHORS = "Authors"


@dataclass(frozen=True)
class Columns:
    """The columns of a Parquet file of documents or records.

    Attributes:
        schema: The columns.
        filled: Names of lists that are empty, and of objects of counts that are zero, where they
            are missing.
        is_open: Whether objects may have members without a column, which are left out. If not,
            `Other` has their JSON.
    """

    schema: pa.Schema
    filled: frozenset[str] = frozenset()
    is_open: bool = False


def question_columns(
    fields: Fields,
    tables: Mapping[str, bool],
    site: tuple[str, str] | None,
    *,
    is_attributed: bool,
) -> Columns:
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
        authors = pa.struct(_members({"DisplayName": TEXT, "Url": TEXT}))
        parts.append(pa.field(_AUTHORS, _list_of(authors)))
    if fields.has_answers:
        answer = _members(*_post(fields, tables, f"{ANSWERS}.", ANSWER_ATTRIBUTES, added), "Id")
        parts.append(pa.field(ANSWERS, _list_of(pa.struct(answer)), nullable=False))
    filled = {_AUTHORS, ANSWERS, *_list_filled(select_parts(tables), tables)}
    return Columns(pa.schema(_members(attributes, parts, "Id")), frozenset(filled))


def _post(
    fields: Fields,
    tables: Mapping[str, bool],
    prefix: str,
    names: Sequence[str],
    added: Attributes,
) -> tuple[dict[str, Type], list[pa.Field]]:
    """Return the attributes and the nested parts of a post, in the order of the JSON object."""
    attributes = {name: POSTS.attributes[name] for name in names if fields.has(prefix + name)}
    values, parts = _divide(select_parts(tables, fields.has, prefix), added)
    return {**attributes, **values, **added}, parts


def _divide(parts: Iterable[Part], added: Attributes) -> tuple[Attributes, list[pa.Field]]:
    """Return the parts that are single values as attributes, and the columns of all others."""
    values = {part.key: part.attributes[part.key] for part in parts if part.shape == "value"}
    return values, [_part_column(part, added) for part in parts if part.shape != "value"]


def _part_column(part: Part, added: Attributes) -> pa.Field:
    values, parts = _divide(part.parts, added)
    attributes = {**part.attributes, **(added if part.by else {}), **values}
    members = pa.struct(_members(attributes, parts))
    return pa.field(part.key, _list_of(members) if part.shape == "list" else members)


def _list_filled(parts: Iterable[Part], tables: Mapping[str, bool]) -> set[str]:
    """Return the keys of the lists and objects of counts that are never null."""
    keys = set()
    for part in parts:
        if part.shape in ("list", "counts") and tables[part.table]:
            keys.add(part.key)
        keys |= _list_filled(part.parts, tables)
    return keys


def _members(
    attributes: Attributes, parts: Sequence[pa.Field] = (), required: str = ""
) -> list[pa.Field]:
    """Return the columns of objects: the attributes, then `OTHER`, then the nested parts."""
    columns = [
        pa.field(name, TYPES[kind], nullable=name != required) for name, kind in attributes.items()
    ]
    return [*columns, pa.field(OTHER, pa.string()), *parts]


def _list_of(element: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", element))


def record_columns(schema: Mapping[str, Any]) -> Columns:
    """Return the columns of a recipe's records, from the JSON Schema of a record.

    Raises:
        OptionError: A member has a type without a column.
    """
    return Columns(pa.schema(_record_members(schema)), is_open=True)


def _record_members(schema: Mapping[str, Any]) -> list[pa.Field]:
    required = schema.get("required", ())
    return [
        pa.field(name, _record_type(member), nullable=name not in required)
        for name, member in schema["properties"].items()
    ]


_RECORD_TYPES = {
    "string": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
}


def _record_type(schema: Mapping[str, Any]) -> pa.DataType:
    kind = schema.get("type")
    if kind == "object" and schema.get("properties"):
        return pa.struct(_record_members(schema))
    if kind == "array" and "items" in schema:
        return _list_of(_record_type(schema["items"]))
    if not isinstance(kind, str) or kind not in _RECORD_TYPES:
        raise OptionError(f"{flag('format', 'parquet')}: no column type for {dict(schema)!r}")
    return _RECORD_TYPES[kind]


def count_leaves(columns: Iterable[pa.Field]) -> int:
    """Count the columns of single values, at any depth."""
    return sum(
        count_leaves(map(column.type.field, range(column.type.num_fields))) or 1
        for column in columns
    )
