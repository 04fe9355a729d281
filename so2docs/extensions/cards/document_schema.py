"""The JSON Schema (2020-12) of a document.

The schema depends on the options alone, like the Parquet columns. Attributes other than those known
for a question or an answer may be texts, integers or lists. Numbers beyond 64 bits remain strings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from so2docs.options.table import Options
from so2docs.plugin import POSTS
from so2docs.schema import (
    ANSWER_ATTRIBUTES,
    QUESTION_ATTRIBUTES,
    Attributes,
    Part,
    Type,
    select_parts,
)

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
VERSION = 1
"""Version of the schemas. Increase it with each change that breaks readers."""

TEXT: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
_AUTHOR: Schema = {
    "type": "object",
    "properties": {"DisplayName": TEXT, "Url": TEXT},
    "required": ["DisplayName"],
}
_NUMBER: Schema = {"type": ["integer", "string"]}
_NEVER_TEXT = frozenset({"Id", "PostTypeId", "ParentId", "PostId"})
"""Attributes that are always numbers: rows in which they are not numbers are strays."""

_UNKNOWN: Schema = {"type": ["integer", "string", "array"]}


def array(items: Schema) -> Schema:
    """Make the schema of a list of values."""
    return {"type": "array", "items": items}


def build_schema(options: Options) -> dict[str, Any]:
    """Build the JSON Schema of the documents of a conversion with these options."""
    return name_schema("questions", "A question with its answers", _question(options))


def name_schema(name: str, title: str, schema: Schema) -> dict[str, Any]:
    """Add dialect, id and title to the JSON Schema of documents or records."""
    return {"$schema": DIALECT, "$id": f"urn:so2docs:{name}:{VERSION}", "title": title, **schema}


def _question(options: Options) -> Schema:
    schema = _post(options, "", QUESTION_ATTRIBUTES)
    properties = schema["properties"]
    if options.is_attributed:
        properties |= {"Licenses": array(TEXT), "Authors": array(_AUTHOR)}
        schema["required"] += ["Licenses", "Authors"]
    if options.site_field is not None:
        properties[options.site_field[0]] = {"const": options.site_field[1]}
        schema["required"].append(options.site_field[0])
    if options.filters.selected.has_answers:
        answer = _post(options, "Answers.", ANSWER_ATTRIBUTES)
        if options.filters.selected.has_answer("ParentId"):
            answer["required"].append("ParentId")
        properties["Answers"] = array(answer)
        schema["required"].append("Answers")
    return schema


def _post(options: Options, prefix: str, names: Sequence[str]) -> Schema:
    fields = options.filters.selected
    own = {name: POSTS.attributes[name] for name in names if fields.has(prefix + name)}
    schema = _row(own)
    schema["required"] = [name for name in ("Id", "PostTypeId") if name in own]
    for part in select_parts(options.shown, fields.has, prefix):
        schema["properties"][part.key] = _part(options, part)
        if part.is_always_there:
            schema["required"].append(part.key)
    if options.is_attributed:
        schema["properties"]["Url"] = TEXT
        schema["required"].append("Url")
    return schema


def _part(options: Options, part: Part) -> Schema:
    if part.shape == "value":
        return _value(part.key, part.attributes[part.key])
    if part.shape == "counts":
        properties = dict.fromkeys(part.attributes, INTEGER)
        return {"type": "object", "properties": properties, "additionalProperties": INTEGER}
    record = _row(part.attributes)
    if part.is_open:
        record["additionalProperties"] = True
    record["properties"] |= {inner.key: _part(options, inner) for inner in part.parts}
    if part.by and options.is_attributed:
        record["properties"]["Url"] = TEXT
    return array(record) if part.shape == "list" else record


def _row(attributes: Attributes) -> Schema:
    return {
        "type": "object",
        "properties": {name: _value(name, kind) for name, kind in attributes.items()},
        "additionalProperties": _UNKNOWN,
    }


def _value(name: str, kind: Type) -> Schema:
    if kind == "texts":
        return array(TEXT)
    if kind == "integers":
        return array(INTEGER)
    if name in _NEVER_TEXT:
        return INTEGER
    return _NUMBER if kind == "integer" else TEXT
