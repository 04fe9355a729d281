"""A real headless Chromium, for the tests that `make test-browser` runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PLACES = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str:
    """Find the system's browser; skip the test if there is none."""
    pytest.importorskip("playwright", reason="playwright is not installed: make test-browser")
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, PLACES)), None)
    if path is None:
        pytest.skip("no Chromium: apt-get install chromium, or say where it is in CHROMIUM")
    return path


@contextmanager
def browser() -> Iterator[Any]:
    """Start Chromium, driven by Playwright."""
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield launched
        finally:
            launched.close()


def axe() -> str:
    """Return the source of axe-core."""
    package = pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
    return Path(package.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
