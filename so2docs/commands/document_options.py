"""The options that say which documents are written and in what form, of each command that does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import click

from so2docs.options.choices import FORMATS, AnswersBy, BodyAs, Compression, Core
from so2docs.options.request import ALL_TABLES
from so2docs.schema import TABLES

_OPTIONS = [
    click.option(
        "--format",
        "-f",
        type=click.Choice(list(FORMATS)),
        help="Format of the output.  [default: from its name, or jsonl]",
    ),
    click.option(
        "--compression",
        type=click.Choice(get_args(Compression)),
        help="Compression of the output.  [default: from its name, or gzip]",
    ),
    click.option(
        "--index",
        metavar="NAME",
        help="Name of the index in lines for Elasticsearch.  [default: questions]",
    ),
    click.option(
        "--tags",
        "--tag",
        "tags",
        metavar="TAG",
        multiple=True,
        help="Keep questions with this tag; with any of them, if repeated.",
    ),
    click.option(
        "--all-tags", is_flag=True, help="Keep questions with all of the --tags, instead of any."
    ),
    click.option(
        "--min-score", type=int, metavar="N", help="Keep questions with this score or more."
    ),
    click.option(
        "--min-answer-score", type=int, metavar="N", help="Keep answers with this score or more."
    ),
    click.option(
        "--min-answers",
        type=int,
        metavar="N",
        help="Keep questions with this many answers or more.",
    ),
    click.option(
        "--max-body",
        metavar="SIZE",
        help="Keep questions and answers whose body is of this size or less, such as 20kB.",
    ),
    click.option("--answered", is_flag=True, help="Keep questions that have an answer."),
    click.option("--accepted", is_flag=True, help="Keep questions that have an accepted answer."),
    click.option(
        "--since", metavar="DATE", help="Keep questions created on this date (UTC) or later."
    ),
    click.option("--until", metavar="DATE", help="Keep questions created before this date (UTC)."),
    click.option(
        "--drop-fabricated",
        is_flag=True,
        help="Leave out the made-up question and answer (ids above 1,000,000,000) of two releases.",
    ),
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
        "--recipe",
        metavar="NAME",
        help="Write the records of a data set in place of the documents: preferences, pairs, qa, "
        "thread, beir, or package.module:function of your own.",
    ),
    click.option("--best", is_flag=True, help="With --recipe qa: only the best answer."),
    click.option(
        "--attribution",
        is_flag=True,
        help="Add addresses, licences and authors to each document.",
    ),
    click.option(
        "--body",
        type=click.Choice(list(get_args(BodyAs))),
        help="Form of the bodies.  [default: html, or as the recipe says]",
    ),
    click.option(
        "--answers-by",
        type=click.Choice(get_args(AnswersBy)),
        default="id",
        show_default=True,
        help="Order of the answers: by id, or the accepted one first and then by falling score.",
    ),
    click.option(
        "--level",
        type=click.IntRange(0, 19),
        default=2,
        show_default=True,
        help="Level of the compression. gzip: 0 to 3 fast (ISA-L), 4 to 9 small and slow (zlib). "
        "zstd: up to 19.",
    ),
    click.option(
        "--skip-malformed",
        is_flag=True,
        help="Put rows that are not well-formed XML with the strays, instead of failing.",
    ),
    click.option(
        "--strict",
        is_flag=True,
        help="Fail where a character would be repaired or a row left out.",
    ),
    click.option(
        "--core",
        type=click.Choice(get_args(Core)),
        default="auto",
        show_default=True,
        help="What turns rows into JSON; the output is the same. auto: what SO2DOCS_CORE says, "
        "else compiled if it was built.",
    ),
    click.option(
        "--nest",
        "--with",
        "nest",
        type=click.Choice([*TABLES, ALL_TABLES]),
        multiple=True,
        help="Nest this table, which is looked for beside the posts; may be given several times.",
    ),
]


def document_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options, as the keywords of `so2docs.convert`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
