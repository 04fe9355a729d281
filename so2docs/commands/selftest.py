"""The command `selftest`."""

from __future__ import annotations

import sys

import click

from so2docs.commands.options import GroupedCommand, debug


@click.command(cls=GroupedCommand)
@debug
def selftest() -> None:
    """Check this installation: convert a built-in sample in every way, and compare.

    Tries both cores, one job and two, kill and resume, archives, and looking up. Takes seconds.
    """
    from so2docs.commands.installation import installation
    from so2docs.selftest import selftest as run

    failed = 0
    for check in run():
        click.echo(str(check))
        failed += check.problem is not None
    if failed:
        click.echo("\nPlease report this with the following:", err=True)
        for name, version in installation().items():
            click.echo(f"  {name}: {version}", err=True)
        sys.exit(1)
