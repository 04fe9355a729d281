"""Manifests that say something else than they did, and are whole."""

import hashlib
import json
from typing import Any


def resealed(manifest: dict[str, Any], **values: Any) -> dict[str, Any]:
    """A manifest with other values, and the checksum of these."""
    changed = {**manifest, **values}
    changed.pop("checksum", None)
    text = json.dumps(changed, sort_keys=True, separators=(",", ":"))
    return {**changed, "checksum": hashlib.sha256(text.encode()).hexdigest()}
