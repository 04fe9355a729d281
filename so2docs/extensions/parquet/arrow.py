"""Arrow tables of documents, for data frames and Spark, and Parquet files of Arrow tables.

A conversion does not import this module, because PyArrow would take memory in each process.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate, chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from so2docs.extensions.parquet.row_group import Column, Group, Node, Repeated, ValueKind
from so2docs.schema import BOOLEAN, DATE, INTEGER, INTEGERS, TEXT, TEXTS, Row, Type

TYPES: dict[ValueKind, Any] = {
    INTEGER: pa.int64(),
    TEXT: pa.string(),
    DATE: pa.timestamp("ms", tz="UTC"),
    BOOLEAN: pa.bool_(),
    TEXTS: pa.list_(pa.field("element", pa.string())),
    INTEGERS: pa.list_(pa.field("element", pa.int64())),
}
"""The Arrow types of attributes."""


def arrow_schema(columns: Group) -> Any:
    """Return the Arrow schema of rows with these columns."""
    return pa.schema([*map(_field, columns.children)])


def _field(node: Node) -> Any:
    return pa.field(node.name, _type(node), not node.is_required)


def _type(node: Node) -> Any:
    if isinstance(node, Column):
        return TYPES[node.kind]
    if isinstance(node, Repeated):
        return pa.list_(_field(node.element))
    return pa.struct([*map(_field, node.children)])


def arrow_batch(columns: Group, rows: list[Row]) -> Any:
    """Make an Arrow record batch of rows; this changes the rows."""
    return pa.RecordBatch.from_arrays(_arrays(columns, rows), schema=arrow_schema(columns))


def _arrays(columns: Group, rows: list[Row]) -> list[Any]:
    return [*map(_array, columns.children, columns.split(rows, _convert))]


def _array(node: Node, values: Any) -> Any:
    """Make an Arrow array of the values of a nested part; those of attributes are arrays."""
    if isinstance(node, Repeated) and isinstance(node.element, Group):
        offsets = pa.array([*accumulate(map(len, values), initial=0)], pa.int32())
        structs = _structs(node.element, [*chain.from_iterable(values)])
        return pa.ListArray.from_arrays(offsets, structs, type=_type(node))
    if isinstance(node, Group):
        missing = pa.array([value is None for value in values], pa.bool_())
        return _structs(node, [value or {} for value in values], missing)
    return values


def _structs(columns: Group, rows: list[Row], missing: Any = None) -> Any:
    fields = [*map(_field, columns.children)]
    return pa.StructArray.from_arrays(_arrays(columns, rows), fields=fields, mask=missing)


def _convert(kind: Type, values: list[Any]) -> Any:
    if kind == DATE:
        texts = pa.array(values, pa.string())
        return pc.assume_timezone(texts.cast(pa.timestamp("ms")), "UTC")
    return pa.array(values, TYPES[kind])


@contextmanager
def system_memory() -> Iterator[None]:
    """Use the system allocator for Arrow.

    Arrow's default allocators keep freed memory: 50 MiB per worker.
    """
    usual = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(usual)


def encode_parquet(table: Any, level: int) -> bytes:
    """Encode an Arrow table as a Parquet file with one row group, at a zstd level."""
    sink = io.BytesIO()
    pq.write_table(
        table,
        sink,
        row_group_size=max(1, table.num_rows),
        compression="zstd",
        compression_level=level,
        # Leave out statistics of long texts, which would only make the footer larger.
        write_statistics=_ordered(table.schema),
        # With this index, readers of a few rows fetch only the pages of these rows.
        write_page_index=True,
    )
    return sink.getvalue()


def _ordered(schema: Any) -> list[str]:
    """Return the names of the ordered columns, whose statistics are worth their space."""
    return [
        field.name
        for field in schema
        if pa.types.is_integer(field.type) or pa.types.is_timestamp(field.type)
    ]


def no_rows(schema: Any) -> Any:
    """Make an Arrow table without rows; `empty_table` would import pandas if it is installed."""
    return pa.Table.from_batches([], schema)
