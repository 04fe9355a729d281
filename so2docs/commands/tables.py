"""`so2docs tables`: the tables of a dump as flat typed files."""

from __future__ import annotations

from typing import Any, get_args

import click

from so2docs.commands.options import (
    GroupedOption,
    command,
    given_keywords,
    quiet,
    table_option,
)
from so2docs.commands.terminal import shows_progress, tell
from so2docs.options.choices import TableFormat
from so2docs.schema import DUMP


@command(
    """
    so2docs tables beer.stackexchange.com.7z beer
    so2docs tables stackoverflow.com-Votes.7z votes --split-by month
    so2docs tables beer.stackexchange.com.7z beer --format duckdb
    """
)
@click.argument("dump", type=click.Path(), metavar="DUMP")
@click.argument("folder", type=click.Path(), metavar="DIR")
@click.option(
    "--only",
    cls=GroupedOption,
    group="Input",
    multiple=True,
    metavar="TABLES",
    help=f"Only these tables: {', '.join(DUMP)}.  [default: all that are there]",
)
@table_option("since", "Keep rows of this date (UTC) or later.")
@table_option("until", "Keep rows of dates before this (UTC).")
@table_option("tags", "Keep posts that have any of these tags themselves; answers have none.")
@table_option("all_tags", "Keep posts with all of the tags, instead of any.")
@click.option(
    "--format",
    cls=GroupedOption,
    group="Output",
    type=click.Choice(get_args(TableFormat)),
    default="parquet",
    show_default=True,
    help="Of the files; csv and jsonl are gzip, sqlite and duckdb one database with all tables.",
)
@table_option("split_by", "Write a folder of files for each year or month of the rows.")
@table_option("skip_malformed")
@click.option(
    "--update",
    cls=GroupedOption,
    group="Run",
    is_flag=True,
    help="Write again what was made from another dump or with other options.",
)
@table_option("force", "Overwrite whatever is there.")
@table_option("jobs")
@table_option("core")
@table_option("work_dir", "Folder for temporary files.  [default: DIR]")
@quiet
def tables(*, dump: str, folder: str, quiet: bool, **options: Any) -> None:
    """Write the tables of DUMP into DIR as flat typed files, a row for each row.

    DUMP is the archive of a site, a folder with its tables, or the file of one table with those
    next to it. An archive is decompressed once.

    Each table becomes a file such as Posts.parquet, or a table of tables.db or tables.duckdb.
    Columns are all attributes that were ever published, and Other: a JSON object with whatever has
    no column, or is not of the type of its column. Integers have 64 bits, dates are timestamps in
    UTC, tags are lists. Rows without an Id are strays, in a side file. A file gets its name only
    when it is complete; a table that is up to date is not written again.

    With --split-by, rows are in DIR/Posts/year=2019/month=3/Posts.parquet, as Hive has it.
    """
    from so2docs.flat.tables import tables as write_tables

    report = write_tables(dump, folder, **given_keywords(options), progress=shows_progress(quiet))
    if not quiet:
        tell(report)
