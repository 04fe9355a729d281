"""Flat metadata: scalars in place of objects and lists, for vector stores that accept nothing else.

The names of nested fields are joined with `_`: `answer.url` becomes `answer_url`. A list becomes a
text of its values, separated by `, `. A list of objects becomes one such text for each member, for
example `authors_name` and `authors_url`, with an empty value where a member is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from so2docs.recipes.recipe import METADATA, TEXT, JsonSchema, Record, Schema


def flatten_record_schema(schema: JsonSchema) -> Schema:
    """Convert the schema of a record to that of the record that `flatten_record` returns."""
    metadata = schema.get("properties", {}).get(METADATA)
    if metadata is None:
        return _flatten_schema(schema)
    flat = _flatten_schema(metadata) if "properties" in metadata else TEXT
    return {**schema, "properties": {**schema["properties"], METADATA: flat}}


def flatten_record(record: Mapping[str, Any], schema: JsonSchema) -> Record:
    """Flatten the column `metadata` of a record, or the whole record if it has no such column."""
    metadata = schema["properties"].get(METADATA)
    if metadata is None:
        return _flatten(record, schema)
    if METADATA not in record:
        return dict(record)
    value = record[METADATA]
    flat = _flatten(value, metadata) if "properties" in metadata else _join(value)
    return {**record, METADATA: flat}


def _flatten_schema(schema: JsonSchema) -> Schema:
    columns = list(_columns(schema))
    return {
        **schema,
        "properties": {name: kind for name, kind, _ in columns},
        "required": [name for name, _, is_required in columns if is_required],
    }


def _columns(schema: JsonSchema) -> Iterator[tuple[str, Schema, bool]]:
    """Yield the name and schema of each flat member of an object, and whether it is required."""
    for name, kind in schema.get("properties", {}).items():
        is_required = name in schema.get("required", ())
        is_list = kind.get("type") == "array"
        inner = kind.get("items", {}) if is_list else kind
        if "properties" not in inner:
            yield name, TEXT if is_list else kind, is_required
            continue
        for member, member_kind, is_inner_required in _columns(inner):
            flat_kind = TEXT if is_list else member_kind
            yield f"{name}_{member}", flat_kind, is_required and (is_list or is_inner_required)


def _flatten(row: Mapping[str, Any], schema: JsonSchema) -> Record:
    flat: Record = {}
    for name, value in row.items():
        kind = schema["properties"].get(name, {})
        items = kind.get("items", {})
        if "properties" in kind:
            flat |= {f"{name}_{member}": part for member, part in _flatten(value, kind).items()}
        elif "properties" in items:
            rows = [_flatten(item, items) for item in value]
            for member, *_ in _columns(items):
                flat[f"{name}_{member}"] = _join(row.get(member, "") for row in rows)
        else:
            flat[name] = _join(value) if kind.get("type") == "array" else value
    return flat


def _join(values: Iterable[Any]) -> str:
    return ", ".join(map(str, values))
