"""Write flat tables: workers encode chunks as segments, and writers join the segments.

Writers make files or databases.
"""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

import orjson

from so2docs.dump.kinds import PARQUET
from so2docs.errors import DiskFullError, OutputError
from so2docs.flat.columns import TableColumns
from so2docs.flat.sql import Dialect
from so2docs.options.choices import Compression, TableFormat
from so2docs.output.compression import compress
from so2docs.output.file import Output
from so2docs.output.formats import footer
from so2docs.output.new_files import make_folder, remove_empty_folders
from so2docs.output.part_files import (
    FileState,
    check_replaceable,
    finish_file,
    part_path,
)
from so2docs.output.segments import Journal, Segment
from so2docs.schema import BOOLEAN, DATE, INTEGER, OTHER, TEXT, TEXTS, Table, Type
from so2docs.sqlite import file as sqlite_file

EXTENSIONS = {"parquet": ".parquet", "csv": ".csv.gz", "jsonl": ".jsonl.gz"}
"""Extensions of files by format; other formats are databases with all tables."""

LEVEL = 2
"""Compression level of zstd in Parquet and of gzip for text, as for documents."""


class Encoder:
    """Base class of encoders, which make the header, the segments and the footer of a file.

    Attributes:
        compression: Compression of the whole file.

    Args:
        schema: Schema of the Arrow tables.
        dialect: The system that loads the file, if known.
    """

    compression: ClassVar[Compression] = "none"

    def __init__(self, schema: Any, dialect: Dialect | None = None) -> None:
        self.schema = schema
        self.dialect = dialect

    def header(self) -> bytes:
        """The bytes before the first row, uncompressed."""
        return b""

    def segment(self, table: Any, label: str) -> Segment:
        """Encode one or more rows as a segment."""
        raise NotImplementedError

    def footer(self, journal: Journal) -> bytes:
        """The bytes after the last segment, uncompressed."""
        return b""


class ParquetEncoder(Encoder):
    """Parquet with a row group for each segment."""

    def header(self) -> bytes:
        """The magic bytes of Parquet."""
        return PARQUET

    def segment(self, table: Any, label: str) -> Segment:
        """Encode the rows as a row group."""
        from so2docs.output.formats.parquet import encode_parquet

        data, note = footer.split_row_group(encode_parquet(table, LEVEL))
        return Segment.of(data, table.nbytes, 0, 0, table.num_rows)._replace(note=note, label=label)

    def footer(self, journal: Journal) -> bytes:
        """The footer with the positions of all row groups."""
        from so2docs.output.formats.parquet import encode_parquet, no_rows

        groups = [(entry.offset, entry.note) for entry in journal if entry.note]
        return footer.join_footers(
            encode_parquet(no_rows(self.schema), LEVEL), groups, journal.size
        )


class _TextEncoder(Encoder):
    """Base class of encoders of lines, compressed with gzip."""

    compression = "gzip"

    def lines(self, table: Any) -> bytes:
        """Encode each row as a line."""
        raise NotImplementedError

    def segment(self, table: Any, label: str) -> Segment:
        """Encode the rows as compressed lines."""
        import pyarrow as pa

        # Batches, because the values between columns and lines take several times the memory.
        batches = table.to_batches()
        lines = b"".join(self.lines(pa.Table.from_batches([batch])) for batch in batches)
        return compress(lines, "gzip", LEVEL, 0, table.num_rows)._replace(label=label)


class CsvEncoder(_TextEncoder):
    """RFC 4180 with a header; a missing value is empty, and an empty text is `""`."""

    def header(self) -> bytes:
        """The line with the names of the columns."""
        return ",".join(f'"{name}"' for name in self.schema.names).encode() + b"\n"

    def lines(self, table: Any) -> bytes:
        """Encode each row as a line of CSV."""
        import pyarrow as pa
        import pyarrow.csv

        sink = io.BytesIO()
        options: dict[str, Any] = {"include_header": False, "quoting_style": "needed"}
        table = as_texts(table)
        if self.dialect is not None and self.dialect.null:
            options["null_string"] = self.dialect.null
        if self.dialect is not None and not self.dialect.has_booleans:
            types = {f.name: pa.int8() if f.type == pa.bool_() else f.type for f in table.schema}
            table = table.cast(pa.schema(types))
        pyarrow.csv.write_csv(table, sink, pyarrow.csv.WriteOptions(**options))
        return sink.getvalue()


class JsonLinesEncoder(_TextEncoder):
    """JSON lines: an object of all columns for each row, dates as in the dump, tags as lists."""

    def lines(self, table: Any) -> bytes:
        """Encode each row as a JSON object."""
        columns = as_texts(table, lists=False).to_pydict()
        names = tuple(columns)
        return b"".join(
            orjson.dumps(dict(zip(names, row, strict=True)), option=orjson.OPT_APPEND_NEWLINE)
            for row in zip(*columns.values(), strict=True)
        )


