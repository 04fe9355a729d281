"""Make SQLite databases of dumps: tables as published, indexes, and full text."""

from __future__ import annotations

import os
from functools import partial
from typing import Unpack

from so2docs.errors import explain
from so2docs.extensions.keywords import DatabaseKeywords
from so2docs.extensions.sqlite.about import FORMAT, write_about
from so2docs.extensions.sqlite.texts import texts_of_posts
from so2docs.extensions.tables.options import DatabaseOptions
from so2docs.extensions.tables.report import TablesReport
from so2docs.extensions.tables.sqlite_writer import SqliteWriter
from so2docs.extensions.tables.tables import TableFiles, find_files, list_inputs, write_tables
from so2docs.output.part_files import check_folder
from so2docs.plugin import (
    POSTS,
    OptionError,
    Source,
    flag,
    make_record,
    options_of,
    read_options,
    spell_out,
)

PathLike = str | os.PathLike[str]

_LEFT_OUT = ("history", "votes")
"""Large tables that a database has only on request."""


@spell_out(options_of(DatabaseOptions))
def to_sqlite(
    dump: PathLike, database: PathLike | None = None, **keywords: Unpack[DatabaseKeywords]
) -> TablesReport:
    """Make an SQLite database with full-text search from a dump.

    Tables and columns have the names in the dump.

    Args:
        dump: An archive or a folder with the tables, or the file of one table with the others next
            to it.
        database: Name of the database; if None, the name of the site with `.db`, in the current
            folder.
        keywords: Options: `so2docs.extensions.keywords.DatabaseKeywords`.

    Returns:
        A report with the row counts of each table.

    Raises:
        OptionError: An option has a value that is not allowed, or a package is missing.
        DumpError: A table is missing, truncated, malformed, or changed while being read.
        OutputError: An existing file is not up to date, or the database cannot be written.
    """
    options = read_options(DatabaseOptions, keywords)
    source = Source(dump)
    source.check_named("tables are read")
    path = f"{source.site()}.db" if database is None else os.fspath(database)
    check_folder(path, "choose another database")
    with explain(), source:
        files, read_first = find_files(source, options, options.only)
        if not options.only:
            files = [file for file in files if file.table.name not in _LEFT_OUT]
        if POSTS not in [file.table for file in files]:
            raise OptionError(f"a database needs the posts; add posts to {flag('only')}")
        host = options.site or source.published_host()
        inputs = list_inputs(read_first, files)
        record = make_record("sqlite", FORMAT, options, inputs, host)
        describe = partial(write_about, record=record)
        writer = partial(SqliteWriter, texts_of=texts_of_posts, complete=describe)
        target = TableFiles(path, record, files, writer)
        target.noun = "database"
        return write_tables(source, [target], options, os.path.dirname(path) or ".")
