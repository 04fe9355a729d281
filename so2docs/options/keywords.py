"""The types of keyword arguments, for type checkers; `make docs` writes them from the table.

`help()`, `inspect.signature` and notebooks show the signatures that are made here.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable
from datetime import date
from textwrap import fill
from typing import Any, Literal, TypedDict, TypeVar

from so2docs.errors import spell_options
from so2docs.options.option import Option, Where
from so2docs.options.table import taken_by
from so2docs.recipes.recipe import Recipe

# [[[cog
# from support.keywords_text import text
# cog.outl(f"\n\n{text()}\n\n")
# ]]]


class DocumentKeywords(TypedDict, total=False):
    """What all that make documents take.

    Attributes:
        tags: Keep questions with any of these tags.
        all_tags: Keep questions with all of the tags, instead of any.
        min_score: Keep questions with this score or more.
        min_answer_score: Keep answers with this score or more.
        min_answers: Keep questions with this many answers or more. Their number is `AnswerCount`.
        max_answers: Keep questions with this many answers or fewer. Their number is `AnswerCount`;
            questions without it do not pass.
        max_body: Keep questions and answers whose body has this size or less, such as 20kB. The
            size is that of the HTML in UTF-8, as in the dump.
        answered: Keep questions that have an answer.
        accepted: Keep questions that have an accepted answer.
        since: Keep questions created on this date (UTC) or later. A year, a day, a time such as
            `2020-01-31T12:00:00`, a `date` or a `datetime`.
        until: Keep questions created before this date (UTC).
        drop_fabricated: Leave out the made-up question and answer (ids above 1,000,000,000) of two
            releases.
        drop_users: Leave out all posts and comments of the users in FILE: their ids, one a line.
            The answers of such a question are left out, too, and so is the editor of a post if the
            file lists it.
        drop_posts: Leave out the questions and answers in FILE: their ids, one a line. The answers
            of such a question are left out, too.
        sample: Keep a share of the questions, such as 1%; the same ones every time. A hash of the
            id decides: a sample is part of every larger one.
        limit: Keep the first N questions in order of their ids.
        fields: Keep these fields, such as Id,Title,Comments.Text,Answers.Body. `Answers` alone
            means all of the answers' attributes; without any of them, documents have no `Answers`.
        without: Leave these fields out, such as Body,Answers.Body,Comments.UserId.
        recipe: Write the records of a data set instead of the documents: preferences, pairs (or
            dpo), qa, messages (or sft), thread, chunks (or rag), blocks, edits, hub, beir, or
            package.module:function of your own. A `Recipe` or a function is accepted, too.
        best: Use only the best answer, with recipe='qa'.
        conversational: Write messages instead of texts, with recipe='pairs'.
        system: Start each conversation with this system message, with recipe='messages'.
        max_length: Longest passage in characters, or in tokens, with recipe='chunks'. If None, 2000
            characters or 512 tokens.
        overlap: Most that a passage repeats of the one before, with recipe='chunks'. If None, 0.
        tokenizer: Count tokens instead of characters, with recipe='chunks': a tokenizer.json of
            Hugging Face, or a model of OpenAI such as gpt-4o.
        attribution: Add addresses, licences and authors to each document.
        body: Form of the bodies. If None, html, or what the recipe asks for.
        answers_by: Order of the answers: by id, or the accepted one first and then by falling
            score.
        nest: Nest these tables, which are looked for next to the posts.
        skip_malformed: Put rows that are not well-formed XML with the strays, instead of failing.
        strict: Fail where a character would be repaired or a row left out.
        core: The core that turns rows into JSON; the output is the same. `auto`: what the
            environment variable `SO2DOCS_CORE` says, else `compiled` if a C compiler was there at
            installation.
        chunk_bytes: Bytes of the dump that one task of the first pass takes. If None, some
            megabytes.
    """

    tags: str | Iterable[str]
    all_tags: bool
    min_score: int | None
    min_answer_score: int | None
    min_answers: int | None
    max_answers: int | None
    max_body: str | int | None
    answered: bool
    accepted: bool
    since: str | date | None
    until: str | date | None
    drop_fabricated: bool
    drop_users: str | os.PathLike[str] | None
    drop_posts: str | os.PathLike[str] | None
    sample: str | float | None
    limit: int | None
    fields: str | Iterable[str] | None
    without: str | Iterable[str] | None
    recipe: str | Recipe | Callable[..., Any] | None
    best: bool
    conversational: bool
    system: str | None
    max_length: int | None
    overlap: int | None
    tokenizer: str | None
    attribution: bool
    body: Literal["html", "text", "markdown"] | None
    answers_by: Literal["id", "votes"]
    nest: str | Iterable[str]
    skip_malformed: bool
    strict: bool
    core: Literal["auto", "python", "compiled"]
    chunk_bytes: str | int | None


class FileKeywords(DocumentKeywords, total=False):
    """What all that write files take, too.

    Attributes:
        level: Level of the compression. gzip: 0 to 3 fast (ISA-L), 4 to 9 small and slow (zlib).
            zstd: up to 19.
        format: Format of the output. `jsonl`: one JSON object a line. `json`: one array.
            `elasticsearch`: lines for the bulk API. `mongodb`: lines for mongoimport. `ravendb`:
            RavenDB's import file. `parquet`: typed columns (needs pyarrow). If None, that which the
            output's name says, or jsonl.
        compression: Compression of the output. If None, that which the output's name says, or gzip.
        elasticsearch_index: Name of the index in lines for Elasticsearch. If None, questions.
    """

    level: int
    format: str | None
    compression: Literal["gzip", "zstd", "none"] | None
    elasticsearch_index: str | None


class IteratorKeywords(DocumentKeywords, total=False):
    """What `so2docs.documents` takes.

    Attributes:
        comments: Nest the rows of this Comments.xml.
        links: Nest the rows of this PostLinks.xml.
        votes: Nest the rows of this Votes.xml.
        history: Nest the rows of this PostHistory.xml.
        users: Nest the rows of this Users.xml.
        badges: Nest the rows of this Badges.xml.
        site: The site, such as beer.stackexchange.com, for addresses and site_field. If None, that
            of the archive or folder.
        site_field: Add the site's name to each document, as field NAME: ids are unique per site
            only. The name is `site`, or that of the archive or folder.
        jobs: Worker processes. If None, all cores, and one where the dump is small.
        spill_budget: Keep this much of the spill uncompressed, which is faster. If None, an eighth
            of the free memory, but at most half of the disk to spare.
        progress: Show progress bars, on stderr or in the notebook.
        work_dir: Folder for the spill, about 0.4 times the dump. Its uncompressed part takes 1.1
            times what it holds of the dump. If None, the folder of the output, or the system's
            temporary folder without an output file.
    """

    comments: str | os.PathLike[str] | None
    links: str | os.PathLike[str] | None
    votes: str | os.PathLike[str] | None
    history: str | os.PathLike[str] | None
    users: str | os.PathLike[str] | None
    badges: str | os.PathLike[str] | None
    site: str | None
    site_field: str | None
    jobs: int | None
    spill_budget: str | int | None
    progress: bool
    work_dir: str | os.PathLike[str] | None


class ConvertKeywords(FileKeywords, IteratorKeywords, total=False):
    """What `so2docs.convert` and `so2docs.convert_all` take.

    Attributes:
        split_size: Write files of at most this size, such as 1GB: questions-00000.jsonl.gz and so
            on. Each file is whole, and all together are in the order of the ids. A file is larger
            only where a single document is.
        split_files: Write this many files, with about as much JSON in each.
        split_by: Write a file for each year or month of the questions: questions-2019-03.jsonl.gz
            and so on. Questions without a date go into `questions-undated.jsonl.gz`.
        split_share: Write a file for each of these shares of the questions, such as
            train=0.9,validation=0.05,test=0.05: questions-train.jsonl.gz and so on. A hash of the
            question's id decides: a question is in the same share in every dump, with all of its
            answers.
        keep_spill: Keep the spill, so that another conversion need not read DUMP again. Another one
            into the same output may have another order of answers, limit, form of files, or further
            tables; other filters or bodies need restart=True.
        force: Overwrite an existing output.
        restart: Start over, whatever an interrupted conversion did.
        report: Write the report as JSON to FILE; - is standard output. `so2docs verify` checks
            OUTPUT by it; OUTPUT is read once more, for its SHA-256.
        card: Write a README.md for Hugging Face, croissant.json, and a manifest for `so2docs
            verify` next to the output. DUMP is read once more, for its SHA-256. With force=True,
            any other `README.md` there is replaced.
    """

    split_size: str | int | None
    split_files: int | None
    split_by: Literal["year", "month"] | None
    split_share: str | None
    keep_spill: bool
    force: bool
    restart: bool
    report: str | os.PathLike[str] | None
    card: bool


# [[[end]]]


Api = TypeVar("Api", bound=Callable[..., Any])

# Of docstrings without the indentation of the code, which Python 3.13 leaves out by itself.
_GIVEN = re.compile(r"^ {4}keywords: .*(?:\n {5,}.*)*\n", re.MULTILINE)


def spell_out(*where: Where) -> Callable[[Api], Api]:
    """Let a function with `**keywords` show each option that is taken there.

    Args:
        where: Who takes the options: see `Option.where`.
    """

    def spell(api: Api) -> Api:
        options = taken_by(*where)
        signature = inspect.signature(api)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        added = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=entry.accepts,
                default=entry.default,
            )
            for name, entry in options.items()
        ]
        api.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
        if api.__doc__:  # Empty with -OO.
            described = "\n".join(describe(entry) for entry in options.values())
            text = inspect.getdoc(api) or ""
            api.__doc__ = _GIVEN.sub(lambda _: f"{described}\n", text, count=1)
        return api

    return spell


def describe(entry: Option, indent: str = "    ") -> str:
    """An option as docstrings have it."""
    text = spell_options(f"{entry.name}: {entry.description}")
    return fill(text, 100, initial_indent=indent, subsequent_indent=indent + " " * 4)
