"""Documents -> Arrow columns: the attributes of a record, what it holds, and what fits nowhere.

A record is a question, an answer, or what is nested in one. Its columns are known beforehand, so
that all row groups have the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from so2docs.schema import Attributes, Part, Shape, Type

OTHER = "Other"
"""Column for attributes that have none of their own, or a value that is not of its type.

As the text of a JSON object: not all readers know maps (data set hubs do not), all know text.
"""

_NONE: set[str] = set()

Row = dict[str, Any]


@dataclass(frozen=True)
class ObjectColumns:
    """What is known of an object of the documents before there is one.

    Attributes:
        attributes: Its attributes.
        parts: What it holds after them.
        is_post: Whether it never lacks its `Id` and `Answers`, as far as it has these.
    """

    attributes: Attributes
    parts: tuple[PartColumns, ...] = ()
    is_post: bool = False

    @cached_property
    def fields(self) -> list[Any]:
        """The Arrow fields."""
        import pyarrow as pa

        always = {"Id", "Answers"} if self.is_post else set()
        types = [(name, _type(kind)) for name, kind in self.attributes.items()]
        types.append((OTHER, _type("text")))
        types += [(part.key, part.type) for part in self.parts]
        return [pa.field(name, kind, name not in always) for name, kind in types]

    def columns(self, rows: list[Row]) -> list[Any]:
        """A column for each field; takes the parts out of the rows."""
        nested = [[row.pop(part.key, None) for row in rows] for part in self.parts]
        own = _columns(rows, self.attributes)
        return own + [part.array(values) for part, values in zip(self.parts, nested, strict=True)]


@dataclass(frozen=True)
class PartColumns:
    """Something that a record holds.

    Attributes:
        key: Its name.
        shape: That of the part.
        record: What each record is.
    """

    key: str
    shape: Shape
    record: ObjectColumns

    @cached_property
    def type(self) -> Any:
        """The Arrow type."""
        import pyarrow as pa

        inside = pa.struct(self.record.fields)
        return pa.list_(pa.field("element", inside)) if self.shape == "list" else inside

    def array(self, values: list[Any]) -> Any:
        """The values of this part in a record each."""
        if self.shape == "list":
            return self._lists(values)
        import pyarrow as pa

        if self.shape == "counts":
            none = dict.fromkeys(self.record.attributes, 0)
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

    names: list[str] = []
    for field in fields:
        kind, name = field.type, path + field.name
        if pa.types.is_list(kind):
            kind, name = kind.value_type, f"{name}.list.element"
        if pa.types.is_struct(kind):
            names += ordered(list(kind), f"{name}.")
        elif pa.types.is_integer(kind) or pa.types.is_timestamp(kind):
            names.append(name)
    return names


def make_columns(
    attributes: Attributes, parts: Iterable[Part], added: Attributes, *, is_post: bool = False
) -> ObjectColumns:
    """The columns of a record.

    Args:
        attributes: Its attributes.
        parts: What it holds.
        added: What posts and users have besides.
        is_post: Whether it is one.
    """
    values = {part.key: part.attributes[part.key] for part in parts if part.shape == "value"}
    inner = tuple(
        PartColumns(part.key, part.shape, _part_columns(part, added))
        for part in parts
        if part.shape != "value"
    )
    return ObjectColumns({**attributes, **values, **(added if is_post else {})}, inner, is_post)


def _part_columns(part: Part, added: Attributes) -> ObjectColumns:
    names = part.attributes if part.columns is None else part.columns
    own = {name: kind for name, kind in part.attributes.items() if name in names}
    return make_columns({**own, **added} if part.by else own, part.parts, added)


def _type(kind: Type) -> Any:
    import pyarrow as pa

    match kind:
        case "integer":
            return pa.int64()
        case "date":
            return pa.timestamp("ms", tz="UTC")
        case "boolean":
            return pa.bool_()
        case "texts":
            return pa.list_(pa.field("element", pa.string()))
        case "integers":
            return pa.list_(pa.field("element", pa.int64()))
        case _:
            return pa.string()


def _columns(rows: list[Row], attributes: Attributes) -> list[Any]:
    """A column for each attribute, and one for what is left."""
    import pyarrow as pa

    misfits: dict[int, set[str]] = {}
    columns = [_column(name, kind, rows, misfits) for name, kind in attributes.items()]
    names = attributes.keys()
    other = [
        orjson.dumps({name: row[name] for name in row if name not in names or name in misfit})
        if (misfit := misfits.get(place, _NONE)) or row.keys() - names
        else None
        for place, row in enumerate(rows)
    ]
    columns.append(pa.array(other, pa.binary()).cast(pa.string()))
    return columns


def _column(name: str, kind: Type, rows: list[Row], misfits: dict[int, set[str]]) -> Any:
    """The values of an attribute; those that are not of its type are left for `OTHER`."""
    import pyarrow as pa

    values = [row.get(name) for row in rows]
    try:
        return _array(kind, values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        pass
    for place, value in enumerate(values):
        try:
            _array(kind, [value])
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            values[place] = None
            misfits.setdefault(place, set()).add(name)
    return _array(kind, values)


def _array(kind: Type, values: list[Any]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind == "date":
        texts = pa.array(values, pa.string())
        return pc.assume_timezone(texts.cast(pa.timestamp("ms")), "UTC")
    return pa.array(values, _type(kind))
