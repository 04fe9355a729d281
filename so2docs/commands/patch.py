"""`so2docs patch`: apply changes to an output."""

from __future__ import annotations

import os

import click

from so2docs.commands.options import command, quiet, table_option
from so2docs.commands.terminal import show_sites, shows_progress, tell


@command(
    """
    so2docs patch 2024-04.jsonl.gz changes.jsonl.gz 2024-07.jsonl.gz
    so2docs diff old.jsonl.gz new.jsonl.gz | so2docs patch old.jsonl.gz - copy.jsonl.gz
    so2docs patch questions/2024-04 changes questions/2024-07
    """
)
@click.argument("old", type=click.Path())
@click.argument("changes", type=click.Path())
@click.argument("new", type=click.Path())
@table_option("update")
@table_option("jobs", "Number of worker processes for folders.")
@table_option("force", "Overwrite an existing NEW.")
@quiet
def patch(old: str, changes: str, new: str, *, jobs: int, quiet: bool, **again: bool) -> int:
    """Apply CHANGES, which diff wrote, to the output OLD, and write the output NEW.

    CHANGES may be - for standard input. NEW is byte for byte the new output that diff read. With
    changes written by diff --only or --ignore, NEW differs from OLD only by these changes.

    If OLD, CHANGES and NEW are folders, the changes of each site are applied to its output. A site
    without a changes file is listed as gone.

    Exit codes: 0 done, 1 a file or a site failed, 2 usage error.
    """
    if os.path.isdir(old) or os.path.isdir(changes):
        from so2docs.folders import patch_all

        return show_sites(patch_all, old, changes, new, jobs=jobs, quiet=quiet, **again)
    from so2docs.changes.patch import patch as apply

    result = apply(old, changes, new, progress=shows_progress(quiet), **again)
    if not quiet:
        tell(result)
    return 0
