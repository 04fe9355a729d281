"""The command `diff`."""

from __future__ import annotations

import json
from typing import Any

import click

from so2docs.commands.terminal import say, shows_progress, tell

_EPILOG = """\b
Example:
  so2docs diff 2024-04.jsonl.gz 2024-07.jsonl.gz changes.jsonl.gz
  so2docs diff old.jsonl.gz new.jsonl.gz --summary --ignore ViewCount
  so2docs diff old.jsonl.gz new.jsonl.gz bulk.ndjson --format elasticsearch
"""


@click.command(epilog=_EPILOG)
@click.argument("old", type=click.Path())
@click.argument("new", type=click.Path())
@click.argument("changes", required=False, type=click.Path())
@click.option(
    "--only",
    metavar="NAMES",
    help="Write only these kinds of change.  [default: added,changed,deleted]",
)
@click.option(
    "--ignore",
    metavar="NAMES",
    help="Fields whose change alone does not count, such as ViewCount,Answers.CommentCount.",
)
@click.option("--summary", is_flag=True, help="Print a table of what changed, and no changes.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.option(
    "--format",
    "-f",
    type=click.Choice(["changes", "jsonl", "elasticsearch", "mongodb", "ravendb"]),
    default="changes",
    show_default=True,
    help="Format of CHANGES; those other than changes bring a database from OLD to NEW.",
)
@click.option(
    "--deleted",
    metavar="FILE",
    help="Write the ids of deleted questions to FILE, with --format jsonl or mongodb.",
)
@click.option(
    "--index", metavar="NAME", default="questions", help="Index for --format elasticsearch."
)
@click.option(
    "--site-field", metavar="NAME", help="Field of the site's name, for ids such as SITE/1."
)
@click.option(
    "--nest",
    "--with",
    "nest",
    multiple=True,
    type=click.Choice(["comments", "links", "votes", "users", "all"]),
    help="Nest this table when converting dumps.",
)
@click.option(
    "--jobs", "-j", type=click.IntRange(min=1), help="Worker processes for converting dumps."
)
@click.option(
    "--work-dir", metavar="DIR", help="Folder for the outputs that dumps are converted to."
)
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@click.option("--quiet", "-q", is_flag=True, help="No progress and no summary, only errors.")
@click.option("--debug", is_flag=True, help="Show a traceback with an error.")
def diff(
    old: str,
    new: str,
    changes: str | None,
    *,
    summary: bool,
    as_json: bool,
    nest: tuple[str, ...],
    jobs: int | None,
    quiet: bool,
    debug: bool,
    only: str | None,
    ignore: str | None,
    work_dir: str | None,
    **written: Any,
) -> None:
    """Write what changed between the outputs OLD and NEW to CHANGES, in ascending question id.

    OLD and NEW are outputs of one site, of convert with the same options, or dumps, which are
    converted first. The default of CHANGES is standard output; each line is one question that was
    added, changed or deleted, with the new document. The first line says which outputs were
    compared, the last one how many changes there are and their checksum: `so2docs patch` refuses
    another OLD and damaged changes.
    """
    from so2docs.changes.diff import diff as compare

    found = compare(
        old,
        new,
        only=only,
        ignore=ignore,
        work_dir=work_dir,
        progress=shows_progress(quiet),
        notify=None if quiet else say,
        nest=nest,
        jobs=jobs,
    )
    if changes is None and (summary or as_json):
        counted = found.count()
    else:
        counted = found.write(changes or "-", **written)
    if as_json:
        click.echo(json.dumps(counted.as_dict(), indent=2))
    elif summary or not quiet:
        (click.echo if summary else tell)(str(counted))
