"""The `TypedDict`s that cog writes to `so2docs/options/keywords.py`, made from the table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import UnionType
from typing import Any, get_args, get_origin

from so2docs.options.keywords import describe
from so2docs.options.table import taken_by

CLASSES: list[tuple[str, str, tuple[Any, ...], str]] = [
    ("DocumentKeywords", "TypedDict", ("documents",), "What all that make documents take."),
    ("FileKeywords", "DocumentKeywords", ("files",), "What all that write files take, too."),
    (
        "IteratorKeywords",
        "DocumentKeywords",
        ("iterator", "local"),
        "What `so2docs.documents` takes.",
    ),
    (
        "ConvertKeywords",
        "FileKeywords, IteratorKeywords",
        ("convert",),
        "What `so2docs.convert` and `so2docs.convert_all` take.",
    ),
]


def text() -> str:
    """The source of all classes."""
    return "\n\n\n".join(_class(*one) for one in CLASSES)


def _class(name: str, bases: str, where: tuple[Any, ...], about: str) -> str:
    options = taken_by(*where).values()
    lines = [f"class {name}({bases}, total=False):", f'    """{about}', "", "    Attributes:"]
    lines += [describe(entry, " " * 8) for entry in options]
    lines += ['    """', "", *(f"    {entry.name}: {spelled(entry.accepts)}" for entry in options)]
    return "\n".join(lines)


def spelled(hint: Any) -> str:
    """The source of a type."""
    if isinstance(hint, UnionType) or "Union" in str(get_origin(hint)):
        return " | ".join(map(spelled, get_args(hint)))
    if hint is type(None):
        return "None"
    if get_origin(hint) is Iterable or isinstance(hint, type):
        return re.sub(r"\b(?:collections\.abc|typing|builtins|so2docs[\w.]+)\.", "", _name(hint))
    return re.sub(r"\b(?:collections\.abc|typing|so2docs[\w.]+)\.", "", str(hint)).replace("'", '"')


def _name(hint: Any) -> str:
    if get_args(hint):
        return str(hint)
    return hint.__qualname__ if hint.__module__ != "os" else f"os.{hint.__qualname__}"
