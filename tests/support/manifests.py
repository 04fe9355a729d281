"""Manifests with changed values and a valid checksum."""

import hashlib
import json
from typing import Any


def resealed(manifest: dict[str, Any], **values: Any) -> dict[str, Any]:
    """Change values of a manifest, and update its checksum."""
    changed = {**manifest, **values}
    changed.pop("checksum", None)
    text = json.dumps(changed, sort_keys=True, separators=(",", ":"))
    return {**changed, "checksum": hashlib.sha256(text.encode()).hexdigest()}
