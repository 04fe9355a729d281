"""`so2docs sqlite`: convert an output or a dump to an SQLite database."""

from __future__ import annotations

import os
from typing import Any

import click

from so2docs.commands.options import command, given_keywords, product_options, quiet
from so2docs.commands.terminal import shows_progress, tell
from so2docs.errors import OptionError, flag
from so2docs.extensions.options import DatabaseOptions
from so2docs.extensions.sites.printing import show_each_site
from so2docs.options.choices import DATABASE_ENDINGS


@command(
    """
    so2docs sqlite questions.jsonl.gz
    so2docs sqlite sample.stackexchange.com.7z sample.db --nest all
    so2docs sqlite questions sites.db --site-field Site
    so2docs sqlite questions databases --update
    datasette questions.db -m questions.metadata.json
    """
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="OUTPUT [DATABASE]")
@product_options(DatabaseOptions)
@quiet
def sqlite(*, paths: tuple[str, ...], quiet: bool, **options: Any) -> int:
    """Make an SQLite database with full-text search from OUTPUT, or from a dump.

    The tables are questions, answers, tags, question_tags and, if nested, comments, links, votes,
    history and users. DATABASE ends in .db, .sqlite or .sqlite3; the default is the name of OUTPUT
    with .db, in the current folder. The file is renamed to its final name when it is complete.
    Files for Datasette are written next to it: NAME.metadata.json and NAME.datasette.yaml. The
    command `so2docs serve` shows the database in a browser.

    If OUTPUT is a folder of outputs, DATABASE is a folder with a database for each site or, with
    --site-field, one database for all sites. Databases in a folder that are up to date are left
    unchanged.

    Exit codes: 0 done, 1 an error, 2 usage error, 3 some of several sites failed.
    """
    from so2docs.extensions.sites.outputs import (
        check_holds_outputs,
        is_folder_of_outputs,
        outputs_in,
    )
    from so2docs.extensions.sqlite.build import to_sqlite

    keywords = given_keywords(options)
    if "site_field" not in keywords and is_folder_of_outputs(paths[0]):
        folder, *databases = paths
        check_holds_outputs(folder, outputs_in(folder))
        if len(databases) != 1 or databases[0].endswith(DATABASE_ENDINGS):
            raise OptionError(
                f"{folder}: is a folder of outputs; give one folder for their databases, or one "
                f"database for all of them with {flag('site_field', 'NAME')}"
            )
        return show_each_site(to_sqlite, folder, databases[0], quiet=quiet, **keywords)
    *sources, last = paths
    database: str | None = last
    if not sources or not last.endswith(DATABASE_ENDINGS):
        if sources and not os.path.exists(last) and "." in os.path.basename(last):
            raise OptionError(
                f"{last}: is neither an output nor the name of a database; choose a name that ends "
                f"in {' or '.join(DATABASE_ENDINGS)}"
            )
        sources, database = list(paths), None
    result = to_sqlite(sources, database, **keywords, progress=shows_progress(quiet))
    if not quiet:
        tell(result)
    return 0
