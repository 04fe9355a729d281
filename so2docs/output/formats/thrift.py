"""The compact protocol of Apache Thrift, as far as the footer of a Parquet file needs it.

Structures are lists of (field id, type, value), so that whatever a writer put there is kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, STRUCT = range(1, 13)
LIST = _LIST
I64 = _I64

Struct = list["Field"]


class Field(NamedTuple):
    """A field of a structure."""

    id: int
    type: int
    value: Any


class Sequence(NamedTuple):
    """A list, with the type of its elements."""

    type: int
    values: list[Any]


class ThriftReader:
    """Reads values from some bytes; `at` is the place after the last one."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def struct(self) -> Struct:
        """A structure."""
        fields: Struct = []
        field_id = 0
        while header := self._byte():
            kind = header & 15
            field_id = field_id + (header >> 4) if header >> 4 else self._integer()
            fields.append(Field(field_id, kind, self._value(kind)))
        return fields

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def _integer(self) -> int:
        value = self._unsigned()
        return value >> 1 ^ -(value & 1)

    def _bytes(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def _value(self, kind: int, inside: bool = False) -> Any:  # noqa: PLR0911
        if kind in (_TRUE, _FALSE):
            return self._byte() if inside else None
        if kind == _BYTE:
            return self._byte()
        if kind in (_I16, _I32, _I64):
            return self._integer()
        if kind == _DOUBLE:
            return self._bytes(8)
        if kind == _BINARY:
            return self._bytes(self._unsigned())
        if kind in (_LIST, _SET):
            header = self._byte()
            size = header >> 4 if header >> 4 < 15 else self._unsigned()
            return Sequence(header & 15, [self._value(header & 15, True) for _ in range(size)])
        if kind == STRUCT:
            return self.struct()
        raise ValueError(f"type {kind} does not occur in a Parquet footer")


def write_struct(fields: Struct) -> bytearray:
    """The bytes of a structure."""
    out = bytearray()
    last = 0
    for field in fields:
        if 0 < field.id - last < 16:
            out.append((field.id - last) << 4 | field.type)
        else:
            out.append(field.type)
            _write_integer(out, field.id)
        last = field.id
        _write(out, field.type, field.value)
    out.append(0)
    return out


def write_list_header(out: bytearray, kind: int, size: int) -> None:
    """Append the header of a list: the number and the type of its elements."""
    if size < 15:
        out.append(size << 4 | kind)
    else:
        out.append(0xF0 | kind)
        _write_unsigned(out, size)


def _write_unsigned(out: bytearray, value: int) -> None:
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _write_integer(out: bytearray, value: int) -> None:
    _write_unsigned(out, value << 1 if value >= 0 else ~(value << 1))


def _write(out: bytearray, kind: int, value: Any) -> None:
    if value is None:
        return
    if kind in (_TRUE, _FALSE, _BYTE):
        out.append(value)
    elif kind in (_I16, _I32, _I64):
        _write_integer(out, value)
    elif kind == _DOUBLE:
        out += value
    elif kind == _BINARY:
        _write_unsigned(out, len(value))
        out += value
    elif kind in (_LIST, _SET):
        write_list_header(out, value.type, len(value.values))
        for element in value.values:
            _write(out, value.type, element)
    else:
        out += write_struct(value)
