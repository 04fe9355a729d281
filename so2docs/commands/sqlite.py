"""`so2docs sqlite`: an output, or a dump, as one SQLite database."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, cast, get_args

import click

from so2docs.commands.options import command, quiet, table_option, update
from so2docs.commands.terminal import refuse_update, say, show_sites, shows_progress, tell
from so2docs.errors import OptionError, flag
from so2docs.options.choices import DATABASE_ENDINGS, Search, split_compression


@command(
    """
    so2docs sqlite questions.jsonl.gz
    so2docs sqlite beer.stackexchange.com.7z beer.db --with all
    so2docs sqlite questions sites.db --site-field Site
    so2docs sqlite questions databases --update
    datasette questions.db -m questions.metadata.json
    """
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="OUTPUT [DATABASE]")
@click.option(
    "--search",
    type=click.Choice(get_args(Search)),
    default="all",
    show_default=True,
    help="What can be searched: titles and tags, these and the text of bodies, or nothing.",
)
@click.option(
    "--stemming",
    is_flag=True,
    help="Find English words in all their forms: baking finds bake and baked.",
)
@table_option(
    "site_field",
    "Column for the site, for several OUTPUTs in one database: ids are unique per site only.",
)
@table_option(
    "site", "The site, for links to the posts there.  [default: as in the name of OUTPUT]"
)
@table_option("nest", "Include these tables of a dump.")
@click.option(
    "--tags",
    type=click.Path(),
    metavar="FILE",
    help="Include excerpts and wikis of tags: an output of so2docs tags, or the dump.",
)
@table_option("jobs", "Worker processes for reading a dump and making rows.")
@update
@table_option("force", "Overwrite an existing database.")
@quiet
def sqlite(
    *,
    paths: tuple[str, ...],
    search: Search,
    stemming: bool,
    site_field: str | None,
    site: str | None,
    nest: tuple[str, ...],
    tags: str | None,
    jobs: int | None,
    update: bool,
    force: bool,
    quiet: bool,
) -> int:
    """Make an SQLite database with full-text search from OUTPUT, or from a dump.

    Tables: questions, answers, tags, question_tags and, if they are nested, comments, links, votes,
    history, users. DATABASE ends in .db, .sqlite or .sqlite3; the default is the name of OUTPUT
    with .db, in the current folder. It gets its name only when it is complete. Next to it goes
    NAME.metadata.json for Datasette. `so2docs serve` shows it in a browser.

    OUTPUT may be a folder of outputs. DATABASE is a folder, too, then, for a database of each site,
    or one database for all of them, with --site-field. Databases in a folder that are up to date
    are left unchanged.

    Exit codes: 0 done, 1 a file, or a site of a folder, failed, 2 wrong usage.
    """
    from so2docs.reader.folder import is_folder_of_outputs
    from so2docs.sqlite.build import to_sqlite

    if site_field is None and is_folder_of_outputs(paths[0]):
        folder, *databases = paths
        if tags is not None:
            raise OptionError(
                f"{flag('tags', tags)} applies to one site; {folder} is a folder of outputs"
            )
        if nest:
            raise OptionError(f"{flag('nest')} is for dumps; {folder} is a folder of outputs")
        if len(databases) != 1 or databases[0].endswith(DATABASE_ENDINGS):
            raise OptionError(
                f"{folder}: is a folder of outputs; give one folder for their databases, or one "
                f"database for all of them with {flag('site_field', 'NAME')}"
            )
        from so2docs.folders import to_sqlite_all

        return show_sites(
            to_sqlite_all,
            folder,
            databases[0],
            jobs=jobs,
            quiet=quiet,
            search=search,
            stemming=stemming,
            site=site,
            update=update,
            force=force,
        )
    refuse_update(update)
    *sources, last = paths
    database: str | None = last
    if not sources or not last.endswith(DATABASE_ENDINGS):
        if sources and not os.path.exists(last) and "." in os.path.basename(last):
            raise OptionError(
                f"{last}: is neither an output nor the name of a database; choose one that ends in "
                f"{' or '.join(DATABASE_ENDINGS)}"
            )
        sources, database = list(paths), None
    result = to_sqlite(
        sources,
        database,
        search=search,
        stemming=stemming,
        site_field=site_field,
        site=site,
        nest=nest,
        tags=() if tags is None else _read_tags(tags, jobs),
        jobs=jobs,
        force=force,
        progress=shows_progress(quiet),
    )
    if quiet:  # A loss is told all the same.
        for line in result.lost:
            say(line)
    else:
        tell(result)
    return 0


def _read_tags(path: str, jobs: int | None) -> Iterable[dict[str, Any]]:
    """Tags from an output of `so2docs tags`, or from a dump."""
    from so2docs.flat.tags import tags
    from so2docs.reader.reading import read

    is_output = split_compression(path)[0].endswith(".jsonl")
    return cast("Iterable[dict[str, Any]]", read(path)) if is_output else tags(path, jobs=jobs)
