"""Scripts that load flat tables into a database: tables, rows, keys and indexes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from so2docs.extensions.tables.options import SqlSystem
from so2docs.output.part_files import TargetKind
from so2docs.schema import BOOLEAN, DATE, INTEGER, OTHER, TEXT, TEXTS, Table, Type

LOAD_SQL = "load.sql"
"""Name of the script that is written next to the CSV files."""

_FIRST = "-- Tables of a Stack Exchange dump"
SCRIPT = TargetKind("script of so2docs", "", (_FIRST.encode(),))


@dataclass(frozen=True, slots=True)
class Dialect:
    """The SQL of a database system.

    Attributes:
        name: Name of the system.
        types: Column types, by type in the schema.
        run: Commands that run the script in the folder of the files.
        load: Template of the statement that loads a table; `{table}` is its name.
        begin: Statements before all other statements.
        end: Statements after all other statements.
        create_end: End of the statement that creates a table.
    """

    name: str
    types: Mapping[Type, str]
    run: tuple[str, ...]
    load: str
    begin: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    create_end: str = ")"


_TYPES: dict[Type, str] = {INTEGER: "bigint", BOOLEAN: "boolean"}
DIALECTS: dict[SqlSystem, Dialect] = {
    "postgres": Dialect(
        "PostgreSQL",
        {**_TYPES, TEXT: "text", DATE: "timestamp(3)", TEXTS: "jsonb"},
        ("psql --dbname NAME --file load.sql",),
        # Before version 17, psql takes a line `\.` for the end of the data, even inside quotes.
        r"\copy {table} FROM PROGRAM 'gzip -cd {table}.csv.gz | sed ''"
        r's/^\\\.\(\r*\)$/\\"."\1/'
        "''' WITH (FORMAT csv, HEADER, ENCODING 'UTF8')",
        begin=(r"\set ON_ERROR_STOP on",),
        end=("ANALYZE;",),
    ),
    "mysql": Dialect(
        "MySQL and MariaDB",
        {**_TYPES, TEXT: "longtext", DATE: "datetime(3)", TEXTS: "json"},
        ("gzip -dk *.csv.gz", "mysql --local-infile=1 NAME < load.sql"),
        "LOAD DATA LOCAL INFILE '{table}.csv' INTO TABLE {table} CHARACTER SET utf8mb4\n"
        "    FIELDS TERMINATED BY ',' ENCLOSED BY '\"' ESCAPED BY ''\n"
        "    LINES TERMINATED BY '\\n' IGNORE 1 LINES;",
        create_end=") DEFAULT CHARACTER SET utf8mb4",
    ),
}
"""The dialects, by short name of the system."""


def loading_script(tables: list[Table], dialect: Dialect) -> Iterator[str]:
    """Yield the lines of the script that creates and loads tables, and counts broken references.

    Keys and indexes are created after the rows are loaded, because that is faster. Foreign keys are
    comments, because published dumps break them; a query counts the rows that break each key.
    """
    yield f"{_FIRST} for {dialect.name}: dates are UTC, lists are JSON."
    yield "-- Run it in the folder of the CSV files:"
    yield from (f"--   {command}" for command in dialect.run)
    yield from dialect.begin
    for table in tables:
        yield f"\n{_create_table(table, dialect)}"
    yield ""
    yield from (dialect.load.format(table=table.stem) for table in tables)
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
    yield from (*dialect.end, "")


_INDEX = "CREATE INDEX {table}_{column} ON {table} ({column});"
_FOREIGN_KEY = "-- ALTER TABLE {table} ADD FOREIGN KEY ({column}) REFERENCES {target} (Id);"
_COUNT = (
    "SELECT '{table}.{column}' AS foreign_key, count(*) AS broken_by\n"
    "    FROM {table} AS source WHERE {column} IS NOT NULL AND NOT EXISTS "
    "(SELECT 1 FROM {target} AS found WHERE found.Id = source.{column})"
)


def _create_table(table: Table, dialect: Dialect) -> str:
    """Return the statement that creates a table; only `Id` is NOT NULL."""
    columns = [
        f"    {name} {dialect.types[kind]}{' NOT NULL' if name == 'Id' else ''}"
        for name, kind in {**table.attributes, OTHER: TEXT}.items()
    ]
    return f"CREATE TABLE {table.stem} (\n" + ",\n".join(columns) + f"\n{dialect.create_end};"
