"""`so2docs card`: describe an existing output."""

from __future__ import annotations

import click

from so2docs.commands.options import command, quiet
from so2docs.commands.terminal import shows_progress, tell


@command(
    """
    so2docs convert beer.stackexchange.com.7z questions.jsonl.gz
    so2docs card questions.jsonl.gz --inspect beer.stackexchange.com.7z
    """
)
@click.argument("output", type=click.Path())
@click.option(
    "--report",
    metavar="FILE",
    help="Report that convert wrote; needed for a split output without a manifest.",
)
@click.option(
    "--inspect",
    "inspect_dump",
    type=click.Path(),
    metavar="DUMP",
    help="Dump to inspect, or FILE.json, the output of so2docs inspect --json.",
)
@click.option("--force", is_flag=True, help="Replace a README.md that so2docs did not write.")
@quiet
def card(
    output: str, *, report: str | None, inspect_dump: str | None, force: bool, quiet: bool
) -> None:
    """Write README.md, croissant.json and a manifest next to OUTPUT, as convert --card does.

    The facts come from the manifest next to OUTPUT, from the report, or from the record in OUTPUT;
    the record does not contain the SHA-256 of the dump. The card describes all outputs in the
    folder that have a manifest.

    --inspect adds facts about the dump: form and compression, rows and dates of its tables,
    licence, and probable release.

    Exit codes: 0 done, 1 OUTPUT has no record of how it was made, or a file cannot be written, 2
    usage error.
    """
    from so2docs.metadata.card import describe_existing

    inspections = None
    if inspect_dump is not None:
        from so2docs.inspection.inspect import load_or_inspect

        inspections = inspect_dump, load_or_inspect(inspect_dump, progress=shows_progress(quiet))
    names = describe_existing(output, report=report, force=force, inspections=inspections)
    if not quiet:
        tell(" and ".join(names))
