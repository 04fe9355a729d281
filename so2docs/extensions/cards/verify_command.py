"""`so2docs verify`: check an output against its manifest."""

from __future__ import annotations

import os

import click

from so2docs.commands.options import command, quiet, table_option
from so2docs.commands.terminal import tell
from so2docs.extensions.sites.printing import show_each_site


@command(
    """
    so2docs convert sample.stackexchange.com.7z questions.jsonl.gz --card
    so2docs verify questions.jsonl.gz
    """
)
@click.argument("output", type=click.Path())
@table_option("jobs", "Number of worker processes for a folder.")
@quiet
def verify(output: str, *, jobs: int | None, quiet: bool) -> int:
    """Check the size and SHA-256 of each file of OUTPUT against its manifest.

    convert --card and the command card write the manifest. OUTPUT is the name passed to convert,
    even if the output was split or moved. If OUTPUT is a folder of outputs, each output is checked,
    and an output without a manifest is an error.

    Exit codes: 0 the output matches, 1 it differs, and the message names the difference, 2 usage
    error, 3 some of several outputs differ.
    """
    from so2docs.extensions.cards.manifest import is_record_set
    from so2docs.extensions.cards.manifest import verify as check

    if os.path.isdir(output) and not is_record_set(output):
        return show_each_site(check, output, jobs=jobs, quiet=quiet)
    result = check(output)
    if not quiet:
        tell(result)
    return 0
