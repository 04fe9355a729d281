"""The command `patch`."""

from __future__ import annotations

import click

from so2docs.commands.options import GroupedCommand, debug, quiet, table_option
from so2docs.commands.terminal import shows_progress, tell

_EPILOG = """\b
Example:
  so2docs patch 2024-04.jsonl.gz changes.jsonl.gz 2024-07.jsonl.gz
  so2docs diff old.jsonl.gz new.jsonl.gz | so2docs patch old.jsonl.gz - copy.jsonl.gz
"""


@click.command(cls=GroupedCommand, epilog=_EPILOG)
@click.argument("old", type=click.Path())
@click.argument("changes", type=click.Path())
@click.argument("new", type=click.Path())
@table_option("force", "Overwrite an existing NEW.")
@quiet
@debug
def patch(old: str, changes: str, new: str, *, force: bool, quiet: bool) -> None:
    """Apply CHANGES, as diff wrote them, to the output OLD, and write the output NEW.

    CHANGES may be - for standard input. NEW is byte for byte the output that the changes were made
    from. Changes that diff wrote with --only or --ignore are applied, too; NEW is then an output
    that has these changes alone.
    """
    from so2docs.changes.patch import patch as apply

    done = apply(old, changes, new, force=force, progress=shows_progress(quiet))
    if not quiet:
        tell(done)
