"""The posts of a date, for flat tables.

A conversion restores the posts once, as lines of JSON, since filters may read them several times.
Workers read ranges of the file as they read the chunks of a table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from so2docs import convert
from so2docs.counts import ChunkTally
from so2docs.extensions.tables.columns import LARGE_CHUNK_BYTES, SLICE_BYTES
from so2docs.extensions.tables.options import RowOptions
from so2docs.extensions.tables.visitors import BatchVisitor
from so2docs.plugin import ANSWERS
from so2docs.scan.table import OpenVisitor, TableReader


@dataclass(frozen=True, slots=True)
class RestoredPosts:
    """The questions and answers of a date, as documents on lines.

    Attributes:
        path: Path of the file.
        left_out: Number of rows of the dump that are not in the file.
    """

    path: str
    left_out: int

    def read(
        self, reader: TableReader, visit: Callable[[int], OpenVisitor]
    ) -> Iterator[tuple[ChunkTally, Any]]:
        """Pass the posts to visitors in workers.

        Args:
            reader: Its workers are used.
            visit: Opens the visitor of a chunk, by the number of the chunk.

        Yields:
            The counts and the result of each chunk.
        """
        starts = range(0, os.path.getsize(self.path), LARGE_CHUNK_BYTES)
        tasks = ((visit(number), self.path, start) for number, start in enumerate(starts))
        return reader.workers.run(_read_range, tasks)


def _read_range(task: tuple[OpenVisitor, str, int]) -> tuple[ChunkTally, Any]:
    """Pass the posts in a range of a file, from an offset on, to a visitor."""
    open_visitor, path, start = task
    with open_visitor() as visitor:
        assert isinstance(visitor, BatchVisitor)
        for lines in _read_lines(path, start, start + LARGE_CHUNK_BYTES):
            questions = map(orjson.loads, lines)
            posts = [post for one in questions for post in (one, *one.pop(ANSWERS))]
            visitor.tally.count_rows(len(posts))
            visitor.add_batch(visitor.columns.from_rows(posts))
    return visitor.tally, visitor.result()


def _read_lines(path: str, start: int, end: int) -> Iterator[list[bytes]]:
    """Yield lists of the lines that start in a range, each of about `SLICE_BYTES` bytes."""
    with open(path, "rb") as file:
        if start:
            file.seek(start - 1)
            file.readline()
        while (at := file.tell()) < end:
            if not (lines := file.readlines(min(SLICE_BYTES, end - at))):
                return
            yield lines


def restore_posts(source: str, options: RowOptions, folder: str) -> RestoredPosts:
    """Restore the questions and answers of a date.

    Args:
        source: The dump.
        options: The options, with a date.
        folder: Folder for the file.
    """
    path = os.path.join(folder, f"restored-{options.body}.jsonl")
    names = ("as_of", "body", "errors", "core", "jobs", "drop_fabricated")
    kwargs: dict[str, Any] = {name: getattr(options, name) for name in names}
    for name in ("drop_users", "drop_posts"):
        listed = getattr(options, name)
        kwargs[name] = None if listed is None else listed.ids
    report = convert(source, path, work_dir=folder, progress=False, **kwargs)
    return RestoredPosts(path, report.rows - report.questions - report.answers)
