"""Make the database of one of several dumps; the result is None if it is up to date."""

from __future__ import annotations

from typing import Any

from so2docs.extensions.sqlite.build import Database, find_database
from so2docs.registry import EachDump


def _write_database(source: str, output: str, **kwargs: Any) -> Database | None:
    product = find_database(source, output, **kwargs)
    options = product.options
    return product.build_new(force=options.force, update=options.update)


DATABASES = EachDump(_write_database, ".db")
