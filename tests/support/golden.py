"""Reviewed files that outputs are compared with."""

from pathlib import Path

import pytest

from support.places import SAMPLES

THREADS = SAMPLES / "threads"
"""The dump of a small invented site; its folders have what is expected of conversions."""


def compare(made: str, expected: str | Path) -> None:
    """Compare a text with the reviewed file `expected`, whose path may begin in `THREADS`.

    A missing file is written, and the test fails, so that the file can be reviewed.
    """
    file = THREADS / expected
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(made, encoding="utf-8")
        pytest.fail(f"{file} was missing; review it")
    assert made == file.read_text(encoding="utf-8")
