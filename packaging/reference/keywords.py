"""The `TypedDict`s that cog writes to the modules `keywords`, made from the tables of options."""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import UnionType
from typing import Any, get_args, get_origin

from so2docs.extensions.changes.options import ComparisonOptions, ReplaceOptions
from so2docs.extensions.tables.options import DatabaseOptions, RowOptions, TableOptions
from so2docs.options.option import Option
from so2docs.options.table import PartFilters, options_of, taken_by

Options = dict[str, Option]

CLASSES: dict[str, tuple[tuple[str, ...], Options, str]] = {
    "PartKeywords": ((), options_of(PartFilters), "Filters that select a part of a site."),
    "DocumentKeywords": (
        ("PartKeywords",),
        taken_by("documents"),
        "Options of all functions that make documents.",
    ),
    "FileKeywords": (
        ("DocumentKeywords",),
        taken_by("files"),
        "Additional options of all functions that write files.",
    ),
    "IteratorKeywords": (
        ("DocumentKeywords",),
        taken_by("local"),
        "Options of `so2docs.documents`.",
    ),
    "ConvertKeywords": (
        ("FileKeywords", "IteratorKeywords"),
        taken_by("convert"),
        "Options of `so2docs.convert` and `so2docs.convert_all`.",
    ),
    "RowKeywords": (
        ("PartKeywords",),
        options_of(RowOptions),
        "Options of `so2docs.rows`.",
    ),
    "TableKeywords": (("RowKeywords",), options_of(TableOptions), "Options of `so2docs.tables`."),
    "DatabaseKeywords": (
        ("RowKeywords",),
        options_of(DatabaseOptions),
        "Options of `so2docs.to_sqlite`.",
    ),
    "ComparisonKeywords": ((), options_of(ComparisonOptions), "Options of `so2docs.diff`."),
    "ReplaceKeywords": ((), options_of(ReplaceOptions), "Options of `so2docs.Changes.write`."),
}
"""The classes of keywords by name: base classes, options, and docstring."""


def options_in(name: str) -> Options:
    """Return the options in a class of keywords, including those of its base classes."""
    bases, options, _ = CLASSES[name]
    return {key: entry for base in bases for key, entry in options_in(base).items()} | options


CORE = (
    "PartKeywords",
    "DocumentKeywords",
    "FileKeywords",
    "IteratorKeywords",
    "ConvertKeywords",
)
"""Classes of the core."""
EXTENSIONS = tuple(name for name in CLASSES if name not in CORE)
"""Classes of extensions."""


def text(classes: Iterable[str]) -> str:
    """Return the source of classes, and of the types of options with named choices."""
    named: Options = {}
    for name in classes:
        _, options, _ = CLASSES[name]
        named |= {key: entry for key, entry in options.items() if _takes_only_names(entry)}
    return "\n\n\n".join(["\n".join(map(_literal, named.values())), *map(_class_text, classes)])


def _class_text(name: str) -> str:
    """Return the source of a class of keywords, without the options of its base classes."""
    bases, options, about = CLASSES[name]
    inherited = {key for base in bases for key in options_in(base)}
    lines = [f"class {name}({', '.join(bases) or 'TypedDict'}, total=False):"]
    lines += [f'    """{about}"""', ""]
    lines += [f"    {key}: {_type(options[key])}" for key in options if key not in inherited]
    return "\n".join(lines)


def _takes_only_names(entry: Option) -> bool:
    """Whether the texts have a type; a recipe may also be any `package.module:name`."""
    is_named = entry.choices is not None and entry.name != "recipe"
    return is_named and bool({str, Iterable[str]} & {*entry.kinds})


def _literal(entry: Option) -> str:
    """Return the declaration of the type of an option's choices, as ruff formats it."""
    assert entry.choices is not None
    names = [f'"{name}"' for name in entry.choices]
    start, body = f"{entry.name.title()}Name = Literal[", ", ".join(names)
    if len(start) + len(body) < 100:
        return f"{start}{body}]"
    lines = [f"    {body}"] if len(body) <= 96 else [f"    {name}," for name in names]
    return "\n".join([start, *lines, "]"])


def _type(entry: Option) -> str:
    """Return the source of the type of an option."""
    text = spelled(entry.accepts)
    if not _takes_only_names(entry):
        return text
    texts = "Iterable[str]" if entry.is_repeated else "str"
    return text.replace(texts, texts.replace("str", f"{entry.name.title()}Name"))


def spelled(hint: Any) -> str:
    """Return the source of a type."""
    if isinstance(hint, UnionType) or "Union" in str(get_origin(hint)):
        return " | ".join(map(spelled, get_args(hint)))
    if hint is type(None):
        return "None"
    if get_origin(hint) is Iterable or isinstance(hint, type):
        text = re.sub(r"\b(?:collections\.abc|typing|builtins|so2docs[\w.]+)\.", "", _name(hint))
        return text.replace("'", '"')
    return re.sub(r"\b(?:collections\.abc|typing|so2docs[\w.]+)\.", "", str(hint)).replace("'", '"')


def _name(hint: Any) -> str:
    if get_args(hint):
        return str(hint)
    return hint.__qualname__ if hint.__module__ != "os" else f"os.{hint.__qualname__}"
