"""The posts of a date, for flat tables.

A conversion restores the posts once, into an Arrow file, since filters may read them several times.
Workers read its batches as they read the chunks of a table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from so2docs.api.documents import documents
from so2docs.counts import ChunkTally
from so2docs.errors import taking_options
from so2docs.extensions.options import TableOptions
from so2docs.extensions.tables.columns import SLICE_BYTES, BatchVisitor, TableColumns
from so2docs.options.table import options_of
from so2docs.processes.worker import rare_collections
from so2docs.scan.table import LARGE_CHUNK_BYTES, OpenVisitor, TableReader
from so2docs.schema import ANSWERS, POSTS

_BATCHES = LARGE_CHUNK_BYTES // SLICE_BYTES
"""Number of batches that a worker reads as a chunk."""

_ROW_BYTES = 500
"""Approximate size of a row without the body."""

Batches = tuple[OpenVisitor, str, range]
"""A task: the visitor, the path of an Arrow file, and the numbers of its batches."""


@dataclass(frozen=True, slots=True)
class RestoredPosts:
    """The questions and answers of a date, in an Arrow file.

    Attributes:
        path: Path of the file.
        batches: Number of record batches in the file.
        left_out: Number of rows of the dump that are not in the file.
    """

    path: str
    batches: int
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
        starts = range(0, self.batches, _BATCHES)
        tasks = (
            (visit(number), self.path, range(start, min(start + _BATCHES, self.batches)))
            for number, start in enumerate(starts)
        )
        return reader.workers.run(_read_batches, tasks)


def _read_batches(task: Batches) -> tuple[ChunkTally, Any]:
    import pyarrow as pa

    open_visitor, path, numbers = task
    with open_visitor() as visitor, pa.OSFile(path, "rb") as file:
        assert isinstance(visitor, BatchVisitor)
        batches = pa.ipc.open_file(file)
        for number in numbers:
            visitor.add_batch(batches.get_batch(number))
    return visitor.tally, visitor.result()


def restore_posts(source: str, options: TableOptions, folder: str) -> RestoredPosts:
    """Restore the questions and answers of a date.

    Args:
        source: The dump.
        options: The options, with a date.
        folder: Folder for the file.
    """
    import pyarrow as pa

    path, columns = os.path.join(folder, f"restored-{options.body}"), TableColumns(POSTS)
    batches = count = 0
    names = ("as_of", "body", "errors", "core", "jobs")
    kwargs: dict[str, Any] = {name: getattr(options, name) for name in names}
    for name in ("drop_users", "drop_posts"):
        listed = getattr(options, name)
        kwargs[name] = None if listed is None else sorted(listed.ids)
    with taking_options(options_of(TableOptions)):
        restored = documents(source, work_dir=folder, **kwargs)
    with (
        rare_collections(),
        restored as questions,
        pa.OSFile(path, "wb") as file,
        pa.ipc.new_file(file, columns.schema) as stream,
    ):
        for rows in _split(map(dict[str, Any], questions)):
            stream.write_batch(columns.from_rows(rows))
            batches, count = batches + 1, count + len(rows)
    return RestoredPosts(path, batches, questions.report.rows - count)


def _split(questions: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Split the posts into lists of about `SLICE_BYTES` bytes."""
    posts, size = list[dict[str, Any]](), 0
    for question in questions:
        for post in (question, *question.pop(ANSWERS)):
            posts.append(post)
            size += len(post.get("Body", "")) + _ROW_BYTES
            if size >= SLICE_BYTES:
                yield posts
                posts, size = [], 0
    if posts:
        yield posts
