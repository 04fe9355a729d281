"""The first stage, in an executor: a range of a dump -> records for the shuffle.

`chunk.spill_chunk` does the work, into a temporary file; its blocks leave as they are, some
megabytes a record, so that no row is ever an object of Spark's. An error of the dump is a record
too: tried again it would be the same, and it concerns one site only.

Memory: what `spill_chunk` takes, and the compressed blocks of one chunk, which PySpark holds (twice
for a moment) while it hands them over: 139 MiB in all with chunks of 32 MiB, 187 with 128.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from so2docs import repeats
from so2docs.blocks import Block
from so2docs.chunk import ChunkTask, spill_chunk
from so2docs.errors import DumpError
from so2docs.spark.plan import Layout, RangeTask
from so2docs.workers import peak_memory

_RECORD_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Blocks:
    """Compressed blocks of one chunk for one partition.

    Attributes:
        site: Number of the site.
        chunk: Number of the chunk.
        blocks: The blocks; their offsets are those in the chunk, which order them.
        data: Their bytes, one block after the other.
    """

    site: int
    chunk: int
    blocks: list[Block]
    data: bytes


@dataclass(frozen=True, slots=True)
class Tallied:
    """What a chunk was found to hold, or why it cannot be converted.

    Attributes:
        site: Number of the site.
        chunk: Number of the chunk.
        tally: Fields of its `ChunkTally`.
        pages: Bits of its post ids.
        buckets: Buckets with posts.
        error: What is wrong with the dump; the other fields are empty.
        peak: Most resident memory of the process so far, in bytes.
    """

    site: int
    chunk: int
    tally: dict[str, Any]
    pages: repeats.Pages
    buckets: set[int]
    error: DumpError | None
    peak: int


Record = Blocks | Tallied


def temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder where Spark keeps its own temporary files, removed with them at the latest."""
    places = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    return tempfile.TemporaryDirectory(
        prefix="so2docs-", dir=next((place for place in places if os.path.isdir(place)), None)
    )


def records(layout: Layout) -> Callable[[Iterable[RangeTask]], Iterator[tuple[int, Record]]]:
    """What a task of the first stage runs: ranges in, records with their partitions out."""

    def spill(tasks: Iterable[RangeTask]) -> Iterator[tuple[int, Record]]:
        for task in tasks:
            yield from _records_of(task, layout)

    return spill


def chunk_tasks(task: RangeTask, folder: str) -> Iterator[ChunkTask]:
    """The chunks of a range: one for a range of a file, as many as it takes for a stream."""
    site, path = task.site, os.path.join(folder, f"{task.chunk}.blocks")
    yield ChunkTask(site.dump, task.chunk, task.start, task.end, path, site.options)


def _records_of(task: RangeTask, layout: Layout) -> Iterator[tuple[int, Record]]:
    site = task.site.number
    tallies = layout.of_tallies(site)
    with temporary_folder() as folder:
        for chunk in chunk_tasks(task, folder):
            try:
                result = spill_chunk(chunk)
            except DumpError as error:
                yield tallies, Tallied(site, chunk.chunk, {}, {}, set(), error, peak_memory())
                return
            for partition, blocks, data in _sorted_out(chunk.path, result.blocks, site, layout):
                yield partition, Blocks(site, chunk.chunk, blocks, data)
            buckets = {block.bucket for block in result.blocks if block.bucket is not None}
            tally = asdict(result.tally)
            found = Tallied(site, chunk.chunk, tally, result.pages, buckets, None, peak_memory())
            yield tallies, found
            os.remove(chunk.path)


def _sorted_out(
    path: str, blocks: list[Block], site: int, layout: Layout
) -> Iterator[tuple[int, list[Block], bytes]]:
    """Blocks with their bytes, by partition, some megabytes a time."""

    def partition_of(block: Block) -> int:
        return layout.of_bucket(site, block.bucket)

    with open(path, "rb") as file:
        for partition, group in groupby(sorted(blocks, key=partition_of), partition_of):
            held: list[Block] = []
            data = bytearray()
            for block in group:
                file.seek(block.offset)
                data += file.read(block.keys_size + block.json_size)
                held.append(block)
                if len(data) >= _RECORD_BYTES:
                    yield partition, held, bytes(data)
                    held, data = [], bytearray()
            if held:
                yield partition, held, bytes(data)
