"""Make a database from the rows of a dump: tables as published, indexes, and full text."""

from __future__ import annotations

import os
import sqlite3
import time
from dataclasses import asdict, dataclass, field
from typing import Any, Unpack

from so2docs.dump.opening import TableFile
from so2docs.errors import explain
from so2docs.extensions.keywords import DatabaseKeywords
from so2docs.extensions.sqlite.about import FORMAT, read_about, write_about
from so2docs.extensions.sqlite.options import DatabaseOptions
from so2docs.extensions.sqlite.texts import texts_of_posts
from so2docs.extensions.tables.report import FlatTable
from so2docs.extensions.tables.sqlite_writer import SqliteWriter
from so2docs.extensions.tables.tables import find_files, for_workers, open_run
from so2docs.output.part_files import part_path
from so2docs.plugin import (
    POSTS,
    DumpError,
    File,
    NewFiles,
    OptionError,
    Product,
    Provenance,
    Source,
    flag,
    is_output,
    make_record,
    on_one_line,
    options_of,
    published_host,
    read_options,
    read_start,
    recorded,
    resumable,
    site_from_name,
    spell_out,
)

PathLike = str | os.PathLike[str]

_LEFT_OUT = ("history", "votes")
"""Large tables that a database has only on request."""


@dataclass(slots=True)
class Database:
    """The result of making a database.

    Attributes:
        path: Name of the database.
        rows: Number of rows in each table, by name, and of `questions` and `answers`.
        repeated: Number of rows left out because their `Id` occurs twice, by table.
        strays: Number of rows without a usable `Id`, by table; they are in a side file.
        file_bytes: Size of the file in bytes.
        seconds: Wall time in seconds.
        is_new: Whether this call made the database.
    """

    path: str
    rows: dict[str, int] = field(default_factory=dict)
    repeated: dict[str, int] = field(default_factory=dict)
    strays: dict[str, int] = field(default_factory=dict)
    file_bytes: int = 0
    seconds: float = 0.0
    is_new: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-compatible values."""
        return asdict(self)

    def columns(self) -> dict[str, int | float]:
        """Return this site's row of a table of sites: numbers by column."""
        numbers = {name: self.rows[name] for name in ("questions", "answers")}
        return {**numbers, "bytes": self.file_bytes}

    def __str__(self) -> str:
        lines = [f"{name:<20} {count:,}" for name, count in self.rows.items()]
        for word, counts in (("repeated", self.repeated), ("strays", self.strays)):
            lines += [f"{f'{word} {name}':<20} {count:,}" for name, count in counts.items()]
        lines.append(f"{'database':<20} {self.file_bytes / 1e6:,.2f} MB  {on_one_line(self.path)}")
        lines.append(f"{'time':<20} {self.seconds:.2f} s")
        return "\n".join(lines)


@spell_out(options_of(DatabaseOptions))
def to_sqlite(
    dump: PathLike, database: PathLike | None = None, **keywords: Unpack[DatabaseKeywords]
) -> Database:
    """Make an SQLite database with full-text search from a dump.

    Tables and columns have the names in the dump.

    Args:
        dump: An archive or a folder with the tables, or the file of one table with the others next
            to it.
        database: Name of the database; if None, the name of the site with `.db`, in the current
            folder.
        keywords: Options: `so2docs.extensions.keywords.DatabaseKeywords`.

    Returns:
        The path, numbers of rows and size of the new or existing database, and the time taken.

    Raises:
        OptionError: An option has a value that is not allowed, or a package is missing.
        DumpError: A table is missing, truncated, malformed, or changed while being read.
        OutputError: An existing file is not up to date, or the database cannot be written.
    """
    product = find_database(dump, database, **keywords)
    options = product.options
    return product.build(force=options.force, update=options.update)


