"""What the chunks of giant dumps and their tables tell, combined, in executors."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from so2docs.errors import DumpError, So2docsError
from so2docs.passes.first_pass import complete_place
from so2docs.posts import repeats
from so2docs.schema import POSTS, TABLES, Table
from so2docs.sources.dump import Dump
from so2docs.spark.frames import rows_of
from so2docs.spill import SEQUENCE_BITS
from so2docs.store.tally import ChunkTally

Key = tuple[int, str]
"""Number of a site, and name of a table."""

_TABLES = {table.sequence: table for table in (POSTS, *TABLES.values())}


@dataclass(frozen=True, slots=True)
class Told:
    """What one chunk tells.

    Attributes:
        tally: What was counted in it.
        pages: The bits of the ids of posts or users.
        is_repeated: Whether an id of a user stands in it twice.
        parts: Parts of the site that its blocks belong to.
        peak: Most resident memory of the process so far, in bytes.
        core: What turned rows into posts.
    """

    tally: ChunkTally
    pages: repeats.Pages
    is_repeated: bool
    parts: set[int]
    peak: int
    core: str


@dataclass(slots=True)
class PartSummary:
    """What the chunks of a file tell.

    Attributes:
        table: The table.
        tallies: Counts of each chunk, in their order.
        parts: Parts of the site with rows of it.
        is_repeated: Whether the id of a post stands in several chunks, or that of a user twice.
        error: The first thing wrong with the file.
        peak: Most resident memory of a worker, in bytes.
        core: What turned rows into posts.
    """

    table: Table
    tallies: dict[int, ChunkTally] = field(default_factory=dict)
    parts: set[int] = field(default_factory=set)
    is_repeated: bool = False
    error: So2docsError | None = None
    peak: int = 0
    core: str = ""


def summarize(found: Iterator[Any], dumps: Mapping[Key, Dump]) -> dict[Key, PartSummary]:
    """Combine what the chunks of some files tell.

    Args:
        found: Arrow batches with their rows, in any order.
        dumps: The files by site and table.
    """
    result: dict[Key, PartSummary] = {}
    seen: dict[Key, repeats.SeenIds] = {}
    errors: dict[Key, dict[int, So2docsError]] = {}
    for row in rows_of(found):
        table = _TABLES[row["chunk"] >> SEQUENCE_BITS]
        key = row["site"], table.name
        told = pickle.loads(row["data"])
        summary = result.setdefault(key, PartSummary(table))
        if isinstance(told, So2docsError):
            errors.setdefault(key, {})[row["chunk"]] = told
            continue
        summary.tallies[row["chunk"]] = told.tally
        summary.parts |= told.parts
        summary.is_repeated |= told.is_repeated
        summary.peak, summary.core = max(summary.peak, told.peak), told.core
        seen.setdefault(key, repeats.SeenIds()).add(told.pages)
    for key, summary in result.items():
        summary.tallies = dict(sorted(summary.tallies.items()))
        summary.is_repeated |= key in seen and bool(seen[key].repeated)
        if key in errors:
            chunk, summary.error = min(errors[key].items())
            before = [tally for number, tally in summary.tallies.items() if number < chunk]
            if isinstance(summary.error, DumpError):
                complete_place(summary.error, dumps[key], before, summary.table)
    return result
