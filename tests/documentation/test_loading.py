"""The recipes of docs/loading.md for the installed programs."""

import os

import pytest
from support.command import run_python
from support.places import CHECKOUT


@pytest.mark.long
def test_recipes() -> None:
    environment = {name: value for name, value in os.environ.items() if name[:2] != "PG"}
    environment["PGHOST"] = str(CHECKOUT / "no-server")
    result = run_python("checks/loading.py", cwd=CHECKOUT, env=environment, timeout=120)
    outcomes = {line[:36].strip(): line[37:] for line in result.stdout.splitlines()}
    for name in ("DuckDB", "sqlite-utils", "DuckDB, several sites", "pandas, several sites"):
        assert outcomes[name].startswith("ran: "), outcomes
    assert outcomes["PostgreSQL"].startswith("not run: ")
