"""What `--version --verbose` tells, and a self-test that fails."""

from __future__ import annotations

import os
import platform
import re
import sqlite3
from contextlib import suppress
from importlib import metadata

import so2docs
from so2docs.parse import core


def installation() -> dict[str, str]:
    """What a report about a fault needs: versions of this package, its cores and what it uses."""
    versions = {
        "so2docs": f"{so2docs.__version__} ({core.describe()})",
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "SQLite": sqlite3.sqlite_version,
        "processors": str(os.cpu_count()),
    }
    for requirement in _requirements():
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        with suppress(metadata.PackageNotFoundError):
            versions.setdefault(name, metadata.version(name))  # Extras name so2docs, too.
    return versions


def _requirements() -> list[str]:
    try:
        return metadata.requires("so2docs") or []
    except metadata.PackageNotFoundError:  # Found by PYTHONPATH, not installed.
        return []
