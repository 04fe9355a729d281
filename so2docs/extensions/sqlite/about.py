"""Describe a database: a table in it, and the metadata and configuration for Datasette."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from so2docs.domain import site_language
from so2docs.errors import OutputError, flag
from so2docs.escape import printable
from so2docs.extensions.tables.sqlite_writer import SEARCH
from so2docs.output.provenance import Provenance, load
from so2docs.store.sqlite_errors import sqlite_errors

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
    return sqlite_errors(path, "cannot be read")


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


def datasette_files(database: str, about: About) -> dict[str, bytes]:
    """Return the contents of the files for Datasette next to a database, by file name.

    Datasette before 1.0 reads everything from the metadata; 1.0 reads tables from its configuration
    in YAML, a superset of JSON.
    https://docs.datasette.io/en/latest/upgrade_guide.html

    Args:
        database: The name of the database, which exists or will exist.
        about: The description of the database.
    """
    search = {"fts_table": SEARCH, "fts_pk": "Id"}
    tables: dict[str, Any] = {
        "Posts": {"label_column": "Title", "sort_desc": "Score", **search},
        "questions": {"sort_desc": "Score", "facets": [{"array": "Tags"}], **search},
        "answers": {"sort_desc": "Score", **search},
        "tag_counts": {"sort_desc": "Questions"},
    }
    if "users" in about.rows:
        tables["Users"] = {"label_column": "DisplayName", "sort_desc": "Reputation"}
    values = {
        "title": f"{about.title}: questions and answers",
        "license": "CC BY-SA, by the users of the site",
        "license_url": "https://creativecommons.org/licenses/by-sa/4.0/",
        "source": "Stack Exchange data dump",
        "source_url": f"https://{about.host}/" if about.host else "https://stackexchange.com/sites",
    }
    databases = {printable(Path(database).stem): {"tables": tables}}
    files = {
        ".metadata.json": values | {"databases": databases},
        ".datasette.yaml": {"databases": databases},
    }
    return {
        str(Path(database).with_suffix(extension)): json.dumps(
            content, indent=2, ensure_ascii=False
        ).encode()
        + b"\n"
        for extension, content in files.items()
    }
