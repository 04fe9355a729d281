"""`so2docs show`: show questions of an output. Its modules are imported when it runs."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any, cast

import click

from so2docs.plugin import So2docsError, allow_any_encoding, command, say


# Without ignore_unknown_options, click parses a negative id as an option.
@command(
    """
    so2docs show questions.jsonl.gz 1
    so2docs show questions.jsonl.gz 4 6 9 | jq -r .Title
    """,
    context_settings={"ignore_unknown_options": True},
)
@click.argument("output", type=click.Path())
@click.argument("ids", type=int, nargs=-1, required=True, metavar="ID...")
@click.option(
    "--json/--text",
    "as_json",
    default=None,
    help="Print JSON lines, or text to read.  [default: text on a terminal, JSON for a pipe]",
)
def show(output: str, ids: tuple[int, ...], as_json: bool | None) -> None:
    """Show the questions with these IDs in OUTPUT, with their answers.

    This takes milliseconds for files of any size, because convert writes an index, .OUTPUT.index. A
    missing index is built first, in one pass. The ID of an answer shows the question of this
    answer.
    """
    from so2docs import open as open_output
    from so2docs.extensions.show.page import as_page

    if as_json is None:
        as_json = not sys.stdout.isatty()
    allow_any_encoding()
    missing: list[So2docsError] = []
    pages: list[str] = []
    with open_output(output, progress=True) as docs:
        for number in ids:
            question_id = number if number in docs else docs.find_question_id(number)
            if question_id is None:
                missing.append(So2docsError(f"{output}: has no question or answer {number}"))
            elif as_json:
                click.echo(docs.line(question_id))
            else:
                document = cast(dict[str, Any], docs[question_id])
                pages.append(as_page(document, shutil.get_terminal_size().columns))
    if pages:
        text = "\n\n\n".join(pages)
        # https://no-color.org
        is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        click.echo(click.unstyle(text) if is_plain else text)
    for error in missing[:-1]:
        say(error)
    if missing:
        raise missing[-1]
