"""`so2docs sqlite`: an output, or a dump, as one SQLite database."""

from __future__ import annotations

import click

from so2docs.commands.terminal import say, shows_progress, tell

_ENDINGS = (".db", ".sqlite", ".sqlite3")

_EPILOG = """\b
Example:
  so2docs sqlite questions.jsonl.gz
  so2docs sqlite beer.stackexchange.com.7z beer.db --with all
  so2docs sqlite questions/*.jsonl.gz sites.db --site-field Site
  datasette questions.db -m questions.metadata.json
"""


@click.command(epilog=_EPILOG)
@click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="OUTPUT [DATABASE]")
@click.option(
    "--search",
    type=click.Choice(["titles", "all", "none"]),
    default="all",
    show_default=True,
    help="What can be searched: titles and tags, these and the text of bodies, or nothing.",
)
@click.option(
    "--stemming",
    is_flag=True,
    help="Find English words in all their forms: baking finds bake and baked.",
)
@click.option(
    "--site-field",
    metavar="NAME",
    help="Column for the site, for several OUTPUTs in one database: ids are unique per site only.",
)
@click.option(
    "--site",
    metavar="ADDRESS",
    help="Address of the site, for links to the posts there.  [default: as in the name of OUTPUT]",
)
@click.option(
    "--nest",
    "--with",
    "nest",
    type=click.Choice(["comments", "links", "votes", "users", "all"]),
    multiple=True,
    help="Include this table of a dump; may be given several times.",
)
@click.option(
    "--jobs",
    "-j",
    type=click.IntRange(min=1),
    help="Worker processes for reading a dump.  [default: all cores]",
)
@click.option("--force", is_flag=True, help="Overwrite an existing database.")
@click.option("--quiet", "-q", is_flag=True, help="No progress and no summary, only errors.")
@click.option("--debug", is_flag=True, help="Show a traceback with an error.")
def sqlite(
    *,
    paths: tuple[str, ...],
    search: str,
    stemming: bool,
    site_field: str | None,
    site: str | None,
    nest: tuple[str, ...],
    jobs: int | None,
    force: bool,
    quiet: bool,
    debug: bool,
) -> None:
    """Make an SQLite database with full-text search from OUTPUT, or from a dump.

    Tables: questions, answers, tags, question_tags and, if they are nested, comments, links, votes,
    users. DATABASE ends in .db, .sqlite or .sqlite3; the default is the name of OUTPUT with
    .db, in the current folder. It gets its name only when it is complete. Beside it goes
    NAME.metadata.json for Datasette. `so2docs serve` shows it in a browser.
    """
    from so2docs.sqlite.build import to_sqlite

    *sources, last = paths
    database: str | None = last
    if not sources or not last.endswith(_ENDINGS):
        sources, database = list(paths), None
    try:
        made = to_sqlite(
            sources,
            database,
            search=search,  # type: ignore[arg-type]
            stemming=stemming,
            site_field=site_field,
            site=site,
            nest=nest,
            jobs=jobs,
            force=force,
            progress=shows_progress(quiet),
        )
    except BaseException as end:
        if isinstance(end, Exception):
            raise
        raise type(end)("the same command starts over") from None
    if quiet:  # A loss is told all the same.
        for line in made.lost:
            say(line)
    else:
        tell(made)
