"""The options of databases."""

from __future__ import annotations

from dataclasses import dataclass, fields

from so2docs.extensions.tables.options import SomeTables, TableOptions
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
    update: bool = like("update")
    force: bool = like("force", "Overwrite an existing database.")

    def as_tables(self) -> TableOptions:
        """Return the same options for writing tables."""
        values = {item.name: getattr(self, item.name) for item in fields(SomeTables)}
        return TableOptions(**values, format="sqlite", update=self.update, force=self.force)
