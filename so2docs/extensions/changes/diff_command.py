"""`so2docs diff`: write the changes between two outputs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import click

from so2docs.extensions.changes.options import ComparisonOptions, ReplaceOptions
from so2docs.plugin import (
    add_options,
    command,
    find_hook,
    given_keywords,
    options_of,
    quiet,
    table_option,
    tell,
)


@command(
    """
    so2docs diff 2024-04.jsonl.gz 2024-07.jsonl.gz changes.jsonl.gz
    so2docs diff old.jsonl.gz new.jsonl.gz --summary --ignore ViewCount
    so2docs diff questions/2024-04 questions/2024-07 changes
    """
)
@click.argument("old", type=click.Path())
@click.argument("new", type=click.Path())
@click.argument("changes", required=False, type=click.Path())
@click.option(
    "--summary",
    is_flag=True,
    help="Print a table that counts the changes; without CHANGES, write nothing else.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@add_options(options_of(ComparisonOptions, ReplaceOptions))
@table_option("jobs", "Number of worker processes for folders.")
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

    OLD and NEW are outputs of the same site, converted with the same options. The default for
    CHANGES is standard output. Each line describes a question that was added, changed or deleted,
    and contains the new document. The last line contains the number of changes.

    If OLD, NEW and CHANGES are folders with an output for each site, each site is compared. All
    questions of a new site count as added, and a site missing in NEW is listed as gone, or as
    failed if its conversion failed. Existing changes between the same outputs are kept.

    Exit codes: 0 done, 1 an error, 2 usage error, 3 some of several sites failed.
    """
    from so2docs.extensions.changes.diff import diff as compare

    counts_only = changes is None and (summary or as_json)
    keywords = given_keywords(options)
    if os.path.isdir(old) or os.path.isdir(new):
        work_on_several: Callable[..., int] = find_hook("work on several sites")
        return work_on_several(
            compare,
            (old, new),
            None if counts_only else changes or "-",
            quiet=quiet,
            as_json=as_json,
            is_asked=summary,
            **keywords,
        )
    keywords.pop("jobs", None)
    replace = {name: keywords.pop(name) for name in ("update", "force") if name in keywords}
    made = compare(old, new, **keywords, progress=not quiet)
    result = made.count() if counts_only else made.write(changes or "-", **replace)
    if as_json:
        click.echo(json.dumps(result.as_dict(), indent=2))
    elif summary or not quiet:
        (click.echo if summary and changes != "-" else tell)(str(result))
    return 0
