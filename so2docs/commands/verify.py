"""`so2docs verify`: an output against its manifest."""

from __future__ import annotations

import os

import click

from so2docs.commands.options import command, quiet, table_option
from so2docs.commands.terminal import show_sites, shows_progress, tell


@command(
    """
    so2docs convert beer.stackexchange.com.7z questions.jsonl.gz --card
    so2docs verify questions.jsonl.gz
    so2docs convert beer.stackexchange.com.7z beer.jsonl.gz --report beer.json
    so2docs verify beer.jsonl.gz --report beer.json
    so2docs convert *.7z --output-dir questions --report questions.json
    so2docs verify questions --report questions.json
    """
)
@click.argument("output", type=click.Path())
@click.option(
    "--report",
    metavar="FILE",
    help="The report that convert wrote to FILE.  [default: the manifest next to OUTPUT]",
)
@table_option("jobs", "Worker processes, for a folder.")
@quiet
def verify(output: str, *, report: str | None, jobs: int | None, quiet: bool) -> int:
    """Check OUTPUT against the manifest that convert --card wrote next to it, or against a report.

    Checks size and SHA-256 of each file, the number of documents and answers, and each document
    against its JSON Schema, which needs jsonschema-rs (pip install jsonschema-rs); in formats
    other than jsonl and json, only size and SHA-256. OUTPUT is the name that convert was given,
    also if it was split, in any folder; what went to standard output may have any name. It may be
    a folder of outputs: then each is checked, and one without a manifest fails.

    Exit codes: 0 all is as the manifest says, 1 something is not, which the message names.
    """
    if os.path.isdir(output):
        from so2docs.folders import verify_all

        return show_sites(verify_all, output, jobs=jobs, quiet=quiet, report=report)
    from so2docs.metadata.manifest import verify as check

    # What was not checked is said even to those who want it quiet.
    result = check(output, report=report, progress=shows_progress(quiet))
    if not quiet:
        tell(result)
    return 0
