"""The reference of the Python functions and classes, which `make docs` writes to docs/api.md.

Signatures and types are shown as in the source, so that the page is the same with every version of
Python.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from textwrap import dedent
from typing import Any

import so2docs
from so2docs.options.signatures import describe
from support.keywords_text import options_in

_SECTION = re.compile(r"(Args|Attributes|Returns|Raises|Examples):")
_NOTE = re.compile(r"  # .*$", re.MULTILINE)


def entries(*names: str) -> str:
    """Write the reference of these names.

    Args:
        names: Names in `so2docs` or its modules, such as `options.keywords.FileKeywords`.
    """
    return "\n\n".join(line for name in names for line in _entry(name))


def _entry(name: str) -> Iterator[str]:
    module, _, short = f"so2docs.{name}".rpartition(".")
    thing = getattr(import_module(module), short)
    node, source = _parse(thing)
    if not isinstance(node, ast.ClassDef):
        yield from [f"### `{short}`", _signature(node, source), *_described(node)]
        return
    yield from [f"### class `{short}`", _signature(node, source), *_described(node, _types(node))]
    members: dict[str, tuple[ast.FunctionDef, str]] = {}
    for owner in _owners(thing):
        class_node, class_source = _parse(owner)
        for member in class_node.body:
            if isinstance(member, ast.FunctionDef) and _is_shown(member):
                members.setdefault(member.name, (member, class_source))
    for member, class_source in members.values():
        yield from [f"#### `{short}.{member.name}`", _signature(member, class_source)]
        yield from _described(member)


def _owners(thing: type) -> Iterator[type]:
    """Yield the class, and its bases without a separate entry."""
    for owner in thing.__mro__:
        is_private = owner.__module__.startswith("so2docs") and not hasattr(so2docs, owner.__name__)
        if owner is thing or is_private:
            yield owner


def _parse(thing: Any) -> tuple[Any, str]:
    """Return the node of a function or class, and the source of its lines."""
    source = dedent(inspect.getsource(thing))
    return ast.parse(source).body[0], source


def _is_shown(member: ast.FunctionDef) -> bool:
    return not member.name.startswith("_") and ast.get_docstring(member) is not None


def _types(node: ast.ClassDef) -> dict[str, str]:
    fields = [field for field in node.body if isinstance(field, ast.AnnAssign)]
    return {ast.unparse(f.target): ast.unparse(f.annotation).replace("'", '"') for f in fields}


def _signature(node: ast.FunctionDef | ast.ClassDef, source: str) -> str:
    """Return the lines before the docstring, with `@property` and the like."""
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    lines = source.splitlines()[first - 1 : node.body[0].lineno - 1]
    text = _NOTE.sub("", dedent("\n".join(lines))).rstrip().rstrip(":")
    text = "\n".join(line for line in text.splitlines() if _is_for_users(line))
    return f"```py\n{text}\n```"


def _is_for_users(line: str) -> bool:
    return not line.startswith("@") or line in ("@property", "@staticmethod", "@classmethod")


def _described(
    node: ast.FunctionDef | ast.ClassDef, types: dict[str, str] | None = None
) -> Iterator[str]:
    """Convert the docstring to Markdown."""
    section, text = "", ast.get_docstring(node) or ""
    if types and node.name.endswith("Keywords"):
        described = (describe(options_in(node.name)[name]) for name in types)
        text = "\n".join((f"{text}\n\nAttributes:", *described))
    for paragraph in text.split("\n\n"):
        lines = paragraph.splitlines()
        if heading := _SECTION.fullmatch(lines[0]):
            section = heading[1]
            yield f"**{'Example' if section == 'Examples' else section}**"
            lines = lines[1:]
        elif not lines[0].startswith("    "):
            section = ""
        if section == "Examples":
            yield "```pycon\n" + dedent("\n".join(lines)) + "\n```"
        elif section in ("Args", "Attributes", "Raises"):
            yield "\n".join(_listed(lines, types or {}))
        else:
            yield ("\n" if lines[0].startswith("|") else " ").join(map(str.strip, lines))


def _listed(lines: list[str], types: dict[str, str]) -> Iterator[str]:
    """List the items of a section, each on one line."""
    for item in re.split(r"\n(?=    \S)", "\n".join(lines)):
        name, text = re.sub(r"\s+", " ", item.strip()).split(": ", 1)
        kind = f" (`{types[name]}`)" if name in types else ""
        yield f"- `{name}`{kind}: {text}"
