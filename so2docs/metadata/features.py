"""Features of a data set, as the front matter of a card says them to Hugging Face.

From the JSON Schema of its records. The form is that of `datasets.Features` in YAML
(`Features._to_yaml_list`), which `load_dataset` takes in place of a guess from the first rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

_PLAIN = {"string": "string", "integer": "int64", "number": "float64", "boolean": "bool"}


def features(schema: Mapping[str, Any], indent: str = "  ") -> list[str] | None:
    """Lines of YAML for the members of an object; None if they have no types of columns.

    Args:
        schema: JSON Schema of a record, or of an object in it.
        indent: What each line starts with.
    """
    lines: list[str] = []
    for name, kind in schema.get("properties", {}).items():
        lines_inside = _feature(kind, indent + "  ")
        if lines_inside is None:
            return None
        lines += [f"{indent}- name: {json.dumps(name)}", *lines_inside]
    return lines or None


def _feature(schema: Mapping[str, Any], indent: str) -> list[str] | None:
    kind = schema.get("type", "string" if "const" in schema else None)
    if isinstance(kind, list):  # A number that is none of 64 bits stays a text.
        kind = kind[0]
    if kind == "array":
        items = schema.get("items", {})
        if items.get("type") in _PLAIN:
            return [f"{indent}sequence: {_PLAIN[items['type']]}"]
        return _of_object("list", items, indent)
    if kind == "object":
        return _of_object("struct", schema, indent)
    return [f"{indent}dtype: {_PLAIN[kind]}"] if kind in _PLAIN else None


def _of_object(word: str, schema: Mapping[str, Any], indent: str) -> list[str] | None:
    members = features(schema, indent)
    return None if members is None else [f"{indent}{word}:", *members]


def dataset_info(
    configurations: list[tuple[str, int, int, Mapping[str, Any] | None]],
) -> Iterator[str]:
    """The lines of `dataset_info`, which `datasets` ignores without the bytes.

    Args:
        configurations: Of each its name, the number of its records, the bytes of its files, and the
            JSON Schema of a record; None if Hugging Face is to tell the columns by the files.
    """
    yield "dataset_info:"
    for name, count, size, schema in configurations:
        yield f"- config_name: {json.dumps(name)}"
        columns = None if schema is None else features(schema)
        if columns is not None:
            yield "  features:"
            yield from columns
        yield "  splits:"
        yield "  - name: train"
        yield f"    num_bytes: {size}"
        yield f"    num_examples: {count}"
        yield f"  download_size: {size}"
        yield f"  dataset_size: {size}"
