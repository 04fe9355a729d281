"""`croissant.json`: the files, record sets and fields of a folder of outputs.

The file follows Croissant 1.1 (https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html).
It has a file object with the SHA-256 of each file, a record set for each output, and a field for
each member of a record. Lists are `repeated`, and members of objects are `subField`s.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from so2docs.metadata.outputs import DescribedOutput
from so2docs.options.choices import split_compression
from so2docs.schema import DATES

_DESCRIPTION = "Questions and answers of a Stack Exchange data dump, nested by so2docs."
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
_FORMATS = {
    ".parquet": "application/x-parquet",
    ".json": "application/json",
    ".tsv": "text/tab-separated-values",
}
_LINES = "application/jsonlines"
_READ_LINES = (".jsonl", ".jsonl.gz")
_TYPES = {"integer": "sc:Integer", "number": "sc:Float", "boolean": "sc:Boolean"}


def croissant_text(title: str, outputs: Mapping[str, DescribedOutput]) -> str:
    """Return the text of the `croissant.json` for these outputs, by the name of configurations."""
    parts = outputs.items()
    described: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": title,
        "description": _DESCRIPTION,
        "license": "https://creativecommons.org/licenses/by-sa/4.0/",
        "distribution": [part for name, output in parts for part in _distribution(name, output)],
        "recordSet": [record for name, output in parts for record in _record_sets(name, output)],
    }
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"


def _distribution(name: str, output: DescribedOutput) -> Iterator[dict[str, Any]]:
    paths = output.paths
    for path, file in zip(paths, output.manifest.files, strict=True):
        yield {
            "@type": "cr:FileObject",
            "@id": path,
            "name": path.rpartition("/")[2],
            "contentUrl": path,
            "contentSize": f"{file.bytes} B",
            "encodingFormat": _encoding(path),
            "sha256": file.sha256,
        }
    if len(paths) > 1 and not output.is_retrieval_set:
        yield {
            "@type": "cr:FileSet",
            "@id": f"{name}-files",
            "name": f"{name}-files",
            "containedIn": [{"@id": path} for path in paths],
            "encodingFormat": _encoding(paths[0]),
            "includes": "*",
        }


def _encoding(path: str) -> str | list[str]:
    plain, compression = split_compression(path)
    kind = next((kind for end, kind in _FORMATS.items() if plain.endswith(end)), _LINES)
    return kind if compression is None else [kind, f"application/{compression}"]


def _record_sets(name: str, output: DescribedOutput) -> Iterator[dict[str, Any]]:
    recipe, schema = output.recipe, output.manifest.schema
    if recipe is not None and recipe.files:
        for configuration, (_, file) in recipe.configurations.items():
            source = {"fileObject": {"@id": output.path(file)}}
            yield _record_set(configuration, source, recipe.schemas[file])
    elif schema is not None and _is_readable(output):
        is_set = len(output.paths) > 1
        kind, id_ = ("fileSet", f"{name}-files") if is_set else ("fileObject", output.paths[0])
        dates = DATES if output.has_dates else frozenset[str]()
        yield _record_set(name, {kind: {"@id": id_}}, schema, dates)


def _is_readable(output: DescribedOutput) -> bool:
    """Whether mlcroissant 1.1 can read the records: neither zstd nor JSON arrays nor deep lists."""
    recipe, is_user_recipe = output.recipe, output.manifest.counts["recipe"] is not None
    formats = ["jsonl", "parquet"] if is_user_recipe else ["parquet"]
    formats = formats if recipe is None else [*recipe.croissant]
    if output.is_parquet:
        return "parquet" in formats
    are_lines = all(file.name.endswith(_READ_LINES) for file in output.manifest.files)
    return are_lines and "jsonl" in formats


def _record_set(
    name: str,
    source: Mapping[str, Any],
    schema: Mapping[str, Any],
    dates: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "field": [
            _field(f"{name}/{member}", kind, source, (member,), dates)
            for member, kind in schema["properties"].items()
        ],
    }


def _field(
    id_: str,
    schema: Mapping[str, Any],
    source: Mapping[str, Any],
    path: tuple[str, ...],
    dates: frozenset[str],
) -> dict[str, Any]:
    """Describe a member of a record, with its own members, as a Croissant field."""
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
        kind = kind if isinstance(kind, str) else kind[0]
        field["dataType"] = "sc:DateTime" if path[-1] in dates else _TYPES.get(kind, "sc:Text")
    column, *rest = path
    field["source"] = {**source, "extract": {"column": column}}
    if rest:
        field["source"]["transform"] = [{"jsonPath": name} for name in rest]
    return field
