"""Words for the JSON Schema of a record (https://json-schema.org/draft/2020-12/schema)."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
BOOLEAN: Schema = {"type": "boolean"}


def array(items: Schema) -> Schema:
    """Any number of values."""
    return {"type": "array", "items": items}


def record(**properties: Schema) -> Schema:
    """An object that has just these members."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
