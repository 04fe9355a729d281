"""The full-text index, made by a process of its own while the rows of the tables are inserted.

To find words in texts takes as long as everything else. The index is made in a file of its own, and
its tables are then copied into the database: they are plain tables, as https://sqlite.org/fts5.html
documents ("FTS5 Data Structures"). Each batch of texts becomes a segment of the index, and all
segments are merged once, at the end.
"""

from __future__ import annotations

import os
import pickle
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple

from so2docs.pipeline.workers import Workers
from so2docs.sqlite.file import connect
from so2docs.sqlite.layout import TEXTS, listed, search_sql
from so2docs.sqlite.rows import Row

_CACHE_KIB = 16 * 1024
_HASH_BYTES = 16 * 1024 * 1024
_MOST_SEGMENTS = 1_000
"""Segments of a level before they are merged; FTS5 can have twice as many in all."""

_connections: dict[str, sqlite3.Connection] = {}


class Texts(NamedTuple):
    """The texts of a batch of documents.

    Attributes:
        pickled: Rows of the table `texts`, pickled; empty if there are none.
        first_row: What is to be added to their numbers.
    """

    pickled: bytes
    first_row: int


class _Task(NamedTuple):
    """A batch of texts for the index.

    Attributes:
        path: File of the index.
        site_field: Column of the site; None in a database of one site.
        stemming: Whether English words are found in all their forms.
        texts: None after the last batch.
    """

    path: str
    site_field: str | None
    stemming: bool
    texts: Texts | None


def index_texts(
    batches: Iterable[Texts],
    folder: str,
    site_field: str | None,
    *,
    stemming: bool,
    is_apart: bool,
    meanwhile: Callable[[], object],
) -> str:
    """Make the full-text index of texts.

    Args:
        batches: A few thousand texts at once.
        folder: Where the file of the index goes.
        site_field: Column of the site; None in a database of one site.
        stemming: Whether English words are found in all their forms.
        is_apart: Whether a process of its own makes the index while `batches` goes on.
        meanwhile: Called after the last batch, while that process merges what it has made.

    Returns:
        Name of the file, which is closed.
    """
    path = os.path.join(folder, "search.db")
    found = iter(batches)
    start = list(islice(found, 2))

    def tasks() -> Iterator[_Task]:
        for texts in chain(start, found):
            if texts.pickled:
                yield _Task(path, site_field, stemming, texts)
        yield _Task(path, site_field, stemming, None)
        meanwhile()

    try:
        # A process costs more than it saves where there is little to do.
        with Workers(1, is_apart=is_apart and len(start) > 1) as workers:
            deque(workers.run(_index, tasks()), maxlen=0)
    finally:
        if connection := _connections.pop(path, None):
            connection.close()
    return path


def _index(task: _Task) -> None:
    """Add a batch to the index, or close it."""
    connection = _connections.get(task.path)
    if connection is None:
        connection = _connections[task.path] = connect(task.path, _CACHE_KIB)
        connection.execute(search_sql(task.site_field, stemming=task.stemming))
        _configure(connection, hashsize=_HASH_BYTES, automerge=0, crisismerge=_MOST_SEGMENTS)
        # A word in a title says more than one in a body.
        connection.execute(
            "INSERT INTO search(search, rank) VALUES ('rank', 'bm25(10.0, 4.0, 1.0)')"
        )
    if task.texts is not None:
        pickled, first_row = task.texts
        rows: list[Row] = pickle.loads(pickled)
        words = len(rows[0]) - len(TEXTS)  # The row's number comes first.
        connection.executemany(
            f"INSERT INTO search (rowid, {listed(TEXTS)}) VALUES (?, ?, ?, ?)",
            sorted((row[0] + first_row, *row[words:]) for row in rows),
        )
        return
    connection.execute("INSERT INTO search(search) VALUES ('optimize')")
    _configure(connection, automerge=4, crisismerge=16)  # The defaults.
    connection.execute("COMMIT")
    _connections.pop(task.path).close()


def _configure(connection: sqlite3.Connection, **values: int) -> None:
    connection.executemany("INSERT INTO search(search, rank) VALUES (?, ?)", values.items())


def copy_index(
    connection: sqlite3.Connection, path: str, site_field: str | None, *, stemming: bool
) -> None:
    """Copy an index into its database."""
    connection.execute(search_sql(site_field, stemming=stemming))
    connection.execute("ATTACH ? AS made", (path,))
    for table in ("data", "idx", "docsize", "config"):
        connection.execute(f"DELETE FROM search_{table}")
        connection.execute(f"INSERT INTO search_{table} SELECT * FROM made.search_{table}")
    for statement in ("COMMIT", "DETACH made", "BEGIN"):
        connection.execute(statement)
