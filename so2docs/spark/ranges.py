"""Ranges of a giant dump, in executors: compressed blocks as rows of a data frame.

`spill_chunk` does the work, into a temporary file; its blocks leave as they are, a row each with
the part of the site that it belongs to, which is what Spark shuffles by. A row without a part tells
about the whole chunk.

Memory: what `spill_chunk` takes, and `_BATCH_BYTES`.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from so2docs.errors import ChangedDumpError, DumpError, So2docsError
from so2docs.options.conversion import Options
from so2docs.passes.chunk import ChunkTask, spill_chunk
from so2docs.passes.first_pass import complete_place
from so2docs.passes.worker import peak_memory
from so2docs.posts import repeats
from so2docs.posts.core import resolve
from so2docs.sources import storage
from so2docs.sources.dump import Chunk, Dump, open_dump
from so2docs.spark.folders import temporary_folder
from so2docs.spark.jobs import outcome
from so2docs.spill import REJECTED
from so2docs.store.blocks import Block
from so2docs.store.tally import ChunkTally

PART_BITS = 3
"""A part holds 2^3 buckets, 131,072 question ids: 160 MB of JSON of a busy site, 50 MB of gzip."""

_NAMES = ("site", "part", "chunk", *Block._fields, "data")
_KINDS = {"data": "binary"}
COLUMNS = ", ".join(f"{name} {_KINDS.get(name, 'bigint')}" for name in _NAMES)
"""`part` and `bucket` are null of strays that belong to no question, all but the first three of
what a chunk tells."""

_BATCH_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RangeTask:
    """A range of a dump.

    Attributes:
        site: Number of the site.
        chunk: The range, in the dump that was looked at.
        options: How to convert.
    """

    site: int
    chunk: Chunk
    options: Options


@dataclass(slots=True)
class Summary:
    """What the chunks of a dump tell.

    Attributes:
        tallies: What stands in each chunk, in their order.
        parts: Ranges of question ids with posts, in ascending order.
        is_repeated: Whether a post id stands in several chunks.
        error: The first thing wrong with the dump.
        peak: Most resident memory of a worker, in bytes.
        core: What turned rows into posts.
    """

    tallies: dict[int, ChunkTally] = field(default_factory=dict)
    parts: list[int] = field(default_factory=list)
    is_repeated: bool = False
    error: So2docsError | None = None
    peak: int = 0
    core: str = ""


@dataclass(frozen=True, slots=True)
class _Told:
    """What one chunk tells: its tally, the bits of its ids, its parts, and how it was parsed."""

    tally: ChunkTally
    pages: repeats.Pages
    parts: set[int]
    peak: int
    core: str


def batches(task: RangeTask) -> Iterator[Any]:
    """The rows of a range, in Arrow batches."""
    with temporary_folder() as folder:
        path = os.path.join(folder, "blocks")
        result = outcome(lambda chunk: _spilled(chunk, path, task.options), task.chunk)
        site, chunk = task.site, task.chunk.number
        if isinstance(result, So2docsError):
            told: _Told | So2docsError = result
        else:
            told, blocks = result
            yield from _of_blocks(site, chunk, path, blocks)
        nothing = [None] * len(Block._fields)
        yield _batch([(site, None, chunk, *nothing, pickle.dumps(told))])


def _spilled(chunk: Chunk, path: str, options: Options) -> tuple[_Told, list[Block]]:
    found = _same_dump(chunk.dump)
    options = replace(options, core=resolve(options.core))
    result = spill_chunk(ChunkTask(chunk._replace(dump=found), path, options))
    found.check_unchanged()
    # What was rejected only counts as seen, in the bits of the ids.
    blocks = [block for block in result.blocks if block.bucket != REJECTED]
    parts = {block.bucket >> PART_BITS for block in blocks if block.bucket is not None}
    told = _Told(result.tally, result.pages, parts, peak_memory(), options.core)
    return told, blocks


def _same_dump(dump: Dump) -> Dump:
    """The dump as this machine has it, which may be a copy.

    Raises:
        ChangedDumpError: It is not the one that was looked at.
    """
    found = open_dump(dump.path)
    is_same = (found.size, found.start, found.end) == (dump.size, dump.start, dump.end)
    if not is_same or (storage.is_url(dump.path) and found.identity != dump.identity):
        raise ChangedDumpError(
            dump.path, f"changed while being read ({dump.size:,} bytes before, {found.size:,} now)"
        )
    return found


def _of_blocks(site: int, chunk: int, path: str, blocks: list[Block]) -> Iterator[Any]:
    rows: list[tuple[Any, ...]] = []
    size = 0
    with open(path, "rb") as file:
        for block in blocks:
            file.seek(block.offset)
            data = file.read(block.keys_size + block.json_size)
            part = None if block.bucket is None else block.bucket >> PART_BITS
            rows.append((site, part, chunk, *block, data))
            size += len(data)
            if size >= _BATCH_BYTES:
                yield _batch(rows)
                rows, size = [], 0
    if rows:
        yield _batch(rows)


def _batch(rows: list[tuple[Any, ...]]) -> Any:
    import pyarrow as pa

    types = [pa.binary() if name in _KINDS else pa.int64() for name in _NAMES]
    columns = zip(zip(*rows, strict=True), types, strict=True)
    return pa.record_batch([pa.array(values, kind) for values, kind in columns], _NAMES)


def summaries(found: Iterator[Any], dumps: dict[int, Dump]) -> dict[int, Summary]:
    """Combine what the chunks of some sites tell.

    Args:
        found: Arrow batches with their rows, in any order.
        dumps: The dumps by the number of the site.
    """
    result: dict[int, Summary] = {}
    seen: dict[int, repeats.SeenIds] = {}
    errors: dict[int, dict[int, So2docsError]] = {}
    for batch in found:
        for row in batch.to_pylist():
            site, told = row["site"], pickle.loads(row["data"])
            summary = result.setdefault(site, Summary())
            if isinstance(told, So2docsError):
                errors.setdefault(site, {})[row["chunk"]] = told
                continue
            summary.tallies[row["chunk"]] = told.tally
            summary.parts = sorted({*summary.parts, *told.parts})
            summary.peak, summary.core = max(summary.peak, told.peak), told.core
            seen.setdefault(site, repeats.SeenIds()).add(told.pages)
    for site, summary in result.items():
        summary.tallies = dict(sorted(summary.tallies.items()))
        summary.is_repeated = site in seen and bool(seen[site].repeated)
        if site in errors:
            chunk, summary.error = min(errors[site].items())
            before = [tally for number, tally in summary.tallies.items() if number < chunk]
            if isinstance(summary.error, DumpError):
                complete_place(summary.error, dumps[site], before)
    return result
