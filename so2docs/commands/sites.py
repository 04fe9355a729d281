"""What commands do with the sites of a folder: a message for each that fails, and a table."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from so2docs.commands.terminal import say, shows_progress, tell
from so2docs.errors import OptionError, flag

if TYPE_CHECKING:
    from so2docs.folders import SiteResult


def show_sites(
    run: Callable[..., list[SiteResult]],
    *,
    jobs: int | None,
    quiet: bool,
    as_json: bool = False,
    is_asked: bool = False,
) -> int:
    """Do the work on the sites of a folder, and tell what became of them.

    Args:
        run: A function of `so2docs.folders`, with what it takes but for how it runs.
        jobs: Worker processes.
        quiet: Tell of failures only.
        as_json: Print all as JSON.
        is_asked: Whether the table is what the command was asked for: it goes to standard output.

    Returns:
        The exit code.
    """
    from so2docs.folders import summary

    def show(result: SiteResult) -> None:
        if result.error is not None:
            say(result)

    conversions = run(jobs=jobs, progress=shows_progress(quiet), when_done=show)
    if as_json:
        click.echo(
            json.dumps(
                [conversion.as_dict() for conversion in conversions], indent=2, ensure_ascii=False
            )
        )
    elif is_asked:
        click.echo(summary(conversions))
    elif not quiet:
        tell(summary(conversions))
    return int(any(conversion.error is not None for conversion in conversions))


def refuse_update(update: bool) -> None:
    """Refuse `--update` where there is no folder.

    Raises:
        OptionError: It was given.
    """
    if update:
        raise OptionError(
            f"{flag('update', True)} is for folders of outputs; {flag('force', True)} overwrites "
            "one output"
        )
