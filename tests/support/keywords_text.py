"""The `TypedDict`s that cog writes to `so2docs/options/keywords.py`, made from the table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import UnionType
from typing import Any, get_args, get_origin

from so2docs.options.option import Option
from so2docs.options.products import (
    ChangesOptions,
    ComparisonOptions,
    DatabaseOptions,
    RowOptions,
    TableOptions,
    TagsOptions,
)
from so2docs.options.table import OPTIONS, QuestionFilters, options_of, taken_by

CLASSES: list[tuple[str, str, tuple[Any, ...], str]] = [
    (
        "DocumentKeywords",
        "TypedDict",
        ("documents",),
        "Options of all functions that make documents.",
    ),
    (
        "FileKeywords",
        "DocumentKeywords",
        ("files",),
        "Additional options of all functions that write files.",
    ),
    (
        "IteratorKeywords",
        "DocumentKeywords",
        ("iterator", "local"),
        "Options of `so2docs.documents`.",
    ),
    (
        "ConvertKeywords",
        "FileKeywords, IteratorKeywords",
        ("convert",),
        "Options of `so2docs.convert` and `so2docs.convert_all`.",
    ),
]


PRODUCTS: list[tuple[str, str, tuple[type, ...], str]] = [
    ("QuestionKeywords", "TypedDict", (QuestionFilters,), "Options of `Collection.where`."),
    ("RowKeywords", "TypedDict", (RowOptions,), "Options of `so2docs.stream_table`."),
    ("TableKeywords", "TypedDict", (TableOptions,), "Options of `so2docs.tables`."),
    ("DatabaseKeywords", "TypedDict", (DatabaseOptions,), "Options of `so2docs.to_sqlite`."),
    ("TagsKeywords", "TypedDict", (TagsOptions,), "Options of `so2docs.tags`."),
    ("ComparisonKeywords", "IteratorKeywords", (ComparisonOptions,), "Options of `so2docs.diff`."),
    ("ChangesKeywords", "TypedDict", (ChangesOptions,), "Options of `so2docs.Changes.write`."),
]


def options_in(name: str) -> dict[str, Option]:
    """Return the options in a class of keywords, including those of its base classes."""
    for product, bases, kinds, _ in PRODUCTS:
        if product == name:
            return options_of(*kinds) | ({} if bases == "TypedDict" else options_in(bases))
    return OPTIONS


def text() -> str:
    """Return the source of all classes, and of the types of options with named choices."""
    options = [
        *(entry for _, _, kinds, _ in PRODUCTS for entry in options_of(*kinds).values()),
        *taken_by(*(place for *_, where, _ in CLASSES for place in where)).values(),
    ]
    named = {entry.name: entry for entry in options if _takes_only_names(entry)}
    types = [_literal(entry) for entry in named.values()]
    classes = [
        class_text(name, bases, taken_by(*where), about) for name, bases, where, about in CLASSES
    ]
    classes += [
        class_text(name, bases, options_of(*kinds), about) for name, bases, kinds, about in PRODUCTS
    ]
    return "\n\n\n".join(["\n".join(types), *classes])


def class_text(name: str, bases: str, options: dict[str, Option], about: str) -> str:
    """Return the source of a class of keywords."""
    lines = [f"class {name}({bases}, total=False):", f'    """{about}"""', ""]
    lines += [f"    {entry.name}: {_type(entry)}" for entry in options.values()]
    return "\n".join(lines)


def _takes_only_names(entry: Option) -> bool:
    """Whether the texts have a type; `package.module:function` is a recipe without one."""
    return entry.choices is not None and bool({str, Iterable[str]} & {*entry.kinds})


def _literal(entry: Option) -> str:
    """Return the declaration of the type of an option's choices."""
    assert entry.choices is not None
    names = [f'    "{name}",' for name in entry.choices()]
    return "\n".join([f"{entry.name.title()}Name = Literal[", *names, "]"])


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
