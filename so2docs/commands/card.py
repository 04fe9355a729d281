"""`so2docs card`: the card of an output that is there."""

from __future__ import annotations

import click

from so2docs.commands.options import GroupedCommand, debug, quiet
from so2docs.commands.terminal import tell


@click.command(
    cls=GroupedCommand,
    epilog="""\b
Example:
  so2docs convert beer.stackexchange.com.7z questions.jsonl.gz
  so2docs card questions.jsonl.gz
""",
)
@click.argument("output", type=click.Path())
@click.option(
    "--report",
    metavar="FILE",
    help="The report that convert wrote to FILE, which a split output without manifest needs.",
)
@click.option("--force", is_flag=True, help="Replace a README.md that is not a card of so2docs.")
@quiet
@debug
def card(output: str, *, report: str | None, force: bool, quiet: bool) -> None:
    """Write README.md, croissant.json and a manifest next to OUTPUT, as convert --card does.

    What they say is from the manifest next to OUTPUT, from the report, or from what OUTPUT itself
    says of how it was made; then the SHA-256 of the dump is not known. All outputs in the folder
    that have a manifest are in the card.

    Exit codes: 0 done, 1 OUTPUT does not say how it was made, or something cannot be written, 2
    wrong usage.
    """
    from so2docs.metadata.card import describe_existing

    names = describe_existing(output, report=report, force=force)
    if not quiet:
        tell(" and ".join(names))
