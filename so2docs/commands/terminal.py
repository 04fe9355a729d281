"""Print what commands produce: messages on stderr, results of several sites, text to read."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from so2docs.escape import for_terminal, on_one_line


def say(message: object) -> None:
    """Print a message with the program's name on stderr, on one line."""
    tell(on_one_line(f"so2docs: {message}"))


def tell(text: object) -> None:
    """Print a text, such as a summary, on stderr; if that fails, the work goes on."""
    with suppress(OSError):
        click.echo(for_terminal(text), err=True)


def shows_progress(quiet: bool = False) -> bool:
    """Whether to show progress: bars on a terminal, otherwise a line a minute; see `cli.run`."""
    return not quiet


def allow_any_encoding() -> None:
    """Print a question mark for each character that the encoding of stdout does not have."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def show_text(text: str) -> None:
    """Print a text with styles, through a pager if the terminal is too short.

    Colours are stripped for `NO_COLOR` (https://no-color.org), `dumb` terminals, and output that is
    not a terminal.
    """
    is_dumb = os.environ.get("TERM") == "dumb"
    if is_dumb or os.environ.get("NO_COLOR"):
        text = click.unstyle(text)
    import shutil

    is_long = text.count("\n") + 1 >= shutil.get_terminal_size().lines
    if is_long and sys.stdout.isatty() and sys.stdin.isatty() and not is_dumb:
        click.echo_via_pager(text)
    else:
        click.echo(text)


if TYPE_CHECKING:
    from so2docs.api.sites import SiteResult


def show_sites(
    function: Callable[..., Any],
    *paths: Any,
    quiet: bool,
    as_json: bool = False,
    is_asked: bool = False,
    **options: Any,
) -> int:
    """Run a function on several sites, and report the results.

    Args:
        function: `convert_all`, or `for_each_site` of a function.
        paths: Dumps or folders for the function.
        quiet: Report failures only.
        as_json: Print all results as JSON.
        is_asked: Whether the user asked for the table, so that it goes to standard output.
        options: Other arguments of the function.

    Returns:
        The exit code.
    """
    from so2docs.api.sites import exit_code, group_failures, summary
    from so2docs.counts import plural
    from so2docs.dump.kinds import join_names
    from so2docs.output.provenance import UP_TO_DATE

    said = set[str]()

    def show(result: SiteResult) -> None:
        if result.error is not None:
            if result.failure not in said:
                say(result)
            said.add(result.failure)
        elif result.note or (result.source and result.state != UP_TO_DATE and not quiet):
            say(result)

    results = function(*paths, progress=shows_progress(quiet), when_done=show, **options)
    for first, *others in group_failures(results).values():
        if others:
            names = join_names([other.site for other in others])
            say(f"{plural(len(others), 'more site')} failed like {first.site}: {names}")
    if as_json:
        import json

        values = [result.as_dict() for result in results]
        click.echo(json.dumps(values, indent=2, ensure_ascii=False))
    elif is_asked:
        click.echo(summary(results))
    elif not quiet:
        tell(summary(results))
    return exit_code(results)
