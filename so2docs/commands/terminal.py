"""How the commands speak: messages on stderr, also of sites that fail, and text on a terminal."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from so2docs.errors import OptionError, flag
from so2docs.escape import for_terminal


def say(message: object) -> None:
    """A message to people, on stderr, as the program's own."""
    tell(f"so2docs: {message}")


def tell(text: object) -> None:
    """Text to people, such as a summary, on stderr."""
    click.echo(for_terminal(text), err=True)


def shows_progress(quiet: bool = False) -> bool:
    """Whether somebody sees a progress bar."""
    return not quiet and sys.stderr.isatty()


def allow_any_encoding() -> None:
    """Let a terminal that lacks a character show a question mark in its place."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def draws_blocks() -> bool:
    """Whether standard output has the characters that bars are drawn with."""
    try:
        "█▏".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def show_text(text: str) -> None:
    """Text with styles on standard output, through a pager where the terminal is too short.

    Without colours where nobody sees them, or `NO_COLOR` (https://no-color.org) or a terminal that
    is `dumb` ask for that.
    """
    is_dumb = os.environ.get("TERM") == "dumb"
    if is_dumb or os.environ.get("NO_COLOR"):
        text = click.unstyle(text)
    is_long = text.count("\n") + 1 >= shutil.get_terminal_size().lines
    if is_long and sys.stdout.isatty() and sys.stdin.isatty() and not is_dumb:
        click.echo_via_pager(text)
    else:
        click.echo(text)


if TYPE_CHECKING:
    from so2docs.folders import SiteResult


def show_sites(
    run: Callable[..., list[SiteResult]],
    *paths: str | None,
    jobs: int | None,
    quiet: bool,
    as_json: bool = False,
    is_asked: bool = False,
    **options: Any,
) -> int:
    """Do the work on the sites of a folder, and tell what became of them.

    Args:
        run: A function of `so2docs.folders`.
        paths: The folders that it takes.
        jobs: Worker processes.
        quiet: Tell of failures only.
        as_json: Print all as JSON.
        is_asked: Whether the table is what the command was asked for: it goes to standard output.
        options: What else the function takes.

    Returns:
        The exit code.
    """
    from so2docs.folders import summary

    def show(result: SiteResult) -> None:
        if result.error is not None:
            say(result)

    progress = shows_progress(quiet)
    results = run(*paths, jobs=jobs, progress=progress, when_done=show, **options)
    if as_json:
        values = [result.as_dict() for result in results]
        click.echo(json.dumps(values, indent=2, ensure_ascii=False))
    elif is_asked:
        click.echo(summary(results))
    elif not quiet:
        tell(summary(results))
    return int(any(result.error is not None for result in results))


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
