"""Who may import whom: imports run one way, and each outside library has one user."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "so2docs"
MODULES = {path.stem: path for path in PACKAGE.glob("*.py")}

# From the door to the ground: a module imports only from lines below its own.
LAYERS = """
__main__
cli
__init__
convert
session
first_pass second_pass
chunk bucket
strict paths resume
dump reading report spill
rows repeats merge output
posts blocks database
disk progress options workers
errors
_version
"""
RANK = {
    name: rank for rank, line in enumerate(LAYERS.strip().splitlines()) for name in line.split()
}
# Options name the orders of answers, which merge defines.
ALLOWED = {("options", "merge")}
ONLY_USER = {"lxml": {"rows"}, "sqlite3": {"database"}, "click": {"cli"}, "tqdm": {"progress"}}
MOST_LINES = 270
LONGER = {"dump": 330}


def imported(name: str) -> set[str]:
    """The full names of all that a module imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            assert not node.level
            found.add(node.module)
            if node.module == "so2docs":
                found |= {f"so2docs.{alias.name}" for alias in node.names}
    return found


def of_package(name: str) -> set[str]:
    """The modules of the package that a module imports."""
    parts = {full.split(".")[1] for full in imported(name) if full.startswith("so2docs.")}
    return parts & set(MODULES)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_imports_run_one_way(name: str) -> None:
    assert not {
        other
        for other in of_package(name)
        if RANK[other] <= RANK[name] and (name, other) not in ALLOWED
    }


def test_every_module_has_a_place() -> None:
    assert set(RANK) == set(MODULES)


@pytest.mark.parametrize("library", ONLY_USER)
def test_one_user_of_each_library(library: str) -> None:
    users = {
        name for name in MODULES if any(full.split(".")[0] == library for full in imported(name))
    }
    assert users == ONLY_USER[library]


@pytest.mark.parametrize("name", sorted(MODULES))
def test_no_module_is_long(name: str) -> None:
    lines = MODULES[name].read_text(encoding="utf-8").count("\n")
    assert lines <= LONGER.get(name, MOST_LINES)


def test_no_drawer_of_things() -> None:
    assert not {"utils", "helpers", "common", "misc"} & set(MODULES)
