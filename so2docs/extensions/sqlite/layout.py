"""Definitions of the tables of a database: columns, keys, references and indexes.

Columns are named after the attributes in dumps. Bodies come last: SQLite reads a row from its
start, so a query for a title need not read the pages of a long body. Attributes without a column,
and values that do not fit the type of their column, go into `Other` as a JSON object.
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

FORMAT = 10
"""Version of the layout; databases with any other version are rejected."""

ABOUT = "so2docs"
"""The table that describes the database: names and JSON values."""

INTEGERS = frozenset(
    {
        *(name for name, kind in TYPES.items() if kind == INTEGER),
        *(ANSWERS, "Position", "QuestionId", "PostId", "Count", "Questions", "Row"),
    }
)
"""Columns that contain integers."""

NESTED = {table.key: table for table in OF_KIND.values()}
"""The tables whose rows are nested in posts, by their keys in documents."""

ADDED = {part.key: part for table in NESTED.values() for part in table.adds}
"""Parts of posts, besides the rows, that come from these tables; each is a column of posts."""

ADDED_AS_JSON = tuple(key for key, part in ADDED.items() if part.shape != "value")
"""Keys of these parts that are stored as JSON."""

PROFILE = ("Location", "WebsiteUrl", "AboutMe")
"""Attributes of users that documents do not have."""

_LONG = ("Body", "BodyMarkdown", "AboutMe")


@dataclass(frozen=True, slots=True)
class Layout:
    """The definition of a table.

    Attributes:
        name: Name of the table.
        attributes: Columns of attributes, in the order of documents.
        key: Primary key, without the site.
        references: Pairs of a column and the table that it refers to.
        indexes: Columns of each index. Those with several columns cover lists and filters, so
            that these need not read the long rows.
        made: Columns of derived values; they follow the attributes.
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
        """All columns without the site; long texts come last."""
        short = (name for name in self.attributes if name not in _LONG)
        return (*short, *self.made, *(name for name in self.attributes if name in _LONG))


def _nested(table: Table) -> Layout:
    """Make the layout for the rows of a nested table, or for their counts."""
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
    """Return the column for the names of counts, such as `VoteType`."""
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
                ("LastEditorUserId",),
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
                ("LastEditorUserId",),
                ("CreationDate",),
            ),
            ("Position", OTHER),
            ADDED_AS_JSON,
        ),
        *map(_nested, NESTED.values()),
        Layout(
            "users",
            (*USER_ATTRIBUTES, BADGES.key, *PROFILE),
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

TEXTS = ("Title", "Tags", "Body", "Unaccented")
"""Columns of the table `texts` that `search` indexes. The last column has additional forms of the
words in the others; see `accents`."""


def index_name(table: str, columns: Iterable[str]) -> str:
    """Return the name of the index on these columns of a table."""
    return "_".join((table, *columns))


def table_sql(name: str, site_field: str | None, *, with_users: bool) -> str:
    """Return the SQL statement that creates a table.

    Args:
        name: Name of the table.
        site_field: Column for the site, the first part of every key; None for a database of one
            site.
        with_users: Whether the database has a users table.
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
        # Add the row id in `search`, because `Id` is unique only per site.
        lines.append('"Row" INTEGER NOT NULL UNIQUE')
    if not is_rowid:
        lines.append(f"PRIMARY KEY ({listed((*site, *layout.key))})")
    for column, other in layout.references:
        if other != "users" or with_users:
            key = listed((*site, *LAYOUTS[other].key))
            lines.append(f"FOREIGN KEY ({listed((*site, column))}) REFERENCES {other} ({key})")
    end = "" if is_rowid or "Id" in layout.key else " WITHOUT ROWID"
    return f"CREATE TABLE {name} (\n  " + ",\n  ".join(lines) + f"\n){end}"


BY_ROW = {
    "texts": ", ".join(f'"{name}" TEXT' for name in TEXTS),
    "documents": '"Page" INTEGER NOT NULL, "Position" INTEGER NOT NULL',
}
"""Columns of the indexed texts, and of the places of documents in pages, besides their keys."""

PAGES = "document_pages"
"""The table of pages: documents without bodies as JSON lines, compressed together with zstd. The
number of a page is the row number of its first document."""

PAGES_SQL = f'CREATE TABLE {PAGES} ("Page" INTEGER PRIMARY KEY, "Documents" BLOB NOT NULL)'


def by_row_sql(name: str, site_field: str | None) -> str:
    """Return the SQL statement that creates a table of `BY_ROW`."""
    key = '"Id" INTEGER PRIMARY KEY'
    if site_field is not None:
        site = f"{quoted(site_field)} TEXT NOT NULL"
        key = f'"Row" INTEGER PRIMARY KEY, {site}, "Id" INTEGER NOT NULL'
    return f"CREATE TABLE {name} ({key}, {BY_ROW[name]})"


_SHARED = tuple(
    name
    for name in LAYOUTS["questions"].columns
    if name in LAYOUTS["answers"].columns and name not in ("Id", "Title", "ParentId")
)


def views_sql(site_field: str | None) -> tuple[str, str]:
    """Return the SQL statements that create the views.

    `posts` has questions and answers with the columns that both have; `accepted` has a row for each
    question whose accepted answer is in the database.
    """
    site = "" if site_field is None else f"{quoted(site_field)}, "
    of_question = "" if site_field is None else f"q.{quoted(site_field)}, "
    is_same = "" if site_field is None else f" AND a.{quoted(site_field)} = q.{quoted(site_field)}"
    shared = listed(_SHARED)
    return (
        f'CREATE VIEW posts AS SELECT {site}"Id", "Id" AS "QuestionId", "Title", {shared} '
        f'FROM questions UNION ALL SELECT {site}"Id", "ParentId", NULL, {shared} FROM answers',
        f"CREATE VIEW accepted AS SELECT {of_question}q.Id AS QuestionId, a.Id AS AnswerId, "
        "q.Title, q.Tags, q.Score AS QuestionScore, a.Score AS AnswerScore, "
        "q.CreationDate AS Asked, a.CreationDate AS Answered, q.Body AS Question, "
        "a.Body AS Answer FROM questions q JOIN answers a ON a.Id = q.AcceptedAnswerId"
        f" AND a.ParentId = q.Id{is_same}",
    )


def search_sql(site_field: str | None) -> str:
    """Return the SQL statement that creates the full-text index over `texts`.

    The index contains the stems of English words. Words in other scripts are unchanged.
    """
    row = "Id" if site_field is None else "Row"
    return (
        # Use double quotes: sqlite-utils and Datasette look for them to find the index of a table.
        f'CREATE VIRTUAL TABLE search USING fts5({listed(TEXTS)}, content="texts", '
        f"content_rowid='{row}', tokenize='porter unicode61 remove_diacritics 2')"
    )


def quoted(name: str) -> str:
    """Quote an SQL identifier, such as the name of a column."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Quote a text as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def listed(names: Iterable[str]) -> str:
    """Quote SQL identifiers, and join them with commas."""
    return ", ".join(map(quoted, names))
