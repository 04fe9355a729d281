"""The JSON Schema of the records of a recipe, which are declared as a `TypedDict`.

The text of an `Annotated` field is its meaning, which schemas and cards contain. JSON Schema:
https://json-schema.org/draft/2020-12/schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

from so2docs.errors import OptionError

Schema = dict[str, Any]

_NAMES: dict[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    NoneType: "null",
}
_PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": (list, tuple),
    "object": Mapping,
    "null": NoneType,
}


def build_schema(record: type) -> Schema:
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
        return {"type": "array", "items": _describe_type(arguments[0], name)}
    if origin is UnionType and set(arguments) <= _NAMES.keys():
        return {"type": [_NAMES[kind] for kind in arguments]}
    if is_typeddict(hint):
        return build_schema(hint)
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
