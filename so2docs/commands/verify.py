"""`so2docs verify`: check an output against its manifest."""

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
    help="Report that convert wrote.  [default: the manifest next to OUTPUT]",
)
@table_option("jobs", "Number of worker processes for a folder.")
@quiet
def verify(output: str, *, report: str | None, jobs: int | None, quiet: bool) -> int:
    """Check OUTPUT against its manifest, written by convert --card, or against a report.

    The command checks the size and SHA-256 of each file and the number of documents and answers. It
    validates each document against the JSON Schema, which needs jsonschema-rs (pip install
    jsonschema-rs). For formats other than jsonl and json, it checks only size and SHA-256. OUTPUT
    is the name passed to convert, even if the output was split or moved. A file with the standard
    output of convert may have any name. If OUTPUT is a folder of outputs, each output is checked,
    and an output without a manifest is an error.

    Exit codes: 0 the output matches, 1 it differs; the message names the difference.
    """
    from so2docs.metadata.manifest import is_retrieval_set
    from so2docs.metadata.manifest import verify as check

    if os.path.isdir(output) and not is_retrieval_set(output):
        from so2docs.folders import verify_all

        return show_sites(verify_all, output, jobs=jobs, quiet=quiet, report=report)

    # Report skipped checks even with --quiet.
    result = check(output, report=report, progress=shows_progress(quiet))
    if not quiet:
        tell(result)
    return 0
