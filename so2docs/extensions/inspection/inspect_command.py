"""`so2docs inspect`: describe dumps and outputs. Its modules are imported when it runs."""

from __future__ import annotations

import json
from typing import Any

import click

from so2docs.plugin import (
    allow_any_encoding,
    command,
    for_terminal,
    quiet,
    say,
    table_option,
    tell,
)


@command(
    """
    so2docs inspect sample.stackexchange.com.7z
    so2docs inspect *.7z --json > dumps.json
    so2docs inspect questions.jsonl.gz
    """
)
@click.argument("dumps", nargs=-1, required=True, type=click.Path(), metavar="DUMP|OUTPUT...")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array instead of text.")
@table_option("jobs", "Number of worker processes.")
@table_option("work_dir", "Folder for temporary files.")
@quiet
def inspect(*, dumps: tuple[str, ...], as_json: bool, quiet: bool, **options: Any) -> int:
    """Describe each DUMP without converting it, and each OUTPUT.

    For a dump, the description contains its form and compression, the rows, dates and order of each
    table, the probable release, columns without values, and rows made up by the publisher. For an
    output, or each output of a folder, it contains the numbers of questions and answers, by year,
    their scores, and the most frequent tags. For several, it ends with a table of all.

    Exit codes: 0 all can be read, 1 a table cannot be read or is not well-formed XML, or an output
    is damaged, 2 usage error, 3 this applies to some of several.
    """
    from so2docs.extensions.inspection.inspect import Inspection
    from so2docs.extensions.inspection.inspect import inspect as describe
    from so2docs.extensions.sites.each_site import for_each_site
    from so2docs.extensions.sites.tasks import SiteResult, exit_code, summary

    def show(result: SiteResult) -> None:
        if result.error is not None:
            say(result)
            return
        if isinstance(result.result, Inspection):
            for table in result.result.tables.values():
                if table.problem:
                    say(table.problem)
        if not as_json:
            click.echo(for_terminal(result.result))

    allow_any_encoding()
    results = for_each_site(describe, dumps, progress=not quiet, when_done=show, **options)
    if as_json:
        values = [result.result.as_dict() for result in results if result.result is not None]
        click.echo(json.dumps(values, indent=2, ensure_ascii=False))
    elif len(results) > 1 and not quiet:
        tell(summary(results))
    return exit_code(results)
