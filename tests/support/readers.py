"""Programs that read outputs, which `make test-datasets` installs."""

import importlib
import os
from typing import Any

import pytest


def import_reader(name: str) -> Any:
    """Import a package; skip the test if it is missing, unless all of them are required."""
    if "SO2DOCS_READERS" in os.environ:
        return importlib.import_module(name)
    return pytest.importorskip(name, reason=f"{name} is installed by make test-datasets")
