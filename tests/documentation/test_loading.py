"""The recipes of docs/loading.md for the installed programs."""

import os
import subprocess
import sys

import pytest
from support.places import CHECKOUT


@pytest.mark.long
def test_recipes() -> None:
    environment = {name: value for name, value in os.environ.items() if name[:2] != "PG"}
    environment["PGHOST"] = str(CHECKOUT / "no-server")
    result = subprocess.run(
        [sys.executable, "docs/loading_check.py"],
        check=False,
        cwd=CHECKOUT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    outcomes = {line[:36].strip(): line[37:] for line in result.stdout.splitlines()}
    for name in ("DuckDB", "sqlite-utils", "DuckDB, several sites", "pandas, several sites"):
        assert outcomes[name].startswith("ran: "), outcomes
    assert outcomes["PostgreSQL"].startswith("not run: ")
