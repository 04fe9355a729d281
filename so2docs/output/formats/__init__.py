"""The formats of documents, each a small class.

Properties that are needed without importing the class are in `options.choices`. Another package
adds a format as an entry point of the group `so2docs.formats`: a subclass of `Format` whose
`traits` is a `FormatTraits`.
"""

from __future__ import annotations

from typing import Any

from so2docs.options.table import Options
from so2docs.output.formats.base import (
    Elasticsearch,
    Format,
    JsonArray,
    JsonLines,
    MongoDB,
    RavenDB,
)
from so2docs.registry import Registry


def _class(name: str, item: Any) -> type[Format]:
    if not (isinstance(item, type) and issubclass(item, Format)):
        raise TypeError("it is not a subclass of so2docs.output.formats.Format")
    return item


_CORE: dict[str, type[Format]] = {
    "jsonl": JsonLines,
    "json": JsonArray,
    "elasticsearch": Elasticsearch,
    "mongodb": MongoDB,
    "ravendb": RavenDB,
}
CLASSES: Registry[type[Format]] = Registry("so2docs.formats", _class, _CORE)
"""Formats by name."""


def of(options: Options) -> Format:
    """Make the format object for an output with these options."""
    return CLASSES[options.form.format].of(options)


__all__ = ["CLASSES", "Format", "of"]
