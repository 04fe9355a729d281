"""`so2docs stats`: statistics of an output. Its modules are imported when it runs."""

from __future__ import annotations

import json
import os
from typing import Any

import click

from so2docs.commands.options import command, quiet, table_option
from so2docs.commands.terminal import allow_any_encoding, shows_progress
from so2docs.extensions.each_site_command import show_each_site


@command(
    """
    so2docs stats questions.jsonl.gz
    so2docs stats questions/
    """
)
@click.argument("output", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@table_option("jobs", "Number of worker processes.")
@quiet
def stats(output: str, as_json: bool, **options: Any) -> int:
    """Print statistics of OUTPUT: questions by year, answers, scores, tags, longest bodies.

    If OUTPUT is a folder of outputs, print a table of the sites or, with --json, all statistics.

    Exit codes: 0 done, 1 an error, 2 usage error, 3 some of several sites failed.
    """
    from so2docs.extensions.statistics.stats import stats as count

    allow_any_encoding()
    if os.path.isdir(output):
        return show_each_site(count, output, as_json=as_json, is_asked=True, **options)
    figures = count(output, jobs=options["jobs"], progress=shows_progress(options["quiet"]))
    if as_json:
        click.echo(json.dumps(figures.as_dict(), indent=2, ensure_ascii=False))
    else:
        click.echo(str(figures))
    return 0
