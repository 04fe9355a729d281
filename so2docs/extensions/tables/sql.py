"""SQL for flat tables in other databases: definitions, loading, keys, indexes and relations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from so2docs.options.choices import SqlSystem
from so2docs.output.part_files import TargetKind
from so2docs.schema import BOOLEAN, DATE, INTEGER, OTHER, TEXT, TEXTS, Table, Type

LOAD_SQL = "load.sql"
"""Name of the script that is written next to the CSV files."""

_FIRST = "-- Tables of a Stack Exchange dump"
SCRIPT = TargetKind("script of so2docs", "", (_FIRST.encode(),))


@dataclass(frozen=True, slots=True)
class Dialect:
    """The SQL of a database system. In templates, `{table}` and `{column}` are names.

    Attributes:
        name: Name of the system.
        types: Column types, by type in the schema.
        run: Commands that run the script in the folder of the files.
        load: Template of the statement that loads a table.
        begin: Statements before all other statements.
        end: Statements after all other statements.
        required: Template of the type of a column that must not be NULL.
        nullable: Template of the type of a column that may be NULL.
        create_end: End of the statement that creates a table.
        key: Template of the primary key; empty if `create_end` defines it.
        index: Template of an index; empty if the system has no such indexes.
        absent: Template of the condition that `{target}` has no row with the `Id` in a column.
        null: Form of NULL in the CSV files.
        has_booleans: Whether the CSV files may have `true` and `false` instead of 1 and 0.
    """

    name: str
    types: Mapping[Type, str]
    run: tuple[str, ...]
    load: str
    begin: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    required: str = "{type} NOT NULL"
    nullable: str = "{type}"
    create_end: str = ")"
    key: str = "ALTER TABLE {table} ADD PRIMARY KEY (Id);"
    index: str = "CREATE INDEX {table}_{column} ON {table} ({column});"
    absent: str = "NOT EXISTS (SELECT 1 FROM {target} AS found WHERE found.Id = source.{column})"
    null: str = ""
    has_booleans: bool = True


def column_types(
    integer: str, text: str, date: str, boolean: str, texts: str
) -> Mapping[Type, str]:
    """Return the column types of a database system, by type in the schema."""
    return {INTEGER: integer, TEXT: text, DATE: date, BOOLEAN: boolean, TEXTS: texts}


DIALECTS: dict[SqlSystem, Dialect] = {
    "postgres": Dialect(
        "PostgreSQL",
        column_types("bigint", "text", "timestamp(3)", "boolean", "jsonb"),
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
        column_types("bigint", "longtext", "datetime(3)", "boolean", "json"),
        ("gzip -dk *.csv.gz", "mysql --local-infile=1 NAME < load.sql"),
        "LOAD DATA LOCAL INFILE '{table}.csv' INTO TABLE {table} CHARACTER SET utf8mb4\n"
        "    FIELDS TERMINATED BY ',' ENCLOSED BY '\"' ESCAPED BY ''\n"
        "    LINES TERMINATED BY '\\n' IGNORE 1 LINES;",
        create_end=") DEFAULT CHARACTER SET utf8mb4",
        null="NULL",
        has_booleans=False,
    ),
    "sqlserver": Dialect(
        "SQL Server",
        column_types("bigint", "nvarchar(max)", "datetime2(3)", "bit", "nvarchar(max)"),
        ("gzip -dk *.csv.gz", 'sqlcmd -d NAME -v dir="/path/of/this/folder" -i load.sql'),
        "BULK INSERT {table} FROM '$(dir)/{table}.csv' WITH (\n"
        "    FORMAT = 'CSV', FIRSTROW = 2, CODEPAGE = '65001', ROWTERMINATOR = '0x0a',\n"
        "    KEEPNULLS, MAXERRORS = 0, TABLOCK\n"
        ");",
        has_booleans=False,
    ),
    "clickhouse": Dialect(
        "ClickHouse",
        column_types("Int64", "String", "DateTime64(3, 'UTC')", "Bool", "String"),
        ("clickhouse-client --database NAME --queries-file load.sql",),
        "INSERT INTO {table} FROM INFILE '{table}.csv.gz' FORMAT CSVWithNames;",
        required="{type}",
        nullable="Nullable({type})",
        create_end=") ENGINE = MergeTree ORDER BY Id",
        key="",
        index="",
        absent="{column} NOT IN (SELECT Id FROM {target})",
    ),
}
"""The dialects, by short name of the system."""


def definitions(tables: Iterable[Table], dialect: Dialect, *, load: bool = False) -> str:
    """Return the statements that define tables and, on request, load them.

    Keys and indexes are created after the rows are loaded, because that is faster. Foreign keys are
    comments, because published dumps break them; a query counts the rows that break each key.

    Args:
        tables: The tables.
        dialect: The dialect of the database system.
        load: Whether to load the CSV files, and to count the rows.
    """
    return "\n".join([*_lines(dialect, list(tables), load=load), ""])


def _lines(dialect: Dialect, tables: list[Table], *, load: bool) -> Iterator[str]:
    yield f"{_FIRST} for {dialect.name}: dates are UTC, lists are JSON."
    if load:
        yield "-- Run it in the folder of the CSV files:"
        yield from (f"--   {command}" for command in dialect.run)
        yield from dialect.begin
    for table in tables:
        yield f"\n{create_table(table, dialect)}"
    if load:
        yield ""
        yield from (dialect.load.format(table=table.stem) for table in tables)
    relations = [
        {"table": table.stem, "column": column, "target": target.stem}
        for table in tables
        for column, name in table.references.items()
        for target in tables
        if target.name == name
    ]
    indexes = [
        *(dialect.key.format(table=table.stem) for table in tables),
        *(dialect.index.format(**relation) for relation in relations),
    ]
    if any(indexes):
        yield "\n-- A damaged dump may repeat an Id; this is an error here, after loading:"
        yield from indexes
    if relations:
        yield "\n-- Foreign keys, which published dumps break if rows were deleted:"
        yield from map(_FOREIGN_KEY.format_map, relations)
    if relations and load:
        yield "\n-- The number of rows that break each of them:"
        count = _COUNT.replace("{absent}", dialect.absent)
        yield " UNION ALL\n".join(count.format_map(relation) for relation in relations) + ";"
    if load:
        yield from dialect.end


_FOREIGN_KEY = "-- ALTER TABLE {table} ADD FOREIGN KEY ({column}) REFERENCES {target} (Id);"
_COUNT = (
    "SELECT '{table}.{column}' AS foreign_key, count(*) AS broken_by\n"
    "    FROM {table} AS source WHERE {column} IS NOT NULL AND {absent}"
)


def create_table(table: Table, dialect: Dialect) -> str:
    """Return the statement that creates a table; only `Id` is NOT NULL."""
    columns = []
    for name, kind in {**table.attributes, OTHER: TEXT}.items():
        form = dialect.required if name == "Id" else dialect.nullable
        columns.append(f"    {name} {form.format(type=dialect.types[kind])}")
    return f"CREATE TABLE {table.stem} (\n" + ",\n".join(columns) + f"\n{dialect.create_end};"
