"""The columns of documents and of records in Parquet, as Arrow schemas, from their JSON Schema."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from so2docs.extensions.json_schema import INTEGER as COUNT
from so2docs.plugin import ANSWERS, OptionError, flag
from so2docs.schema import BOOLEAN, DATE, DATES, INTEGER, OTHER, TEXT, TEXTS, paths

TYPES: dict[str, pa.DataType] = {
    INTEGER: pa.int64(),
    BOOLEAN: pa.bool_(),
    TEXT: pa.string(),
    DATE: pa.timestamp("ms", tz="UTC"),
    TEXTS: pa.list_(pa.field("element", pa.string())),
    "string": pa.string(),
    "number": pa.float64(),
}
"""The Arrow types of attributes, and of values in JSON Schema, where integers and booleans have the
same names."""


@dataclass(frozen=True)
class Columns:
    """The columns of a Parquet file of documents or records.

    Attributes:
        schema: The columns.
        filled: Names of lists that are empty, and of objects of counts that are zero, where they
            are missing.
    """

    schema: pa.Schema
    filled: frozenset[str] = frozenset()


def question_columns(schema: Mapping[str, Any], absent: Collection[str]) -> Columns:
    """Return the columns of a document, in the order of the JSON object.

    Args:
        schema: JSON Schema of a document.
        absent: Tables that the dump lacks. Their columns contain only nulls, so that the files of
            all sites have the same columns.
    """
    missing = {part.key for _, part in paths() if part.table in absent}
    columns = pa.schema(_members(schema, of_document=True))
    return Columns(columns, frozenset(_list_filled(schema)) - missing)


def record_columns(schema: Mapping[str, Any]) -> Columns:
    """Return the columns of a recipe's records, from the JSON Schema of a record.

    Raises:
        OptionError: A member has a type without a column.
    """
    return Columns(pa.schema(_members(schema, of_document=False)))


def _members(schema: Mapping[str, Any], *, of_document: bool) -> list[pa.Field]:
    """Return the columns of objects.

    In documents, these are the single values, then `OTHER`, then the nested parts. Only the ids and
    the answers of posts are never null there.
    """
    never_null = {*schema.get("required", ())}
    if of_document:
        never_null &= {"Id", ANSWERS}
    columns = [
        pa.field(
            name, _type_of(kind, name, of_document=of_document), nullable=name not in never_null
        )
        for name, kind in schema["properties"].items()
    ]
    if not of_document:
        return columns
    nested = [column for column in columns if _has_members(column.type)]
    values = [column for column in columns if column not in nested]
    return [*values, pa.field(OTHER, pa.string()), *nested]


def _type_of(schema: Mapping[str, Any], name: str, *, of_document: bool) -> pa.DataType:
    kind = schema.get("type", "string" if "const" in schema else None)
    if kind == "object" and (of_document or schema.get("properties")):
        return pa.struct(_members(schema, of_document=of_document))
    if kind == "array" and "items" in schema:
        element = _type_of(schema["items"], name, of_document=of_document)
        return pa.list_(pa.field("element", element))
    if of_document and name in DATES:
        return TYPES[DATE]
    if of_document and kind == ["integer", "string"]:
        kind = INTEGER  # Numbers beyond 64 bits, which are strings, go to `OTHER`.
    if not isinstance(kind, str) or kind not in TYPES:
        raise OptionError(f"{flag('format', 'parquet')}: no column type for {dict(schema)!r}")
    return TYPES[kind]


def _has_members(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind.value_type if pa.types.is_list(kind) else kind))


def _list_filled(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the lists and objects of counts in a document that are never null."""
    for name, kind in schema["properties"].items():
        members = kind.get("items", kind)
        if "properties" in members:
            if members is not kind or kind["additionalProperties"] == COUNT:
                yield name
            yield from _list_filled(members)
