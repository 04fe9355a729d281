"""Imports run in one direction, and each outside library is imported only where it is allowed."""

from __future__ import annotations

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

from so2docs import plugin
from so2docs.registry import CAPABILITIES

PACKAGE = Path(__file__).resolve().parents[1] / "so2docs"
MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PACKAGE.glob("**/*.py")
}

ORDER = (
    {"__init__", "__main__", "plugin"},
    {"cli", "commands"},
    {"api"},
    {"reader"},
    {"pipeline"},
    {"output"},
    {"merge", "nest"},
    {"scan"},
    {"spill", "store"},
    {"dump"},
    {"parse"},
    {"options"},
    {"domain", "schema", "types"},
    {"counts", "processes", "progress", "registry", "report"},
    {"errors", "escape", "limits", "standard_streams", "zstd", "_version"},
)
"""Folders and top-level modules of the core: each imports only from lines below its own, and
from its own."""

PURE = (
    *("domain", "errors", "schema", "parse.keys", "parse.posts", "parse.rows", "parse.table_rows"),
    *("counts", "merge", "nest", "options.field_paths", "extensions.history.revisions"),
    *("extensions.as_of.existence", "extensions.as_of.restoration"),
)
"""Modules that work on plain bytes and lists."""
OF_PASSES = {
    "commands",
    "dump",
    "output",
    "pipeline",
    "processes",
    "reader",
    "scan",
    "spill",
    "store",
}
"""Folders and modules that use files and processes."""
ONLY_USERS = {
    "lxml": {"parse.rows", "parse.bodies"},
    "fsspec": {"extensions.remote.stores"},
    "urllib3": {"extensions.remote.web_server"},
    "pyarrow": {
        "extensions.tables.tables",
        "extensions.tables.columns",
        "extensions.tables.stream",
        "extensions.tables.writing",
        "extensions.parquet",
        "extensions.parquet.arrow",
        "extensions.parquet.columns",
        "extensions.parquet.format",
        "extensions.spark.jobs",
    },
    "sqlite3": {
        "extensions.recipes.duplicates",
        "extensions.tables.sqlite_writer",
        "commands",
        "extensions.serve.agents",
        "extensions.serve.app",
        "extensions.serve.store",
        "spill",
        "extensions.sqlite.about",
    },
    "click": {
        "cli",
        "commands",
        "extensions.show.page",
        "extensions.sites.printing",
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
    """Index in `ORDER` of the line with a module."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        for line_number, rooms in enumerate(ORDER):
            if ".".join(parts[:length]) in rooms:
                return line_number
    raise AssertionError(name)


def test_no_circle() -> None:
    graph = {name: of_package(name) for name in MODULES}
    TopologicalSorter(graph).prepare()


PUBLIC_OF_CORE = 57
"""Maximum number of names in `plugin.py`."""
NAMES, MODULES_OF_CORE, ARROWS = 286, 54, 8
"""Maximum numbers of names and modules of the core that extensions import, and of pairs of
extensions of which one imports the other. Lower them when one of them falls."""
ON_PLUGIN = (
    *("cards", "changes", "completion", "formats", "history", "inspection", "markdown", "parquet"),
    *("remote", "serve", "show", "sites", "spark", "sqlite", "tables"),
)
"""Extensions that take from their modules of the core only what `plugin.py` lacks."""


def names_of_plugin() -> dict[str, str]:
    """Return the full names of what `plugin.py` exports, by name."""
    names: dict[str, str] = {}
    for full in imports(MODULES["plugin"]):
        if full.startswith("so2docs."):
            names[full.rpartition(".")[2]] = full
    return names


def test_plugin_exports_few_names_and_no_module() -> None:
    places = names_of_plugin()
    assert places.keys() == {*plugin.__all__}
    assert len(places) <= PUBLIC_OF_CORE
    for full in places.values():
        module, _, name = full.rpartition(".")
        assert full.removeprefix("so2docs.") not in MODULES
        assert getattr(plugin, name) is getattr(import_module(module), name)


def test_extensions_import_little_of_the_core_and_of_each_other() -> None:
    names, modules, arrows = set[str](), set[str](), set[tuple[str, str]]()
    for name, path in MODULES.items():
        if not name.startswith("extensions."):
            continue
        folder = name.split(".")[1]
        for other in of_package(name):
            if other.startswith("extensions."):
                arrows.add((folder, other.split(".")[1]))
            elif other != "plugin":
                modules.add(other)
        for full in imports(path):
            if full.startswith("so2docs.") and not full.startswith("so2docs.extensions."):
                names.add(names_of_plugin().get(full.removeprefix("so2docs.plugin."), full))
    assert len(names) <= NAMES
    assert len(modules) <= MODULES_OF_CORE
    arrows = {pair for pair in arrows if len({*pair} & CAPABILITIES.keys()) == len(pair)}
    assert len({pair for pair in arrows if pair[0] != pair[1]}) <= ARROWS, sorted(arrows)


@pytest.mark.parametrize("folder", ON_PLUGIN)
def test_what_plugin_exports_is_imported_from_it(folder: str) -> None:
    exported = {*names_of_plugin().values()}
    passed_by = {
        f"{name}: {full}"
        for name in MODULES
        if name.startswith(f"extensions.{folder}")
        for full in imports(MODULES[name])
        if full in exported
    }
    assert passed_by == set()


CORE = [name for name in MODULES if not name.startswith("extensions")]
PUBLIC = "__init__"
"""The module with the public names of both halves."""


def test_folders_import_only_downwards() -> None:
    against = {
        (name, other)
        for name in CORE
        for other in of_package(name)
        if other in CORE and floor(other) < floor(name)
    }
    assert against == set()


def test_core_imports_no_extension() -> None:
    assert all(of_package(name) <= {*CORE} for name in CORE if name != PUBLIC)


def test_only_public_names_name_modules_of_extensions() -> None:
    """The registry names their folders alone."""
    naming = {
        name
        for name in CORE
        for node in ast.walk(parsed(MODULES[name]))
        if isinstance(node, ast.Constant) and re.search(r"\bextensions\.\w", str(node.value))
    }
    assert naming == {PUBLIC}


@pytest.mark.parametrize("name", PURE)
def test_pure_modules_use_no_files_processes_and_passes(name: str) -> None:
    assert not {other.split(".")[0] for other in of_package(name)} & OF_PASSES


def is_command(name: str) -> bool:
    return name.startswith("commands.") or name.endswith("_command")


def test_no_module_imports_the_command_line() -> None:
    users = {
        name
        for name in MODULES
        if any(other.split(".")[0] in ("cli", "commands") for other in of_package(name))
    }
    assert {name for name in users if not is_command(name)} <= {
        "cli",
        "__main__",
        "extensions.spark.__main__",
        "extensions.sites.printing",
        "plugin",
    }


@pytest.mark.parametrize("library", ONLY_USERS)
def test_importers_of_each_library(library: str) -> None:
    users = {
        "commands" if is_command(name) else name
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
