"""Writers of flat tables: chunks to segments in workers, and segments to files or to a database."""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import orjson
from isal import isal_zlib

from so2docs.errors import DiskFullError, OutputError
from so2docs.flat.columns import OTHER, TableColumns
from so2docs.output.compression import GZIP_HEADER, compress, gzip_end
from so2docs.output.formats import footer
from so2docs.output.formats.parquet import encode_parquet, no_rows
from so2docs.output.part_files import CompleteFile, PartFile, explain_errors, finish_file, part_path
from so2docs.output.segments import Segment
from so2docs.output.targets import check_replaceable
from so2docs.schema import BOOLEAN, DATE, INTEGER, TEXT, TEXTS, Table, Type
from so2docs.sqlite import file as sqlite_file

TableFormat = Literal["parquet", "csv", "jsonl", "sqlite", "duckdb"]

EXTENSIONS = {"parquet": ".parquet", "csv": ".csv.gz", "jsonl": ".jsonl.gz"}
"""Ends of the names of files, by format; the others are databases with all tables."""

LEVEL = 2
"""Of the compression, zstd in Parquet and gzip around text, as for documents."""


class Encoder:
    """Makes segments of a file, which can follow each other, and its start and end.

    Args:
        schema: Of the Arrow tables.
    """

    def __init__(self, schema: Any) -> None:
        self.schema = schema

    def start(self) -> bytes:
        """The bytes before the first segment."""
        return b""

    def segment(self, table: Any, label: str) -> Segment:
        """The bytes of some rows, which are not none."""
        raise NotImplementedError

    def end(self, segments: list[Segment], offsets: list[int], size: int) -> bytes:
        """The bytes after the last segment.

        Args:
            segments: Without their data.
            offsets: Where each starts.
            size: Where the last one ends.
        """
        return b""


class ParquetEncoder(Encoder):
    """A row group for each segment."""

    def start(self) -> bytes:
        """The magic bytes."""
        return footer.MAGIC

    def segment(self, table: Any, label: str) -> Segment:
        """A row group."""
        data, note = footer.split_row_group(encode_parquet(table, LEVEL))
        return Segment(data, table.nbytes, 0, 0, table.num_rows, note, period=label)

    def end(self, segments: list[Segment], offsets: list[int], size: int) -> bytes:
        """The footer."""
        groups = zip(offsets, (segment.note for segment in segments), strict=True)
        return footer.join_footers(encode_parquet(no_rows(self.schema), LEVEL), groups, size)


class _TextEncoder(Encoder):
    """Lines, compressed with gzip."""

    def start(self) -> bytes:
        """The header of gzip, and the first line."""
        return GZIP_HEADER + compress(self.head(), "gzip", LEVEL).data

    def head(self) -> bytes:
        """The first line, if it is not that of a row."""
        return b""

    def lines(self, table: Any) -> bytes:
        """A line for each row."""
        raise NotImplementedError

    def segment(self, table: Any, label: str) -> Segment:
        """The lines, compressed."""
        import pyarrow as pa

        batches = table.to_batches()  # What is between columns and lines is several times as large.
        lines = b"".join(self.lines(pa.Table.from_batches([batch])) for batch in batches)
        packed = compress(lines, "gzip", LEVEL)
        return Segment(packed.data, packed.raw_size, packed.crc, 0, table.num_rows, period=label)

    def end(self, segments: list[Segment], offsets: list[int], size: int) -> bytes:
        """The trailer of gzip."""
        head = self.head()
        crc, raw_size = isal_zlib.crc32(head), len(head)
        for segment in segments:
            crc = isal_zlib.crc32_combine(crc, segment.crc, segment.raw_size)
            raw_size += segment.raw_size
        return gzip_end(crc, raw_size)


class CsvEncoder(_TextEncoder):
    """RFC 4180 with a header; no value is empty without quotes, an empty text is `""`."""

    def head(self) -> bytes:
        """The names of the columns."""
        return ",".join(f'"{name}"' for name in self.schema.names).encode() + b"\n"

    def lines(self, table: Any) -> bytes:
        """The rows."""
        import pyarrow.csv

        sink = io.BytesIO()
        options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="needed")
        pyarrow.csv.write_csv(as_texts(table), sink, options)
        return sink.getvalue()


class JsonLinesEncoder(_TextEncoder):
    """An object with all columns for each row; dates as in the dump, tags as lists."""

    def lines(self, table: Any) -> bytes:
        """The rows."""
        columns = as_texts(table, lists=False).to_pydict()
        names = tuple(columns)
        return b"".join(
            orjson.dumps(dict(zip(names, row, strict=True)), option=orjson.OPT_APPEND_NEWLINE)
            for row in zip(*columns.values(), strict=True)
        )


class SqliteEncoder(Encoder):
    """Rows as tuples of what SQLite holds, for the process that writes the database."""

    def segment(self, table: Any, label: str) -> Segment:
        """The rows, pickled."""
        columns = as_texts(table).to_pydict().values()
        data = pickle.dumps(list(zip(*columns, strict=True)), pickle.HIGHEST_PROTOCOL)
        return Segment(data, len(data), 0, 0, table.num_rows, period=label)


