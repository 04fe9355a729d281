"""Types of the keyword arguments, for type checkers; `make docs` generates them from the table.

This module also makes the signatures that `help()`, `inspect.signature` and notebooks show.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable
from datetime import date
from textwrap import fill
from typing import Any, Literal, TypedDict, TypeVar

from so2docs.errors import naming_flags
from so2docs.options.option import Option, Where
from so2docs.options.table import taken_by
from so2docs.recipes.recipe import Recipe

# [[[cog
# from support.keywords_text import text
# cog.outl(f"\n\n{text()}\n\n")
# ]]]


NestName = Literal[
    "comments",
    "links",
    "votes",
    "closings",
    "history",
    "history-text",
    "users",
    "badges",
    "all",
]
FormatName = Literal[
    "jsonl",
    "json",
    "elasticsearch",
    "mongodb",
    "ravendb",
    "parquet",
]


class DocumentKeywords(TypedDict, total=False):
    """Options of all functions that make documents.

    Attributes:
        tags: Keep questions with any of these tags or patterns such as 'tensorflow*'.
        all_tags: Keep questions with all of the tags, not just one of them.
        min_score: Keep questions with this score or more.
        min_answer_score: Keep answers with this score or more.
        min_answers: Keep questions with this many answers or more. The filter tests `AnswerCount`.
        max_answers: Keep questions with this many answers or fewer. The filter tests `AnswerCount`;
            questions without it do not pass.
        max_body: Keep questions and answers with a body of this size or less, such as 20kB. This is
            the size of the HTML in UTF-8, as in the dump.
        answered: Keep questions that have an answer.
        accepted: Keep questions that have an accepted answer.
        since: Keep questions created on this date (UTC) or later. The value is a year, a day, a
            time such as `2020-01-31T12:00:00`, a `date` or a `datetime`.
        until: Keep questions created before this date (UTC).
        drop_fabricated: Leave out the made-up question and answer (ids above 1,000,000,000) in two
            releases.
        drop_users: Leave out all posts and comments of the users whose ids are in FILE, one per
            line. The answers to their questions are also left out, and other posts do not name
            these users as editors.
        drop_posts: Leave out the questions and answers whose ids are in FILE, one per line. The
            answers to these questions are also left out.
        keep_users: Keep questions asked or answered by these users: ids separated by commas, or a
            FILE with one id per line. A file name that consists of digits counts as an id; write
            `./123` for the file.
        keep_posts: Keep these questions, and the questions of these answers: ids separated by
            commas, or a FILE with one id per line.
        sample: Keep a share of the questions, such as 1%; every run keeps the same questions. A
            hash of the id selects them, so every sample is part of all larger samples.
        limit: Keep the N questions with the lowest ids.
        fields: Keep these fields, such as Id,Title,Comments.Text,Answers.Body. `Answers` alone
            means all attributes of answers; if no name begins with `Answers`, documents have no
            `Answers`.
        without: Leave these fields out, such as Body,Answers.Body,Comments.UserId. With a recipe,
            `metadata` leaves this column out of the records.
        recipe: Write the records of a data set instead of the documents: preferences, pairs (or
            dpo), triplets, qa, kto, messages (or sft), thread, chunks (or rag), blocks, edits, hub,
            beir, or your own package.module:function. A `Recipe` or a function is also accepted.
        best: With a recipe that uses answers, use only the answer with the highest score. In pairs
            and triplets, this is always the better answer; preferences keep it and the answers with
            a lower `pm_score`.
        min_margin: With recipe='pairs', triplets or preferences, the minimum difference between the
            scores of two answers. The score is `pm_score`. Preferences leave out answers whose
            score differs by less from the scores of all other answers. If None, 1; preferences keep
            all answers.
        conversational: With recipe='pairs', write messages instead of texts.
        implicit_prompt: With recipe='pairs', start both sides with the question, instead of writing
            the question to a column.
        system: With recipe='messages', start each conversation with this system message.
        max_length: With recipe='chunks', the maximum length of a passage, in characters or tokens.
            If None, 2000 characters or 512 tokens.
        overlap: With recipe='chunks', the maximum overlap of a passage with the previous passage.
            If None, 0.
        tokenizer: With recipe='chunks', measure passages in tokens of this tokenizer: a Hugging
            Face tokenizer.json, or an OpenAI model such as gpt-4o.
        without_linked: With a recipe and split_share, leave out the records of questions with a
            link, such as a duplicate, to a question in another file.
        metadata: Form of the metadata in a recipe's records; flat has only strings, numbers and
            booleans, for vector stores that accept no lists or objects. With `flat`, nested names
            are joined with `_`, as in `answer_url`. A list becomes a string of its values,
            separated by `, `; a list of objects becomes a string for each member, such as
            `authors_name`.
        attribution: Add URLs, licences and authors to each document.
        body: Form of the bodies. If None, html, or the default of the recipe.
        answers_by: Order of the answers: by id, or by votes, with the accepted answer first and the
            others by descending score.
        nest: Nest these tables, found in the archive or next to the posts.
        if_present: With nest, skip missing tables instead of failing; a warning and the record in
            the output name them.
        skip_malformed: Write rows that are not well-formed XML to the strays, instead of failing.
        strict: Fail instead of repairing a character or leaving a row out.
        core: The core that converts rows to JSON; the output does not depend on it. `auto`: the
            value of the environment variable `SO2DOCS_CORE`, else `compiled` if a C compiler was
            available at installation, else `python`.
        chunk_bytes: Number of bytes of the dump for each task of the first pass. If None, a few
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
    keep_users: str | os.PathLike[str] | Iterable[int] | None
    keep_posts: str | os.PathLike[str] | Iterable[int] | None
    sample: str | float | None
    limit: int | None
    fields: str | Iterable[str] | None
    without: str | Iterable[str] | None
    recipe: str | Recipe | Callable[..., Any] | None
    best: bool
    min_margin: int | None
    conversational: bool
    implicit_prompt: bool
    system: str | None
    max_length: int | None
    overlap: int | None
    tokenizer: str | None
    without_linked: bool
    metadata: Literal["nested", "flat"]
    attribution: bool
    body: Literal["html", "text", "markdown"] | None
    answers_by: Literal["id", "votes"]
    nest: str | Iterable[NestName]
    if_present: bool
    skip_malformed: bool
    strict: bool
    core: Literal["auto", "python", "compiled"]
    chunk_bytes: str | int | None


