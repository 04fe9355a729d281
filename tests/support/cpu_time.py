"""Keep slow cases out of ``make test``: fail those that take much CPU time.

A hook of pytest, which `conftest.py` imports.
"""

import os
from collections.abc import Iterator

import pytest

MOST = 8.0
"""Unmarked cases that take more seconds of CPU than this fail.

Those of more than one second are marked `long`. A busy machine stretches CPU time, because
processes share caches and two threads share a core, and some machines are half as fast.
"""
_NOT_IN_MAKE_TEST = ("long", "browser", "readers", "spark")
LONGER_RUNS = {"SO2DOCS_LONG", "SO2DOCS_EXAMPLES", "COVERAGE_RUN"}
"""Variables of runs with more rounds or slower code, where no case fails."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Measure the test itself and the children it waited for, without its fixtures."""
    start = sum(os.times()[:4])
    yield
    seconds = sum(os.times()[:4]) - start
    if seconds <= MOST or any(map(item.get_closest_marker, _NOT_IN_MAKE_TEST)):
        return
    if not LONGER_RUNS & os.environ.keys():
        pytest.fail(f"took {seconds:.1f} s of CPU: mark it long or make it faster", pytrace=False)
