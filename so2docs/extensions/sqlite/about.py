"""Describe a database in a table of its own, for the commands that read it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import orjson

from so2docs.errors import explain
from so2docs.extensions.site_facts import site_language
from so2docs.output.provenance import load
from so2docs.plugin import OutputError, Provenance, flag
from so2docs.schema import Table

FORMAT = 13
"""Version of the database; databases with any other version are rejected."""

_TABLE = "so2docs"
_COUNTS = {
    "questions": "count(*) FROM questions",
    "answers": "count(*) FROM answers",
    "accepted": "count(AcceptedAnswerId) FROM questions",
    "unanswered": "count(*) FROM questions q "
    "WHERE NOT EXISTS (SELECT 1 FROM Posts a WHERE a.ParentId = q.Id)",
    # Two queries, each of which reads the end of an index instead of all questions.
    "first": "min(CreationDate) FROM questions",
    "last": "max(CreationDate) FROM questions",
    "tags": "count(*) FROM tag_counts",
}
_LISTS = {
    "questions_by_year": "substr(CreationDate, 1, 4), count(*) FROM questions "
    "WHERE CreationDate IS NOT NULL GROUP BY 1 ORDER BY 1",
    "top_tags": "Tag, Questions FROM tag_counts ORDER BY Questions DESC, Tag LIMIT 30",
}


@dataclass(frozen=True, slots=True)
class About:
    """The description of a database.

    Attributes:
        path: Path of the database file.
        record: Record of how the database was made.
        rows: Number of rows in each table of the dump, by name, and of `questions` and `answers`.
        host: Host name of the site; None if unknown.
        overview: Counts for the front page.
    """

    path: str
    record: Provenance
    rows: dict[str, int]
    host: str | None
    overview: dict[str, Any]

    @property
    def title(self) -> str:
        """The host name of the site; if unknown, the name of the file that was read."""
        return self.host or next((file.name for file in self.record.input if file.name), "Posts")

    @property
    def language(self) -> str:
        """The language of the site as a BCP 47 tag."""
        return site_language(self.host or "")


def connect(path: str) -> sqlite3.Connection:
    """Open a database for reading, from any thread.

    Raises:
        OutputError: The file cannot be opened.
    """
    with explain(path, "cannot be read"):
        os.stat(path)  # Its error names the reason, unlike that of SQLite.
        uri = f"file:{quote(os.fsencode(path))}?mode=ro"
        return sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)


def write_about(
    connection: sqlite3.Connection,
    tables: Iterable[Table],
    repeated: dict[str, int],
    *,
    record: Provenance,
) -> None:
    """Write the description of a database, with the counts for the front page.

    Args:
        connection: The database.
        tables: Its tables.
        repeated: Number of rows left out because their `Id` occurs twice, by table.
        record: Record of how the database is made.
    """
    stems = {"questions": "questions", "answers": "answers"}
    stems |= {table.name: table.stem for table in tables}
    counts = {
        name: connection.execute(f'SELECT count(*) FROM "{stem}"').fetchone()[0]
        for name, stem in stems.items()
    }
    values = {
        "format": FORMAT,
        "record": record.as_dict(),
        "rows": counts,
        "repeated": repeated,
        "host": record.site,
        "overview": _overview(connection),
    }
    connection.execute(f"CREATE TABLE {_TABLE} (name TEXT PRIMARY KEY, value TEXT)")
    connection.executemany(
        f"INSERT INTO {_TABLE} VALUES (?, ?)",
        [(name, orjson.dumps(value).decode()) for name, value in values.items()],
    )


def read_about(path: str) -> About:
    """Read the description of a database.

    Raises:
        OutputError: The file is not a database of so2docs, or its version is not `FORMAT`.
    """
    with closing(connect(path)) as connection:
        try:
            rows = dict(connection.execute(f"SELECT name, value FROM {_TABLE}").fetchall())
        except sqlite3.Error as error:
            raise OutputError(
                f"{path}: is not a database of so2docs ({error}); make one with `so2docs sqlite`"
            ) from error
    values = {name: orjson.loads(value) for name, value in rows.items()}
    record = load(orjson.dumps(values.get("record")))
    if record is None or record.contract != FORMAT:
        version = "" if record is None else f" ({record.version})"
        raise OutputError(
            f"{path}: was made by another version of so2docs{version}; rebuild it with "
            f"{flag('force', True)}"
        )
    names = ("rows", "host", "overview")
    return About(path, record, *(values[name] for name in names))


def _overview(connection: sqlite3.Connection) -> dict[str, Any]:
    """Compute the counts for the front page, each from an index."""
    rows = {name: connection.execute(f"SELECT {sql}").fetchall() for name, sql in _LISTS.items()}
    counts = {
        name: connection.execute(f"SELECT {sql}").fetchone()[0] for name, sql in _COUNTS.items()
    }
    return {**counts, **rows, "questions_by_year": dict(rows["questions_by_year"])}
