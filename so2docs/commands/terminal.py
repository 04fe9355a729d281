"""How the commands speak: messages on stderr, and text on a terminal that may lack characters."""

from __future__ import annotations

import io
import os
import shutil
import sys

import click

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
