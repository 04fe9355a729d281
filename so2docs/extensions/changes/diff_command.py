"""`so2docs diff`: write the changes between two outputs or dumps."""

from __future__ import annotations

import json
from typing import Any

import click

from so2docs.commands.options import command, given_keywords, product_options, quiet, table_option
from so2docs.commands.terminal import shows_progress, tell
from so2docs.errors import OptionError, flag
from so2docs.extensions.each_site_command import show_each_site
from so2docs.extensions.options import ChangesOptions, ComparisonOptions
from so2docs.options.table import options_of


@command(
    """
    so2docs diff 2024-04.jsonl.gz 2024-07.jsonl.gz changes.jsonl.gz
    so2docs diff old.jsonl.gz new.jsonl.gz --summary --ignore ViewCount
    so2docs diff old.jsonl.gz new.jsonl.gz bulk.ndjson --format elasticsearch
    so2docs diff questions/2024-04 questions/2024-07 changes
    """
)
@click.argument("old", type=click.Path())
@click.argument("new", type=click.Path())
@click.argument("changes", required=False, type=click.Path())
@click.option(
    "--summary",
    is_flag=True,
    help="Print a table that counts the changes, without writing them; leave CHANGES out.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@product_options(ComparisonOptions, ChangesOptions)
@click.option(
    "--report",
    metavar="FILE",
    help="For folders, the report of the conversion to NEW: sites that failed are listed as "
    "failed, not as gone.",
)
@table_option("nest", "Nest these tables when converting dumps.")
@table_option("jobs", "Number of worker processes for dumps and for folders.")
@table_option("work_dir", "Folder for the outputs that are made from dumps.")
@quiet
def diff(
    old: str,
    new: str,
    changes: str | None,
    *,
    summary: bool,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Write the changes between OLD and NEW to CHANGES, in ascending order of question id.

    OLD and NEW are outputs of the same site, converted with the same options, or dumps, which are
    converted first. The default for CHANGES is standard output. Each line describes a question that
    was added, changed or deleted, and contains the new document. The last line contains the number
    of changes.

    If OLD, NEW and CHANGES are folders with an output for each site, each site is compared. All
    questions of a new site count as added, and a site missing in NEW is listed as gone, or as
    failed if --report says so. Existing changes between the same outputs are kept.

    Exit codes: 0 done, 1 an error, 2 usage error, 3 some of several sites failed.
    """
    from so2docs.extensions.changes.diff import diff as compare
    from so2docs.extensions.output_folder import is_folder_of_outputs

    if summary and changes is not None:
        raise click.UsageError("--summary writes no changes; leave CHANGES out, or give --json")
    counts_only = changes is None and (summary or as_json)
    options = given_keywords(options)
    of_dumps = {name: options.pop(name) for name in ("nest", "work_dir") if name in options}
    names = (*options_of(ComparisonOptions), "jobs")
    counted = {name: options.pop(name) for name in names if name in options}
    if is_folder_of_outputs(old) or is_folder_of_outputs(new):
        for name in of_dumps:
            raise OptionError(
                f"{flag(name)} applies only to dumps, but "
                f"{old if is_folder_of_outputs(old) else new} is a folder of outputs"
            )
        return show_each_site(
            compare,
            (old, new),
            None if counts_only else changes or "-",
            quiet=quiet,
            as_json=as_json,
            is_asked=summary,
            **counted,
            **options,
        )
    if "report" in options:
        raise OptionError(f"{flag('report')} applies only to folders of outputs")
    found = compare(old, new, **counted, **of_dumps, progress=shows_progress(quiet))
    result = found.count() if counts_only else found.write(changes or "-", **options)
    if as_json:
        click.echo(json.dumps(result.as_dict(), indent=2))
    elif summary or not quiet:
        (click.echo if summary else tell)(str(result))
    return 0
