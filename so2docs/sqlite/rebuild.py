"""Rows of a database -> the documents that they were made of."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

import orjson

from so2docs.schema import (
    ANSWER_ATTRIBUTES,
    POST_PARTS,
    QUESTION_ATTRIBUTES,
    USER_ATTRIBUTES,
    VOTE_TYPES,
    Table,
)
from so2docs.sqlite.layout import ADDED, ADDED_AS_JSON, NESTED, OTHER, name_column
from so2docs.sqlite.rows import OWNERS, USERS, Document

_ATTRIBUTES = {
    "questions": (*QUESTION_ATTRIBUTES, *ADDED),
    "answers": (*ANSWER_ATTRIBUTES, *ADDED),
    "users": USER_ATTRIBUTES,
    **{
        table.key.lower(): ("PostId", name_column(table), "Count")
        if table.shape == "counts"
        else tuple(dict.fromkeys((*table.documented, "PostId")))
        for table in NESTED.values()
    },
}
_AS_JSON = {
    "questions": ("Tags", *ADDED_AS_JSON),
    "answers": ADDED_AS_JSON,
    **{table.key.lower(): table.lists for table in NESTED.values()},
}
_KEYS = tuple(dict.fromkeys(part.key for part in POST_PARTS))
_NUMBER_OF_VOTE = {name: number for number, name in VOTE_TYPES.items()}
_MOST_VALUES = 500


class RebuiltDocuments:
    """The documents of one site in a database.

    The connection has the tables of the site under their names: in a database of several sites,
    temporary views of them.
    """

    def __init__(
        self, connection: sqlite3.Connection, shape: Iterable[str], site: Document
    ) -> None:
        """Read from a connection.

        Args:
            connection: To the database.
            shape: What documents of this site hold, as the database tells.
            site: What every document has besides, such as its site.
        """
        self._connection, self._shape, self._site = connection, frozenset(shape), site
        self._columns = {
            name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
            for name in _ATTRIBUTES
        }

    def get(
        self,
        question_id: int,
        answer_ids: list[int] | None = None,
        without: Collection[str] = (),
    ) -> Document | None:
        """Rebuild the document of a question; None if it does not exist.

        Args:
            question_id: Its id.
            answer_ids: Answers that it is to have, in this order; all of them if None.
            without: Keys of tables that are not read; its posts have them empty.
        """
        matches = self._select("questions", "Id", [question_id])
        if not matches:
            return None
        document = self._record("questions", matches[0])
        if answer_ids is None:
            rows = self._select("answers", "ParentId", [question_id], "ORDER BY Position")
        else:
            by_id = {row["Id"]: row for row in self._select("answers", "Id", answer_ids)}
            rows = [by_id[answer_id] for answer_id in answer_ids if answer_id in by_id]
        answers = [self._record("answers", row) for row in rows]
        self._nest(document, answers, without)
        document |= self._site
        if "Answers" in self._shape:
            document["Answers"] = answers
        return document

    def __iter__(self) -> Iterator[Document]:
        for (question_id,) in self._connection.execute("SELECT Id FROM questions ORDER BY Id"):
            document = self.get(question_id)
            assert document is not None
            yield document

    def _nest(self, question: Document, answers: list[Document], without: Collection[str]) -> None:
        posts = [("", question), *(("Answers.", answer) for answer in answers)]
        ids = [post["Id"] for _, post in posts]
        nested = {
            key: self._by_post(table, ids)
            if self._columns[key.lower()] and key not in without
            else {}
            for key, table in NESTED.items()
        }
        rows = [
            row
            for key, by_post in nested.items()
            if NESTED[key].users
            for of_post in by_post.values()
            for row in of_post
        ]
        users = self._users(posts, rows)
        for path, post in posts:
            post_id = post["Id"]
            if f"-{path}ParentId" in self._shape:
                del post["ParentId"]
            for key, table in NESTED.items():
                if path + key not in self._shape:
                    continue
                of_post = nested[key].get(post_id, [])
                if table.shape == "counts":
                    post[key] = _counts(of_post, name_column(table))
                else:
                    post[key] = [self._nested(row, path + key, table, users) for row in of_post]
            self._name_users(post, path, OWNERS, users)
            if not post.keys().isdisjoint(ADDED):  # They come with the attributes.
                for key in _KEYS:
                    if key in post:
                        post[key] = post.pop(key)

    def _nested(
        self, row: Document, path: str, table: Table, users: dict[int, Document]
    ) -> Document:
        if f"-{path}.PostId" in self._shape:
            del row["PostId"]
        self._name_users(row, f"{path}.", table.users.values(), users)
        return row

    def _name_users(
        self, record: Document, path: str, keys: Iterable[str], users: dict[int, Document]
    ) -> None:
        for key in keys:
            user = users.get(record.get(USERS[key], ""))
            if user is not None and path + key in self._shape:
                names = (name for name in user if f"{path}{key}.{name}" in self._shape)
                record[key] = {name: user[name] for name in names}

    def _users(
        self, posts: list[tuple[str, Document]], rows: list[Document]
    ) -> dict[int, Document]:
        if not self._columns["users"]:
            return {}
        user_ids = {
            record[attribute]
            for record in (*(post for _, post in posts), *rows)
            for attribute in USERS.values()
            if attribute in record
        }
        rows = self._select("users", "Id", sorted(user_ids))
        # Who is in the table only because somebody refers to them has nothing but an id.
        with_values = [
            row for row in rows if not row.keys().isdisjoint({*USER_ATTRIBUTES[1:], OTHER})
        ]
        return {row["Id"]: self._record("users", row) for row in with_values}

    def _by_post(self, table: Table, post_ids: list[int]) -> dict[int, list[Document]]:
        records: dict[int, list[Document]] = defaultdict(list)
        order = "" if table.shape == "counts" else f"ORDER BY {', '.join(table.order)}"
        name = table.key.lower()
        for row in self._select(name, "PostId", post_ids, order):
            records[row["PostId"]].append(self._record(name, row))
        return records

    def _select(
        self, table: str, column: str, values: list[int], order: str = ""
    ) -> list[Document]:
        """Rows as dictionaries of what is not null."""
        names = self._columns[table]
        records: list[Document] = []
        for start in range(0, len(values), _MOST_VALUES):
            some = values[start : start + _MOST_VALUES]
            marks = ",".join("?" * len(some))
            for row in self._connection.execute(
                f"SELECT * FROM {table} WHERE {column} IN ({marks}) {order}", some
            ):
                pairs = zip(names, row, strict=True)
                records.append({name: value for name, value in pairs if value is not None})
        return records

    def _record(self, table: str, row: Document) -> Document:
        """The object that a row was made of, in the order of the dump's attributes."""
        other: Document = orjson.loads(row.get(OTHER, "{}"))
        names = _ATTRIBUTES[table]
        record: Document = {name: row[name] for name in names if name in row}
        for name in _AS_JSON.get(table, ()):
            if name in record:
                record[name] = orjson.loads(record[name])
        return record | other


def _counts(rows: list[Document], column: str) -> Document:
    """Counts by name, votes in the order of their types."""
    ordered = sorted(rows, key=lambda row: _vote_order(row[column]))
    return {row[column]: row["Count"] for row in ordered}


def _vote_order(vote_type: str) -> int:
    number = _NUMBER_OF_VOTE.get(vote_type)
    return number if number is not None else int(vote_type) if vote_type.isdigit() else 1 << 62
