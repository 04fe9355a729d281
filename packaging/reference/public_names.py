"""The names in `so2docs/__init__.py` and `plugin.py`, made from their imports for type checkers."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import fill


def text(path: str) -> str:
    """Return the source of `__all__` and of the names by module."""
    places = {
        name.asname or name.name: node.module.removeprefix("so2docs.")
        for node in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("so2docs.")
        for name in node.names
        if node.module is not None
    }
    public = sorted(places.keys() - {"open"}, key=_as_ruff_sorts)
    places.pop("__version__", None)  # The other names are imported on first use.
    by_module = {module: [n for n in places if places[n] == module] for module in places.values()}
    modules = ", ".join(
        f'"{module}":~[{_quoted(names)}]' for module, names in sorted(by_module.items())
    )
    return (
        f"__all__ = [\n{_wrap(_quoted(public))},\n]  # fmt: skip\n"
        f"_NAMES = {{\n{_wrap(modules)},\n}}  # fmt: skip"
    )


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _as_ruff_sorts(name: str) -> tuple[bool, bool, str]:
    return not name.isupper(), not name[0].isupper(), name


def _wrap(text: str) -> str:
    return fill(text, 99, initial_indent="    ", subsequent_indent="    ").replace("~", " ")
