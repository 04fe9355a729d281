"""The forms that documents can be written in: one small class each.

A new one is a class with the few members of `Format` and a line in `FORMATS`; the passes do not
know which one they write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from so2docs.output.formats.base import Format
from so2docs.output.formats.parquet import Parquet
from so2docs.output.formats.text import Elasticsearch, JsonArray, JsonLines, MongoDB, RavenDB

if TYPE_CHECKING:
    from so2docs.options.conversion import Options

FORMATS: dict[str, type[Format]] = {
    "jsonl": JsonLines,
    "json": JsonArray,
    "elasticsearch": Elasticsearch,
    "mongodb": MongoDB,
    "ravendb": RavenDB,
    "parquet": Parquet,
}


def of(options: Options) -> Format:
    """The format that the options ask for."""
    return FORMATS[options.form.format](options)


__all__ = ["FORMATS", "Format", "of"]
