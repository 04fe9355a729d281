"""What `--version --verbose` tells, and a self-test that fails."""

from __future__ import annotations

import os
import platform
import re
from importlib import metadata

import so2docs
from so2docs.posts import core


def installation() -> dict[str, str]:
    """What a report about a fault needs: versions of this package, its cores and what it uses."""
    found = {
        "so2docs": f"{so2docs.__version__} ({core.built()} core)",
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processors": str(os.cpu_count()),
    }
    for requirement in metadata.requires("so2docs") or ():
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
