"""Make the full-text index in a worker process while rows are inserted.

Indexing takes as long as all other steps together. The index is made in a separate file, whose
tables are then copied into the database: they are plain tables (https://sqlite.org/fts5.html, "FTS5
Data Structures"). The texts of a few batches become a segment; all segments are merged at the end.

This module is separate from `build` so that the worker starts faster: importing it takes a third of
the time that importing `build` takes.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import itemgetter
from sqlite3 import Connection
from typing import NamedTuple

from so2docs.output.sqlite_file import connect
from so2docs.processes.pool import Workers
from so2docs.sqlite.layout import TEXTS, listed
from so2docs.sqlite.rows import Row, pack, unpack


class Texts(NamedTuple):
    """The texts of a batch of documents.

    Attributes:
        rows: Rows of the table `texts`, perhaps packed.
        first_row: Offset to add to the numbers of these rows.
    """

    rows: list[Row] | bytes
    first_row: int


_CACHE_KIB = 16 * 1024
_HASH_BYTES = 16 * 1024 * 1024
_MOST_SEGMENTS = 1_000
"""Number of segments on a level before they are merged; FTS5 allows twice as many in all."""

_SEGMENT_CHARACTERS = 6 * 1024 * 1024
"""Number of characters of the texts of a segment. Sorting the texts of several batches together
takes 15 % less time than a segment for each batch of 500 documents, and makes the index smaller."""

_indexes: dict[str, _Index] = {}


def index_texts(
    batches: Iterable[Texts],
    path: str,
    sql: str,
    *,
    is_apart: bool,
    meanwhile: Callable[[], object],
) -> None:
    """Make the full-text index of texts in a separate file.

    Args:
        batches: Batches of a few thousand texts.
        path: Path of the separate file.
        sql: The statement that makes the index.
        is_apart: Whether a worker process makes the index while `batches` is read.
        meanwhile: Function called after the last batch, while the worker merges the segments.
    """
    batches = iter(batches)
    start = list(itertools.islice(batches, 2))
    # Use no process for small inputs, where it costs more than it saves.
    is_apart = is_apart and len(start) > 1

    def tasks() -> Iterator[Texts | None]:
        for batch in itertools.chain(start, batches):
            yield batch._replace(rows=pack(batch.rows)) if is_apart else batch
        yield None
        meanwhile()

    try:
        with Workers(1, is_apart=is_apart) as workers:
            deque(workers.run(partial(_index, path, sql), tasks()), maxlen=0)
    finally:
        if index := _indexes.pop(path, None):
            index.connection.close()


def _index(path: str, sql: str, texts: Texts | None) -> None:
    """Add the texts of a batch to the index; if `texts` is None, complete the index."""
    index = _indexes.get(path)
    if index is None:
        index = _indexes[path] = _Index(path, sql)
    if texts is not None:
        index.add(texts)
    else:
        index.complete()
        _indexes.pop(path).connection.close()


class _Index:
    """A full-text index that is being made."""

    def __init__(self, path: str, sql: str) -> None:
        self.connection = connect(path, _CACHE_KIB)
        self.connection.execute(sql)
        self._configure(hashsize=_HASH_BYTES, automerge=0, crisismerge=_MOST_SEGMENTS)
        # Give words in titles more weight than words in bodies.
        self._configure(rank="bm25(3.0, 1.0, 1.0, 1.0)")
        self._rows: list[Row] = []
        self._characters = 0

    def add(self, texts: Texts) -> None:
        """Add the texts of a batch, at the latest when there are enough for a segment."""
        for row in unpack(texts.rows):
            columns = row[-len(TEXTS) :]
            self._rows.append((row[0] + texts.first_row, *columns))
            self._characters += sum(len(text) for text in columns if text)
        if self._characters >= _SEGMENT_CHARACTERS:
            self._insert()

    def _insert(self) -> None:
        # Sort the rows, because a smaller number than the last one starts a new segment.
        self._rows.sort(key=itemgetter(0))
        self.connection.executemany(
            f"INSERT INTO search (rowid, {listed(TEXTS)}) VALUES (?{', ?' * len(TEXTS)})",
            self._rows,
        )
        self._rows, self._characters = [], 0

    def complete(self) -> None:
        """Merge all segments, and commit."""
        self._insert()
        self.connection.execute("INSERT INTO search(search) VALUES ('optimize')")
        self._configure(automerge=4, crisismerge=16)  # Restore the defaults.
        self.connection.execute("COMMIT")

    def _configure(self, **values: int | str) -> None:
        sql = "INSERT INTO search(search, rank) VALUES (?, ?)"
        self.connection.executemany(sql, values.items())


def copy_index(connection: Connection, path: str, sql: str) -> None:
    """Copy the full-text index from the file at `path` into the database."""
    connection.execute(sql)
    connection.execute("ATTACH ? AS made", (path,))
    for table in ("data", "idx", "docsize", "config"):
        connection.execute(f"DELETE FROM search_{table}")
        connection.execute(f"INSERT INTO search_{table} SELECT * FROM made.search_{table}")
    for statement in ("COMMIT", "DETACH made", "BEGIN"):
        connection.execute(statement)
