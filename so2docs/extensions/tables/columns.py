"""Read the rows of a table in batches with the same columns for every dump.

The compiled core makes columns of a slice whose rows are canonical; everything else is parsed by
the reference (`rows.parse`) and typed by `typed_values`. Both give the same values. A batch becomes
tuples, or an Arrow record batch, after filters chose its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import orjson

from so2docs.parse import core
from so2docs.parse.posts import READ
from so2docs.schema import BOOLEAN, DATE, INTEGER, OTHER, TEXT, TEXTS, Attributes, Table

LARGE_CHUNK_BYTES = 16 * 1024 * 1024
"""Bytes of XML in a chunk where a chunk becomes a row group: 6 MB of Parquet for posts, 180,000
rows for votes."""

SLICE_BYTES = 1024 * 1024
"""Size of a slice. It is larger than for documents, because making the objects of 23 columns takes
0.3 ms per slice."""

_EPOCH = datetime(1970, 1, 1)


def typed_values(row: Mapping[str, Any], attributes: Attributes) -> dict[str, Any]:
    """Convert the values of a row to the types of the columns.

    Args:
        row: Attributes of the row, as text or typed.
        attributes: Names and types of the columns.

    Returns:
        Values by name, without those that are null. Dates are texts with milliseconds. `Other` is a
        JSON object of the attributes that do not fit their type or have no column.
    """
    values, other = dict[str, Any](), dict[str, Any]()
    for name, value in row.items():
        typed = value
        if isinstance(value, str):
            typed = READ[attributes[name]](value) if name in attributes else None
        if typed is None:
            other[name] = value
        else:
            values[name] = date_text(typed) if attributes[name] == DATE else typed
    if other:
        values[OTHER] = orjson.dumps(other).decode()
    return values


def date_text(milliseconds: int) -> str:
    """Format a Unix time in milliseconds as in a dump: `2012-05-01T12:00:00.000`."""
    moment = _EPOCH + timedelta(milliseconds=milliseconds)
    return moment.isoformat(timespec="milliseconds")


Buffers = tuple[int, bytes, bytes, bytes, bytes]
"""A column of the compiled core: number of nulls, validity, values, offsets, offsets of lists."""

_KINDS = {TEXT: 0, INTEGER: 1, DATE: 2, BOOLEAN: 3, TEXTS: 4}
_OTHER_KIND = 5
_OFFSET_BYTES = 4


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table: the attributes in the order of the schema, then `Other`."""

    table: Table

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return (*self.table.attributes, OTHER)

    @cached_property
    def schema(self) -> Any:
        """The Arrow schema of the columns."""
        import pyarrow as pa

        from so2docs.extensions.parquet.columns import TYPES

        types = {**self.table.attributes, OTHER: TEXT}
        return pa.schema([(name, TYPES[kind]) for name, kind in types.items()])

    @cached_property
    def text_schema(self) -> Any:
        """The Arrow schema of the columns, with texts in place of dates."""
        import pyarrow as pa

        return pa.schema(
            field.with_type(pa.string()) if pa.types.is_timestamp(field.type) else field
            for field in self.schema
        )

    def parse(self, data: bytes) -> tuple[CompiledBatch, int | None] | None:
        """Parse a slice with the compiled core.

        Returns:
            The rows and the `Id` of the last row; None if the slice is not canonical.
        """
        names = tuple(name.encode() for name in self.names)
        kinds = bytes([*map(_KINDS.__getitem__, self.table.attributes.values()), _OTHER_KIND])
        parsed = core.compiled.read_columns(data, names, kinds)
        if parsed is None:
            return None
        count, last_id, columns = parsed
        return CompiledBatch(self, count, columns), last_id

    def from_rows(self, rows: Iterable[Mapping[str, Any]]) -> ParsedBatch:
        """Make a batch of parsed rows, whose values are texts or typed."""
        attributes = self.table.attributes
        return ParsedBatch(self, [typed_values(row, attributes) for row in rows])


