"""Types of the keyword arguments of products, for type checkers; `make docs` generates them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from datetime import date
from typing import Literal, TypedDict

from so2docs.options.keywords import PartKeywords

# [[[cog
# from reference.keywords import EXTENSIONS, text
# cog.outl(f"\n\n{text(EXTENSIONS)}\n\n")
# ]]]


OnlyName = Literal["posts", "comments", "links", "votes", "history", "users", "badges", "tags"]


class RowKeywords(PartKeywords, total=False):
    """Options of `so2docs.rows`."""

    as_of: str | date | None
    body: Literal["html", "text", "markdown"]
    errors: Literal["repair", "skip"]
    jobs: int | None
    core: Literal["auto", "python", "compiled"]
    work_dir: str | os.PathLike[str] | None
    progress: bool | Callable[[int, int | None, str], object]


class TableKeywords(RowKeywords, total=False):
    """Options of `so2docs.tables`."""

    only: str | Iterable[OnlyName]
    format: Literal["parquet", "csv", "jsonl", "sqlite", "arrow"]
    load: Literal["postgres", "mysql"] | None
    update: bool
    force: bool


class DatabaseKeywords(RowKeywords, total=False):
    """Options of `so2docs.to_sqlite`."""

    only: str | Iterable[OnlyName]
    site: str | None
    update: bool
    force: bool


class ComparisonKeywords(TypedDict, total=False):
    """Options of `so2docs.diff`."""

    ignore: str | Iterable[str] | None
    progress: bool | Callable[[int, int | None, str], object]


class ReplaceKeywords(TypedDict, total=False):
    """Options of `so2docs.Changes.write`."""

    update: bool
    force: bool


# [[[end]]]
