"""Read the description of a database, and make the metadata and configuration for Datasette."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import orjson

from so2docs.domain import site_language
from so2docs.errors import OutputError, flag
from so2docs.escape import printable
from so2docs.extensions.sqlite.layout import ABOUT, FORMAT, PAGES, SEARCH, literal, quoted
from so2docs.output.provenance import Provenance, load
from so2docs.store.sqlite_errors import sqlite_errors


@dataclass(frozen=True, slots=True)
class SiteAbout:
    """The description of a site in a database.

    Attributes:
        name: Value of the column for the site; None in a database of one site.
        host: Host name of the site; None if unknown.
        parts: Keys of the nested parts that its documents hold, such as `Comments` and `Owner`.
        overview: Counts for the front page.
        source: Name of the input file; empty if the documents were passed as an iterable.
    """

    name: str | None
    host: str | None
    parts: frozenset[str]
    overview: dict[str, Any]
    source: str

    @property
    def title(self) -> str:
        """The host name of the site; if unknown, its name or source, or `Questions`."""
        return self.host or self.name or self.source or "Questions"

    @property
    def language(self) -> str:
        """The language of the site as a BCP 47 tag."""
        return site_language(self.host or "")


@dataclass(frozen=True, slots=True)
class About:
    """The description of a database.

    Attributes:
        path: Path of the database file.
        record: Record of how the database was made.
        rows: Number of rows in each table.
        provenance: Provenance of the documents of each source; None if unknown.
        sites: The sites, in ascending order of name.
    """

    path: str
    record: Provenance
    rows: dict[str, int]
    provenance: list[dict[str, Any] | None]
    sites: list[SiteAbout]

    @property
    def site_field(self) -> str | None:
        """Name of the column for the site; None in a database of one site."""
        return cast("str | None", self.record.options["site_field"])

    @property
    def has_search(self) -> bool:
        """Whether the database has a full-text index."""
        return bool(self.record.options["search"] != "none")


def connect(path: str) -> sqlite3.Connection:
    """Open a database for reading, from any thread.

    Raises:
        OutputError: The file cannot be opened.
    """
    with explain_database_errors(path):
        uri = f"file:{quote(os.fsencode(path))}?mode=ro"
        return sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)


def explain_database_errors(path: str) -> AbstractContextManager[None]:
    """Convert the errors of SQLite from reading a database to an `OutputError` with advice."""
    return sqlite_errors(path, "cannot be read")


def read_about(path: str) -> About:
    """Read the description of a database.

    Raises:
        OutputError: The file is not a database of so2docs, or the version of its layout is not
            `FORMAT`.
    """
    with closing(connect(path)) as connection:
        try:
            rows = dict(connection.execute(f"SELECT name, value FROM {ABOUT}").fetchall())
        except sqlite3.Error as error:
            raise OutputError(
                f"{path}: is not a database of so2docs ({error}); make one with `so2docs sqlite`"
            ) from error
    values = {name: orjson.loads(value) for name, value in rows.items()}
    record = load(orjson.dumps(values.get("record")))
    if record is None or record.contract != FORMAT:
        version = "" if record is None else f" ({record.version})"
        raise OutputError(
            f"{path}: was made by another version of so2docs{version}; rebuild it with "
            f"{flag('force', True)}"
        )
    return About(
        path,
        record,
        values["rows"],
        [source["provenance"] for source in values["sources"]],
        _sites(values),
    )


def _sites(values: dict[str, Any]) -> list[SiteAbout]:
    overviews = {overview["site"]: overview for overview in values["overview"]}
    sites: dict[str | None, SiteAbout] = {}
    for source in values["sources"]:
        for site in source["sites"]:
            earlier = sites.get(site["name"])
            parts = frozenset(source["parts"]) | (earlier.parts if earlier else frozenset())
            overview = overviews[site["name"]]
            sites[site["name"]] = SiteAbout(
                site["name"], site["host"], parts, overview, source["source"]
            )
    return [sites[name] for name in sorted(sites, key=lambda name: name or "")]


def connect_to_site(about: About, site: SiteAbout) -> sqlite3.Connection:
    """Open a database with the tables of one site, where `Id` alone identifies a post.

    In a database of several sites, these are temporary views. Questions, answers, documents and
    texts also have a `Row`, by which the search index finds them.
    """
    connection = connect(about.path)
    try:
        _create_views(connection, about, site)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _create_views(connection: sqlite3.Connection, about: About, site: SiteAbout) -> None:
    tables = [
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        if name != ABOUT and not name.startswith((SEARCH, "sqlite_"))
    ]
    for table in tables:
        if table == PAGES:  # A document has its page's number.
            continue
        if about.site_field is None:
            has_row = table in ("questions", "answers", "texts", "documents")
            where, more = "", ', "Id" AS "Row"' if has_row else ""
        else:
            where, more = f" WHERE {quoted(about.site_field)} = {literal(str(site.name))}", ""
        if where or more:
            connection.execute(
                f"CREATE TEMP VIEW {table} AS SELECT *{more} FROM main.{table}{where}"
            )


def datasette_files(database: str, about: About) -> dict[str, bytes]:
    """Return the contents of the files for Datasette next to a database, by file name.

    Datasette before 1.0 reads everything from the metadata; 1.0 reads tables from its configuration
    in YAML, a superset of JSON.
    https://docs.datasette.io/en/latest/upgrade_guide.html

    Args:
        database: The name of the database, which exists or will exist.
        about: The description of the database.
    """
    names = [site.title for site in about.sites]
    title = names[0] if len(names) == 1 else f"{len(names)} sites"
    hosts = [site.host for site in about.sites if site.host]
    values = {
        "title": f"{title}: questions and answers",
        "license": "CC BY-SA, by the users of the site",
        "license_url": "https://creativecommons.org/licenses/by-sa/4.0/",
        "source": "Stack Exchange data dump",
        "source_url": f"https://{hosts[0]}/" if hosts else "https://stackexchange.com/sites",
    }
    databases = {printable(Path(database).stem): {"tables": _tables(about)}}
    files = {
        ".metadata.json": values | {"databases": databases},
        ".datasette.yaml": {"databases": databases},
    }
    return {
        str(Path(database).with_suffix(extension)): json.dumps(
            content, indent=2, ensure_ascii=False
        ).encode()
        + b"\n"
        for extension, content in files.items()
    }


def _tables(about: About) -> dict[str, Any]:
    row = "Id" if about.site_field is None else "Row"
    site = [] if about.site_field is None else [about.site_field]
    tables: dict[str, Any] = {
        "questions": {
            "label_column": "Title",
            "sort_desc": "Score",
            "facets": [*site, {"array": "Tags"}],
        },
        "answers": {"sort_desc": "Score"},
        "tags": {"sort_desc": "Questions"},
        "texts": {},
    }
    if "users" in about.rows:
        tables["users"] = {"label_column": "DisplayName", "sort_desc": "Reputation"}
    searched = {"all": ("questions", "answers", "texts"), "titles": ("questions", "texts")}
    for name in searched.get(about.record.options["search"], ()):
        tables[name] |= {"fts_table": SEARCH, "fts_pk": row}
    return {name: settings for name, settings in tables.items() if settings}
