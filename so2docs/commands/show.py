"""`so2docs show`: questions out of an output; what it needs is imported when it runs."""

from __future__ import annotations

import shutil
import sys
from typing import Any, cast

import click

from so2docs.commands.options import command
from so2docs.commands.terminal import allow_any_encoding, say, show_text, shows_progress
from so2docs.errors import DocumentNotFoundError, So2docsError


# Without ignore_unknown_options a negative id would be taken for an option.
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
    help="JSON lines, or text to read.  [default: text on a terminal, JSON for a pipe]",
)
def show(output: str, ids: tuple[int, ...], as_json: bool | None) -> None:
    """Show the questions with these IDs, with their answers, out of OUTPUT.

    Takes milliseconds on a file of any size: .OUTPUT.index, which convert writes next to OUTPUT,
    says where to look. A missing index is made first, in one pass. The ID of an answer shows its
    question, which is searched for.
    """
    from so2docs.reader.collection import open as open_output
    from so2docs.reader.page import as_page

    if as_json is None:
        as_json = not sys.stdout.isatty()
    allow_any_encoding()
    missing: list[So2docsError] = []
    pages: list[str] = []
    with open_output(output, progress=shows_progress()) as docs:
        for number in ids:
            question_id: int | None = number
            if number not in docs:
                question_id = docs.find_question_id(number, progress=shows_progress())
            if question_id is None:
                missing.append(
                    DocumentNotFoundError(f"{output}: has no question or answer {number}")
                )
            elif as_json:
                click.echo(docs.line(question_id))
            else:
                document = cast(dict[str, Any], docs[question_id])
                pages.append(as_page(document, shutil.get_terminal_size().columns))
    if pages:
        show_text("\n\n\n".join(pages))
    for error in missing[:-1]:
        say(error)
    if missing:
        raise missing[-1]
