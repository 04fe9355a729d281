"""Manifests with changed values and a valid checksum."""

import hashlib
import json
from pathlib import Path
from typing import Any

from so2docs.dump.storage import sample_hash
from so2docs.extensions.json_schema import describe_documents, name_schema
from so2docs.options.request import build_options, read_keywords
from so2docs.options.table import OF_CONVERT


def resealed(manifest: dict[str, Any], **values: Any) -> dict[str, Any]:
    """Change values of a manifest, and update its checksum."""
    changed = {**manifest, **values}
    changed.pop("checksum", None)
    text = json.dumps(changed, sort_keys=True, separators=(",", ":"))
    return {**changed, "checksum": hashlib.sha256(text.encode()).hexdigest()}


def schema_of(**options: Any) -> dict[str, Any]:
    """Return the JSON Schema in the manifest of an output with these options."""
    built = build_options(read_keywords(options, OF_CONVERT), core="python")
    fields, attributed = built.filters.selected, built.is_attributed
    schema = describe_documents(fields, built.shown, None, is_attributed=attributed)
    return name_schema("questions", "A question with its answers", schema)


def describe_file(path: Path) -> dict[str, Any]:
    """Return the entry of a file in a manifest."""
    data = path.read_bytes()
    with path.open("rb") as file:
        content = sample_hash(file, len(data))
    digest = hashlib.sha256(data).hexdigest()
    values = {"role": "", "name": path.name, "bytes": len(data), "content": content}
    return {**values, "sha256": digest}
