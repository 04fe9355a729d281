"""The names in `so2docs/__init__.py` and `plugin.py`, made from their imports for type checkers."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import fill


def text(path: str) -> str:
    """Return the source of `__all__` and of the modules of all names, by name."""
    places = {
        name.asname or name.name: node.module.removeprefix("so2docs.")
        for node in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("so2docs.")
        for name in node.names
        if node.module is not None
    }
    public = sorted(places.keys() - {"open"}, key=_as_ruff_sorts)
    names = ", ".join(f'"{name}"' for name in public)
    places.pop("__version__", None)  # The other names are imported on first use.
    modules = ", ".join(f'"{name}":~"{module}"' for name, module in sorted(places.items()))
    return (
        f"__all__ = [\n{_wrap(names)},\n]  # fmt: skip\n"
        f"_MODULES = {{\n{_wrap(modules)},\n}}  # fmt: skip"
    )


def _as_ruff_sorts(name: str) -> tuple[bool, bool, str]:
    return not name.isupper(), not name[0].isupper(), name


def _wrap(text: str) -> str:
    return fill(text, 99, initial_indent="    ", subsequent_indent="    ").replace("~", " ")