class DuckdbEncoder(Encoder):
    """A stream of Arrow, for the process that writes the database."""

    def segment(self, table: Any, label: str) -> Segment:
        """The rows, in the format of Arrow."""
        import pyarrow as pa

        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, self.schema) as stream:
            stream.write_table(table)
        data = sink.getvalue()
        return Segment(data, len(data), 0, 0, table.num_rows, period=label)


ENCODERS: dict[TableFormat, type[Encoder]] = {
    "parquet": ParquetEncoder,
    "csv": CsvEncoder,
    "jsonl": JsonLinesEncoder,
    "sqlite": SqliteEncoder,
    "duckdb": DuckdbEncoder,
}


def as_texts(table: Any, *, lists: bool = True) -> Any:
    """A table whose dates are texts as in the dump, and whose lists are JSON.

    Args:
        table: An Arrow table.
        lists: Whether lists become texts, too.
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
"""Files of a split table that are open at a time."""

_LINKS = ("Id", "PostId", "ParentId", "UserId")
"""Columns that get an index in databases: the keys by which tables are joined."""

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
    """Base class of the writers; `begin` is called before the first segment of each table."""

    def begin(self, columns: TableColumns) -> None:
        """Start a table."""
        raise NotImplementedError

    def append(self, segment: Segment) -> None:
        """Add some rows to the table."""
        raise NotImplementedError

    def finish(self) -> dict[str, CompleteFile]:
        """Write the rest, and flush the files to disk.

        Returns:
            The files, by their final names.
        """
        raise NotImplementedError

    def discard(self) -> None:
        """Remove what was written."""
        raise NotImplementedError


@dataclass(slots=True)
class _OpenFile:
    """A file that is being written.

    Attributes:
        file: The file.
        segments: The segments in the file, without their data.
        offsets: The offset of each segment.
    """

    file: PartFile
    segments: list[Segment] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)


class FileWriter(TableWriter):
    """One file, or a folder of files by period, in the layout of Hive.

    Args:
        path: Name of the file.
        form: Its format.
    """

    def __init__(self, path: str, form: TableFormat) -> None:
        self._path = path
        self._form = form
        self._files: dict[str, _OpenFile] = {}
        self._made: list[str] = []

    def begin(self, columns: TableColumns) -> None:
        """Start the table; there is only one."""
        self._encoder = ENCODERS[self._form](columns.schema)

    def append(self, segment: Segment) -> None:
        """Copy a segment to the file of its period."""
        open_file = self._file(segment.period)
        open_file.offsets.append(open_file.file.size)
        stored = segment.stored
        assert stored is not None
        open_file.file.copy(stored.path, stored.offset, stored.size, stored.crc)
        open_file.segments.append(replace(segment, stored=None))
        if len(self._files) > _MOST_OPEN:
            open_file.file.close()

    def _file(self, label: str) -> _OpenFile:
        if label not in self._files:
            path = self._path
            if label:
                folder, name = os.path.split(path)
                path = os.path.join(folder, *label.split("/"), name)
                self._make_folder(os.path.dirname(path))
            check_replaceable(path)
            self._files[label] = _OpenFile(PartFile(path))
            self._files[label].file.write(self._encoder.start())
        return self._files[label]

    def _make_folder(self, path: str) -> None:
        with explain_errors(path):
            missing = []
            while path and not os.path.isdir(path):
                missing.append(path)
                path = os.path.dirname(path)
            for folder in reversed(missing):
                os.mkdir(folder)
                self._made.append(folder)

    def finish(self) -> dict[str, CompleteFile]:
        """Write the ends of all files."""
        if not self._files:
            self._file("")
        complete_files = {}
        for label in sorted(self._files):
            open_file = self._files[label]
            file = open_file.file
            file.write(self._encoder.end(open_file.segments, open_file.offsets, file.size))
            complete_files[file.path] = file.finish()
        return complete_files

    def discard(self) -> None:
        """Remove the files and the new folders."""
        for open_file in self._files.values():
            with suppress(OSError):
                open_file.file.discard()
        for folder in reversed(self._made):
            with suppress(OSError):
                os.rmdir(folder)


class SqliteWriter(TableWriter):
    """One SQLite database with all tables: dates as in the dump, tags as JSON, no key."""

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

    def finish(self) -> dict[str, CompleteFile]:
        """Create the indexes, and close the database."""
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
    """One DuckDB database with all tables; dates are timestamps in UTC, tags are lists."""

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

    def finish(self) -> dict[str, CompleteFile]:
        """Close the database, which writes the rest of it."""
        with _explain_duckdb(self._path):
            self._connection.execute("CHECKPOINT")  # Closing would ignore errors.
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
    """Raise errors of DuckDB as ours, with the path of the output."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        reason = str(error).partition("\n")[0]
        if "No space left" in reason:
            message = f"{part_path(path)}: the disk is full"
            raise DiskFullError(message, retry="free some room") from error
        message = f"{part_path(path)}: cannot be written: {reason}"
        raise OutputError(message, retry="fix this") from error


def writer_for(path: str, form: TableFormat) -> TableWriter:
    """Return the writer of a format: of a file, a folder or a database."""
    if form == "sqlite":
        return SqliteWriter(path)
    return DuckdbWriter(path) if form == "duckdb" else FileWriter(path, form)


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
    stored = segment.stored
    assert stored is not None
    with open(stored.path, "rb") as file:
        file.seek(stored.offset)
        return file.read(stored.size)
