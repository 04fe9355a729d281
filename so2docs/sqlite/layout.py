"""The tables of a database: columns, keys, references and indexes. Nothing but definitions.

Columns have the dump's own names. Bodies come last: SQLite reads a row from its start, and a
query that wants a title need not walk through the pages of a long body. Attributes that have no
column, or a value that is not of its type, go into `Other`, as the text of a JSON object.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from so2docs.schema import (
    ANSWER_ATTRIBUTES,
    ANSWERS,
    BADGES,
    INTEGER,
    OF_KIND,
    OTHER,
    QUESTION_ATTRIBUTES,
    TYPES,
    USER_ATTRIBUTES,
    Table,
)

FORMAT = 4
"""Of the layout; a database of another one is refused."""

ABOUT = "so2docs"
"""The table of what is known of the database itself: names and JSON values."""

INTEGERS = frozenset(
    {
        *(name for name, kind in TYPES.items() if kind == INTEGER),
        *(ANSWERS, "Position", "QuestionId", "PostId", "Count", "Questions", "Row"),
    }
)
"""Columns of integers."""

NESTED = {table.key: table for table in OF_KIND.values()}
"""The tables whose rows are nested in posts, by their keys."""

ADDED = {part.key: part for table in NESTED.values() for part in table.adds}
"""What posts hold of these tables besides their rows; each has a column of posts."""

ADDED_AS_JSON = tuple(key for key, part in ADDED.items() if part.shape != "value")
"""Those of them that are no single values."""

_LONG = ("Body", "BodyMarkdown")


@dataclass(frozen=True, slots=True)
class Layout:
    """A table.

    Attributes:
        name: Its name.
        attributes: The columns of attributes, in the order in which documents have them.
        key: Its primary key, without the site.
        references: Column, and the table whose key it holds.
        indexes: Columns of each index. Those that start with `Id` hold all that lists and filters
            ask of a post, so that these need not read the rows, which are long.
        made: Columns that no attribute is in; rows have them after those of the attributes.
        as_json: Attributes that are stored as JSON.
    """

    name: str
    attributes: tuple[str, ...]
    key: tuple[str, ...]
    references: tuple[tuple[str, str], ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()
    made: tuple[str, ...] = ()
    as_json: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Its columns, without that of the site; those of long texts come last."""
        short = (name for name in self.attributes if name not in _LONG)
        return (*short, *self.made, *(name for name in self.attributes if name in _LONG))


def _nested(table: Table) -> Layout:
    """The table of rows that posts hold, or of their counts."""
    name, question = table.key.lower(), ("QuestionId", "questions")
    if table.shape == "counts":
        key = ("PostId", name_column(table))
        of_question = (("QuestionId",),)
        return Layout(name, (*key, "Count"), key, (question,), of_question, ("QuestionId",))
    return Layout(
        name,
        tuple(dict.fromkeys((*table.documented, "PostId"))),
        ("Id",),
        (question, *((column, "users") for column in table.users)),
        (("PostId",), ("QuestionId",), *((column,) for column in table.sought)),
        ("QuestionId", OTHER),
        table.lists,
    )


def name_column(table: Table) -> str:
    """The column for what is counted: `VoteType`."""
    return f"{table.row.title()}Type"


