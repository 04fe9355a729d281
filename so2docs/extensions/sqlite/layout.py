"""Definitions of the tables of a database: columns, keys, references and indexes.

Columns are named after the attributes in dumps. Bodies come last: SQLite reads a row from its
start, so a query for a title need not read the pages of a long body. Attributes without a column,
and values that do not fit the type of their column, go into `Other` as a JSON object.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from sqlite3 import Connection
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from sqlite_utils import Database

FORMAT = 11
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


def create_table(
    database: Database, name: str, site_field: str | None, *, with_users: bool
) -> None:
    """Create a table; the tables that it refers to must exist.

    Args:
        database: The database.
        name: Name of the table.
        site_field: Column for the site, the first part of every key; None for a database of one
            site.
        with_users: Whether the database has a users table.
    """
    layout = LAYOUTS[name]
    site = () if site_field is None else (site_field,)
    key = (*site, *layout.key)
    columns = {column: _type(column) for column in (*site, *layout.columns)}
    if site and name in ("questions", "answers"):
        # Add the row id in the search index, because `Id` is unique only per site.
        columns["Row"] = int
    sql = database.create_table_sql(
        name,
        columns,
        pk=key[0] if len(key) == 1 else key,
        not_null={*key} - {"Id"} if len(key) == 1 else {*key, *columns.keys() & {"Row"}},
        foreign_keys=[
            ((*site, column), other, (*site, *LAYOUTS[other].key))
            for column, other in layout.references
            if other != "users" or with_users
        ],
    )
    end = "" if "Id" in layout.key else " WITHOUT ROWID"
    database.execute(sql.rstrip().removesuffix(";") + end)
    if "Row" in columns:
        database.table(name).create_index(["Row"], unique=True)


def _type(column: str) -> type:
    return int if column in INTEGERS else str


BY_ROW: dict[str, dict[str, type]] = {
    "texts": dict.fromkeys(TEXTS, str),
    "documents": {"Page": int, "Position": int},
}
"""Columns of the indexed texts, and of the places of documents in pages, besides their keys."""

PAGES = "document_pages"
"""The table of pages: documents without bodies as JSON lines, compressed together with zstd. The
number of a page is the row number of its first document."""

SEARCH = "texts_fts"
"""The full-text index over `texts`, named as sqlite-utils does."""

_TOKENIZE = "porter unicode61 remove_diacritics 2"
"""The index contains the stems of English words. Words in other scripts are unchanged."""


def create_by_row(database: Database, name: str, site_field: str | None) -> None:
    """Create the table of pages or a table of `BY_ROW`, and the index over the texts, empty."""
    table = database.table(name)
    if name == PAGES:
        table.create({"Page": int, "Documents": bytes}, pk="Page", not_null={"Documents"})
        return
    key: dict[str, type] = {"Id": int}
    if site_field is not None:
        key = {"Row": int, site_field: str, "Id": int}
    first, *others = key
    places = {*BY_ROW[name]} - {*TEXTS}
    table.create(key | BY_ROW[name], pk=first, not_null={*others, *places})
    if name == "texts":
        table.enable_fts(TEXTS, tokenize=_TOKENIZE)


_SHARED = tuple(
    name
    for name in LAYOUTS["questions"].columns
    if name in LAYOUTS["answers"].columns and name not in ("Id", "Title", "ParentId")
)


def create_views(database: Database, site_field: str | None) -> None:
    """Create the views.

    `posts` has questions and answers with the columns that both have; `accepted` has a row for each
    question whose accepted answer is in the database.
    """
    site = "" if site_field is None else f"{quoted(site_field)}, "
    of_question = "" if site_field is None else f"q.{quoted(site_field)}, "
    is_same = "" if site_field is None else f" AND a.{quoted(site_field)} = q.{quoted(site_field)}"
    shared = listed(_SHARED)
    database.create_view(
        "posts",
        f'SELECT {site}"Id", "Id" AS "QuestionId", "Title", {shared} '
        f'FROM questions UNION ALL SELECT {site}"Id", "ParentId", NULL, {shared} FROM answers',
    )
    database.create_view(
        "accepted",
        f"SELECT {of_question}q.Id AS QuestionId, a.Id AS AnswerId, "
        "q.Title, q.Tags, q.Score AS QuestionScore, a.Score AS AnswerScore, "
        "q.CreationDate AS Asked, a.CreationDate AS Answered, q.Body AS Question, "
        "a.Body AS Answer FROM questions q JOIN answers a ON a.Id = q.AcceptedAnswerId"
        f" AND a.ParentId = q.Id{is_same}",
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


def wrap(connection: Connection) -> Database:
    """Wrap a connection in a database of sqlite-utils.

    sqlite-utils imports NumPy and pandas if they are installed, which takes 82 MiB of memory and
    0.4 s, but this package needs neither. A later import by others finds sqlite-utils complete.
    """
    unneeded = {"numpy", "pandas"} - sys.modules.keys()
    was_imported = "sqlite_utils" in sys.modules
    if not was_imported:
        for name in unneeded:
            sys.modules[name] = None  # type: ignore[assignment]  # An import of it fails.
    try:
        from sqlite_utils import Database
    finally:
        if not was_imported:
            for name in list(sys.modules):
                if name in unneeded or name.partition(".")[0] == "sqlite_utils":
                    del sys.modules[name]
    return Database(connection, recursive_triggers=False, execute_plugins=False)
