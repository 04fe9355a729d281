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


_OWN: dict[str, type[Format]] = {
    "jsonl": JsonLines,
    "json": JsonArray,
    "elasticsearch": Elasticsearch,
    "mongodb": MongoDB,
    "ravendb": RavenDB,
}
CLASSES: Registry[type[Format]] = Registry("so2docs.formats", _OWN, _class)
"""Formats by name, except Parquet."""


def of(options: Options) -> Format:
    """Make the format object for an output with these options."""
    recipe = None if options.recipe is None else options.recipe.recipe
    if options.form.format != "parquet":
        return CLASSES[options.form.format](options.form, **_settings(options))
    from so2docs.extensions.parquet.format import Parquet, RecordParquet

    if recipe is None or recipe.schema is None:
        form = Parquet(options.form, **_settings(options))
    else:
        form = RecordParquet(options.form, level=options.level)
        form.record_schema = recipe.schema
        form.is_one_a_question = recipe.is_by_site
    form.core = options.core
    return form


def _settings(options: Options) -> dict[str, Any]:
    return {
        "level": options.level,
        "fields": options.filters.fields,
        "tables": options.shown,
        "site": options.site_field,
        "is_attributed": options.is_attributed,
    }


__all__ = ["CLASSES", "Format", "of"]
