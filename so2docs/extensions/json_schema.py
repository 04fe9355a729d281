"""The JSON Schemas (2020-12) of documents and of records: the description of all their columns.

The columns of Parquet, the tables in cards and the features for `datasets` follow from them. The
schema of documents depends on the options alone. Attributes other than those known for a question
or an answer may be texts, integers or lists. Numbers beyond 64 bits remain strings.

The records of a recipe are declared as a `TypedDict`. The text of an `Annotated` field is its
meaning, which schemas and cards contain. JSON Schema:
https://json-schema.org/draft/2020-12/schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    NotRequired,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from so2docs.plugin import ANSWERS, POSTS, OptionError
from so2docs.schema import (
    ANSWER_ATTRIBUTES,
    QUESTION_ATTRIBUTES,
    Attributes,
    Part,
    Type,
    select_parts,
)

if TYPE_CHECKING:
    from so2docs.options.field_paths import Fields

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
VERSION = 1
"""Version of the schemas. Increase it with each change that breaks readers."""

_TEXT: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
_NUMBER: Schema = {"type": ["integer", "string"]}
_UNKNOWN: Schema = {"type": ["integer", "string", "array"]}
_NEVER_TEXT = frozenset({"Id", "PostTypeId", "ParentId", "PostId"})
"""Attributes that are always numbers: rows in which they are not numbers are strays."""


def name_schema(name: str, title: str, schema: Schema) -> Schema:
    """Add dialect, id and title to the JSON Schema of documents or records."""
    return {"$schema": DIALECT, "$id": f"urn:so2docs:{name}:{VERSION}", "title": title, **schema}


def describe_documents(
    fields: Fields,
    tables: Sequence[str],
    site: tuple[str, str] | None = None,
    *,
    is_attributed: bool = False,
) -> Schema:
    """Make the JSON Schema of a document, with its members in their order.

    Args:
        fields: The selected fields.
        tables: The nested tables.
        site: Name of the field for the site, and its value.
        is_attributed: Whether documents contain an attribution.
    """
    added: Schema = {"Url": _TEXT} if is_attributed else {}

    def post(prefix: str, names: Sequence[str]) -> Schema:
        own = {name: POSTS.attributes[name] for name in names if fields.has(prefix + name)}
        parts = select_parts(tables, fields.has, prefix)
        properties = {part.key: _part(part, added) for part in parts} | added
        ids = [name for name in ("Id", "PostTypeId") if name in own]
        always = [part.key for part in parts if not (part.by or part.is_optional)]
        return _row(own, properties) | {"required": [*ids, *always, *added]}

    question = post("", QUESTION_ATTRIBUTES)
    members: Schema = {}
    if site is not None:
        members[site[0]] = {"const": site[1]}
    if is_attributed:
        author = {"DisplayName": _TEXT, **added}
        authors = {"type": "object", "properties": author, "required": ["DisplayName"]}
        members |= {"Licenses": _array(_TEXT), "Authors": _array(authors)}
    if fields.has_answers:
        answer = post(f"{ANSWERS}.", ANSWER_ATTRIBUTES)
        answer["required"] += ["ParentId"] if fields.has_answer("ParentId") else []
        members[ANSWERS] = _array(answer)
    question["properties"] |= members
    question["required"] += members
    return question


def _part(part: Part, added: Schema) -> Schema:
    if part.shape == "value":
        return _value(part.key, part.attributes[part.key])
    if part.shape == "counts":
        properties = dict.fromkeys(part.attributes, INTEGER)
        return {"type": "object", "properties": properties, "additionalProperties": INTEGER}
    inner = {inner.key: _part(inner, added) for inner in part.parts}
    record = _row(part.attributes, inner | (added if part.by else {}))
    if part.is_open:
        record["additionalProperties"] = True
    return _array(record) if part.shape == "list" else record


def _row(attributes: Attributes, parts: Schema) -> Schema:
    properties = {name: _value(name, kind) for name, kind in attributes.items()}
    return {"type": "object", "properties": properties | parts, "additionalProperties": _UNKNOWN}


def _value(name: str, kind: Type) -> Schema:
    if kind == "texts":
        return _array(_TEXT)
    if kind == "integers":
        return _array(INTEGER)
    if name in _NEVER_TEXT:
        return INTEGER
    return _NUMBER if kind == "integer" else _TEXT


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_NAMES: dict[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    NoneType: "null",
}
_PYTHON_TYPES: dict[str, Any] = {
    **{name: kind for kind, name in _NAMES.items()},
    "number": (int, float),
    "array": (list, tuple),
    "object": Mapping,
}


def describe_record(record: type) -> Schema:
    """Make the JSON Schema of an object with exactly the fields of a `TypedDict`.

    Raises:
        OptionError: A field has no type of JSON.
    """
    hints = get_type_hints(record, include_extras=True)
    return {
        "type": "object",
        "properties": {name: _describe_type(hint, name) for name, hint in hints.items()},
        "required": [name for name, hint in hints.items() if get_origin(hint) is not NotRequired],
        "additionalProperties": False,
    }


def _describe_type(hint: Any, name: str) -> Schema:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is NotRequired:
        return _describe_type(arguments[0], name)
    if origin is Annotated:
        return {**_describe_type(arguments[0], name), "description": arguments[1]}
    if origin is list:
        return _array(_describe_type(arguments[0], name))
    if origin is UnionType and set(arguments) <= _NAMES.keys():
        return {"type": [_NAMES[kind] for kind in arguments]}
    if is_typeddict(hint):
        return describe_record(hint)
    if hint in _NAMES:
        return {"type": _NAMES[hint]}
    raise OptionError(
        f"field {name} of a record is {hint}; use str, int, float, bool, a list or a TypedDict"
    )


def find_mismatch(value: Any, schema: Mapping[str, Any], path: str = "") -> str:
    """Describe the first mismatch between a value and a schema; empty if the value matches."""
    where = f"field {path}" if path else "the record"
    names = schema["type"]
    names = [names] if isinstance(names, str) else names
    if not any(_is_of(value, name) for name in names):
        return f"{where} is {type(value).__name__}; its schema says {' or '.join(names)}"
    if isinstance(value, Mapping):
        properties = schema["properties"]
        for name in schema["required"]:
            if name not in value:
                return f"{where} has no {name}, which its schema requires"
        for name, part in value.items():
            if name not in properties:
                return f"{where} has {name}, which its schema does not allow"
            inner = f"{path}.{name}" if path else name
            if mismatch := find_mismatch(part, properties[name], inner):
                return mismatch
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value):
            if mismatch := find_mismatch(part, schema["items"], f"{path}[{number}]"):
                return mismatch
    return ""


def _is_of(value: Any, name: str) -> bool:
    is_boolean = isinstance(value, bool)
    return isinstance(value, _PYTHON_TYPES[name]) and is_boolean == (name == "boolean")