class SqliteEncoder(Encoder):
    """Rows as tuples of values for SQLite, which the main process inserts."""

    def segment(self, table: Any, label: str) -> Segment:
        """Pickle the rows."""
        columns = as_texts(table).to_pydict().values()
        data = pickle.dumps(list(zip(*columns, strict=True)), pickle.HIGHEST_PROTOCOL)
        return Segment.of(data, len(data), 0, 0, table.num_rows)._replace(label=label)


class DuckdbEncoder(Encoder):
    """Rows as an Arrow stream, which the main process inserts."""

    def segment(self, table: Any, label: str) -> Segment:
        """Encode the rows as an Arrow stream."""
        import pyarrow as pa

        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, self.schema) as stream:
            stream.write_table(table)
        data = sink.getvalue()
        return Segment.of(data, len(data), 0, 0, table.num_rows)._replace(label=label)


ENCODERS: dict[TableFormat, type[Encoder]] = {
    "parquet": ParquetEncoder,
    "csv": CsvEncoder,
    "jsonl": JsonLinesEncoder,
    "sqlite": SqliteEncoder,
    "duckdb": DuckdbEncoder,
}


def as_texts(table: Any, *, lists: bool = True) -> Any:
    """Convert dates to texts as in the dump, and lists to JSON.

    Args:
        table: An Arrow table.
        lists: Whether to convert lists.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for place, column_type in enumerate(table.schema):
        column = table.column(place)
        if pa.types.is_timestamp(column_type.type):
            column = pc.strftime(column.cast(pa.timestamp("ms")), "%Y-%m-%dT%H:%M:%S")
        elif pa.types.is_list(column_type.type) and lists:
            texts = [None if row is None else orjson.dumps(row) for row in column.to_pylist()]
            column = pa.array(texts, pa.binary()).cast(pa.string())
        else:
            continue
        table = table.set_column(place, column_type.name, column)
    return table


_MOST_OPEN = 64
"""Maximum number of open files of a split table."""

_LINKS = ("Id", "PostId", "ParentId", "UserId")
"""Columns with an index in databases: the keys of joins."""

_SQLITE_TYPES = {
    INTEGER: "INTEGER",
    TEXT: "TEXT",
    DATE: "TEXT",
    BOOLEAN: "INTEGER",
    TEXTS: "TEXT",
}
_DUCKDB_TYPES = {
    INTEGER: "BIGINT",
    TEXT: "VARCHAR",
    DATE: "TIMESTAMP",
    BOOLEAN: "BOOLEAN",
    TEXTS: "VARCHAR[]",
}


class TableWriter:
    """Base class of writers. Call `begin` before the first segment of each table."""

    def begin(self, columns: TableColumns) -> None:
        """Start a table."""
        raise NotImplementedError

    def append(self, segment: Segment) -> None:
        """Add the rows of a segment to the table."""
        raise NotImplementedError

    def finish(self) -> dict[str, FileState]:
        """Write the buffered data, and flush the files to disk.

        Returns:
            The files by final name.
        """
        raise NotImplementedError

    def discard(self) -> None:
        """Remove the files written so far."""
        raise NotImplementedError


class FileWriter(TableWriter):
    """Writer of one file, or of a folder with a file for each period, in the layout of Hive.

    Args:
        path: Name of the file.
        form: Format of the file.
        dialect: The system that loads the file, if known.
    """

    def __init__(self, path: str, form: TableFormat, dialect: Dialect | None) -> None:
        self._path = path
        self._form = form
        self._dialect = dialect
        self._files: dict[str, Output] = {}
        self._folders: list[str] = []

    def begin(self, columns: TableColumns) -> None:
        """Start the only table."""
        self._encoder = ENCODERS[self._form](columns.schema, self._dialect)

    def append(self, segment: Segment) -> None:
        """Copy a segment to the file of its period."""
        file = self._file(segment.label)
        file.append(segment)
        if len(self._files) > _MOST_OPEN:
            file.close()

    def _file(self, label: str) -> Output:
        if label not in self._files:
            path = self._path
            if label:
                folder, name = os.path.split(path)
                path = os.path.join(folder, *label.split("/"), name)
            self._folders += make_folder(os.path.dirname(path))
            check_replaceable(path)
            self._files[label] = Output(path, self._encoder.compression)
            self._add(self._files[label], self._encoder.header())
        return self._files[label]

    def _add(self, file: Output, data: bytes) -> None:
        file.append(compress(data, self._encoder.compression, LEVEL))

    def finish(self) -> dict[str, FileState]:
        """Write the footers of all files."""
        if not self._files:
            self._file("")
        complete_files = {}
        for label in sorted(self._files):
            file = self._files[label]
            if end := self._encoder.footer(file.journal):
                self._add(file, end)
            complete_files[file.path] = file.seal()
        return complete_files

    def discard(self) -> None:
        """Remove the files and the new folders."""
        for file in self._files.values():
            with suppress(OSError):
                file.discard()
        remove_empty_folders(self._folders)


class SqliteWriter(TableWriter):
    """Writer of an SQLite database: dates as in the dump, tags as JSON, no primary keys."""

    def __init__(self, path: str) -> None:
        self._path = path
        with sqlite_file.explained(path):
            self._connection = sqlite_file.connect(part_path(path))

    def begin(self, columns: TableColumns) -> None:
        """Create the table."""
        self._table = columns.table
        with sqlite_file.explained(self._path):
            self._connection.execute(_create(columns.table, _SQLITE_TYPES))
        marks = ", ".join("?" * len(columns.schema))
        self._insert = f'INSERT INTO "{columns.table.stem}" VALUES ({marks})'

    def append(self, segment: Segment) -> None:
        """Insert the rows of a segment."""
        rows = pickle.loads(_read(segment))
        with sqlite_file.explained(self._path):
            self._connection.executemany(self._insert, rows)

    def finish(self) -> dict[str, FileState]:
        """Create the indexes and close the database."""
        with sqlite_file.explained(self._path):
            names = self._connection.execute("SELECT name FROM sqlite_master").fetchall()
            for index in _indexes([name for (name,) in names], self._columns):
                self._connection.execute(index)
            self._connection.execute("COMMIT")
            self._connection.close()
        return {self._path: finish_file(self._path)}

    def _columns(self, table: str) -> list[str]:
        return [row[1] for row in self._connection.execute(f'PRAGMA table_info("{table}")')]

    def discard(self) -> None:
        """Remove the database."""
        self._connection.close()
        with suppress(OSError):
            os.unlink(part_path(self._path))


class DuckdbWriter(TableWriter):
    """Writer of a DuckDB database: dates are timestamps in UTC, tags are lists."""

    def __init__(self, path: str) -> None:
        import duckdb

        self._path = path
        self._remove()
        with _explain_duckdb(path):
            self._connection: Any = duckdb.connect(part_path(path))
            self._connection.execute("SET memory_limit = '256MB'; SET threads = 2")

    def begin(self, columns: TableColumns) -> None:
        """Create the table."""
        self._columns = columns
        with _explain_duckdb(self._path):
            self._connection.execute(_create(columns.table, _DUCKDB_TYPES))

    def append(self, segment: Segment) -> None:
        """Insert the rows of a segment."""
        import pyarrow as pa

        rows = pa.ipc.open_stream(_read(segment)).read_all()
        for place, column in enumerate(rows.schema):
            if pa.types.is_timestamp(column.type):
                naive = rows.column(place).cast(pa.timestamp("ms"))
                rows = rows.set_column(place, column.name, naive)
        with _explain_duckdb(self._path):
            self._connection.register("segment", rows)
            table = self._columns.table.stem
            self._connection.execute(f'INSERT INTO "{table}" SELECT * FROM segment')
            self._connection.unregister("segment")

    def finish(self) -> dict[str, FileState]:
        """Write the buffered data and close the database."""
        with _explain_duckdb(self._path):
            self._connection.execute("CHECKPOINT")  # `close` would ignore errors.
            self._connection.close()
        return {self._path: finish_file(self._path)}

    def discard(self) -> None:
        """Remove the database."""
        import duckdb

        with suppress(duckdb.Error):
            self._connection.close()
        self._remove()

    def _remove(self) -> None:
        for name in (part_path(self._path), f"{part_path(self._path)}.wal"):
            with suppress(OSError):
                os.unlink(name)


@contextmanager
def _explain_duckdb(path: str) -> Iterator[None]:
    """Raise errors of DuckDB as errors of this package, with the path of the output."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        reason = str(error).partition("\n")[0]
        if "No space left" in reason:
            message = f"{part_path(path)}: the disk is full"
            raise DiskFullError(message, retry="free some space") from error
        message = f"{part_path(path)}: cannot be written: {reason}"
        raise OutputError(message, retry="fix this") from error


def writer_for(path: str, form: TableFormat, dialect: Dialect | None) -> TableWriter:
    """Make the writer of a format, for a file, a folder or a database."""
    if form == "sqlite":
        return SqliteWriter(path)
    return DuckdbWriter(path) if form == "duckdb" else FileWriter(path, form, dialect)


def _create(table: Table, types: Mapping[Type, str]) -> str:
    columns = [f'"{name}" {types[kind]}' for name, kind in table.attributes.items()]
    return f'CREATE TABLE "{table.stem}" ({", ".join([*columns, f"{OTHER} {types[TEXT]}"])})'


def _indexes(tables: list[str], read_columns: Any) -> list[str]:
    return [
        f'CREATE INDEX "{table}_{column}" ON "{table}" ("{column}")'
        for table in tables
        for column in read_columns(table)
        if column in _LINKS
    ]


def _read(segment: Segment) -> bytes:
    with open(segment.path, "rb") as file:
        file.seek(segment.offset)
        data = file.read(segment.size)
    if len(data) != segment.size:
        raise OutputError(f"{segment.path}: is cut off", retry="")
    return data
