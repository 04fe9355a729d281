"""Imports run in one direction, and each outside library is imported only where it is allowed."""

from __future__ import annotations

import ast
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "so2docs"
MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PACKAGE.glob("**/*.py")
}

ORDER = (
    {"__init__", "__main__"},
    {"cli", "commands"},
    {"serve"},
    {"folders"},
    {"changes", "flat", "selftest", "sqlite"},
    {"spark"},
    {"api", "inspection"},
    {"metadata"},
    {"statistics", "reader"},
    {"pipeline"},
    {"output"},
    {"as_of", "merge", "nest", "history"},
    {"scan"},
    {"spill", "store"},
    {"dump"},
    {"parse"},
    {"options"},
    {"recipes"},
    {"domain", "schema", "types"},
    {"counts", "processes", "progress", "registry", "report"},
    {"errors", "escape", "formulas", "_version"},
)
"""Folders and top-level modules: each imports only from lines below its own, and
from its own."""

# Modules that work on plain bytes and lists must not use files, processes and passes.
PURE = {
    "domain": set[str](),
    "errors": set[str](),
    "schema": set[str](),
    "parse.keys": set[str](),
    "parse.posts": {"domain", "parse.keys", "schema"},
    "counts": set[str](),
    "as_of": {
        "counts",
        "domain",
        "options.table",
        "parse.bodies",
        "parse.keys",
        "parse.posts",
        "parse.rendering",
        "parse.row_filter",
        "parse.table_rows",
        "report",
        "schema",
    },
    "merge": {
        "counts",
        "domain",
        "nest",
        "options.choices",
        "parse.keys",
        "parse.table_rows",
        "schema",
    },
    "history": {"parse.keys", "parse.posts", "schema"},
    "nest": {
        "counts",
        "history",
        "options.field_paths",
        "parse.keys",
        "parse.table_rows",
        "schema",
    },
    "options.field_paths": {"errors", "schema"},
    "parse.table_rows": {"parse.keys", "parse.posts", "schema"},
    "parse.repeats": {"parse.keys"},
    "parse.rows": {"errors", "parse.posts"},
}
ONLY_USERS = {
    "lxml": {"parse.rows", "parse.bodies"},
    "fsspec": {"dump.storage"},
    "urllib3": {"dump.remote"},
    "pyarrow": {
        "flat.tables",
        "flat.chunk",
        "flat.columns",
        "flat.part",
        "flat.script",
        "flat.stream",
        "flat.writing",
        "output.formats.arrow",
        "reader.frames",
        "spark.jobs",
    },
    "sqlite3": {
        "api.tags",
        "commands",
        "output.sqlite_file",
        "serve.agents",
        "serve.app",
        "serve.store",
        "spill",
        "sqlite.about",
        "sqlite.build",
        "sqlite.rows",
        "sqlite.search",
    },
    "click": {
        "cli",
        "commands",
        "reader.page",
    },
    "tqdm": {"progress"},
}


@cache
def parsed(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"))


@cache
def imports(module: Path) -> list[str]:
    """Return the full names of all imports of a module, even in functions and for types."""
    names = []
    for node in ast.walk(parsed(module)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            assert not node.level
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def of_package(name: str) -> set[str]:
    """Return the modules of the package that a module imports, or imports names from."""
    modules = set()
    for full in imports(MODULES[name]):
        path = full.removeprefix("so2docs.") if full.startswith("so2docs.") else ""
        modules.add(path if path in MODULES else path.rpartition(".")[0])
    return modules & set(MODULES)


def floor(name: str) -> int:
    """Index in `ORDER` of the line with a module; modules for `python -m` are above all others."""
    if name.endswith(".__main__"):
        return 0
    (line_number,) = (
        line for line, rooms in enumerate(ORDER) if name.split(".", maxsplit=1)[0] in rooms
    )
    return line_number


def test_no_circle() -> None:
    graph = {name: of_package(name) for name in MODULES}
    TopologicalSorter(graph).prepare()


SEPARATE = [
    ("flat", "sqlite"),
    ("sqlite", "flat"),
    ("changes", "flat"),
    ("flat", "changes"),
    ("changes", "sqlite"),
    ("sqlite", "changes"),
]
"""Pairs of packages for products: the first does not import the second."""


def test_products_do_not_import_each_other() -> None:
    imported = {
        (name.split(".")[0], other.split(".")[0]) for name in MODULES for other in of_package(name)
    }
    assert imported.isdisjoint(SEPARATE)


def test_folders_import_only_downwards() -> None:
    against = {
        (name, other)
        for name in MODULES
        for other in of_package(name)
        if floor(other) < floor(name)
    }
    assert against == set()


def test_imports_are_found_at_any_depth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = """
from typing import TYPE_CHECKING
import so2docs.spill
if TYPE_CHECKING:
    from so2docs.output import formats
def inside():
    from so2docs.output.formats.base import Format
    import so2docs.merge as merging
"""
    path = tmp_path / "seen.py"
    path.write_text(source)
    monkeypatch.setitem(MODULES, "seen", path)
    expected = {"spill", "output.formats", "output.formats.base", "merge"}
    assert of_package("seen") == expected


@pytest.mark.parametrize("name", PURE)
def test_pure_modules_know_only_each_other(name: str) -> None:
    assert of_package(name) <= PURE[name]


def test_no_module_imports_the_command_line() -> None:
    users = {
        name
        for name in MODULES
        if any(other.split(".")[0] in ("cli", "commands") for other in of_package(name))
    }
    assert {name for name in users if not name.startswith("commands.")} <= {
        "cli",
        "__main__",
        "spark.__main__",
    }


@pytest.mark.parametrize("library", ONLY_USERS)
def test_importers_of_each_library(library: str) -> None:
    users = {
        "commands" if name.startswith("commands.") else name
        for name in MODULES
        if any(full.split(".")[0] == library for full in imports(MODULES[name]))
    }
    assert users == ONLY_USERS[library]


def test_modules_missing_on_windows_are_imported_lazily() -> None:
    """On Windows, a module that imports them at its top could not be imported."""
    importers = {
        f"{path.relative_to(PACKAGE.parent)}: {name}"
        for path in MODULES.values()
        for node in parsed(path).body
        if isinstance(node, ast.Import)
        for name in (alias.name for alias in node.names)
        if name in {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}
    }
    assert importers == set()
