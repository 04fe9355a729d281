"""Scripts that load flat tables into a database: tables, rows, keys and indexes."""

from __future__ import annotations

from collections.abc import Iterator

from so2docs.extensions.tables.options import SqlSystem
from so2docs.output.part_files import TargetKind
from so2docs.schema import BOOLEAN, DATE, INTEGER, OTHER, TEXT, TEXTS, Table, Type

LOAD_SQL = "load.sql"
"""Name of the script that is written next to the CSV files."""

_FIRST = "-- Tables of a Stack Exchange dump"
SCRIPT = TargetKind("script of so2docs", "", (_FIRST.encode(),))


_OPENINGS: dict[SqlSystem, tuple[str, ...]] = {
    "postgres": (
        f"{_FIRST} for PostgreSQL: dates are UTC, lists are JSON.",
        "-- Run it in the folder of the CSV files:",
        "--   psql --dbname NAME --file load.sql",
        r"\set ON_ERROR_STOP on",
    ),
    "mysql": (
        f"{_FIRST} for MySQL and MariaDB: dates are UTC, lists are JSON.",
        "-- Run it in the folder of the CSV files:",
        "--   gzip -dk *.csv.gz",
        "--   mysql --local-infile=1 NAME < load.sql",
    ),
}
_TYPES: dict[SqlSystem, dict[Type, str]] = {
    "postgres": {TEXT: "text", DATE: "timestamp(3)", TEXTS: "jsonb"},
    "mysql": {TEXT: "longtext", DATE: "datetime(3)", TEXTS: "json"},
}
_LOADS: dict[SqlSystem, str] = {
    # Before version 17, psql takes a line `\.` for the end of the data, even inside quotes.
    "postgres": r"\copy {table} FROM PROGRAM 'gzip -cd {table}.csv.gz | sed ''"
    r's/^\\\.\(\r*\)$/\\"."\1/'
    "''' WITH (FORMAT csv, HEADER, ENCODING 'UTF8')",
    "mysql": "LOAD DATA LOCAL INFILE '{table}.csv' INTO TABLE {table} CHARACTER SET utf8mb4\n"
    "    FIELDS TERMINATED BY ',' ENCLOSED BY '\"' ESCAPED BY ''\n"
    "    LINES TERMINATED BY '\\n' IGNORE 1 LINES;",
}


def loading_script(tables: list[Table], system: SqlSystem) -> Iterator[str]:
    """Yield the lines of the script that creates and loads tables, and counts broken references.

    Keys and indexes are created after the rows are loaded, because that is faster. Foreign keys are
    comments, because published dumps break them; a query counts the rows that break each key.
    """
    yield from _OPENINGS[system]
    for table in tables:
        yield f"\n{_create_table(table, system)}"
    yield ""
    yield from (_LOADS[system].format(table=table.stem) for table in tables)
    relations = [
        {"table": table.stem, "column": column, "target": target.stem}
        for table in tables
        for column, name in table.references.items()
        for target in tables
        if target.name == name
    ]
    yield "\n-- A damaged dump may repeat an Id; this is an error here, after loading:"
    yield from (f"ALTER TABLE {table.stem} ADD PRIMARY KEY (Id);" for table in tables)
    yield from map(_INDEX.format_map, relations)
    if relations:
        yield "\n-- Foreign keys, which published dumps break if rows were deleted:"
        yield from map(_FOREIGN_KEY.format_map, relations)
        yield "\n-- The number of rows that break each of them:"
        yield " UNION ALL\n".join(map(_COUNT.format_map, relations)) + ";"
    yield "ANALYZE;\n" if system == "postgres" else ""


_INDEX = "CREATE INDEX {table}_{column} ON {table} ({column});"
_FOREIGN_KEY = "-- ALTER TABLE {table} ADD FOREIGN KEY ({column}) REFERENCES {target} (Id);"
_COUNT = (
    "SELECT '{table}.{column}' AS foreign_key, count(*) AS broken_by\n"
    "    FROM {table} AS source WHERE {column} IS NOT NULL AND NOT EXISTS "
    "(SELECT 1 FROM {target} AS found WHERE found.Id = source.{column})"
)


def _create_table(table: Table, system: SqlSystem) -> str:
    """Return the statement that creates a table; only `Id` is NOT NULL."""
    types = {INTEGER: "bigint", BOOLEAN: "boolean", **_TYPES[system]}
    end = ") DEFAULT CHARACTER SET utf8mb4" if system == "mysql" else ")"
    columns = [
        f"    {name} {types[kind]}{' NOT NULL' if name == 'Id' else ''}"
        for name, kind in {**table.attributes, OTHER: TEXT}.items()
    ]
    return f"CREATE TABLE {table.stem} (\n" + ",\n".join(columns) + f"\n{end};"
