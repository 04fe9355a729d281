"""`so2docs card`: describe an existing output."""

from __future__ import annotations

import click

from so2docs.plugin import command, on_one_line, quiet, tell


@command(
    """
    so2docs convert sample.stackexchange.com.7z questions.jsonl.gz
    so2docs card questions.jsonl.gz
    """
)
@click.argument("output", type=click.Path())
@click.option("--force", is_flag=True, help="Replace a README.md that so2docs did not write.")
@quiet
def card(output: str, *, force: bool, quiet: bool) -> None:
    """Write README.md, SHA256SUMS and a manifest next to OUTPUT, as convert --card does.

    The facts come from the manifest next to OUTPUT, or from the record in OUTPUT, which does not
    contain the SHA-256 of the dump. The card describes all outputs in the folder that have a
    manifest.

    Exit codes: 0 done, 1 OUTPUT has no record of how it was made, or a file cannot be written, 2
    usage error.
    """
    from so2docs.extensions.cards.card import describe_existing

    name = describe_existing(output, force=force)
    if not quiet:
        tell(on_one_line(name))
