"""`croissant.json`: the same as the card for catalogues and loaders that read Croissant.

Croissant 1.1 (https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html): a file object for
each file with its SHA-256, a record set for each output, and a field for each member of a record;
lists are `repeated`, and what is in an object is its `subField`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "citeAs": "cr:citeAs",
    **{
        name: f"cr:{name}"
        for name in (
            *("arrayShape", "column", "containedIn", "equivalentProperty", "excludes", "extract"),
            *("field", "fileObject", "fileProperty", "fileSet", "format", "includes", "isArray"),
            *("isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "readLines"),
            *("recordSet", "references", "regex", "repeated", "replace", "samplingRate"),
            *("sdVersion", "separator", "source", "subField", "transform", "unArchive", "value"),
        )
    },
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
}
_TYPES = {
    "string": "sc:Text",
    "integer": "sc:Integer",
    "number": "sc:Float",
    "boolean": "sc:Boolean",
}
_FORMATS = {".parquet": "application/x-parquet", ".json": "application/json"}
_LINES = "application/jsonlines"
_COMPRESSIONS = {".gz": "application/gzip", ".zst": "application/zstd"}


@dataclass(frozen=True, slots=True)
class RecordSet:
    """The records of an output.

    Attributes:
        name: Name of the configuration.
        schema: JSON Schema of a record; None if it is not known.
        files: Path, bytes and SHA-256 of each file.
        dates: Names of members that are dates in the files, not texts.
    """

    name: str
    schema: Mapping[str, Any] | None
    files: Sequence[tuple[str, int, str | None]]
    dates: frozenset[str] = frozenset()


def text(name: str, description: str, record_sets: Sequence[RecordSet]) -> str:
    """The file.

    Args:
        name: Name of the data set.
        description: What it is, in a sentence.
        record_sets: Its outputs.
    """
    described: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": name,
        "description": description,
        "license": "https://creativecommons.org/licenses/by-sa/4.0/",
        "distribution": [part for record_set in record_sets for part in _distribution(record_set)],
        "recordSet": [
            _record_set(record_set) for record_set in record_sets if record_set.schema is not None
        ],
    }
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"


def _distribution(record_set: RecordSet) -> Iterator[dict[str, Any]]:
    for path, size, sha256 in record_set.files:
        yield {
            "@type": "cr:FileObject",
            "@id": path,
            "name": path.rpartition("/")[2],
            "contentUrl": path,
            "contentSize": f"{size} B",
            "encodingFormat": _encoding(path),
            "sha256": sha256,
        }
    if len(record_set.files) > 1:
        yield {
            "@type": "cr:FileSet",
            "@id": f"{record_set.name}-files",
            "name": f"{record_set.name}-files",
            "containedIn": [{"@id": path} for path, _, _ in record_set.files],
            "encodingFormat": _encoding(record_set.files[0][0]),
            "includes": "*",
        }


def _encoding(path: str) -> str | list[str]:
    compression = next((kind for end, kind in _COMPRESSIONS.items() if path.endswith(end)), None)
    plain = path.removesuffix(".gz").removesuffix(".zst")
    kind = next((kind for end, kind in _FORMATS.items() if plain.endswith(end)), _LINES)
    return kind if compression is None else [kind, compression]


def _record_set(record_set: RecordSet) -> dict[str, Any]:
    if len(record_set.files) > 1:
        source = {"fileSet": {"@id": f"{record_set.name}-files"}}
    else:
        source = {"fileObject": {"@id": record_set.files[0][0]}}
    members = (record_set.schema or {})["properties"].items()
    return {
        "@type": "cr:RecordSet",
        "@id": record_set.name,
        "name": record_set.name,
        "field": [
            _field(f"{record_set.name}/{name}", kind, source, (name,), record_set.dates)
            for name, kind in members
        ],
    }


def _field(
    id_: str,
    schema: Mapping[str, Any],
    source: Mapping[str, Any],
    path: tuple[str, ...],
    dates: frozenset[str],
) -> dict[str, Any]:
    """A member of a record, and what is in it."""
    field: dict[str, Any] = {"@type": "cr:Field", "@id": id_, "name": id_}
    if schema.get("type") == "array":
        field["repeated"] = True
        schema = schema.get("items", {})
    kind = schema.get("type", "string")
    if kind == "object" and schema.get("properties"):
        field["subField"] = [
            _field(f"{id_}/{name}", inner, source, (*path, name), dates)
            for name, inner in schema["properties"].items()
        ]
    else:
        kinds = [kind] if isinstance(kind, str) else kind
        is_date = path[-1] in dates
        field["dataType"] = "sc:DateTime" if is_date else _TYPES.get(kinds[0], "sc:Text")
    column, *rest = path
    field["source"] = {**source, "extract": {"column": column}}
    if rest:
        field["source"]["transform"] = [{"jsonPath": name} for name in rest]
    return field
