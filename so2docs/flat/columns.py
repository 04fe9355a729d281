"""Convert slices of a table to Arrow record batches, with the same columns for every dump.

The compiled core fills the buffers of a slice whose rows are canonical; everything else is parsed
by the reference (`rows.parse`) and typed by `typed_values`. Both give the same columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import orjson

from so2docs.parse import core
from so2docs.parse.posts import number, tags
from so2docs.schema import BOOLEAN, DATE, INTEGER, OTHER, TEXT, TEXTS, Attributes, Table

Row = dict[str, str]

_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,3}))?", re.ASCII)
_BOOLEANS = {"true": True, "false": False}


def milliseconds(text: str) -> int | None:
    """Milliseconds from 1970 to a date of a dump (UTC); None if the text is not a date."""
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    try:
        year, month, day, hour, minute, second = map(int, match.groups()[:6])
        seconds = datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
    except ValueError:
        return None
    return int(seconds) * 1000 + int((match[7] or "0").ljust(3, "0"))


def _integer(text: str) -> int | None:
    value = number(text)
    return value if isinstance(value, int) else None


READ: dict[str, Callable[[str], Any]] = {
    INTEGER: _integer,
    TEXT: str,
    DATE: milliseconds,
    BOOLEAN: lambda text: _BOOLEANS.get(text.lower()),
    TEXTS: tags,
}
"""Functions that parse an attribute, by type; they return None for a text of another type."""


def typed_values(row: Row, attributes: Attributes) -> list[Any]:
    """List the values of a row in the order of the attributes, followed by the value of `Other`.

    Args:
        row: Attributes of the row.
        attributes: Names and types of the columns.

    Returns:
        A value for each attribute, None if the attribute is missing or has another type. The last
        value is a JSON object of attributes with another type or without a column, or None.
    """
    values = [READ[kind](row[name]) if name in row else None for name, kind in attributes.items()]
    fits = {name for name, value in zip(attributes, values, strict=True) if value is not None}
    other = {name: text for name, text in row.items() if name not in fits}
    return [*values, orjson.dumps(other).decode() if other else None]


def why_stray(row: Row, key: str, what: str) -> str | None:
    """Name the reason why a row is a stray: `Id` is missing or not a number; None if it is valid.

    Args:
        row: Attributes of the row.
        key: The attribute that every row must have.
        what: Name of a row of the table, such as `post`.
    """
    if key not in row:
        return f"{what}_missing_{key.lower()}"
    return f"{what}_invalid_{key.lower()}" if _integer(row[key]) is None else None


_KINDS = {TEXT: 0, INTEGER: 1, DATE: 2, BOOLEAN: 3, TEXTS: 4}
_OTHER_KIND = 5
_OFFSET_BYTES = 4

NOWHERE = "__HIVE_DEFAULT_PARTITION__"
"""Hive's name of the partition of rows without a value."""


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table: the attributes in the order of the schema, then `Other`."""

    table: Table

    @cached_property
    def date(self) -> str | None:
        """The column with the creation date; None if the table has no dates."""
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

        from so2docs.output.formats.parquet import TYPES

        fields = [(name, TYPES[kind]) for name, kind in self.table.attributes.items()]
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
    """Make an array of buffers filled by the compiled core."""
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
        since: Milliseconds since 1970 to the earliest date to keep; None for no limit.
        until: Milliseconds since 1970 to the end of the period, exclusive; None for no limit.
        tags: Keep posts with any of these tags; all posts if empty.
        all_tags: Keep posts with all of the tags, instead of any.
    """

    since: int | None = None
    until: int | None = None
    tags: tuple[str, ...] = ()
    all_tags: bool = False

    def filter(self, batch: Any, columns: TableColumns) -> Any:
        """Select rows of a batch. Filters by date drop rows without a date."""
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
        date: Name of the column with the date; None if the table has no dates.
        split_by: `year` or `month`.

    Yields:
        Labels in ascending order, each with its rows, such as `year=2019` or
        `year=2019/month=3`. Rows without a date come last, under Hive's default partition.
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
    for period in sorted(pc.unique(numbers.drop_null()).to_pylist()):
        year, month = divmod(period, 12) if split_by == "month" else (period, 0)
        label = f"year={year}" + (f"/month={month + 1}" if split_by == "month" else "")
        yield label, table.filter(pc.equal(numbers, pa.scalar(period, numbers.type)))
    if numbers.null_count:
        label = f"year={NOWHERE}" + (f"/month={NOWHERE}" if split_by == "month" else "")
        yield label, table.filter(pc.is_null(numbers))
