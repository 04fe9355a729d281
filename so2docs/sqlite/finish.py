"""What is made of all rows at once: tags, indexes and the overview."""

from __future__ import annotations

import sqlite3
from typing import Any

import sqlite_utils

from so2docs.domain import SCORE_BINS
from so2docs.progress import bar
from so2docs.sqlite.layout import LAYOUTS, index_name, listed, quoted, table_sql

_MOST_TAGS = 30

Connection = sqlite3.Connection


def index(
    connection: Connection, tables: list[str], site_field: str | None, *, progress: bool
) -> None:
    """Make the tables of tags, users whom documents only name, and all indexes."""
    site = [] if site_field is None else [site_field]
    has_users = "users" in tables
    statements = [
        table_sql("tags", site_field, with_users=has_users),
        table_sql("question_tags", site_field, with_users=has_users),
        _tags_of_questions(site),
        _tags(site),
        *(_named_users(tables, site) if has_users else ()),
    ]
    indexes = [(table, columns) for table in tables for columns in LAYOUTS[table].indexes]
    database = sqlite_utils.Database(connection)
    with bar(
        "indexes", len(statements) + len(indexes), unit=" steps", shown=progress
    ) as progress_bar:
        for statement in statements:
            connection.execute(statement)
            progress_bar.update(1)
        for table, columns in indexes:
            database.table(table).create_index([*site, *columns], index_name(table, columns))
            progress_bar.update(1)
    database.analyze()


def _tags_of_questions(site: list[str]) -> str:
    columns = "".join(f"questions.{quoted(name)}, " for name in site)
    # In the order of the key, so that the tree is written from left to right.
    return (
        f"INSERT OR IGNORE INTO question_tags ({listed([*site, 'Tag', 'QuestionId'])}) "
        f"SELECT {columns}value AS Tag, questions.Id FROM questions, json_each(questions.Tags) "
        f"ORDER BY {columns}Tag, questions.Id"
    )


def _tags(site: list[str]) -> str:
    key = listed([*site, "Tag"])
    return f"INSERT INTO tags SELECT {key}, count(*) FROM question_tags GROUP BY {key}"


def _named_users(tables: list[str], site: list[str]) -> list[str]:
    """Rows for users whom posts name and the dump does not know: nothing but their ids."""
    return [
        f"INSERT OR IGNORE INTO users ({listed([*site, 'Id'])}) "
        f"SELECT DISTINCT {listed([*site, column])} FROM {table} WHERE {column} IS NOT NULL"
        for table in tables
        for column, other in LAYOUTS[table].references
        if other == "users"
    ]


def counts(connection: Connection, tables: list[str]) -> dict[str, int]:
    """Rows by table."""
    return {
        name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables
    }


def overviews(
    connection: Connection, site_field: str | None, sources: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The counts of each site that a front page shows."""
    sites = [site["name"] for source in sources for site in source["sites"]]
    return [_overview(connection, site_field, name) for name in dict.fromkeys(sites)]


def _overview(connection: Connection, site_field: str | None, site: str | None) -> dict[str, Any]:
    where = "1" if site_field is None else f"{quoted(site_field)} = :site"

    def rows(sql: str, **values: Any) -> list[Any]:
        return connection.execute(sql.format(where=where), values | {"site": site}).fetchall()

    def by_year(table: str) -> dict[str, int]:
        years = rows(
            f"SELECT substr(CreationDate, 1, 4), count(*) FROM {table} WHERE {{where}} "
            "AND CreationDate IS NOT NULL GROUP BY 1 ORDER BY 1"
        )
        return dict(years)

    def by_score(table: str) -> dict[str, int]:
        counts = {}
        for label, low, high in SCORE_BINS:
            [(count,)] = rows(
                f"SELECT count(*) FROM {table} WHERE {{where}} AND Score BETWEEN :low AND :high",
                low=-(1 << 63) if low is None else low,
                high=(1 << 63) - 1 if high is None else high,
            )
            counts[label] = count
        return counts

    [(questions, accepted, first, last)] = rows(
        "SELECT count(*), count(AcceptedAnswerId), min(CreationDate), max(CreationDate) "
        "FROM questions WHERE {where}"
    )
    [(answers, answered)] = rows(
        "SELECT count(*), count(DISTINCT ParentId) FROM answers WHERE {where}"
    )
    order = "ORDER BY Questions DESC, Name"
    return {
        "site": site,
        "questions": questions,
        "answers": answers,
        "accepted": accepted,
        "unanswered": questions - answered,
        "first": first,
        "last": last,
        "tags": rows("SELECT count(*) FROM tags WHERE {where}")[0][0],
        "questions_by_year": by_year("questions"),
        "answers_by_year": by_year("answers"),
        "question_scores": by_score("questions"),
        "answer_scores": by_score("answers"),
        "top_tags": rows(
            f"SELECT Name, Questions FROM tags WHERE {{where}} {order} LIMIT {_MOST_TAGS}"
        ),
    }
