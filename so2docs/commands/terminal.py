"""Print what commands produce: messages and summaries on stderr."""

from __future__ import annotations

import io
import sys
from contextlib import suppress

import click

from so2docs.escape import for_terminal, on_one_line


def say(message: object) -> None:
    """Print a message with the program's name on stderr, on one line."""
    tell(on_one_line(f"so2docs: {message}"))


def tell(text: object) -> None:
    """Print a text, such as a summary, on stderr; if that fails, the work goes on."""
    with suppress(OSError):
        click.echo(for_terminal(text), err=True)


def allow_any_encoding() -> None:
    """Print a question mark for each character that the encoding of stdout does not have."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
