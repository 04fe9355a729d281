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
    ALL_NUMBERS,
    ANSWER_ATTRIBUTES,
    COMMENT_ATTRIBUTES,
    COMMENT_USER,
    DATES,
    LINK_ATTRIBUTES,
    QUESTION_ATTRIBUTES,
    TABLES,
    USER_ATTRIBUTES,
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
    fields, tables = options.filters.fields, options.nest
    found = _row(options, prefix, names)
    found["required"] = [name for name in ("Id", "PostTypeId") if fields.has(prefix + name)]
    properties = found["properties"]
    for name in tables:
        key = TABLES[name].key
        if key and fields.has(prefix + key):
            properties[key] = _nested(name, options, f"{prefix}{key}.")
            found["required"].append(key)
    if "users" in tables:
        users = [key for key in ("Owner", "LastEditor") if fields.has(prefix + key)]
        properties |= {key: _user(options, f"{prefix}{key}.") for key in users}
    if options.is_attributed:
        properties["Url"] = TEXT
        found["required"].append("Url")
    return found


def _nested(table: str, options: Options, path: str) -> Schema:
    fields = options.filters.fields
    if table == "votes":
        return {"type": "object", "additionalProperties": INTEGER}
    if table == "links":
        return array(_row(options, path, LINK_ATTRIBUTES))
    comment = _row(options, path, COMMENT_ATTRIBUTES)
    if "users" in options.nest and fields.has(path + COMMENT_USER):
        comment["properties"][COMMENT_USER] = _user(options, f"{path}{COMMENT_USER}.")
    return array(comment)


def _user(options: Options, path: str) -> Schema:
    user = _row(options, path, USER_ATTRIBUTES)
    if options.is_attributed:
        user["properties"]["Url"] = TEXT
    return user


def _row(options: Options, path: str, names: Sequence[str]) -> Schema:
    fields = options.filters.fields
    kept = [name for name in names if fields.has(path + name)]
    return {
        "type": "object",
        "properties": {name: _value(name, options) for name in kept},
        "additionalProperties": _UNKNOWN,
    }


def _value(name: str, options: Options) -> Schema:
    if name == "Tags":
        return array(TEXT)
    if name in ("Id", "PostTypeId", "ParentId", "PostId"):
        return INTEGER
    if name in DATES and options.form.has_dates:
        return _DATE
    return _NUMBER if name in ALL_NUMBERS else TEXT
