"""Describe the installation for bug reports: `so2docs --version --verbose`."""

from __future__ import annotations

import os
import platform
import re
import sqlite3
from contextlib import suppress
from importlib import metadata

import so2docs
from so2docs.limits import count_processors
from so2docs.parse import core


def describe_installation() -> dict[str, str]:
    """Describe the installation for a bug report: versions, core and system, by name."""
    versions = {
        "so2docs": f"{so2docs.__version__} ({core.describe()})",
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "SQLite": sqlite3.sqlite_version,
        "processors": f"{count_processors()} of {os.cpu_count()}",
    }
    for requirement in _requirements():
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        with suppress(metadata.PackageNotFoundError):
            # Extras also list so2docs as a requirement; keep the version set above.
            versions.setdefault(name, metadata.version(name))
    return versions


def _requirements() -> list[str]:
    try:
        return metadata.requires("so2docs") or []
    except metadata.PackageNotFoundError:  # The package is on PYTHONPATH, but not installed.
        return []
