"""Tables of a dump, parsed by the standard library, and table files read back in the same form.

Only the names and types of columns come from the project."""

import gzip
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from so2docs.schema import DUMP, Table

Row = dict[str, Any]
Site = dict[str, list[Row]]
"""Rows by the name of their table, such as `PostLinks`."""

NUMBER = 1 << 63
LINKS = {
    "Posts": {
        "ParentId": "Posts",
        "AcceptedAnswerId": "Posts",
        "OwnerUserId": "Users",
        "LastEditorUserId": "Users",
    },
    "Comments": {"PostId": "Posts", "UserId": "Users"},
    "PostLinks": {"PostId": "Posts", "RelatedPostId": "Posts"},
    "Votes": {"PostId": "Posts", "UserId": "Users"},
    "PostHistory": {"PostId": "Posts", "UserId": "Users"},
    "Badges": {"UserId": "Users"},
    "Tags": {"ExcerptPostId": "Posts", "WikiPostId": "Posts"},
}
"""Foreign keys: the table to which a column refers."""


def rows_of(xml: Path, table: Table) -> list[Row]:
    """Parse every row of a table that has a usable `Id`, with all columns."""
    rows = [typed(dict(element.attrib), table) for element in ElementTree.parse(xml).iter("row")]
    return [row for row in rows if row["Id"] is not None]


def rows_in(folder: Path) -> Site:
    """Parse the rows of all tables in a folder."""
    return {table.stem: rows_of(folder / table.file, table) for table in tables_in(folder)}


def as_stored(rows: list[Row], form: str) -> list[Row]:
    """Return rows as a format has them: SQLite has the first row of each id, in their order."""
    if form != "sqlite":
        return rows
    first = {row["Id"]: row for row in reversed(rows)}
    return [first[number] for number in sorted(first)]


def typed(attributes: dict[str, str], table: Table) -> Row:
    row, other = dict.fromkeys([*table.attributes, "Other"]), {}
    for name, text in attributes.items():
        kind = table.attributes.get(name)
        value = None if kind is None else _VALUES[kind](text)
        if value is None:
            other[name] = text
        else:
            row[name] = value
    return row | {"Other": other or None}


def _integer(text: str) -> int | None:
    try:
        value = int(text)
    except ValueError:
        return None
    return value if -NUMBER <= value < NUMBER else None


@cache
def _date(text: str) -> str | None:
    for form in ("%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S"):
        try:
            return as_date(datetime.strptime(text, form))
        except ValueError:
            continue
    return None


def as_date(value: datetime) -> str:
    if value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return value.isoformat(timespec="milliseconds")


def _tags(text: str) -> list[str]:
    if not text:
        return []
    separator = "><" if text.startswith("<") else "|"
    return text[1:-1].split(separator)


_VALUES: dict[str, Callable[[str], Any]] = {
    "integer": _integer,
    "text": str,
    "date": _date,
    "boolean": {"True": True, "False": False}.get,
    "texts": _tags,
}


def read_back(folder: Path, table: Table, form: str) -> list[Row]:
    """Read the rows of a table back with an independent reader of its format."""
    return [
        {name: _same_form(name, value, table) for name, value in row.items()}
        for row in _READERS[form](folder, table)
    ]


def _same_form(name: str, value: Any, table: Table) -> Any:
    if value is None:
        return None
    kind = "object" if name == "Other" else table.attributes[name]
    if isinstance(value, str) and kind in ("object", "texts"):
        return json.loads(value)
    if isinstance(value, datetime):
        return as_date(value)
    if kind == "boolean":
        return bool(value)
    return value


def _parquet(folder: Path, table: Table) -> list[Row]:
    import pyarrow.parquet as pq

    return pq.read_table(folder / f"{table.stem}.parquet").to_pylist()


def _csv(folder: Path, table: Table) -> list[Row]:
    import pyarrow as pa
    import pyarrow.csv

    types = {"integer": pa.int64(), "boolean": pa.bool_()}
    options = pyarrow.csv.ConvertOptions(
        column_types={name: types.get(kind, pa.string()) for name, kind in table.attributes.items()}
        | {"Other": pa.string()},
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    return pyarrow.csv.read_csv(
        folder / f"{table.stem}.csv.gz",
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=options,
    ).to_pylist()


def _jsonl(folder: Path, table: Table) -> list[Row]:
    with gzip.open(folder / f"{table.stem}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _sqlite(folder: Path, table: Table) -> list[Row]:
    with closing(sqlite3.connect(folder / "tables.db")) as connection:
        connection.row_factory = sqlite3.Row
        return [
            dict(row) for row in connection.execute(f'SELECT * FROM "{table.stem}" ORDER BY rowid')
        ]


_READERS: dict[str, Callable[[Path, Table], list[Row]]] = {
    "parquet": _parquet,
    "csv": _csv,
    "jsonl": _jsonl,
    "sqlite": _sqlite,
}


def tables_in(folder: Path) -> list[Table]:
    """Return the tables with an uncompressed file in a folder."""
    return [table for table in DUMP.values() if (folder / table.file).exists()]


def broken_links(site: Site) -> dict[str, list[int]]:
    """Return the referenced ids that do not exist, once for each row, by foreign key."""
    ids = {stem: {None, *(row["Id"] for row in rows)} for stem, rows in site.items()}
    return {
        f"{stem}.{name}": [
            row[name] for row in site[stem] if row[name] not in ids.get(target, {None})
        ]
        for stem, links in LINKS.items()
        if stem in site
        for name, target in links.items()
    }
