"""Slices of a table -> Arrow record batches with the same columns for every dump.

The compiled core fills the buffers of a slice whose rows are canonical; everything else is parsed
by the reference (`rows.parse`) and typed by `flat.rows`. Both give the same columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from so2docs.flat.rows import Row, typed_values
from so2docs.parse import core
from so2docs.schema import BOOLEAN, DATE, INTEGER, TEXT, TEXTS, Table

OTHER = "Other"
"""Column for attributes without a column, and values that do not fit the type of theirs.

The text of a JSON object, as in the Parquet files of documents."""

_KINDS = {TEXT: 0, INTEGER: 1, DATE: 2, BOOLEAN: 3, TEXTS: 4}
_OTHER_KIND = 5
_OFFSET_BYTES = 4

NOWHERE = "__HIVE_DEFAULT_PARTITION__"
"""Hive's name of the partition of rows without a value."""


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table: its attributes, in the order of the schema, and `Other`."""

    table: Table

    @cached_property
    def date(self) -> str | None:
        """The column that says when a row was made; None if the table has none."""
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
        """The Arrow schema."""
        import pyarrow as pa

        types = {
            INTEGER: pa.int64(),
            TEXT: pa.string(),
            DATE: pa.timestamp("ms", tz="UTC"),
            BOOLEAN: pa.bool_(),
            TEXTS: pa.list_(pa.field("element", pa.string())),
        }
        fields = [(name, types[kind]) for name, kind in self.table.attributes.items()]
        return pa.schema([*fields, (OTHER, pa.string())])

    def parse(self, data: bytes) -> tuple[Any, int | None] | None:
        """Parse a slice with the compiled core.

        Returns:
            A record batch and the `Id` of the last row; None if the slice is not canonical.
        """
        parsed = core.read_columns(data, self._names, self._kinds)
        if parsed is None:
            return None
        import pyarrow as pa

        count, last_id, columns = parsed
        arrays = [
            _array(field.type, count, parts)
            for field, parts in zip(self.schema, columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema), last_id

    def from_rows(self, rows: list[Row]) -> Any:
        """Make a record batch of rows."""
        import pyarrow as pa

        values = [typed_values(row, self.table.attributes) for row in rows]
        arrays = [
            pa.array(column, field.type)
            for field, column in zip(self.schema, zip(*values, strict=True), strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _array(kind: Any, count: int, filled: tuple[int, bytes, bytes, bytes, bytes]) -> Any:
    """Make an array of buffers that the compiled core has filled."""
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
    """Which rows of a table are kept.

    Attributes:
        since: Milliseconds since 1970 of the first date that is kept; None for any.
        until: Of the first date after those.
        tags: Keep posts with any of these; none for all.
        all_tags: Keep posts with all of them instead.
    """

    since: int | None = None
    until: int | None = None
    tags: tuple[str, ...] = ()
    all_tags: bool = False

    def filter(self, batch: Any, columns: TableColumns) -> Any:
        """Select the rows of a batch. A row without a date does not pass a filter by date."""
        if self == _EVERYTHING:  # Importing `compute` takes 0.2 s.
            return batch
        import pyarrow as pa
        import pyarrow.compute as pc

        if columns.date is not None:
            dates = batch.column(columns.date)
            for limit, compare in ((self.since, pc.greater_equal), (self.until, pc.less)):
                if limit is not None:
                    batch = batch.filter(compare(dates, pa.scalar(limit, dates.type)))
                    dates = batch.column(columns.date)
        if self.tags and "Tags" in columns.table.attributes:
            tags = {*self.tags}
            keeps = tags.issubset if self.all_tags else (lambda names: not tags.isdisjoint(names))
            lists = batch.column("Tags").to_pylist()
            batch = batch.filter(pa.array([keeps({*(names or ())}) for names in lists], pa.bool_()))
        return batch


_EVERYTHING = RowSelection()


def periods(table: Any, date: str | None, split_by: str) -> Iterator[tuple[str, Any]]:
    """Split a table by the year or month of its rows.

    Args:
        table: The Arrow table.
        date: The column with the date, or None.
        split_by: `year` or `month`.

    Yields:
        Labels in ascending order, each with its rows: `year=2019`, `year=2019/month=3`, and the
        name that Hive gives to the partition of rows without a date.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if date is None:
        yield "", table
        return
    dates = table.column(date)
    numbers = pc.year(dates)
    if split_by == "month":
        numbers = pc.add(pc.multiply(numbers, 12), pc.subtract(pc.month(dates), 1))
    for number in sorted(pc.unique(numbers.drop_null()).to_pylist()):
        year, month = divmod(number, 12) if split_by == "month" else (number, 0)
        label = f"year={year}" + (f"/month={month + 1}" if split_by == "month" else "")
        yield label, table.filter(pc.equal(numbers, pa.scalar(number, numbers.type)))
    if numbers.null_count:
        label = f"year={NOWHERE}" + (f"/month={NOWHERE}" if split_by == "month" else "")
        yield label, table.filter(pc.is_null(numbers))