_BY_POST = (("OwnerUserId", "users"), ("LastEditorUserId", "users"))
LAYOUTS = {
    layout.name: layout
    for layout in (
        Layout(
            "questions",
            (*QUESTION_ATTRIBUTES, *ADDED),
            ("Id",),
            _BY_POST,
            (
                ("Id", "Score", ANSWERS, "AcceptedAnswerId", "OwnerUserId"),
                ("Score", "Id", ANSWERS, "AcceptedAnswerId", "OwnerUserId"),
                ("LastActivityDate", "Id", ANSWERS),
                ("OwnerUserId", "Score"),
                ("CreationDate",),
            ),
            (ANSWERS, OTHER),
            ("Tags", *ADDED_AS_JSON),
        ),
        Layout(
            "answers",
            (*ANSWER_ATTRIBUTES, *ADDED),
            ("Id",),
            (("ParentId", "questions"), *_BY_POST),
            (
                ("Id", "Score", "ParentId", "OwnerUserId"),
                ("Score", "Id", "ParentId", "OwnerUserId"),
                ("ParentId", "Score"),
                ("OwnerUserId", "Score"),
                ("CreationDate",),
            ),
            ("Position", OTHER),
            ADDED_AS_JSON,
        ),
        *map(_nested, NESTED.values()),
        Layout(
            "users",
            (*USER_ATTRIBUTES, BADGES.key),
            ("Id",),
            indexes=(("DisplayName",), ("Reputation",)),
            made=(OTHER,),
            as_json=(BADGES.key,),
        ),
        Layout(
            "tags",
            ("Name", "Questions", "Excerpt", "Wiki"),
            ("Name",),
            indexes=(("Questions",),),
        ),
        Layout(
            "question_tags",
            ("Tag", "QuestionId"),
            ("Tag", "QuestionId"),
            (("Tag", "tags"), ("QuestionId", "questions")),
            (("QuestionId",),),
        ),
    )
}

TEXTS = ("Title", "Tags", "Body")
"""Columns of the table `texts` that `search` finds words in."""


def index_name(table: str, columns: Iterable[str]) -> str:
    """The name of an index."""
    return "_".join((table, *columns))


def table_sql(name: str, site_field: str | None, *, with_users: bool) -> str:
    """The statement that makes a table.

    Args:
        name: Of the table.
        site_field: Column for the site, which is then the first part of every key; None for a
            database of one site.
        with_users: Whether there is a table of users to refer to.
    """
    layout = LAYOUTS[name]
    site = () if site_field is None else (site_field,)
    lines = [f"{quoted(column)} TEXT NOT NULL" for column in site]
    is_rowid = not site and layout.key == ("Id",)
    for column in layout.columns:
        kind = "INTEGER" if column in INTEGERS else "TEXT"
        end = " PRIMARY KEY" if is_rowid and column == "Id" else ""
        end = " NOT NULL" if not end and column in layout.key else end
        lines.append(f"{quoted(column)} {kind}{end}")
    if site and name in ("questions", "answers"):
        # Identifies a row of `search` where an id is not unique.
        lines.append('"Row" INTEGER NOT NULL UNIQUE')
    if not is_rowid:
        lines.append(f"PRIMARY KEY ({listed((*site, *layout.key))})")
    for column, other in layout.references:
        if other != "users" or with_users:
            key = listed((*site, *LAYOUTS[other].key))
            lines.append(f"FOREIGN KEY ({listed((*site, column))}) REFERENCES {other} ({key})")
    end = "" if is_rowid or "Id" in layout.key else " WITHOUT ROWID"
    return f"CREATE TABLE {name} (\n  " + ",\n  ".join(lines) + f"\n){end}"


def texts_sql(site_field: str | None) -> str:
    """The statement that makes the table of what `search` finds words in."""
    words = ", ".join(f"{quoted(name)} TEXT" for name in TEXTS)
    if site_field is None:
        return f'CREATE TABLE texts ("Id" INTEGER PRIMARY KEY, {words})'
    site = quoted(site_field)
    return (
        f'CREATE TABLE texts ("Row" INTEGER PRIMARY KEY, {site} TEXT NOT NULL, '
        f'"Id" INTEGER NOT NULL, {words})'
    )


def search_sql(site_field: str | None, *, stemming: bool) -> str:
    """The statement that makes the full-text index over `texts`.

    Args:
        site_field: Column for the site.
        stemming: Whether English words are found in all their forms.
    """
    row = "Id" if site_field is None else "Row"
    stems = "porter " if stemming else ""
    return (
        f"CREATE VIRTUAL TABLE search USING fts5({listed(TEXTS)}, content='texts', "
        f"content_rowid='{row}', tokenize='{stems}unicode61 remove_diacritics 2')"
    )


def quoted(name: str) -> str:
    """A name in SQL, whatever it is."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def listed(names: Iterable[str]) -> str:
    """Names in SQL, with commas."""
    return ", ".join(map(quoted, names))
