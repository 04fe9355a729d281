"""`so2docs tables`: write the tables of a dump as flat typed files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from so2docs.extensions.tables.options import TableOptions
from so2docs.plugin import (
    add_options,
    command,
    find_hook,
    given_keywords,
    options_of,
    output_dir,
    quiet,
    tell,
)
from so2docs.standard_streams import open_standard_output


@command(
    """
    so2docs tables sample.stackexchange.com.7z sample
    so2docs tables sample.stackexchange.com.7z sample --format sqlite
    so2docs tables sample.stackexchange.com.7z sample --format csv --load postgres
    so2docs tables sample.stackexchange.com.7z - --only posts --format csv
    so2docs tables 2024-07/*.7z --output-dir tables
    """
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="DUMP [DIR]")
@output_dir
@add_options(options_of(TableOptions))
@quiet
def tables(*, paths: tuple[str, ...], output_dir: str | None, quiet: bool, **options: Any) -> int:
    """Write the tables of DUMP into DIR as flat typed files, without nesting.

    DUMP is the archive of a site, a folder with its tables, or the file of one table with the
    others next to it. An archive is decompressed once.

    Each table becomes a file such as Posts.parquet, or a table in the database tables.db. There is
    a column for every attribute ever published. The column Other holds a JSON object of the
    attributes that have no column or do not fit the type of their column. Integers have 64 bits,
    dates are timestamps in UTC, and tags are lists. Rows without an Id (strays) go to a side file.
    A file is renamed to its final name when it is complete. A table that is up to date is kept.

    With --tag, --keep-users or --keep-posts, only rows that belong to the selected questions are
    written: the questions, their answers, the rows of these posts in other tables, and the users,
    badges and tags of these rows. In this case, --since and --until apply to the date of the
    question.

    With --drop-users and --drop-posts, no table contains anything by these users or from these
    posts, and no row refers to them.

    With --output-dir, all paths are dumps, and each site gets a folder in DIR.

    If DIR is -, the table of --only is written to standard output: as an Arrow stream with --format
    arrow, or as uncompressed csv or jsonl.

    Exit codes: 0 done, 1 an error, 2 usage error, 3 some of several dumps failed.
    """
    keywords = given_keywords(options)
    from so2docs.extensions.tables.tables import tables as write_tables

    if output_dir is not None:
        work_on_several: Callable[..., int] = find_hook("work on several sites")
        return work_on_several(write_tables, paths, output_dir, quiet=quiet, **keywords)
    if len(paths) != 2:
        raise click.UsageError("give DUMP and DIR; for several dumps, give --output-dir DIR")
    if paths[1] == "-":
        from so2docs.extensions.tables.stream import write_stream

        file = open_standard_output()
        write_stream(paths[0], file, **keywords, progress=not quiet)
        return 0
    report = write_tables(*paths, **keywords, progress=not quiet)
    if not quiet:
        tell(report)
    return 0
