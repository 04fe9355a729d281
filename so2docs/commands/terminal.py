"""How the commands speak: messages on stderr, and text on a terminal that may lack characters."""

from __future__ import annotations

import io
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
