"""Write a script that contains the rows of tables, for a database server that runs it alone."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator
from dataclasses import replace

from so2docs.extensions.tables.sql import DIALECTS, definitions
from so2docs.options.choices import SqlSystem
from so2docs.output.new_files import NewFiles
from so2docs.output.part_files import explain_errors, finish_file, part_path
from so2docs.schema import Table

_ROWS = "-- Rows of "
_STATEMENT_BYTES = 256 * 1024
"""Characters in an INSERT statement, unless a row is longer; servers accept at least 16 MiB."""

_FIELD = re.compile(r'("(?:[^"]++|"")*+"|[^",]*+),')
"""Matches a field of a row and the comma after it."""

_ESCAPED = str.maketrans({"\\": r"\\", "'": r"\'", "\n": r"\n", "\r": r"\r", "\x1a": r"\Z"})


def write_script(path: str, tables: list[Table], system: SqlSystem) -> None:
    """Write `load.sql` with the rows of the CSV files next to it.

    Raises:
        OutputError: The script cannot be written.
    """
    dialect = replace(DIALECTS[system], load=_ROWS + "{table}", run=DIALECTS[system].run[-1:])
    by_stem = {table.stem: table for table in tables}
    path = os.path.realpath(path)
    with NewFiles() as files:
        files.claim(path)
        with explain_errors(path), open(part_path(path), "wb") as file:
            for line in definitions(tables, dialect, load=True).splitlines(keepends=True):
                file.write(line.encode())
                if line.startswith(_ROWS):
                    table = by_stem[line.removeprefix(_ROWS).strip()]
                    csv = os.path.join(os.path.dirname(path), f"{table.stem}.csv.gz")
                    file.writelines(
                        _copy(csv, table) if system == "postgres" else _insert(csv, table)
                    )
        files.add(path, finish_file(path))


def _copy(csv: str, table: Table) -> Iterator[bytes]:
    r"""Yield the statement that copies the rows into PostgreSQL, and its data.

    psql takes a line `\.` for the end of the data, even inside quotes.
    """
    yield f"COPY {table.stem} FROM stdin WITH (FORMAT csv, HEADER, ENCODING 'UTF8');\n".encode()
    with gzip.open(csv) as lines:
        for line in lines:
            is_end = line.startswith(b"\\.") and not line[2:].strip(b"\r\n")
            yield b'\\"."' + line[2:] if is_end else line
    yield b"\\.\n"


def _insert(csv: str, table: Table) -> Iterator[bytes]:
    """Yield statements that insert the rows into MySQL and MariaDB."""
    start = f"INSERT INTO {table.stem} VALUES\n"
    yield b"SET NAMES utf8mb4;\nSTART TRANSACTION;\n"
    statement, size = [], 0
    for row in _read(csv):
        values = ["NULL" if text is None else f"'{text.translate(_ESCAPED)}'" for text in row]
        statement.append(f"({','.join(values)})")
        size += len(statement[-1])
        if size >= _STATEMENT_BYTES:
            yield (start + ",\n".join(statement) + ";\n").encode()
            statement, size = [], 0
    if statement:
        yield (start + ",\n".join(statement) + ";\n").encode()
    yield b"COMMIT;\n"


def _read(csv: str) -> Iterator[list[str | None]]:
    """Yield the rows of a CSV file for MySQL: texts, and None for the word NULL without quotes."""
    with gzip.open(csv, "rt", encoding="utf-8", newline="\n") as lines:
        next(lines)  # The header.
        parts: list[str] = []
        is_quoted = False
        for line in lines:
            parts.append(line)
            is_quoted ^= line.count('"') % 2 == 1
            if not is_quoted:
                fields = _FIELD.findall("".join(parts)[:-1] + ",")
                yield [None if field == "NULL" else _unquote(field) for field in fields]
                parts.clear()


def _unquote(field: str) -> str:
    return field[1:-1].replace('""', '"') if field.startswith('"') else field