class FileKeywords(DocumentKeywords, total=False):
    """Additional options of all functions that write files.

    Attributes:
        level: Compression level. For gzip, 0 to 3 are fast (ISA-L), and 4 to 9 are slow but
            compress better (zlib). For zstd, up to 19.
        format: Format of the output. `jsonl`: one JSON object per line. `json`: one array.
            `elasticsearch`: lines for the bulk API. `mongodb`: lines for mongoimport. `ravendb`:
            RavenDB's import file. `parquet`: typed columns. If None, selected by the output's name,
            or jsonl.
        compression: Compression of the output. If None, selected by the output's name, or gzip.
        elasticsearch_index: Name of the index in bulk lines for Elasticsearch. If None, questions.
    """

    level: int
    format: FormatName | None
    compression: Literal["gzip", "zstd", "none"] | None
    elasticsearch_index: str | None


class IteratorKeywords(DocumentKeywords, total=False):
    """Options of `so2docs.documents`.

    Attributes:
        comments: Nest the rows of this Comments.xml.
        links: Nest the rows of this PostLinks.xml.
        votes: Nest the rows of this Votes.xml.
        history: Nest the rows of this PostHistory.xml.
        users: Nest the rows of this Users.xml.
        badges: Nest the rows of this Badges.xml.
        site: The site, such as beer.stackexchange.com, for URLs, formulas in Markdown, and
            site_field. If None, the name of the archive or folder.
        site_field: Add the site's name to each document, as field NAME, because ids are only unique
            per site. The site's name is the value of `site`, or the name of the archive or folder.
        jobs: Number of worker processes. If None, all cores; one for a small dump.
        spill_budget: Keep this much of the spill uncompressed, which is faster. If None, an eighth
            of the free memory, but at most half of the spare disk space.
        progress: Show progress bars, on stderr or in the notebook.
        work_dir: Folder for the spill, which is about as large as the input posts and tables, or a
            third of this size with spill_budget=0. If None, the folder of the output, or the
            system's temporary folder without an output file.
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
    """Options of `so2docs.convert` and `so2docs.convert_all`.

    Attributes:
        split_size: Write files of at most this size, such as 1GB: questions-00000.jsonl.gz and so
            on. Each file is complete, and the files are in the order of the ids. A file is larger
            only if a single document is.
        split_files: Write this many files, with about the same amount of JSON in each.
        split_by: Write a file for each year or month of the questions: questions-2019-03.jsonl.gz
            and so on. Questions without a date go into `questions-undated.jsonl.gz`.
        split_share: Write a file for each of these shares of the questions, such as
            train=0.9,validation=0.05,test=0.05: questions-train.jsonl.gz and so on. A hash of the
            question's id selects the share, so a question with its answers is in the same share in
            every dump.
        keep_spill: Keep the spill, so that the next conversion need not reread DUMP. The next
            conversion to the same output may add tables, and change the order of answers, the limit
            and the form of the files. To change filters or bodies, add restart=True.
        update: Replace outputs made from another input or with other options.
        force: Overwrite an existing output.
        restart: Start over instead of resuming an interrupted conversion.
        report: Write the report as JSON to FILE; - is standard output. `so2docs verify` checks
            OUTPUT against it; OUTPUT is reread to compute its SHA-256.
        card: Write a README.md for Hugging Face, croissant.json, and a manifest for `so2docs
            verify` next to the output. DUMP is reread to compute its SHA-256. With force=True, any
            other `README.md` there is replaced.
    """

    split_size: str | int | None
    split_files: int | None
    split_by: Literal["year", "month"] | None
    split_share: str | None
    keep_spill: bool
    update: bool
    force: bool
    restart: bool
    report: str | os.PathLike[str] | None
    card: bool


# [[[end]]]


Api = TypeVar("Api", bound=Callable[..., Any])

# Matches the entry with and without the docstring's indentation, which Python removes from 3.13 on.
_GIVEN = re.compile(r"^ {4}keywords: .*(?:\n {5,}.*)*\n", re.MULTILINE)


def spell_out(*where: Where) -> Callable[[Api], Api]:
    """Make a decorator that spells out `**keywords` in a signature and docstring.

    Args:
        where: The values of `Option.where` that select the options.
    """

    def spell(api: Api) -> Api:
        options = taken_by(*where)
        signature = inspect.signature(api)
        kept = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        added = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=entry.accepts,
                default=entry.default,
            )
            for name, entry in options.items()
        ]
        api.__signature__ = signature.replace(parameters=[*kept, *added])  # type: ignore[attr-defined]
        if api.__doc__:  # With -OO, there are no docstrings.
            described = "\n".join(describe(entry) for entry in options.values())
            text = inspect.getdoc(api) or ""
            api.__doc__ = _GIVEN.sub(lambda _: f"{described}\n", text, count=1)
        return api

    return spell


def describe(entry: Option, indent: str = "    ") -> str:
    """Format an option as an entry in the `Args` of a docstring."""
    with naming_flags(None):
        text = f"{entry.name}: {entry.description}"
    return fill(text, 100, initial_indent=indent, subsequent_indent=indent + " " * 4)
