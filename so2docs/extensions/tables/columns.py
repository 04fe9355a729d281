"""Convert slices of a table to Arrow record batches, with the same columns for every dump.

The compiled core fills the buffers of a slice whose rows are canonical; everything else is parsed
by the reference (`rows.parse`) and typed by `typed_values`. Both give the same columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from so2docs.extensions.as_of.columns import select_existing
from so2docs.extensions.as_of.existence import Existence
from so2docs.extensions.options import TableOptions
from so2docs.options.choices import Core
from so2docs.parse import core
from so2docs.parse.core import Added
from so2docs.parse.filters import limit_milliseconds
from so2docs.parse.keys import BY_OPTED_OUT
from so2docs.parse.opt_outs import OptOuts
from so2docs.parse.posts import READ, malformed_line, stray_line
from so2docs.parse.rows import Malformed
from so2docs.scan.chunk import Visitor
from so2docs.schema import BOOLEAN, DATE, INTEGER, OTHER, TEXT, TEXTS, Attributes, Table

TextRow = dict[str, str]

SLICE_BYTES = 1024 * 1024
"""Size of a slice. It is larger than for documents, because making the objects of 23 columns takes
0.3 ms per slice."""


def typed_values(row: Mapping[str, Any], attributes: Attributes) -> dict[str, Any]:
    """Convert the values of a row to the types of the columns.

    Args:
        row: Attributes of the row, as text or typed.
        attributes: Names and types of the columns.

    Returns:
        Values by name, without those that are null. `Other` is a JSON object of the attributes that
        do not fit their type or have no column.
    """
    values, other = dict[str, Any](), dict[str, Any]()
    for name, value in row.items():
        read = READ[attributes[name]] if name in attributes else _without_column
        typed = read(value) if isinstance(value, str) else value
        (other if typed is None else values)[name] = value if typed is None else typed
    if other:
        values[OTHER] = orjson.dumps(other).decode()
    return values


def _without_column(text: str) -> None:
    """Read the value of an attribute that has no column."""


def why_stray(row: TextRow, key: str, row_name: str) -> str | None:
    """Return why a row is a stray, if its key is missing or not an integer; None for other rows.

    Args:
        row: Attributes of the row.
        key: The attribute that every row must have.
        row_name: Name of a row of the table, such as `post`.
    """
    if key not in row:
        return f"{row_name}_missing_{key.lower()}"
    return f"{row_name}_invalid_{key.lower()}" if READ[INTEGER](row[key]) is None else None


_KINDS = {TEXT: 0, INTEGER: 1, DATE: 2, BOOLEAN: 3, TEXTS: 4}
_OTHER_KIND = 5
_OFFSET_BYTES = 4


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table: the attributes in the order of the schema, then `Other`."""

    table: Table

    @cached_property
    def date(self) -> str | None:
        """Name of the first date column: the creation date. None if the table has no dates."""
        dates = [name for name, kind in self.table.attributes.items() if kind == DATE]
        return dates[0] if dates else None

    @cached_property
    def _names(self) -> tuple[bytes, ...]:
        return tuple(name.encode() for name in (*self.table.attributes, OTHER))

    @cached_property
    def _kinds(self) -> bytes:
        return bytes([*(_KINDS[kind] for kind in self.table.attributes.values()), _OTHER_KIND])

    @cached_property
    def schema(self) -> Any:
        """The Arrow schema of the columns."""
        import pyarrow as pa

        from so2docs.extensions.parquet.arrow import TYPES

        fields = [(name, TYPES[kind]) for name, kind in self.table.attributes.items()]
        return pa.schema([*fields, (OTHER, pa.string())])

    def parse(self, data: bytes) -> tuple[Any, int | None] | None:
        """Parse a slice with the compiled core.

        Returns:
            An Arrow record batch and the `Id` of the last row; None if the slice is not canonical.
        """
        parsed = core.compiled.read_columns(data, self._names, self._kinds)
        if parsed is None:
            return None
        import pyarrow as pa

        count, last_id, columns = parsed
        arrays = [
            _array(field.type, count, parts)
            for field, parts in zip(self.schema, columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema), last_id

    def from_rows(self, rows: Iterable[Mapping[str, Any]]) -> Any:
        """Make an Arrow record batch from parsed rows, whose values are texts or typed."""
        import pyarrow as pa
        from pyarrow import json

        # The rows become Arrow through JSON, since `pa.array` would import pandas, if it is
        # installed, for 0.2 s.
        plain = [
            field.with_type(pa.int64()) if pa.types.is_timestamp(field.type) else field
            for field in self.schema
        ]
        attributes = self.table.attributes
        lines = b"\n".join(orjson.dumps(typed_values(row, attributes)) for row in rows)
        columns = json.read_json(
            pa.BufferReader(lines),
            json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
            json.ParseOptions(pa.schema(plain), unexpected_field_behavior="error"),
        )
        arrays = [
            column.combine_chunks().view(field.type)
            if field not in plain
            else column.combine_chunks()
            for field, column in zip(self.schema, columns.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _array(kind: Any, count: int, filled: tuple[int, bytes, bytes, bytes, bytes]) -> Any:
    """Make an Arrow array of `count` values from buffers that the compiled core has filled."""
    import pyarrow as pa

    nulls, valid, values, offsets, lists = filled
    parts = [pa.py_buffer(valid) if nulls else None]
    if pa.types.is_list(kind):
        texts = len(offsets) // _OFFSET_BYTES - 1
        inner = _array(kind.value_type, texts, (0, b"", values, offsets, b""))
        parts.append(pa.py_buffer(lists))
        return pa.Array.from_buffers(kind, count, parts, nulls, children=[inner])
    if pa.types.is_string(kind):
        parts.append(pa.py_buffer(offsets))
    return pa.Array.from_buffers(kind, count, [*parts, pa.py_buffer(values)], nulls)


@dataclass(frozen=True, slots=True)
class RowSelection:
    """A filter of the rows of a table.

    Attributes:
        since: Earliest date to keep, as Unix time in milliseconds; None for no limit.
        until: First date to exclude, as Unix time in milliseconds; None for no limit.
        kept: Pairs of a column name and the path of an Arrow file with the ids to keep.
        left_out: Pairs of a column name and the path of an Arrow file with the ids to leave out.
        cleared: Pairs of a column name and the path of an Arrow file with ids to replace by null.
        existence: Which rows existed on the date of `as_of`; None for all rows.
    """

    since: int | None = None
    until: int | None = None
    kept: tuple[tuple[str, str], ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    cleared: tuple[tuple[str, str], ...] = ()
    existence: Existence | None = None

    @classmethod
    def of_dates(cls, options: TableOptions) -> RowSelection:
        """Make the filter that tests only dates."""
        since, until = map(limit_milliseconds, (options.since, options.until))
        return cls(since, until, existence=find_existence(options))

    def filter(self, rows: Any, columns: TableColumns) -> Any:
        """Return the rows of an Arrow table that pass the filter.

        With a date limit, rows without a date are dropped.
        """
        if self == _EVERYTHING:  # Return early, since importing `compute` takes 0.2 s.
            return rows
        import pyarrow.compute as pc

        from so2docs.extensions.parquet.arrow import make_scalar

        if columns.date is not None:
            if self.existence is not None:
                rows = select_existing(rows, columns.date, self.existence)
            for limit, compare in ((self.since, pc.greater_equal), (self.until, pc.less)):
                if limit is not None:
                    dates = rows.column(columns.date)
                    rows = rows.filter(compare(dates, make_scalar(limit, dates.type)))
        for column, path in self.kept:
            rows = rows.filter(pc.is_in(rows.column(column), value_set=read_ids(path)))
        for column, path in self.left_out:
            is_left_out = pc.is_in(rows.column(column), value_set=read_ids(path))
            rows = rows.filter(pc.invert(is_left_out))
        for column, path in self.cleared:
            ids = rows.column(column)
            remaining = pc.if_else(pc.is_in(ids, value_set=read_ids(path)), None, ids)
            rows = rows.set_column(rows.schema.get_field_index(column), column, remaining)
        return rows


_EVERYTHING = RowSelection()


def find_existence(options: TableOptions) -> Existence | None:
    """Return the rule for the date of `as_of`; None without a date."""
    return None if options.as_of is None else Existence.at(options.as_of)


def read_ids(path: str) -> Any:
    """Read the only column of an Arrow file, such as the ids of a part."""
    import pyarrow as pa

    with pa.OSFile(path, "rb") as file:
        return pa.ipc.open_file(file).read_all().column(0)


class BatchVisitor(Visitor):
    """Converts the rows of a chunk to Arrow columns. Rows without a usable `Id` are left out.

    Args:
        table: Table of the chunk.
        options: The core, whether malformed rows are left out, and the users and posts to drop.
    """

    slice_bytes = SLICE_BYTES

    def __init__(self, table: Table, options: TableOptions) -> None:
        super().__init__()
        self.table, self.columns = table, TableColumns(table)
        self._opt_outs = OptOuts(options, table)
        self._core: Core = "python" if self._opt_outs.needs_rows else options.core
        self._skip_malformed = options.skip_malformed
        self._batches: list[Any] = []

    def rows(self) -> Any:
        """Return the rows read so far, as an Arrow table."""
        import pyarrow as pa

        return pa.Table.from_batches(self._batches, self.columns.schema)

    def add_batch(self, batch: Any) -> None:
        """Add the rows of an Arrow record batch, and count them."""
        self._batches.append(batch)
        self.tally.count_rows(batch.num_rows)

    def add_compiled(self, data: bytes) -> Added | None:
        """Add the rows of a canonical slice; return None if the reference must parse it."""
        compiled = self.columns.parse(data) if self._core == "compiled" else None
        if compiled is None:
            return None
        batch, last_id = compiled
        self._batches.append(batch)
        return batch.num_rows, last_id

    def add(self, rows: list[TextRow]) -> None:
        """Add rows, except for dropped rows and those without a usable `Id`."""
        usable = []
        for row in self._opt_outs.filter(rows, self.tally):
            if BY_OPTED_OUT in row:
                self.tally.filtered += 1
            elif reason := why_stray(row, "Id", self.table.row):
                self.leave_out(reason, stray_line(reason, row))
            else:
                usable.append(row)
        if usable:
            self._batches.append(self.columns.from_rows(usable))

    def reject(self, offset: int, row: Malformed) -> bool:
        """Leave out a malformed row if such rows are skipped; return whether it was left out."""
        if not (self._skip_malformed and row.can_be_skipped):
            return False
        if self._opt_outs.drops_malformed(row.raw, self.tally):
            return True
        reason = f"malformed_{self.table.row}"
        self.leave_out(reason, malformed_line(offset, row.raw, reason))
        return True

    def leave_out(self, reason: str, line: bytes) -> None:
        """Handle a row that is left out, given its line for the strays file; a hook, empty here."""
