"""One Parquet file from files of one row group each, made apart from each other.

The data of a row group may be anywhere in a file: only the footer says where. So row groups are
appended like any other segment, and their descriptions, moved to their final offsets, make the
footer. (Structures and field ids: parquet.thrift of the Parquet format.)
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

from so2docs.dump.kinds import PARQUET

# The compact protocol of Apache Thrift, as far as the footer of a Parquet file needs it.

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


_LENGTH = struct.Struct("<I")

_NUM_ROWS, _ROW_GROUPS, _KEY_VALUES = 3, 4, 5
_COLUMNS, _GROUP_ROWS, _GROUP_OFFSET, _ORDINAL = 1, 3, 5, 7
_CHUNK_OFFSET, _CHUNK_METADATA, _PAGES_OFFSET, _PAGES_LENGTH, _COLUMN_INDEX = 2, 3, 4, 5, 6
_COLUMN_OFFSETS = {9, 10, 11, 14}  # data, index and dictionary page, bloom filter
_PAGES, _PAGE_OFFSET = 1, 1


def split_row_group(file: bytes) -> tuple[bytes, bytes]:
    """The data of a file with one row group, and the description of that row group.

    The description ends with the places of the pages (`OffsetIndex`), one after the other in the
    order of the columns: they are offsets in the whole file, so that only its end can have them.
    """
    metadata, size = _metadata(file)
    (group,) = next(field.value for field in metadata if field.id == _ROW_GROUPS).values
    end = len(file) - len(PARQUET) - _LENGTH.size - size
    places = [
        next(field.value for field in column if field.id == _PAGES_OFFSET)
        for column in next(field.value for field in group if field.id == _COLUMNS).values
    ]
    pages = b"".join(write_struct(ThriftReader(file, place).struct()) for place in places)
    return file[len(PARQUET) : min(places, default=end)], bytes(write_struct(group)) + pages


def join_footers(empty: bytes, groups: Iterable[tuple[int, bytes]], start: int) -> bytes:
    """The footer of a file, after the places of its pages.

    Args:
        empty: A file without row groups, for the schema.
        groups: Where the data of each row group starts, and what `split_row_group` said of it.
        start: Where the data of the last row group ends.
    """
    moved: list[Struct] = []
    pages = bytearray()
    rows = 0
    for offset, description in groups:
        reader = ThriftReader(description)
        group = _move(reader, offset - len(PARQUET), pages, start)
        rows += next(field.value for field in group if field.id == _GROUP_ROWS)
        moved.append(group)
    metadata = [field for field in _metadata(empty)[0] if field.id not in (_NUM_ROWS, _ROW_GROUPS)]
    metadata.append(Field(_NUM_ROWS, I64, rows))
    metadata.append(Field(_ROW_GROUPS, LIST, Sequence(STRUCT, moved)))
    footer = write_struct(sorted(metadata, key=lambda field: field.id))
    return bytes(pages + footer) + _LENGTH.pack(len(footer)) + PARQUET


def read_value(path: str, key: bytes) -> bytes:
    """A value among the metadata of a Parquet file; empty if it has none of this name.

    Raises:
        OSError: The file cannot be read.
    """
    end = _LENGTH.size + len(PARQUET)
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        if size < len(PARQUET) + end:
            return b""
        file.seek(size - end)
        (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
        if file.read() != PARQUET or length > size - end:
            return b""
        file.seek(size - end - length)
        tail = file.read(length + end)
    try:
        metadata, _ = _metadata(tail)
    except (IndexError, ValueError):
        return b""
    found_pairs = (field.value.values for field in metadata if field.id == _KEY_VALUES)
    pairs: list[Struct] = next(found_pairs, [])
    texts = (_text(pair) for pair in pairs)
    return next((value for name, value in texts if name == key), b"")


def _text(pair: Struct) -> tuple[bytes, bytes]:
    """Key and value of an entry of the metadata."""
    values = {field.id: field.value for field in pair}
    return values.get(1, b""), values.get(2, b"")


def _metadata(file: bytes) -> tuple[Struct, int]:
    (size,) = _LENGTH.unpack_from(file, len(file) - len(PARQUET) - _LENGTH.size)
    return ThriftReader(file, len(file) - len(PARQUET) - _LENGTH.size - size).struct(), size


def _move(reader: ThriftReader, distance: int, pages: bytearray, start: int) -> Struct:
    """Shift the offsets in the description of a row group.

    Args:
        reader: What `split_row_group` said of it.
        distance: The bytes.
        pages: Where the places of its pages are appended.
        start: Where `pages` starts in the file.
    """
    moved: Struct = []
    for field in reader.struct():
        if field.id == _COLUMNS:
            columns = [
                _move_column(column, reader, distance, pages, start)
                for column in field.value.values
            ]
            moved.append(field._replace(value=Sequence(field.value.type, columns)))
        elif field.id == _GROUP_OFFSET:
            moved.append(field._replace(value=field.value + distance))
        elif field.id != _ORDINAL:  # Sixteen bits, and no reader needs it.
            moved.append(field)
    return moved


def _move_column(
    column: Struct, reader: ThriftReader, distance: int, pages: bytearray, start: int
) -> Struct:
    place = start + len(pages)
    pages += write_struct(_move_pages(reader.struct(), distance))
    moved: Struct = []
    for field in column:
        value = field.value
        if field.id == _CHUNK_METADATA:
            value = _add(value, _COLUMN_OFFSETS, distance)
        elif field.id in (_CHUNK_OFFSET, _COLUMN_INDEX) and value:
            value += distance
        elif field.id == _PAGES_OFFSET:
            value = place
        elif field.id == _PAGES_LENGTH:
            value = start + len(pages) - place
        moved.append(field._replace(value=value))
    return moved


def _move_pages(index: Struct, distance: int) -> Struct:
    """Shift the offsets of the pages of a column."""
    return [
        field._replace(
            value=Sequence(
                field.value.type,
                [_add(page, {_PAGE_OFFSET}, distance) for page in field.value.values],
            )
        )
        if field.id == _PAGES
        else field
        for field in index
    ]


def _add(fields: Struct, ids: set[int], distance: int) -> Struct:
    """A structure with so much added to some of its fields."""
    return [
        field._replace(value=field.value + distance) if field.id in ids else field
        for field in fields
    ]
