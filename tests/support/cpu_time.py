"""Keep slow cases out of ``make test``: measure the CPU time of each, and fail the slowest.

Hooks of pytest, which `conftest.py` imports.
"""

import os
from collections.abc import Iterator

import pytest

MARK = 1.0
"""Cases that take more seconds of CPU than this are marked ``long``."""
FAIL = 8 * MARK
"""Unmarked cases that take more seconds of CPU than this fail.

A busy machine stretches CPU time, because processes share caches and two threads share a core: the
same case took twice as long there, and some machines are half as fast. A case just below `MARK`
must not fail for that reason.
"""
_NOT_IN_MAKE_TEST = ("long", "browser", "readers", "spark")
LONGER_RUNS = {"SO2DOCS_LONG", "SO2DOCS_EXAMPLES", "COVERAGE_RUN"}
"""Variables of runs with more rounds or slower code, where no case fails."""
_KEY = "seconds of CPU"


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of the children that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Measure the test itself, without its fixtures, which many tests share."""
    start = _cpu_seconds()
    yield
    seconds = _cpu_seconds() - start
    if seconds <= MARK or any(map(item.get_closest_marker, _NOT_IN_MAKE_TEST)):
        return
    item.user_properties.append((_KEY, seconds))
    if seconds > FAIL and not LONGER_RUNS & os.environ.keys():
        pytest.fail(f"took {seconds:.1f} s of CPU: mark it long or make it faster", pytrace=False)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the unmarked cases above `MARK`, slowest first."""
    slow = {
        report.nodeid: seconds
        for report in terminalreporter.getreports("passed")
        for key, seconds in report.user_properties
        if key == _KEY
    }
    if not slow:
        return
    terminalreporter.section(f"cases of more than {MARK:g} s of CPU that are not marked long")
    for case in sorted(slow, key=lambda case: -slow[case]):
        terminalreporter.line(f"{slow[case]:5.1f} s  {case}")
