"""The JSON Schema (2020-12) of what a conversion writes: of a document, or of a recipe's record.

From the options alone, as the columns of Parquet are. Attributes that no schema knows are kept in
documents: texts, or numbers and tags where another post has such; a number that is none of 64 bits
stays a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from so2docs.errors import OptionError
from so2docs.options.table import Options
from so2docs.recipes.attribution import AUTHORS
from so2docs.recipes.json_schema import INTEGER, TEXT, Schema, array
from so2docs.schema import (
    ANSWER_ATTRIBUTES,
    POSTS,
    QUESTION_ATTRIBUTES,
    Attributes,
    Part,
    Type,
    parts_of,
)

DIALECT = "https://json-schema.org/draft/2020-12/schema"
VERSION = 1
"""Of the contract; a change that breaks readers makes it one more."""

_NUMBER: Schema = {"type": ["integer", "string"]}
_DATE: Schema = {
    "anyOf": [
        {
            "type": "object",
            "properties": {"$date": TEXT},
            "required": ["$date"],
            "additionalProperties": False,
        },
        TEXT,
    ]
}
"""In the form for MongoDB: what is none stays a text."""

_NEVER_TEXT = frozenset({"Id", "PostTypeId", "ParentId", "PostId"})
"""Numbers without which a row has no place in a document."""

_UNKNOWN: Schema = {"type": ["integer", "string", "array"]}


def schema_of(options: Options) -> dict[str, Any]:
    """The JSON Schema of each line that a conversion with these options writes.

    Raises:
        OptionError: The recipe does not say what its records are.
    """
    if options.recipe is None:
        found = _question(options)
        name, title = "questions", "A question with its answers"
    else:
        recipe = options.recipe.recipe
        if recipe.schema is None:
            raise OptionError(f"recipe {recipe.name} has no schema; give a Recipe that has one")
        found = dict(recipe.schema)
        name, title = recipe.name, f"A record of recipe {recipe.name}"
    return {"$schema": DIALECT, "$id": f"urn:so2docs:{name}:{VERSION}", "title": title, **found}


def _question(options: Options) -> Schema:
    found = _post(options, "", QUESTION_ATTRIBUTES)
    properties = found["properties"]
    if options.is_attributed:
        properties |= {"Licenses": array(TEXT), "Authors": AUTHORS}
        found["required"] += ["Licenses", "Authors"]
    if options.form.format == "mongodb":
        properties["_id"] = TEXT if options.site_field else INTEGER
        found["required"].append("_id")
    if options.site_field is not None:
        properties[options.site_field[0]] = {"const": options.site_field[1]}
        found["required"].append(options.site_field[0])
    if options.filters.fields.has_answers:
        answer = _post(options, "Answers.", ANSWER_ATTRIBUTES)
        if options.filters.fields.has_answer("ParentId"):
            answer["required"].append("ParentId")
        properties["Answers"] = array(answer)
        found["required"].append("Answers")
    return found


def _post(options: Options, prefix: str, names: Sequence[str]) -> Schema:
    fields = options.filters.fields
    own = {name: POSTS.attributes[name] for name in names if fields.has(prefix + name)}
    found = _row(options, own)
    found["required"] = [name for name in ("Id", "PostTypeId") if name in own]
    for part in parts_of(options.nest, fields.has, prefix):
        found["properties"][part.key] = _part(options, part)
        if part.is_always_there:
            found["required"].append(part.key)
    if options.is_attributed:
        found["properties"]["Url"] = TEXT
        found["required"].append("Url")
    return found


def _part(options: Options, part: Part) -> Schema:
    if part.shape == "value":
        return _value(part.key, part.attributes[part.key], options)
    if part.shape == "counts":
        known = dict.fromkeys(part.attributes, INTEGER)
        return {"type": "object", "properties": known, "additionalProperties": INTEGER}
    record = _row(options, part.attributes)
    if part.is_open:
        record["additionalProperties"] = True
    record["properties"] |= {held.key: _part(options, held) for held in part.parts}
    if part.by and options.is_attributed:
        record["properties"]["Url"] = TEXT
    return array(record) if part.shape == "list" else record


def _row(options: Options, attributes: Attributes) -> Schema:
    return {
        "type": "object",
        "properties": {name: _value(name, kind, options) for name, kind in attributes.items()},
        "additionalProperties": _UNKNOWN,
    }


def _value(name: str, kind: Type, options: Options) -> Schema:
    if kind == "texts":
        return array(TEXT)
    if kind == "integers":
        return array(INTEGER)
    if name in _NEVER_TEXT:
        return INTEGER
    if kind == "date" and options.form.has_dates:
        return _DATE
    return _NUMBER if kind == "integer" else TEXT
