"""Who may import whom: imports run one way, and each outside library has its users."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "so2docs"
MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
    for path in PACKAGE.glob("**/*.py")
    if path.stem != "__init__"
}

# What works on plain bytes and lists knows nothing of files, processes and passes.
PURE = {
    "errors": set[str](),
    "schema": set[str](),
    "posts.posts": {"schema"},
    "merge": {"nest", "posts.posts"},
    "nest": {
        "options.field_paths",
        "options.nested_fields",
        "posts.posts",
        "posts.table_rows",
        "schema",
    },
    "options.nested_fields": {"options.field_paths", "schema"},
    "options.field_paths": {"errors", "schema"},
    "posts.table_rows": {"posts.posts", "schema"},
    "posts.repeats": {"posts.posts"},
    "posts.rows": {"errors", "posts.posts"},
}
ONLY_USERS = {
    "lxml": {"posts.rows", "posts.bodies", "lookup.html_text"},
    "fsspec": {"sources.storage"},
    "pyarrow": {"output.formats.columns", "output.formats.parquet"},
    "sqlite3": {"store.database"},
    "click": {
        "cli",
        "commands.reading",
        "commands.document_options",
        "commands.spark",
        "lookup.page",
    },
    "tqdm": {"progress"},
    "py7zr": {"sources.seven_zip"},
}
MOST_LINES = 300


def imports(name: str, *, lazy: bool) -> Iterator[str]:
    """Full names of what a module imports; with `lazy`, also within functions."""
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    for node in ast.walk(tree) if lazy else tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            assert not node.level
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def of_package(name: str) -> set[str]:
    """The modules of the package that a module cannot be imported without."""
    found = {full.removeprefix("so2docs.") for full in imports(name, lazy=False)}
    return found & set(MODULES)


def test_imports_run_one_way() -> None:
    TopologicalSorter({name: of_package(name) for name in MODULES}).prepare()


@pytest.mark.parametrize("name", PURE)
def test_pure_modules_know_only_each_other(name: str) -> None:
    assert of_package(name) <= PURE[name]


def test_nobody_imports_the_command_line() -> None:
    users = {name for name in MODULES if of_package(name) & {"cli", "commands.reading"}}
    assert users <= {"cli", "__main__", "spark.__main__"}


@pytest.mark.parametrize("library", ONLY_USERS)
def test_the_users_of_each_library(library: str) -> None:
    users = {
        name
        for name in MODULES
        if any(full.split(".")[0] == library for full in imports(name, lazy=True))
    }
    assert users == ONLY_USERS[library]


@pytest.mark.parametrize("name", sorted(MODULES))
def test_no_module_is_long(name: str) -> None:
    assert MODULES[name].read_text(encoding="utf-8").count("\n") <= MOST_LINES


def test_no_drawer_of_things() -> None:
    assert not {"utils", "helpers", "common", "misc"} & set(MODULES)
