"""Arrow tables of documents, for data frames and Spark, and Parquet files of Arrow tables.

A conversion does not import this module, because PyArrow would take memory in each process.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from so2docs.output.formats.columns import ObjectColumns
from so2docs.schema import (
    BOOLEAN,
    DATE,
    INTEGER,
    INTEGERS,
    OTHER,
    TEXT,
    TEXTS,
    Attributes,
    Type,
)

_NONE: set[str] = set()

Row = dict[str, Any]

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
    nested = [[row.pop(part.key, None) for row in rows] for part in columns.parts]
    arrays = _arrays(rows, columns.attributes)
    return arrays + [
        _nested_array(part, values) for part, values in zip(columns.parts, nested, strict=True)
    ]


def _nested_array(part: ObjectColumns, values: list[Any]) -> Any:
    """Make an Arrow array of the values of a nested part, one value for each object."""
    if part.shape == "list":
        offsets = list(accumulate((len(items or ()) for items in values), initial=0))
        structs = _structs(part, [row for items in values for row in items or ()])
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs, type=_type(part))
    if part.shape == "counts":
        none = dict.fromkeys(part.attributes, 0)
        return _structs(part, [none | (value or {}) for value in values])
    missing = pa.array([value is None for value in values], pa.bool_())
    return _structs(part, [value or {} for value in values], missing)


def _structs(part: ObjectColumns, rows: list[Row], missing: Any = None) -> Any:
    arrays = arrow_arrays(part, rows)
    return pa.StructArray.from_arrays(arrays, fields=arrow_fields(part), mask=missing)


def _arrays(rows: list[Row], attributes: Attributes) -> list[Any]:
    """Make an Arrow array for each attribute, and one for `OTHER`: JSON of all other values."""
    misfits: dict[int, set[str]] = {}
    arrays = [_column(name, kind, rows, misfits) for name, kind in attributes.items()]
    names = attributes.keys()
    other = [
        orjson.dumps({name: row[name] for name in row if name not in names or name in misfit})
        if (misfit := misfits.get(index, _NONE)) or row.keys() - names
        else None
        for index, row in enumerate(rows)
    ]
    arrays.append(pa.array(other, pa.binary()).cast(pa.string()))
    return arrays


def _column(name: str, kind: Type, rows: list[Row], misfits: dict[int, set[str]]) -> Any:
    """Make the Arrow array of an attribute.

    Values of the wrong type become null; `misfits` gets the attribute, by row, for `OTHER`.
    """
    values = [row.get(name) for row in rows]
    try:
        return _array(kind, values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        pass
    for index, value in enumerate(values):
        try:
            _array(kind, [value])
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            values[index] = None
            misfits.setdefault(index, set()).add(name)
    return _array(kind, values)


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
