"""The options of databases."""

from __future__ import annotations

from dataclasses import dataclass

from so2docs.extensions.tables.options import SomeTables
from so2docs.plugin import checked_host, like


@dataclass(frozen=True, slots=True)
class DatabaseOptions(SomeTables):
    """Options for making a database with full-text search."""

    site: str | None = like(
        "site",
        "The site for links to the original posts.",
        usually="from the name of DUMP",
        parse=lambda name, value: None if value is None else checked_host(value),
    )
