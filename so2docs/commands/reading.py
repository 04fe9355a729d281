"""The commands that read an output back; what they need is imported when they run."""

from __future__ import annotations

import io
import json
import shutil
import sys
from typing import Any

import click

from so2docs.errors import DocumentNotFoundError, So2docsError

_SHOW_EPILOG = """\b
Example:
  so2docs show questions.jsonl.gz 11227809
  so2docs show questions.jsonl.gz 4 6 9 | jq -r .Title
"""


_STATS_EPILOG = """\b
Example:
  so2docs stats questions.jsonl.gz
  so2docs stats questions.jsonl.gz --html questions.html
"""


def _any_encoding() -> None:
    """Let a terminal that lacks a character show a question mark in its place."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _say(message: str) -> None:
    click.echo(f"so2docs: {message}", err=True)


# Without ignore_unknown_options a negative id would be taken for an option.
@click.command(epilog=_SHOW_EPILOG, context_settings={"ignore_unknown_options": True})
@click.argument("output")
@click.argument("ids", type=int, nargs=-1, required=True, metavar="ID...")
@click.option(
    "--json/--text",
    "as_json",
    default=None,
    help="JSON lines, or text to read.  [default: text on a terminal, JSON for a pipe]",
)
@click.option("--debug", is_flag=True, help="Show a traceback with an error.")
def show(output: str, ids: tuple[int, ...], as_json: bool | None, debug: bool) -> None:
    """Show the questions with these IDs, with their answers, out of OUTPUT.

    Takes milliseconds on a file of any size: .OUTPUT.index, which convert writes beside OUTPUT,
    says where to look. A missing index is made first, in one pass.
    """
    from so2docs.lookup.collection import open as open_output
    from so2docs.lookup.page import as_page

    if as_json is None:
        as_json = not sys.stdout.isatty()
    _any_encoding()
    missing: So2docsError | None = None
    separator = ""
    with open_output(output, notify=_say, progress=sys.stderr.isatty()) as docs:
        for question_id in ids:
            try:
                line, document = docs.line(question_id), docs[question_id]
            except DocumentNotFoundError as error:
                if missing is not None:
                    _say(str(missing))
                missing = error
                continue
            if as_json:
                click.echo(line)
            else:
                page = as_page(document, shutil.get_terminal_size().columns)
                click.echo(f"{separator}{page}")
                separator = "\n\n"
    if missing is not None:
        raise missing


@click.command(epilog=_STATS_EPILOG)
@click.argument("output")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.option(
    "--html",
    "html_file",
    metavar="FILE",
    help="Write a page with plots, in one file that needs nothing else, instead of printing.",
)
@click.option(
    "--jobs", "-j", type=click.IntRange(min=1), help="Worker processes.  [default: all cores]"
)
@click.option("--quiet", "-q", is_flag=True, help="No progress, only errors.")
@click.option("--debug", is_flag=True, help="Show a traceback with an error.")
def stats(output: str, as_json: bool, html_file: str | None, debug: bool, **options: Any) -> None:
    """Count what OUTPUT holds: questions by year, answers, scores, tags, longest bodies."""
    from so2docs.statistics.html import write_page
    from so2docs.statistics.stats import stats as count
    from so2docs.statistics.text import as_text

    _any_encoding()
    shows_progress = not options["quiet"] and sys.stderr.isatty()
    found = count(output, jobs=options["jobs"], notify=_say, progress=shows_progress)
    if html_file is not None:
        write_page(found, html_file)
    if as_json:
        click.echo(json.dumps(found.as_dict(), indent=2, ensure_ascii=False))
    elif html_file is None:
        click.echo(as_text(found, ascii_only=not _draws_blocks()))


def _draws_blocks() -> bool:
    try:
        "█▏".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


COMMANDS = (show, stats)
