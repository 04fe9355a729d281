"""Describe a database in a table of its own, for the commands that read it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import orjson

from so2docs.domain import site_language
from so2docs.errors import explain
from so2docs.output.provenance import load
from so2docs.plugin import OutputError, Provenance, flag

SCORE_BINS: tuple[tuple[str, int | None, int | None], ...] = (
    ("below 0", None, -1),
    ("0", 0, 0),
    ("1", 1, 1),
    ("2", 2, 2),
    ("3-4", 3, 4),
    ("5-9", 5, 9),
    ("10-24", 10, 24),
    ("25-99", 25, 99),
    ("100+", 100, None),
)
"""Bins of a score histogram, narrower for frequent scores: label, lowest and highest score."""

FORMAT = 12
"""Version of the database; databases with any other version are rejected."""

_TABLE = "so2docs"
_MOST_TAGS = 30


@dataclass(frozen=True, slots=True)
class About:
    """The description of a database.

    Attributes:
        path: Path of the database file.
        record: Record of how the database was made.
        rows: Number of rows in each table of the dump, by name, and of `questions` and `answers`.
        repeated: Number of rows left out because their `Id` occurs twice, by table.
        host: Host name of the site; None if unknown.
        overview: Counts for the front page.
    """

    path: str
    record: Provenance
    rows: dict[str, int]
    repeated: dict[str, int]
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
    with explain_database_errors(path):
        uri = f"file:{quote(os.fsencode(path))}?mode=ro"
        return sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)


def explain_database_errors(path: str) -> AbstractContextManager[None]:
    """Convert the errors of SQLite from reading a database to an `OutputError` with advice."""
    return explain(path, "cannot be read")


def write_about(connection: sqlite3.Connection, values: dict[str, Any]) -> None:
    """Write the description of a database, completed by the counts for the front page."""
    values = {"format": FORMAT, **values, "overview": _overview(connection)}
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
    names = ("rows", "repeated", "host", "overview")
    return About(path, record, *(values[name] for name in names))


def _overview(connection: sqlite3.Connection) -> dict[str, Any]:
    """Compute the counts for the front page, each from an index."""

    def rows(sql: str, *values: Any) -> list[Any]:
        return connection.execute(sql, values).fetchall()

    def by_year(table: str) -> dict[str, int]:
        return dict(
            rows(
                f"SELECT substr(CreationDate, 1, 4), count(*) FROM {table} "
                "WHERE CreationDate IS NOT NULL GROUP BY 1 ORDER BY 1"
            )
        )

    def by_score(table: str) -> dict[str, int]:
        sql = f"SELECT count(*) FROM {table} WHERE Score BETWEEN ? AND ?"
        least, most = -(1 << 63), (1 << 63) - 1
        return {
            label: rows(sql, least if low is None else low, most if high is None else high)[0][0]
            for label, low, high in SCORE_BINS
        }

    [(questions, accepted)] = rows("SELECT count(*), count(AcceptedAnswerId) FROM questions")
    # Two queries, each of which reads the end of an index instead of all questions.
    [(first,)] = rows("SELECT min(CreationDate) FROM questions")
    [(last,)] = rows("SELECT max(CreationDate) FROM questions")
    [(unanswered,)] = rows(
        "SELECT count(*) FROM questions q "
        "WHERE NOT EXISTS (SELECT 1 FROM Posts a WHERE a.ParentId = q.Id)"
    )
    return {
        "questions": questions,
        "answers": rows("SELECT count(*) FROM answers")[0][0],
        "accepted": accepted,
        "unanswered": unanswered,
        "first": first,
        "last": last,
        "tags": rows("SELECT count(*) FROM tag_counts")[0][0],
        "questions_by_year": by_year("questions"),
        "answers_by_year": by_year("answers"),
        "question_scores": by_score("questions"),
        "answer_scores": by_score("answers"),
        "top_tags": rows(
            f"SELECT Tag, Questions FROM tag_counts ORDER BY Questions DESC, Tag LIMIT {_MOST_TAGS}"
        ),
    }
