"""Write the tables of a dump to an SQLite database: keys, indexes, tags, and full text on request.

Every table is appended in ascending order of its key, because a row inserted in the middle of a
large table reads and writes a page. The file has no journal: it gets its final name only when it is
complete. A page cache of 32 MiB is as fast as one of 64 MiB; sorts use the disk.
"""

from __future__ import annotations

import marshal
import os
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import islice
from operator import lt
from typing import TYPE_CHECKING, Any

from so2docs.errors import explain
from so2docs.extensions.hidden_imports import hidden
from so2docs.extensions.tables.columns import TableColumns
from so2docs.extensions.tables.writing import SqliteEncoder, TextsOf, read
from so2docs.output.segments import Segment
from so2docs.plugin import POSTS, NewFiles, log
from so2docs.schema import BOOLEAN, INTEGER, OTHER, Table

if TYPE_CHECKING:
    from sqlite_utils import Database

SEARCH = "posts_fts"
"""The full-text index of posts; its row ids are those of the posts."""
SEARCHED = ("Title", "Tags", "Body", "Unaccented")
"""Columns of the full-text index; the last one has additional forms of the words in the others."""

_CACHE_KIB = 32 * 1024
_PAGE_BYTES = 32 * 1024
"""Larger pages waste less space between rows, and make fewer of them."""
_LATE_ROWS = 500
_ANALYZED = 1_000
"""Number of rows of an index from which SQLite estimates its shape."""
_HASH_BYTES = 8 * 1024 * 1024
"""Memory of FTS5 before it writes a segment."""
_MOST_SEGMENTS = 1_000
"""Number of segments on a level before they are merged; FTS5 allows twice as many in all."""
_INDEXES = {
    "posts": (
        ("ParentId", "Score"),
        ("OwnerUserId", "Score"),
        ("LastEditorUserId",),
        ("PostTypeId", "CreationDate", "Score", "AnswerCount", "ParentId"),
        ("PostTypeId", "Score", "Id", "AnswerCount", "ParentId", "AcceptedAnswerId"),
        ("PostTypeId", "LastActivityDate"),
    ),
    "comments": (("PostId",), ("UserId",)),
    "links": (("PostId",), ("RelatedPostId",)),
    "votes": (("PostId",),),
    "history": (("PostId",), ("UserId",)),
    "users": (("DisplayName",), ("Reputation",)),
    "badges": (("UserId",),),
    "tags": (("TagName",),),
}


def connect(part: str) -> sqlite3.Connection:
    """Create a database, and begin a transaction."""
    connection = sqlite3.connect(part, isolation_level=None)
    for setting in (
        f"page_size={_PAGE_BYTES}",
        "journal_mode=OFF",
        "synchronous=OFF",
        "locking_mode=EXCLUSIVE",
        f"cache_size=-{_CACHE_KIB}",
    ):
        connection.execute(f"PRAGMA {setting}").fetchall()
    connection.execute("BEGIN")
    return connection


