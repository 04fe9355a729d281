"""Types of the keyword arguments, for type checkers; `make docs` generates them from the table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from typing import Any, Literal, TypedDict

# [[[cog
# from reference.keywords import CORE, text
# cog.outl(f"\n\n{text(CORE)}\n\n")
# ]]]


NestName = Literal[
    "comments", "links", "votes", "closings", "history", "history-text", "users", "badges", "all"
]
FormatName = Literal["jsonl", "json", "elasticsearch", "mongodb", "ravendb", "parquet"]


class PartKeywords(TypedDict, total=False):
    """Filters that select a part of a site."""

    tags: str | Iterable[str]
    all_tags: bool
    min_score: int | None
    min_answers: int | None
    max_answers: int | None
    answered: bool
    accepted: bool
    since: str | date | None
    until: str | date | None
    sample: str | float | None
    min_answer_score: int | None
    max_body: str | int | None
    sample_size: int | None
    keep_users: str | os.PathLike[str] | Iterable[int] | None
    keep_posts: str | os.PathLike[str] | Iterable[int] | None
    drop_users: str | os.PathLike[str] | Iterable[int] | None
    drop_posts: str | os.PathLike[str] | Iterable[int] | None
    drop_fabricated: bool


class DocumentKeywords(PartKeywords, total=False):
    """Options of all functions that make documents."""

    site: str | None
    as_of: str | date | None
    limit: int | None
    fields: str | Iterable[str] | None
    drop_fields: str | Iterable[str] | None
    recipe: str | None
    settings: str | Mapping[str, Any] | Iterable[str] | None
    without_linked: bool
    attribution: bool
    site_field: str | None
    body: Literal["html", "text", "markdown"] | None
    answers_by: Literal["id", "votes"]
    nest: str | Iterable[NestName]
    if_present: bool
    errors: Literal["repair", "skip", "strict"]
    core: Literal["auto", "python", "compiled"]
    chunk_bytes: str | int | None


class FileKeywords(DocumentKeywords, total=False):
    """Additional options of all functions that write files."""

    level: int
    format: FormatName | None
    compression: Literal["gzip", "zstd", "none"] | None


class IteratorKeywords(DocumentKeywords, total=False):
    """Options of `so2docs.documents`."""

    tables: Mapping[str, str | os.PathLike[str]] | Iterable[str] | None
    jobs: int | None
    spill_budget: str | int | None
    progress: bool | Callable[[int, int | None, str], object]
    work_dir: str | os.PathLike[str] | None


class ConvertKeywords(FileKeywords, IteratorKeywords, total=False):
    """Options of `so2docs.convert` and `so2docs.convert_all`."""

    split: str | None
    update: bool
    force: bool
    restart: bool
    report: str | os.PathLike[str] | None
    card: bool


# [[[end]]]
