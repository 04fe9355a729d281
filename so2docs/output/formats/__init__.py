"""The formats of documents, each a small class.

Properties that are needed without importing the class are in `options.choices`.
"""

from __future__ import annotations

from so2docs.options.table import Options
from so2docs.output.formats.base import (
    Elasticsearch,
    Format,
    JsonArray,
    JsonLines,
    MongoDB,
    RavenDB,
)
from so2docs.registry import find_hook

_CORE: dict[str, type[Format]] = {
    "jsonl": JsonLines,
    "json": JsonArray,
    "elasticsearch": Elasticsearch,
    "mongodb": MongoDB,
    "ravendb": RavenDB,
}


def find_class(name: str) -> type[Format]:
    """Return the class of a format."""
    format_class: type[Format] = _CORE.get(name) or find_hook(f"format {name}")
    return format_class


def of(options: Options) -> Format:
    """Make the format object for an output with these options."""
    return find_class(options.form.format).of(options)


__all__ = ["Format", "find_class", "of"]
