"""Slow cases that are not marked are listed, and very slow ones fail."""

import os
import re
import subprocess
import sys
from pathlib import Path

from support.cpu_time import LONGER_RUNS
from support.places import CHECKOUT

CONFTEST = """
from support import cpu_time
from support.cpu_time import pytest_runtest_call, pytest_terminal_summary

cpu_time.MARK, cpu_time.FAIL = 0.05, 0.6
"""
TESTS = """
import subprocess, sys, time
import pytest

BURN = "import time\\nwhile time.process_time() < {}: pass"

def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

@pytest.fixture
def slow():
    burn(0.2)

def test_fast(slow): pass
def test_slow(): burn(0.1)
def test_slow_child(): subprocess.run([sys.executable, "-I", "-S", "-c", BURN.format(0.1)])
def test_too_slow(): burn(0.7)

@pytest.mark.long
def test_long(): burn(0.7)
"""


def test_slow_cases_are_listed_and_the_slowest_fail(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (tmp_path / "test_it.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\npythonpath = {CHECKOUT / 'tests'}\nmarkers = long: slow", encoding="utf-8"
    )
    environment = {key: value for key, value in os.environ.items() if key not in LONGER_RUNS}
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env=environment | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "4 passed" in result.stdout, result.stdout
    assert re.findall(r"(?m)^FAILED \S+::(\w+) - Failed: took .* s of CPU", result.stdout) == [
        "test_too_slow"
    ]
    assert set(re.findall(r"(?m)^ +[\d.]+ s  \S+::(\w+)$", result.stdout)) == {
        "test_slow",
        "test_slow_child",
    }
