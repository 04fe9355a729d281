"""The options of the command line that say which documents are written, and in what form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from so2docs.formats import FORMATS

_OPTIONS = [
    click.option(
        "--format",
        "-f",
        type=click.Choice(list(FORMATS)),
        help="Of the output.  [default: by its name, or jsonl]",
    ),
    click.option(
        "--compression",
        type=click.Choice(["gzip", "zstd", "none"]),
        help="Of the output.  [default: by its name, or gzip]",
    ),
    click.option(
        "--index", metavar="NAME", help="Of --format elasticsearch.  [default: questions]"
    ),
    click.option(
        "--split",
        metavar="SIZE|N",
        help="Files of at most SIZE, such as 1GB, or N files: questions-00000.jsonl.gz and so on.",
    ),
    click.option(
        "--tag",
        "tags",
        metavar="TAG",
        multiple=True,
        help="Keep questions with this tag; with any of them, if repeated.",
    ),
    click.option("--all-tags", is_flag=True, help="With every --tag, not any."),
    click.option(
        "--min-score", type=int, metavar="N", help="Keep questions of this score or more."
    ),
    click.option(
        "--min-answer-score", type=int, metavar="N", help="Keep answers of this score or more."
    ),
    click.option("--answered", is_flag=True, help="Keep questions that have an answer."),
    click.option("--accepted", is_flag=True, help="Keep questions that have an accepted answer."),
    click.option(
        "--since", metavar="DATE", help="Keep questions created on this date (UTC) or later."
    ),
    click.option("--until", metavar="DATE", help="Keep questions created before this date (UTC)."),
    click.option(
        "--sample",
        metavar="SHARE",
        help="Keep a share of the questions, such as 1%; the same ones every time.",
    ),
    click.option(
        "--limit", type=int, metavar="N", help="Keep the first N questions in order of their ids."
    ),
    click.option(
        "--fields",
        metavar="NAMES",
        help="Keep these fields, such as Id,Title,Comments.Text,Answers.Body.",
    ),
    click.option(
        "--without",
        metavar="NAMES",
        help="Leave these fields out, such as Body,Answers.Body,Comments.UserId.",
    ),
    click.option(
        "--body",
        type=click.Choice(["html", "text", "markdown"]),
        default="html",
        show_default=True,
        help="Form of the bodies.",
    ),
]


def document_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options, as the keywords of `so2docs.convert`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