class Batch:
    """Rows of a table; base class of the results of both cores.

    Args:
        columns: The columns.
        count: Number of rows.
    """

    def __init__(self, columns: TableColumns, count: int) -> None:
        self.columns = columns
        self._kept: Sequence[int] = range(count)
        self._replaced: dict[str, list[Any]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def column(self, name: str) -> list[Any]:
        """Return the values of a column: integers, texts, booleans, lists of texts, or None."""
        replaced = self._replaced.get(name)
        return self._read(name, self._kept) if replaced is None else replaced

    def keep(self, passes: Sequence[object]) -> None:
        """Keep only the rows for which the value in `passes` is true."""
        self._kept = [index for index, passed in zip(self._kept, passes, strict=True) if passed]
        for name, values in self._replaced.items():
            pairs = zip(values, passes, strict=True)
            self._replaced[name] = [value for value, passed in pairs if passed]

    def replace(self, name: str, values: list[Any]) -> None:
        """Replace the values of a column."""
        self._replaced[name] = values

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the rows as tuples of the values of all columns."""
        return list(zip(*map(self.column, self.columns.names), strict=True))

    def write_lists_as_json(self) -> None:
        """Replace lists by their JSON, for formats without lists."""
        for name, kind in self.columns.table.attributes.items():
            if kind == TEXTS:
                lists = self.column(name)
                texts = [None if row is None else orjson.dumps(row).decode() for row in lists]
                self.replace(name, texts)

    def arrow(self, *, text_dates: bool = False) -> Any:
        """Make an Arrow record batch of the rows, with dates as timestamps or as texts."""
        import pyarrow as pa

        batch = pa.RecordBatch.from_arrays(self._arrays(), schema=self.columns.text_schema)
        if not isinstance(self._kept, range):
            batch = batch.take(pa.array(self._kept, pa.int64()))
        at = self.columns.names.index
        for name, values in self._replaced.items():
            kind = pa.int64() if self.columns.table.attributes[name] == INTEGER else pa.string()
            batch = batch.set_column(at(name), name, pa.array(values, kind))
        for field in () if text_dates else self.columns.schema:
            if pa.types.is_timestamp(field.type):
                dates = batch.column(field.name).cast(pa.timestamp(field.type.unit))
                batch = batch.set_column(at(field.name), field.name, dates.view(field.type))
        return batch

    def _read(self, name: str, indices: Sequence[int]) -> list[Any]:
        """Return the values of a column in the rows with these numbers."""
        raise NotImplementedError

    def _arrays(self) -> list[Any]:
        """Make an Arrow array of each column with all rows; dates are texts."""
        raise NotImplementedError


class ParsedBatch(Batch):
    """Rows from the reference, as dictionaries of typed values."""

    def __init__(self, columns: TableColumns, rows: list[dict[str, Any]]) -> None:
        super().__init__(columns, len(rows))
        self._rows = rows

    def _read(self, name: str, indices: Sequence[int]) -> list[Any]:
        return [self._rows[index].get(name) for index in indices]

    def _arrays(self) -> list[Any]:
        import pyarrow as pa

        fields = self.columns.text_schema
        return [pa.array([row.get(f.name) for row in self._rows], f.type) for f in fields]


class CompiledBatch(Batch):
    """Rows from the compiled core, as columns in the layout of Arrow."""

    def __init__(self, columns: TableColumns, count: int, buffers: Sequence[Buffers]) -> None:
        super().__init__(columns, count)
        self._count, self._buffers = count, buffers

    def _read(self, name: str, indices: Sequence[int]) -> list[Any]:
        at = self.columns.names.index(name)
        nulls, valid, *_ = buffers = self._buffers[at]
        if nulls == self._count:
            return [None] * len(indices)
        values = _values(self.columns.table.attributes.get(name, TEXT), buffers, indices)
        if nulls:
            bits = _bits(valid)
            return [
                value if bits[index] == "1" else None
                for index, value in zip(indices, values, strict=True)
            ]
        return values

    def _arrays(self) -> list[Any]:
        pairs = zip(self.columns.text_schema.types, self._buffers, strict=True)
        return [_array(kind, self._count, buffers) for kind, buffers in pairs]


def _values(kind: str, buffers: Buffers, indices: Sequence[int]) -> list[Any]:
    """Read the values of a column in the rows with these numbers; those of nulls are undefined."""
    _, _, values, offsets, lists = buffers
    if kind == INTEGER:
        numbers = memoryview(values).cast("q").tolist()
        return numbers if len(numbers) == len(indices) else [numbers[at] for at in indices]
    if kind == BOOLEAN:
        bits = _bits(values)
        return [bits[index] == "1" for index in indices]
    if kind == TEXTS:
        starts = memoryview(lists).cast("i").tolist()
        texts = _texts(values, offsets, range(starts[-1]))
        return [texts[starts[index] : starts[index + 1]] for index in indices]
    return _texts(values, offsets, indices)


def _texts(data: bytes, offsets: bytes, indices: Sequence[int]) -> list[Any]:
    """Return the texts with these numbers."""
    at = memoryview(offsets).cast("i").tolist()
    text = data.decode()
    if len(text) == len(data):  # Slicing ASCII is twice as fast as decoding each text.
        return [text[at[index] : at[index + 1]] for index in indices]
    return [data[at[index] : at[index + 1]].decode() for index in indices]


def _bits(bitmap: bytes) -> str:
    """Return the bits of a bitmap as digits, the first one first."""
    return f"{int.from_bytes(bitmap, 'little'):0{8 * len(bitmap)}b}"[::-1]


def _array(kind: Any, count: int, filled: Buffers) -> Any:
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
