"""Convert a chunk of a table to segments of its file, in a worker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from so2docs.extensions.options import TableOptions
from so2docs.extensions.tables.columns import BatchVisitor, RowSelection
from so2docs.extensions.tables.sql import DIALECTS
from so2docs.extensions.tables.writing import ENCODERS, LEVEL
from so2docs.output.compression import SEGMENT_BYTES, compress
from so2docs.output.segments import Segment, store
from so2docs.parse import bodies
from so2docs.schema import POSTS, Table

_UNKNOWN_BEFORE = {
    "comments": ("Score",),
    "users": ("Reputation", "LastAccessDate", "Views", "UpVotes", "DownVotes"),
    "tags": ("Count",),
}
"""Columns that change without a record of their former values, by table."""


class ColumnsVisitor(BatchVisitor):
    """Converts the rows of a chunk to segments of a file.

    Args:
        table: Table of the chunk.
        options: The options.
        selection: Filter of the rows.
        path: File for the segments.
        host: Host of the site, which determines the delimiter of formulas in Markdown.
    """

    def __init__(
        self,
        table: Table,
        options: TableOptions,
        selection: RowSelection,
        path: str,
        host: str | None,
    ) -> None:
        super().__init__(table, options)
        self._options, self._selection, self._path = options, selection, path
        self._host = host
        self._misfits = 0
        self._stray_lines = bytearray()
        self._segments: list[Segment] = []
        self._strays: list[Segment] = []

    def leave_out(self, reason: str, line: bytes) -> None:
        """Count a stray, and add its line to the strays file."""
        self.tally.strays[reason] += 1
        self._stray_lines += line
        if len(self._stray_lines) >= SEGMENT_BYTES:
            self._compress_strays()

    def _compress_strays(self) -> None:
        if self._stray_lines:
            self._strays.append(compress(bytes(self._stray_lines), "gzip", LEVEL))
            self._stray_lines.clear()

    def finish(self) -> None:
        """Filter and encode the rows of the chunk, and write the segments to the file."""
        self._compress_strays()
        segments: list[Segment] = []
        rows, options = self.rows(), self._options
        kept = self._selection.filter(rows, self.columns)
        self.tally.filtered += rows.num_rows - kept.num_rows
        self._misfits += kept.num_rows - kept.column(kept.num_columns - 1).null_count
        if options.as_of is not None:
            for name in _UNKNOWN_BEFORE.get(self.table.name, ()):
                kept = _without_values(kept, name)
        elif self.table == POSTS:  # Restored bodies already have their form.
            kept = self._convert_bodies(kept)
        if kept.num_rows:
            dialect = None if options.load is None else DIALECTS[options.load]
            encoder = ENCODERS[options.format](self.columns.schema, dialect)
            segments = [encoder.encode(kept)]
        if segments or self._strays:
            self._segments, self._strays = store(self._path, segments, self._strays)

    def _convert_bodies(self, rows: Any) -> Any:
        """Convert the HTML of posts, an Arrow table, to the requested form."""
        convert = bodies.converter(self._options.body, self._options.core, self._host)
        if convert is None:
            return rows
        import pyarrow as pa

        column = rows.column("Body")
        texts = [
            pa.array((text and convert(text) for text in part.to_pylist()), pa.string())
            for part in column.chunks  # One at a time, because Python strings take more memory.
        ]
        index = rows.schema.get_field_index("Body")
        return rows.set_column(index, "Body", pa.chunked_array(texts, pa.string()))

    def result(self) -> tuple[list[Segment], list[Segment], int]:
        """Return the segments of the table, those of the strays file, and the number of misfits."""
        return self._segments, self._strays, self._misfits


def _without_values(rows: Any, name: str) -> Any:
    """Replace the values in a column of an Arrow table by null."""
    import pyarrow as pa

    index = rows.schema.get_field_index(name)
    field = rows.schema.field(index)
    return rows.set_column(index, field, pa.nulls(rows.num_rows, field.type))


@contextmanager
def open_columns(
    table: Table, options: TableOptions, selection: RowSelection, path: str, host: str | None
) -> Iterator[ColumnsVisitor]:
    """Open the visitor of a chunk; leaving the context writes the segments.

    Raises:
        OutputError: The file cannot be written.
    """
    from so2docs.extensions.parquet.arrow import system_memory

    with system_memory():
        yield (visitor := ColumnsVisitor(table, options, selection, path, host))
        visitor.finish()
