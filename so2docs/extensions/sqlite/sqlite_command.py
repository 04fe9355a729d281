"""`so2docs sqlite`: make an SQLite database of a dump."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

from so2docs.extensions.tables.options import DatabaseOptions
from so2docs.options.choices import DATABASE_ENDINGS
from so2docs.plugin import (
    POSTS,
    OptionError,
    add_options,
    command,
    find_hook,
    given_keywords,
    options_of,
    quiet,
    tell,
)


@command(
    """
    so2docs sqlite sample.stackexchange.com.7z
    so2docs sqlite sample.stackexchange.com.7z python.db --tag python
    so2docs sqlite 2024-07/*.7z databases --update
    """
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="DUMP... [DATABASE]")
@add_options(options_of(DatabaseOptions))
@quiet
def sqlite(*, paths: tuple[str, ...], quiet: bool, **options: Any) -> int:
    """Make an SQLite database with full-text search from DUMP.

    DUMP is the archive of a site, a folder with its tables, or the file of one table with the
    others next to it. The database has these tables under their names in the dump, without
    PostHistory and Votes unless --only names them. It also has the views questions and answers,
    the tables question_tags and tag_counts, and the full-text index posts_fts.

    DATABASE ends in .db, .sqlite or .sqlite3; the default is the name of the site with .db, in the
    current folder. The file gets its final name when it is complete. The command `so2docs serve`
    shows the database in a browser.

    For several dumps, the last path is a folder, which gets a database SITE.db for each dump.
    Databases that are up to date are kept.

    Exit codes: 0 done, 1 an error, 2 usage error, 3 some of several sites failed.
    """
    from so2docs.extensions.sqlite.build import to_sqlite

    keywords = given_keywords(options)
    *dumps, last = paths
    is_database = last.endswith(DATABASE_ENDINGS)
    if len(dumps) > 1 and is_database:
        raise OptionError(
            f"{last}: is the name of one database, but each site gets its own; give a folder"
        )
    if dumps and not is_database:
        if os.path.isfile(last) or os.path.exists(os.path.join(last, POSTS.file)):
            raise OptionError(f"{last}: is a dump or a file; give a folder for the databases last")
        work_on_several: Callable[..., int] = find_hook("work on several sites")
        return work_on_several(to_sqlite, dumps, last, quiet=quiet, **keywords)
    dump, database = (dumps[0], last) if dumps else (last, None)
    result = to_sqlite(dump, database, **keywords, progress=not quiet)
    if not quiet:
        tell(result)
    return 0
