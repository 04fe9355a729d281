"""Make the full-text index in a worker process while rows are inserted.

Indexing takes as long as all other steps together. The index is made in a separate file, whose
tables are then copied into the database: they are plain tables (https://sqlite.org/fts5.html, "FTS5
Data Structures"). The row numbers of texts ascend, so a segment ends only when FTS5 has used its
memory; all segments are merged at the end.

This module is separate from `build` so that the worker starts faster: importing it takes a third of
the time that importing `build` takes.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from sqlite3 import Connection

from so2docs.extensions.sqlite.layout import SEARCH, TEXTS, listed
from so2docs.extensions.sqlite.rows import Values, pack, unpack
from so2docs.extensions.sqlite_file import connect
from so2docs.processes.pool import Workers

_CACHE_KIB = 16 * 1024
_HASH_BYTES = 8 * 1024 * 1024
_MOST_SEGMENTS = 1_000
"""Number of segments on a level before they are merged; FTS5 allows twice as many in all."""
_WORTH_A_PROCESS = 2_000
"""Number of texts that take longer to index than a process takes to start."""

_connections: dict[str, Connection] = {}


def index_texts(
    batches: Iterable[list[Values]],
    path: str,
    sql: str,
    *,
    is_apart: bool,
    meanwhile: Callable[[], object],
) -> None:
    """Make the full-text index of texts in a separate file.

    Args:
        batches: Lists of rows with a row number and the texts; the numbers should ascend.
        path: Path of the separate file.
        sql: The statement that makes the index.
        is_apart: Whether a worker process makes the index while `batches` is read.
        meanwhile: Function called after the last batch, while the worker merges the segments.
    """
    batches = iter(batches)
    start, count = list[list[Values]](), 0
    while count < _WORTH_A_PROCESS and (rows := next(batches, None)) is not None:
        start.append(rows)
        count += len(rows)
    is_apart = is_apart and count >= _WORTH_A_PROCESS

    def tasks() -> Iterator[list[Values] | bytes | None]:
        for rows in itertools.chain(start, batches):
            yield pack(rows) if is_apart else rows
        yield None
        meanwhile()

    try:
        with Workers(1, is_apart=is_apart) as workers:
            deque(workers.run(partial(_index, path, sql), tasks()), maxlen=0)
    finally:
        if connection := _connections.pop(path, None):
            connection.close()


def _index(path: str, sql: str, texts: list[Values] | bytes | None) -> None:
    """Add texts to the index; if `texts` is None, complete the index."""
    connection = _connections.get(path)
    if connection is None:
        connection = _connections[path] = connect(path, _CACHE_KIB)
        connection.execute(sql)
        _configure(connection, hashsize=_HASH_BYTES, automerge=0, crisismerge=_MOST_SEGMENTS)
        # Give words in titles more weight than words in bodies.
        connection.execute(
            f"INSERT INTO {SEARCH}({SEARCH}, rank) VALUES ('rank', 'bm25(3.0, 1.0, 1.0, 1.0)')"
        )
    if texts is not None:
        connection.executemany(
            f"INSERT INTO {SEARCH} (rowid, {listed(TEXTS)}) VALUES (?{', ?' * len(TEXTS)})",
            unpack(texts),
        )
        return
    connection.execute(f"INSERT INTO {SEARCH}({SEARCH}) VALUES ('optimize')")
    _configure(connection, automerge=4, crisismerge=16)  # Restore the defaults.
    connection.execute("COMMIT")
    _connections.pop(path).close()


def _configure(connection: Connection, **values: int) -> None:
    connection.executemany(f"INSERT INTO {SEARCH}({SEARCH}, rank) VALUES (?, ?)", values.items())


def copy_index(connection: Connection, path: str) -> None:
    """Copy the full-text index from the file at `path` into the empty one of the database."""
    connection.execute("ATTACH ? AS made", (path,))
    for table in ("data", "idx", "docsize", "config"):
        connection.execute(f"DELETE FROM {SEARCH}_{table}")
        connection.execute(f"INSERT INTO {SEARCH}_{table} SELECT * FROM made.{SEARCH}_{table}")
    for statement in ("COMMIT", "DETACH made", "BEGIN"):
        connection.execute(statement)
