"""`so2docs verify`: an output against its manifest."""

from __future__ import annotations

import click

from so2docs.commands.terminal import say, shows_progress, tell


@click.command(
    epilog="""\b
Example:
  so2docs convert beer.stackexchange.com.7z questions.jsonl.gz --card
  so2docs verify questions.jsonl.gz
"""
)
@click.argument("output", type=click.Path())
@click.option("--quiet", "-q", is_flag=True, help="No progress and no summary, only errors.")
@click.option("--debug", is_flag=True, help="Show a traceback with an error.")
def verify(output: str, *, quiet: bool, debug: bool) -> None:
    """Check OUTPUT against the manifest that convert --card wrote beside it.

    Size and SHA-256 of each file, the number of documents and answers, and each document against
    its JSON Schema, which needs jsonschema-rs (pip install 'so2docs[verify]'). Of Parquet, size and
    SHA-256 alone. OUTPUT is the name that convert was given, also where it was split.

    Exit codes: 0 all is as the manifest says, 1 something is not: the first difference is told.
    """
    from so2docs.contract.verify import verify as check

    # What was not checked is said even to those who want it quiet.
    found = check(output, notify=say, progress=shows_progress(quiet))
    if not quiet:
        tell(found)
