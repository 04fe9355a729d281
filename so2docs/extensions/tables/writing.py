"""Write flat tables: workers encode chunks as segments, and writers join the segments.

The output is a file for each table, or a database with all tables.
"""

from __future__ import annotations

import io
import marshal
from collections import Counter
from collections.abc import Callable
from typing import Any

import orjson

from so2docs.dump.kinds import PARQUET
from so2docs.extensions.tables.columns import Batch, TableColumns
from so2docs.extensions.tables.options import TableFormat
from so2docs.options.choices import Compression
from so2docs.output.formats import FileFormat
from so2docs.output.segments import Journal, Segment
from so2docs.plugin import POSTS, NewFiles, Output, OutputError

EXTENSIONS = {"parquet": ".parquet", "csv": ".csv.gz", "jsonl": ".jsonl.gz"}
"""Extensions of files, by format; other formats write a database with all tables."""

LEVEL = 2
"""zstd level of Parquet files and gzip level of text files; the same as for documents."""


class Encoder(FileFormat):
    """Base class of encoders, each for one use of the rows of a table.

    An encoder takes the batches of a chunk, and makes segments of them.

    Args:
        columns: Columns of the rows.
        compression: Compression of the file; None for that of the format.
    """

    compression: Compression = "none"

    def __init__(self, columns: TableColumns, compression: Compression | None = None) -> None:
        super().__init__(compression or self.compression, LEVEL)
        self.columns = columns

    def add(self, batch: Batch) -> None:
        """Add the rows of a batch (at least one), which may change it."""
        raise NotImplementedError

    def segments(self) -> list[Segment]:
        """Return the segments of the rows added."""
        raise NotImplementedError


class ArrowEncoder(Encoder):
    """Encodes rows as an Arrow stream, which the main process reads."""

    def __init__(self, columns: TableColumns) -> None:
        import so2docs.extensions.parquet  # noqa: F401 - Imports Arrow without NumPy.

        super().__init__(columns)
        self._batches: list[Any] = []

    def add(self, batch: Batch) -> None:
        """Keep the rows as an Arrow record batch."""
        self._batches.append(batch.arrow())

    def segments(self) -> list[Segment]:
        """Return one segment of all rows."""
        import pyarrow as pa

        return [self.encode(pa.Table.from_batches(self._batches))] if self._batches else []

    def encode(self, table: Any) -> Segment:
        """Encode an Arrow table as a segment."""
        import pyarrow as pa

        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        return self.segment(sink.getvalue(), documents=table.num_rows)


class ParquetEncoder(ArrowEncoder):
    """Parquet with a row group for each segment."""

    header = PARQUET

    def encode(self, table: Any) -> Segment:
        """Encode the rows as a row group."""
        from so2docs.extensions.parquet.arrow import make_row_group

        return make_row_group(table, table.nbytes, LEVEL)

    def footer(self, journal: Journal, record: bytes = b"") -> bytes:
        """Return the footer with the positions of all row groups."""
        from so2docs.extensions.parquet.footer import join_footers

        return join_footers(journal, record, self._without_rows)

    def _without_rows(self) -> bytes:
        from so2docs.extensions.parquet.arrow import encode_no_rows

        return encode_no_rows(self.columns.schema, LEVEL)


class LinesEncoder(Encoder):
    """Base class of encoders for formats of lines, compressed with gzip."""

    compression = "gzip"

    def __init__(self, columns: TableColumns, compression: Compression | None = None) -> None:
        super().__init__(columns, compression)
        self._lines = io.BytesIO()

    def segments(self) -> list[Segment]:
        """Return one segment of compressed lines."""
        return [self.segment(self._lines.getvalue())] if self._lines.tell() else []


class JsonLinesEncoder(LinesEncoder):
    """JSON lines: each row is an object of all columns, with dates in the format of the dump."""

    def add(self, batch: Batch) -> None:
        """Encode each row as a JSON object."""
        names = self.columns.names
        self._lines.writelines(
            orjson.dumps(dict(zip(names, row, strict=True)), option=orjson.OPT_APPEND_NEWLINE)
            for row in batch.rows()
        )


