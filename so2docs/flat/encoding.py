"""Arrow tables -> the bytes of a file: what a worker makes of a chunk, and what surrounds it."""

from __future__ import annotations

import io
import pickle
from typing import Any, Literal

import orjson
from isal import isal_zlib

from so2docs.output.compression import GZIP_HEADER, compress, gzip_end
from so2docs.output.formats import footer
from so2docs.output.formats.parquet import encode_parquet, no_rows
from so2docs.output.segments import Segment

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

    for place, field in enumerate(table.schema):
        column = table.column(place)
        if pa.types.is_timestamp(field.type):
            column = pc.strftime(column.cast(pa.timestamp("ms")), "%Y-%m-%dT%H:%M:%S")
        elif pa.types.is_list(field.type) and lists:
            texts = [None if row is None else orjson.dumps(row) for row in column.to_pylist()]
            column = pa.array(texts, pa.binary()).cast(pa.string())
        else:
            continue
        table = table.set_column(place, field.name, column)
    return table
