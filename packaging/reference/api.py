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

from reference.keywords import options_in
from reference.options import keyword_links

import so2docs

_SECTION = re.compile(r"(Args|Attributes|Returns|Raises|Examples):")
_NOTE = re.compile(r"  # .*$", re.MULTILINE)


def entries(*names: str) -> str:
    """Write the reference of these names in `so2docs`."""
    return "\n\n".join(line for name in names for line in _entry(name))


def _entry(name: str) -> Iterator[str]:
    module, _, short = f"so2docs.{name}".rpartition(".")
    thing = getattr(import_module(module), short)
    node, source = _parse(thing)
    if not isinstance(node, ast.ClassDef):
        yield from [f"### `{short}`", _signature(node, source), *_described(node)]
        return
    yield from [f"### class `{short}`", _first_paragraph(node)]
    members: dict[str, tuple[ast.FunctionDef, str]] = {}
    types: dict[str, str] = {}
    for owner in _owners(thing):
        class_node, class_source = _parse(owner)
        types = {**types, **_types(class_node)}
        for member in class_node.body:
            if isinstance(member, ast.FunctionDef) and _is_shown(member):
                members.setdefault(member.name, (member, class_source))
    members = {name: member for name, member in members.items() if name not in types}
    if types:
        yield f"Attributes: {', '.join(f'`{attribute}`' for attribute in types)}."
    if members:
        yield "\n".join(
            f"- `{_call(member)}`: {_first_sentence(member)}" for member, _ in members.values()
        )


def errors() -> str:
    """Return a table of the classes of errors."""
    rows = ["| error | raised when |", "|---|---|"]
    for name in sorted(so2docs.__all__):
        thing = getattr(so2docs, name)
        if isinstance(thing, type) and issubclass(thing, Exception):
            bases = ", ".join(f"`{base.__name__}`" for base in thing.__bases__)
            sentence = _first_sentence(_parse(thing)[0])
            rows.append(f'| <a id="{name.lower()}"></a>`{name}` ({bases}) | {sentence} |')
    return "\n".join(rows)


def _call(member: ast.FunctionDef) -> str:
    """Return a method with its parameters, or a property by its name."""
    decorators = {ast.unparse(decorator) for decorator in member.decorator_list}
    if decorators & {"property", "cached_property"}:
        return member.name
    names = [arg.arg for arg in (*member.args.args, *member.args.kwonlyargs) if arg.arg != "self"]
    return f"{member.name}({', '.join(names)})"


def _first_paragraph(node: ast.FunctionDef | ast.ClassDef) -> str:
    return " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())


def _first_sentence(node: ast.FunctionDef | ast.ClassDef) -> str:
    return re.split(r"(?<=\.) (?=[A-Z`])", _first_paragraph(node))[0]


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


def _described(node: ast.FunctionDef) -> Iterator[str]:
    """Convert the docstring of a function to Markdown."""
    section, keywords = "", _keyword_class(node)
    for paragraph in (ast.get_docstring(node) or "").split("\n\n"):
        lines = paragraph.splitlines()
        if heading := _SECTION.fullmatch(lines[0]):
            section = heading[1]
            lines = lines[1:]
        elif not lines[0].startswith("    "):
            section = ""
        if section == "Examples":
            yield "```pycon\n" + dedent("\n".join(lines)) + "\n```"
        elif section == "Args":
            yield "\n".join(
                f"- `{name}`: {text}" for name, text in _listed(lines) if name != "keywords"
            )
        elif section == "Raises":
            errors = (
                f"[`{name}`](#{name.lower()})" if hasattr(so2docs, name) else f"`{name}`"
                for name, _ in _listed(lines)
            )
            yield f"Raises {', '.join(errors)}."
        elif section == "Returns":
            yield f"Returns: {' '.join(map(str.strip, lines))}"
        else:
            yield ("\n" if lines[0].startswith("|") else " ").join(map(str.strip, lines))
    if keywords:
        yield f"Options: {keyword_links(list(options_in(keywords)))}."


def _keyword_class(node: ast.FunctionDef) -> str:
    """Return the class of the `**keywords` of a function; empty if it has none."""
    annotation = node.args.kwarg and node.args.kwarg.annotation
    match = re.fullmatch(r"Unpack\[(\w+)\]", ast.unparse(annotation)) if annotation else None
    return match[1] if match else ""


def _listed(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each item of a section."""
    for item in re.split(r"\n(?=    \S)", "\n".join(lines)):
        name, text = re.sub(r"\s+", " ", item.strip()).split(": ", 1)
        yield name, text