class CsvEncoder(LinesEncoder):
    """CSV (RFC 4180) with a header; a missing value is empty, and an empty string is `""`.

    Args:
        columns: Columns of the rows.
        compression: Compression of the file; None for gzip.
        is_for_mysql: Whether missing values are `NULL`, and booleans are 1 and 0.
    """

    def __init__(
        self,
        columns: TableColumns,
        compression: Compression | None = None,
        *,
        is_for_mysql: bool = False,
    ) -> None:
        super().__init__(columns, compression)
        self.header = ",".join(f'"{name}"' for name in columns.names).encode() + b"\n"
        self._is_for_mysql = is_for_mysql

    def add(self, batch: Batch) -> None:
        """Encode each row as a line of CSV."""
        import so2docs.extensions.parquet  # noqa: F401, I001 - Imports Arrow without NumPy.
        import pyarrow as pa
        import pyarrow.csv

        options: dict[str, Any] = {"include_header": False, "quoting_style": "needed"}
        batch.write_lists_as_json()
        rows = batch.arrow(text_dates=True)
        if self._is_for_mysql:
            options["null_string"] = "NULL"
            types = {f.name: pa.int8() if f.type == pa.bool_() else f.type for f in rows.schema}
            rows = rows.cast(pa.schema(types))
        pyarrow.csv.write_csv(rows, self._lines, pyarrow.csv.WriteOptions(**options))


class RowsEncoder(Encoder):
    """Encodes rows as tuples of values, which the main process takes, a segment for each batch.

    `marshal` takes half the time of `pickle`, because it does not look for repeated objects.
    """

    def __init__(self, columns: TableColumns) -> None:
        super().__init__(columns)
        self._segments: list[Segment] = []

    def add(self, batch: Batch) -> None:
        """Encode the rows."""
        self._segments.append(self.segment(marshal.dumps(self.values(batch), 2)))

    def values(self, batch: Batch) -> Any:
        """Return what the main process takes."""
        return batch.rows()

    def segments(self) -> list[Segment]:
        """Return a segment for each batch."""
        return self._segments


TextsOf = Callable[[list[tuple[Any, ...]]], list[tuple[Any, ...]]]
"""Makes the texts for a full-text index from rows of posts: tuples of an id and the texts."""


class SqliteEncoder(RowsEncoder):
    """Encodes rows for SQLite, with the texts for a full-text index.

    Args:
        columns: Columns of the rows.
        texts_of: Makes the texts of posts; None for no index.
    """

    def __init__(self, columns: TableColumns, texts_of: TextsOf | None = None) -> None:
        super().__init__(columns)
        self._texts_of = texts_of if columns.table == POSTS else None

    def values(self, batch: Batch) -> Any:
        """Return the rows, with lists as JSON, and their texts."""
        batch.write_lists_as_json()
        rows = batch.rows()
        return rows, [] if self._texts_of is None else self._texts_of(rows)


ENCODERS: dict[TableFormat, type[Encoder]] = {
    "parquet": ParquetEncoder,
    "csv": CsvEncoder,
    "jsonl": JsonLinesEncoder,
    "sqlite": SqliteEncoder,
    "arrow": ArrowEncoder,
}
WITHOUT_PYARROW = ("jsonl", "sqlite")


class FileWriter:
    """Writer of one file with a table.

    As for each writer, call `begin` before the first segment of each table, then `finish`, which
    returns the size of the file, and then `close`.

    Args:
        open_encoder: Opens the encoder of a chunk.
        files: The new files.
        path: Name of the file.

    Attributes:
        repeated: Number of rows left out because they repeat an `Id`, by table: none.
    """

    def __init__(
        self, open_encoder: Callable[[TableColumns], Encoder], files: NewFiles, path: str
    ) -> None:
        self.open_encoder = open_encoder
        self.repeated: Counter[str] = Counter()
        self._new_files, self._path = files, path

    def begin(self, columns: TableColumns) -> None:
        """Start the only table."""
        self._form = self.open_encoder(columns)
        self._file = Output(self._new_files, self._path, self._form.compression)
        self._append(self._form.header)

    def append(self, segment: Segment) -> None:
        """Copy a segment to the file."""
        self._file.append(segment)

    def _append(self, raw: bytes) -> None:
        if raw:
            self.append(self._form.segment(raw))

    def finish(self) -> int:
        """Write the footer of the file, and return its size."""
        self._append(self._form.footer(self._file.journal))
        return self._file.seal()

    def close(self) -> None:
        """Do nothing: the file is open only while it is written to."""


def read(segment: Segment) -> bytes:
    """Return the bytes of a segment.

    Raises:
        OutputError: Its file is truncated.
    """
    with open(segment.path, "rb") as file:
        file.seek(segment.offset)
        data = file.read(segment.size)
    if len(data) != segment.size:
        raise OutputError(f"{segment.path}: is truncated", retry="")
    return data
