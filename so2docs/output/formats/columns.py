"""Documents -> Arrow columns: the attributes of a record, what it holds, and what fits nowhere.

A record is a question, an answer, or what is nested in one. Its schema comes from names alone, so
that all row groups have the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import orjson

from so2docs.schema import ALL_NUMBERS, DATES, VOTE_COLUMNS

OTHER = "Other"
"""Column for attributes that have none of their own, or a value that is not of its type.

As the text of a JSON object: not all readers know maps (data set hubs do not), all know text.
"""

_NUMBERS = ALL_NUMBERS.union(VOTE_COLUMNS)
_LISTS = {"Tags", "Licenses"}
_NONE: set[str] = set()

Row = dict[str, Any]


@dataclass(frozen=True)
class ObjectColumns:
    """What is known of an object of the documents before there is one.

    Attributes:
        names: Its attributes.
        parts: What it holds besides them.
        is_post: Whether it never lacks its `Id` and `Answers`, as far as it has these.
    """

    names: tuple[str, ...]
    parts: tuple[Part, ...] = ()
    is_post: bool = False

    @cached_property
    def fields(self) -> list[Any]:
        """The Arrow fields."""
        import pyarrow as pa

        always = {"Id", "Answers"} if self.is_post else set()
        types = [(name, _type(name)) for name in (*self.names, OTHER)]
        types += [(part.key, part.type) for part in self.parts]
        return [pa.field(name, kind, name not in always) for name, kind in types]

    def columns(self, rows: list[Row]) -> list[Any]:
        """A column for each field; takes the parts out of the rows."""
        held = [[row.pop(part.key, None) for row in rows] for part in self.parts]
        own = _columns(rows, self.names)
        return own + [part.array(values) for part, values in zip(self.parts, held, strict=True)]


@dataclass(frozen=True)
class Part:
    """Something that a record holds.

    Attributes:
        key: Its name.
        kind: `list` of records, one `record` or none, or `counts` by name.
        record: What each is.
    """

    key: str
    kind: Literal["list", "record", "counts"]
    record: ObjectColumns

    @cached_property
    def type(self) -> Any:
        """The Arrow type."""
        import pyarrow as pa

        inside = pa.struct(self.record.fields)
        return pa.list_(pa.field("element", inside)) if self.kind == "list" else inside

    def array(self, values: list[Any]) -> Any:
        """The values of this part in a record each."""
        if self.kind == "list":
            return self._lists(values)
        import pyarrow as pa

        if self.kind == "counts":
            none = dict.fromkeys(self.record.names, 0)
            return self._structs([none | (value or {}) for value in values])
        missing = pa.array([value is None for value in values], pa.bool_())
        return self._structs([value or {} for value in values], missing)

    def _lists(self, values: list[Any]) -> Any:
        import pyarrow as pa

        offsets = [0]
        for some in values:
            offsets.append(offsets[-1] + len(some or ()))
        structs = self._structs([row for some in values for row in some or ()])
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs, type=self.type)

    def _structs(self, rows: list[Row], missing: Any = None) -> Any:
        import pyarrow as pa

        columns = self.record.columns(rows)
        return pa.StructArray.from_arrays(columns, fields=self.record.fields, mask=missing)


def ordered(fields: list[Any], path: str = "") -> list[str]:
    """Paths of the columns with an order, of which statistics are worth their room."""
    import pyarrow as pa

    found: list[str] = []
    for field in fields:
        kind, name = field.type, path + field.name
        if pa.types.is_list(kind):
            kind, name = kind.value_type, f"{name}.list.element"
        if pa.types.is_struct(kind):
            found += ordered(list(kind), f"{name}.")
        elif pa.types.is_integer(kind) or pa.types.is_timestamp(kind):
            found.append(name)
    return found


def _type(name: str) -> Any:
    import pyarrow as pa

    if name in _NUMBERS:
        return pa.int64()
    if name in DATES:
        return pa.timestamp("ms", tz="UTC")
    return pa.list_(pa.field("element", pa.string())) if name in _LISTS else pa.string()


def _columns(rows: list[Row], names: tuple[str, ...]) -> list[Any]:
    """A column for each name, and one for what is left."""
    import pyarrow as pa

    misfits: dict[int, set[str]] = {}
    columns = [_column(name, rows, misfits) for name in names]
    known = frozenset(names)
    other = [
        orjson.dumps({name: row[name] for name in row if name not in known or name in misfit})
        if (misfit := misfits.get(place, _NONE)) or row.keys() - known
        else None
        for place, row in enumerate(rows)
    ]
    columns.append(pa.array(other, pa.binary()).cast(pa.string()))
    return columns


def _column(name: str, rows: list[Row], misfits: dict[int, set[str]]) -> Any:
    """The values of an attribute; those that are not of its type are left for `OTHER`."""
    import pyarrow as pa

    values = [row.get(name) for row in rows]
    try:
        return _array(name, values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        pass
    for place, value in enumerate(values):
        try:
            _array(name, [value])
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            values[place] = None
            misfits.setdefault(place, set()).add(name)
    return _array(name, values)


def _array(name: str, values: list[Any]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if name in DATES:
        texts = pa.array(values, pa.string())
        return pc.assume_timezone(texts.cast(pa.timestamp("ms")), "UTC")
    return pa.array(values, _type(name))
