"""Make the full-text index in a worker process while rows are inserted.

Indexing takes as long as all other steps together. The index is made in a separate file, whose
tables are then copied into the database: they are plain tables (https://sqlite.org/fts5.html, "FTS5
Data Structures"). Each batch of texts becomes a segment; all segments are merged at the end.

This module is separate from `build` so that the worker starts faster: importing it takes a third of
the time that importing `build` takes.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
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

_connections: dict[str, Connection] = {}


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
        if connection := _connections.pop(path, None):
            connection.close()


def _index(path: str, sql: str, texts: Texts | None) -> None:
    """Add the texts of a batch to the index; if `texts` is None, complete the index."""
    connection = _connections.get(path)
    if connection is None:
        connection = _connections[path] = connect(path, _CACHE_KIB)
        connection.execute(sql)
        _configure(connection, hashsize=_HASH_BYTES, automerge=0, crisismerge=_MOST_SEGMENTS)
        # Give words in titles more weight than words in bodies.
        connection.execute(
            "INSERT INTO search(search, rank) VALUES ('rank', 'bm25(3.0, 1.0, 1.0, 1.0)')"
        )
    if texts is not None:
        # Rows are sorted, because a smaller number than the last one starts a new segment; the
        # texts are their last columns.
        connection.executemany(
            f"INSERT INTO search (rowid, {listed(TEXTS)}) VALUES (?{', ?' * len(TEXTS)})",
            ((row[0] + texts.first_row, *row[-len(TEXTS) :]) for row in unpack(texts.rows)),
        )
        return
    connection.execute("INSERT INTO search(search) VALUES ('optimize')")
    _configure(connection, automerge=4, crisismerge=16)  # Restore the defaults.
    connection.execute("COMMIT")
    _connections.pop(path).close()


def _configure(connection: Connection, **values: int) -> None:
    connection.executemany("INSERT INTO search(search, rank) VALUES (?, ?)", values.items())


def copy_index(connection: Connection, path: str, sql: str) -> None:
    """Copy the full-text index from the file at `path` into the database."""
    connection.execute(sql)
    connection.execute("ATTACH ? AS made", (path,))
    for table in ("data", "idx", "docsize", "config"):
        connection.execute(f"DELETE FROM search_{table}")
        connection.execute(f"INSERT INTO search_{table} SELECT * FROM made.search_{table}")
    for statement in ("COMMIT", "DETACH made", "BEGIN"):
        connection.execute(statement)