class SqliteWriter:
    """Writer of an SQLite database with the tables of a dump, each with its `Id` as primary key.

    As for each writer, call `begin` before the first segment of each table, then `finish`, and then
    `close`.

    Args:
        files: The new files.
        path: Name of the file.
        texts_of: Makes the texts of posts, for a full-text index; None for no index.
        complete: Called before the database is closed, with its tables and the numbers of rows
            that repeat an `Id`.

    Attributes:
        open_encoder: Opens the encoder of a chunk.
        repeated: Number of rows that repeat an `Id`, by table; the first row is kept.
    """

    def __init__(
        self,
        files: NewFiles,
        path: str,
        texts_of: TextsOf | None = None,
        complete: Callable[[sqlite3.Connection, list[Table], dict[str, int]], object] | None = None,
    ) -> None:
        self.open_encoder = partial(SqliteEncoder, texts_of=texts_of)
        self.repeated: Counter[str] = Counter()
        self._new_files, self._path = files, path
        self._texts_of, self._complete = texts_of, complete
        self._tables: list[Table] = []
        with explain(self._path, "cannot be written"):
            self._connection = connect(files.unfinished(path))
            self._database = _wrap(self._connection)
            if texts_of is not None:
                self._create_search()

    def _create_search(self) -> None:
        self._connection.execute(
            f"CREATE VIRTUAL TABLE {SEARCH} USING fts5({', '.join(SEARCHED)}, content='', "
            "tokenize='porter unicode61 remove_diacritics 2')"
        )
        self._configure(hashsize=_HASH_BYTES, automerge=0, crisismerge=_MOST_SEGMENTS)
        # Give words in titles more weight than words in bodies.
        self._configure(rank="bm25(3.0, 1.0, 1.0, 1.0)")

    def _configure(self, **values: int | str) -> None:
        sql = f"INSERT INTO {SEARCH}({SEARCH}, rank) VALUES (?, ?)"
        self._connection.executemany(sql, values.items())

    def begin(self, columns: TableColumns) -> None:
        """Create a table."""
        table = columns.table
        with explain(self._path, "cannot be written"):
            self._end_table()
            types = {
                name: int if kind in (INTEGER, BOOLEAN) else str
                for name, kind in table.attributes.items()
            }
            self._database.table(table.stem).create({**types, OTHER: str}, pk="Id")
        self._tables.append(table)
        self._last: float = float("-inf")
        self._has_late = False
        marks = ", ".join("?" * (len(table.attributes) + 1))
        self._insert = f'INSERT OR IGNORE INTO "{{}}" VALUES ({marks})'

    def append(self, segment: Segment) -> None:
        """Insert the rows of a segment; if not all ids follow the earlier ones, they wait.

        Raises:
            OutputError: The segment's file is truncated, or the database cannot be written.
        """
        rows, texts = marshal.loads(read(segment))
        ids = [self._last, *(row[0] for row in rows)]
        self._last = max(ids)
        with explain(self._path, "cannot be written"):
            if all(map(lt, ids, islice(ids, 1, None))):
                self._connection.executemany(self._insert.format(self._tables[-1].stem), rows)
                if texts:
                    self._index(texts)
            else:
                self._keep_for_the_end(rows)

    def _index(self, texts: list[tuple[Any, ...]]) -> None:
        self._connection.executemany(
            f"INSERT INTO {SEARCH} (rowid, {', '.join(SEARCHED)}) VALUES (?, ?, ?, ?, ?)", texts
        )

    def _keep_for_the_end(self, rows: list[tuple[Any, ...]]) -> None:
        if not self._has_late:
            stem = self._tables[-1].stem
            self._connection.execute(f'CREATE TABLE late AS SELECT * FROM "{stem}" WHERE 0')
            self._has_late = True
        self._connection.executemany(self._insert.format("late"), rows)

    def _end_table(self) -> None:
        """Insert the rows that waited, in ascending order; their pages are used again later."""
        if not (self._tables and self._has_late):
            return
        table = self._tables[-1]
        insert = self._insert.format(table.stem)
        cursor = self._connection.execute("SELECT * FROM late ORDER BY Id, rowid")
        while rows := cursor.fetchmany(_LATE_ROWS):
            inserted = [row for row in rows if self._connection.execute(insert, row).rowcount]
            if len(rows) > len(inserted):
                self.repeated[table.name] += len(rows) - len(inserted)
            if self._texts_of is not None and table == POSTS:
                self._index(self._texts_of(inserted))
        cursor.close()
        self._connection.execute("DROP TABLE late")
        self._has_late = False

    def finish(self) -> int:
        """Create the indexes, close the database, and return the size of its file."""
        with explain(self._path, "cannot be written"):
            self._end_table()
            if POSTS in self._tables:
                self._describe_posts()
            for table in self._tables:
                for columns in _INDEXES[table.name]:
                    self._database.table(table.stem).create_index(columns)
            if self._texts_of is not None:
                self._connection.execute(f"INSERT INTO {SEARCH}({SEARCH}) VALUES ('optimize')")
                self._configure(automerge=4, crisismerge=16)  # Restore the defaults.
            self._connection.execute(f"PRAGMA analysis_limit={_ANALYZED}").fetchall()
            self._connection.execute("ANALYZE")
            if self._complete is not None:
                self._complete(self._connection, self._tables, self.repeated)
            self._connection.execute("COMMIT")
            self._connection.close()
        for name, count in self.repeated.items():
            log.warning(
                "%s: %s: %s repeat an Id; the first row is kept", self._path, name, f"{count:,}"
            )
        self._new_files.add(self._path)
        return os.path.getsize(self._new_files.unfinished(self._path))

    def _describe_posts(self) -> None:
        """Make the views of questions and answers, and the tables of tags."""
        for name, kind in (("questions", 1), ("answers", 2)):
            self._database.create_view(name, f"SELECT * FROM Posts WHERE PostTypeId = {kind}")
        self._connection.execute(
            "CREATE TABLE question_tags (Tag TEXT, QuestionId INTEGER, "
            "PRIMARY KEY (Tag, QuestionId)) WITHOUT ROWID"
        )
        self._connection.execute(
            "INSERT OR IGNORE INTO question_tags SELECT value, q.Id FROM questions q, "
            "json_each(q.Tags) ORDER BY 1, 2"
        )
        self._database.table("tag_counts").create({"Tag": str, "Questions": int}, pk="Tag")
        self._connection.execute(
            "INSERT INTO tag_counts SELECT Tag, count(*) FROM question_tags GROUP BY Tag"
        )
        self._database.table("question_tags").create_index(["QuestionId"])
        self._database.table("tag_counts").create_index(["Questions"])

    def close(self) -> None:
        """Close the database."""
        self._connection.close()


def _wrap(connection: sqlite3.Connection) -> Database:
    """Wrap a connection in a database of sqlite-utils.

    sqlite-utils imports NumPy and pandas if they are installed, which takes 82 MiB of memory and
    0.4 s, but this package needs neither. A later import by others finds sqlite-utils complete.
    """
    was_imported = "sqlite_utils" in sys.modules
    with hidden("numpy", "pandas"):
        from sqlite_utils import Database
    if not was_imported:
        for name in list(sys.modules):
            if name.partition(".")[0] == "sqlite_utils":
                del sys.modules[name]
    return Database(connection, recursive_triggers=False, execute_plugins=False)