def find_database(
    dump: PathLike, database: PathLike | None = None, **keywords: Unpack[DatabaseKeywords]
) -> DatabaseFile:
    """Check the arguments of `to_sqlite`; return the database to make."""
    options = read_options(DatabaseOptions, keywords)
    path = os.fspath(dump)
    check_is_dump(path)
    source = Source(path)
    source.check_named("tables are read")
    with source:
        files, read_first = _find_tables(source, options)
        if POSTS not in [file.table for file in files]:
            raise OptionError(f"a database needs the posts; add posts to {flag('only')}")
        paths = [file.file for file in (*read_first, *files)]
        inputs = {file.table.name: File.of_table(file) for file in (*read_first, *files)}
    host = options.site or source.published_host() or published_host(site_from_name(path))
    record = make_record("sqlite", FORMAT, recorded(options), inputs.values(), host)
    output = os.fspath(database) if database is not None else f"{site_from_name(path)}.db"
    return DatabaseFile(output, record, paths, source, options)


def _find_tables(
    source: Source, options: DatabaseOptions
) -> tuple[list[TableFile], list[TableFile]]:
    """Find the tables of the database, and those to read before."""
    files, read_first = find_files(source, options.as_tables())
    if not options.only:
        files = [file for file in files if file.table.name not in _LEFT_OUT]
    return files, read_first


def check_is_dump(path: str) -> None:
    """Refuse outputs of so2docs, which are no dumps.

    Raises:
        DumpError: The path is an output, or a folder of tables.
    """
    advice = "give the dump it was made from"
    if os.path.isfile(path) and is_output(path, read_start(path)):
        raise DumpError(path, f"is not a dump but an output of so2docs or JSON; {advice}")
    if os.path.isdir(path):
        names = (f"{POSTS.stem}{end}" for end in (".parquet", ".csv.gz", ".jsonl.gz"))
        if found := next((n for n in names if os.path.exists(os.path.join(path, n))), None):
            raise DumpError(path, f"has flat tables ({found}), not those of a dump; {advice}")


class DatabaseFile(Product[Database]):
    """A database as a product."""

    noun = "database"

    def __init__(
        self,
        path: str,
        provenance: Provenance,
        inputs: list[str | None],
        source: Source,
        options: DatabaseOptions,
    ) -> None:
        super().__init__(path, provenance, inputs)
        self.options, self._source = options, source
        self._files: list[TableFile] = []

    def counts(self, result: Database) -> dict[str, Any]:
        """Return the counts that the database does not contain."""
        return {"strays": result.strays}

    def load(self, record: Provenance) -> Database:
        """Return the numbers of rows and the size of the database."""
        about, strays = read_about(self.path), record.counts["strays"]
        size = os.path.getsize(self.path)
        return Database(self.path, about.rows, about.repeated, strays, size, is_new=False)

    def make(self, files: NewFiles) -> Database:
        """Read the tables, insert their rows, and make the indexes."""
        begun = time.perf_counter()
        options, progress = for_workers(self.options.as_tables())
        folder = os.path.dirname(self.path) or "."
        tables: list[FlatTable] = []

        def describe(connection: sqlite3.Connection) -> None:
            write_about(connection, self._describe(connection, writer))

        with (
            explain(),
            resumable(False),
            self._source as source,
        ):
            self._files, read_first = _find_tables(source, self.options)
            with open_run(
                source, options, self._files, read_first, folder=folder, progress=progress
            ) as run:
                writer = SqliteWriter(self.path, texts_of_posts, describe)
                tables = run.write(self.path, self._files, writer, files)
        about = read_about(part_path(self.path))
        strays = {table.name: sum(table.strays.values()) for table in tables if table.strays}
        size = os.path.getsize(part_path(self.path))
        seconds = time.perf_counter() - begun
        return Database(self.path, about.rows, about.repeated, strays, size, seconds)

    def _describe(self, connection: sqlite3.Connection, writer: SqliteWriter) -> dict[str, Any]:
        """Describe the database that is being made."""
        stems = {file.table.name: file.table.stem for file in self._files}
        return {
            "record": self.provenance.as_dict(),
            "rows": {
                name: connection.execute(f'SELECT count(*) FROM "{stem}"').fetchone()[0]
                for name, stem in {"questions": "questions", "answers": "answers", **stems}.items()
            },
            "repeated": writer.repeated,
            "host": self.provenance.site,
        }
