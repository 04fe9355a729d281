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

from so2docs.output.formats.columns import ObjectColumns, Row
from so2docs.schema import (
    BOOLEAN,
    DATE,
    INTEGER,
    INTEGERS,
    OTHER,
    TEXT,
    TEXTS,
    Type,
)

TYPES: dict[Type, Any] = {
    INTEGER: pa.int64(),
    TEXT: pa.string(),
    DATE: pa.timestamp("ms", tz="UTC"),
    BOOLEAN: pa.bool_(),
    TEXTS: pa.list_(pa.field("element", pa.string())),
    INTEGERS: pa.list_(pa.field("element", pa.int64())),
}
"""The Arrow types of attributes."""


def arrow_fields(columns: ObjectColumns) -> list[Any]:
    """Return the Arrow fields for the columns of an object."""
    types = [(name, TYPES[kind]) for name, kind in columns.attributes.items()]
    types.append((OTHER, pa.string()))
    types += [(part.key, _type(part)) for part in columns.parts]
    return [pa.field(name, kind, not columns.is_required(name)) for name, kind in types]


def _type(part: ObjectColumns) -> Any:
    inside = pa.struct(arrow_fields(part))
    return pa.list_(pa.field("element", inside)) if part.shape == "list" else inside


def arrow_arrays(columns: ObjectColumns, rows: list[Row]) -> list[Any]:
    """Make an Arrow array for each field; this removes the nested parts from the rows."""
    arrays, other, nested = columns.split(rows, _array)
    parts = map(_nested_array, columns.parts, nested)
    return [*arrays, pa.array(other, pa.string()), *parts]


def _nested_array(part: ObjectColumns, values: list[Any]) -> Any:
    """Make an Arrow array of the values of a nested part, one value for each object."""
    if part.shape == "list":
        offsets = pa.array([*accumulate(map(len, values), initial=0)], pa.int32())
        structs = _structs(part, [*chain.from_iterable(values)])
        return pa.ListArray.from_arrays(offsets, structs, type=_type(part))
    missing = pa.array([value is None for value in values], pa.bool_())
    return _structs(part, [value or {} for value in values], missing)


def _structs(part: ObjectColumns, rows: list[Row], missing: Any = None) -> Any:
    arrays = arrow_arrays(part, rows)
    return pa.StructArray.from_arrays(arrays, fields=arrow_fields(part), mask=missing)


def _array(kind: Type, values: list[Any]) -> Any:
    if kind == "date":
        texts = pa.array(values, pa.string())
        return pc.assume_timezone(texts.cast(pa.timestamp("ms")), "UTC")
    return pa.array(values, TYPES[kind])


def document_schema(columns: ObjectColumns) -> Any:
    """Return the Arrow schema of documents with these columns."""
    return pa.schema(arrow_fields(columns))


def document_table(columns: ObjectColumns, rows: list[Row]) -> Any:
    """Make an Arrow table of documents; this changes the documents."""
    return pa.Table.from_arrays(arrow_arrays(columns, rows), schema=document_schema(columns))


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
