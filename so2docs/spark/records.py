"""What travels through the shuffle: compressed blocks, some megabytes a record, and tallies.

No row is ever an object of Spark's.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from so2docs.errors import DumpError
from so2docs.posts import repeats
from so2docs.store.blocks import Block

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


@dataclass(frozen=True, slots=True)
class UserLines:
    """Users that posts or comments of one part name.

    Attributes:
        site: Number of the site.
        part: The range of question ids.
        data: Their JSON objects, one a line, compressed by zstd.
    """

    site: int
    part: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Ended:
    """What is known of a stream once it has been read to its end.

    Attributes:
        site: Number of the site.
        size: Bytes of the dump.
        repaired: Characters that its encoding does not allow, replaced by U+FFFD.
    """

    site: int
    size: int
    repaired: int


Record = Blocks | Tallied | UserLines | Ended

Placed = tuple[int, Record]
"""A record with its partition."""


def temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder where Spark keeps its own temporary files, removed with them at the latest."""
    places = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    return tempfile.TemporaryDirectory(
        prefix="so2docs-", dir=next((place for place in places if os.path.isdir(place)), None)
    )


def sorted_out(
    path: str, blocks: list[Block], site: int, chunk: int, partition_of: Callable[[Block], int]
) -> Iterator[Placed]:
    """The blocks of a file with their bytes, by partition, some megabytes a record.

    Args:
        path: The file.
        blocks: Where they stand in it.
        site: Number of the site.
        chunk: Number of the chunk that they are of.
        partition_of: Where a block goes.
    """
    with open(path, "rb") as file:
        for partition, group in groupby(sorted(blocks, key=partition_of), partition_of):
            held: list[Block] = []
            data = bytearray()
            for block in group:
                file.seek(block.offset)
                data += file.read(block.keys_size + block.json_size)
                held.append(block)
                if len(data) >= _RECORD_BYTES:
                    yield partition, Blocks(site, chunk, held, bytes(data))
                    held, data = [], bytearray()
            if held:
                yield partition, Blocks(site, chunk, held, bytes(data))
