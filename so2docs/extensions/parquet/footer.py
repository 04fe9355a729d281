"""Join independently made Parquet files of one row group into one file.

The data of a row group may be anywhere in a file, since only the footer records its position. So
row groups are appended like any other segment, and their descriptions, adjusted to their final
offsets, form the footer. (Structs and field ids: parquet.thrift of the Parquet format.)
"""

from __future__ import annotations

import marshal
import os
import struct
from collections.abc import Callable, Iterator
from typing import Any, cast

from isal.isal_zlib import crc32

from so2docs.dump.kinds import PARQUET
from so2docs.output.provenance import KEY
from so2docs.output.segments import Journal, Segment

# Ids of the fields of structs, from parquet.thrift. Plain integers, which `marshal` can write.
_NUM_ROWS, _ROW_GROUPS, _KEY_VALUES = 3, 4, 5  # FileMetaData
_KEY, _VALUE = 1, 2  # KeyValue
_COLUMNS, _ROWS_OF_GROUP, _GROUP_OFFSET, _ORDINAL = 1, 3, 5, 7  # RowGroup
_CHUNK_OFFSET, _CHUNK, _OFFSET_INDEX, _OFFSET_INDEX_SIZE, _COLUMN_INDEX = range(2, 7)  # ColumnChunk
_PAGES = {9, 10, 11, 14}  # ColumnMetaData: offsets of data, index, dictionary, Bloom filter
_PAGE_LOCATIONS = 1  # OffsetIndex
_PAGE_OFFSET = 1  # PageLocation

# The part of Apache Thrift's compact protocol that Parquet footers use.

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64 = range(1, 7)
_BINARY, _LIST, _STRUCT = 8, 9, 12
_INTEGERS = (_I32, _I64, _I16)

Field = tuple[int, Any]
"""The type and value of a field of a struct. The value of a list has the type of its elements, and
these."""

Struct = dict[int, Field]
"""The fields of a struct by their ids; a struct within another may be encoded bytes."""


class ThriftReader:
    """Reads structs in Thrift's compact protocol; `at` is the position after the last one."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def struct(self, skipped: int | None = None) -> Struct:
        """Read a struct without the list that has the id `skipped`."""
        fields: Struct = {}
        field_id = 0
        while header := self._byte():
            kind = header & 15
            field_id = field_id + (header >> 4) if header >> 4 else self._unsigned() >> 1
            if field_id == skipped:
                for _ in self._list()[1]:
                    pass
            else:
                fields[field_id] = kind, self._value(kind)
        return fields

    def _list(self) -> tuple[int, Iterator[Any]]:
        """Read the type of the elements of a list, and then each of them."""
        header = self._byte()
        size = header >> 4 if header >> 4 < 15 else self._unsigned()
        return header & 15, (self._value(header & 15, True) for _ in range(size))

    def _byte(self) -> int:
        byte = self.data[self.at]
        self.at += 1
        return byte

    def _unsigned(self) -> int:
        data, at = self.data, self.at
        value, shift = data[at] & 127, 7
        while data[at] > 127:
            at += 1
            value |= (data[at] & 127) << shift
            shift += 7
        self.at = at + 1
        return value

    def _value(self, kind: int, inside: bool = False) -> Any:
        if kind in _INTEGERS:
            value = self._unsigned()
            return value >> 1 ^ -(value & 1)
        if kind in (_TRUE, _FALSE):
            return self._byte() if inside else None
        if kind == _BYTE:
            return self._byte()
        if kind == _BINARY:
            size = self._unsigned()
            self.at += size
            return self.data[self.at - size : self.at]
        if kind == _LIST:
            of_elements, elements = self._list()
            return of_elements, [*elements]
        if kind == _STRUCT:
            return self.struct()
        raise ValueError(f"type {kind} does not occur in a Parquet footer")


def write_struct(fields: Struct) -> bytearray:
    """Encode a struct in Thrift's compact protocol."""
    out = bytearray()
    _append_struct(out, fields)
    return out


def _append_struct(out: bytearray, fields: Struct) -> None:
    last = 0
    for field_id in sorted(fields):
        kind, value = fields[field_id]
        if field_id - last < 16:
            out.append((field_id - last) << 4 | kind)
        else:
            out.append(kind)
            out += unsigned(field_id << 1)
        last = field_id
        if value is not None:
            _append(out, kind, value)
    out.append(0)


def unsigned(value: int) -> bytes:
    """Encode an unsigned integer, seven bits a byte, the lowest first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _append(out: bytearray, kind: int, value: Any) -> None:
    if kind in _INTEGERS:
        out += unsigned(value << 1 if value >= 0 else ~(value << 1))
    elif isinstance(value, bytes) and kind == _STRUCT:
        out += value
    elif kind == _STRUCT:
        _append_struct(out, value)
    elif kind == _BINARY:
        out += unsigned(len(value))
        out += value
    elif kind == _LIST:
        of_elements, elements = value
        size = len(elements)
        out.append(min(size, 15) << 4 | of_elements)
        if size >= 15:
            out += unsigned(size)
        for element in elements:
            _append(out, of_elements, element)
    else:
        out.append(value)


def row_group(file: bytes, raw_size: int, documents: int) -> Segment:
    """Make a segment from a Parquet file with a single row group.

    Its note is the description of the row group in the footer, the positions of its pages
    (`OffsetIndex` of each column), which become offsets in the whole file and can only be written
    at its end, and the other metadata, which are those of the whole file.
    """
    metadata, size = read_metadata(file)
    _, (_, (group,)) = metadata.pop(_ROW_GROUPS)
    end = len(file) - len(PARQUET) - _LENGTH.size - size
    offsets = [column[_OFFSET_INDEX][1] for column in _elements(group, _COLUMNS)]
    places = [ThriftReader(file, offset).struct() for offset in offsets]
    data = file[len(PARQUET) : min(offsets, default=end)]
    segment = Segment.of(data, raw_size, crc32(data), documents=documents)
    note = marshal.dumps((group, places, marshal.dumps(metadata, 2)), 2)
    return segment._replace(note=note)


def _elements(fields: Struct, field_id: int) -> list[Any]:
    """Return the elements of a list in a struct."""
    _, (_, elements) = fields[field_id]
    return cast("list[Any]", elements)


def join_footers(journal: Journal, record: bytes, without_rows: Callable[[], bytes]) -> bytes:
    """Make the footer of a Parquet file, preceded by the positions of its pages.

    Args:
        journal: The segments of the file; their notes describe the row groups.
        record: Provenance to store in the footer; empty for none.
        without_rows: Makes a file with the same columns, for a file without row groups.
    """
    of_file = b""
    row_groups: list[bytes] = []  # As bytes: as objects, they take thirty times the memory.
    rows, pages = 0, bytearray()
    for segment, note in zip(journal, journal.notes, strict=True):
        if not note:  # The header has no note.
            continue
        group, places, of_file = marshal.loads(note)
        _move(group, places, segment.offset - len(PARQUET), pages, journal.end)
        row_groups.append(bytes(write_struct(group)))
        rows += group[_ROWS_OF_GROUP][1]
    metadata = marshal.loads(of_file) if of_file else read_metadata(without_rows())[0]
    if record:
        stored = {_KEY: (_BINARY, KEY), _VALUE: (_BINARY, record)}
        metadata[_KEY_VALUES] = _LIST, (_STRUCT, [stored])
    metadata[_NUM_ROWS] = _I64, rows
    metadata[_ROW_GROUPS] = _LIST, (_STRUCT, row_groups)
    footer = write_struct(metadata)
    return bytes(pages + footer) + _LENGTH.pack(len(footer)) + PARQUET


def read_record(path: str) -> bytes:
    """Read the provenance in a Parquet file; empty without one, or in other files."""
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
        metadata, _ = read_metadata(tail, skipped=_ROW_GROUPS)
    except (IndexError, ValueError):
        return b""
    pairs = _elements(metadata, _KEY_VALUES) if _KEY_VALUES in metadata else ()
    for pair in pairs:
        if pair.keys() >= {_KEY, _VALUE} and pair[_KEY][1] == KEY:
            return bytes(pair[_VALUE][1])
    return b""


_LENGTH = struct.Struct("<I")
"""A size in a Parquet file."""


def read_metadata(file: bytes, skipped: int | None = None) -> tuple[Struct, int]:
    """Read the metadata at the end of a Parquet file; return it with its size in bytes."""
    end = len(file) - len(PARQUET) - _LENGTH.size
    (size,) = _LENGTH.unpack_from(file, end)
    return ThriftReader(file, end - size).struct(skipped), size


def _move(group: Struct, places: list[Struct], distance: int, pages: bytearray, start: int) -> None:
    """Add `distance` to the offsets in the description of a row group.

    The positions of its pages are appended to `pages`, which are at `start` in the file.
    """
    # Drop this optional field: its sixteen bits may be too few, and no reader needs it.
    group.pop(_ORDINAL, None)
    _shift(group, {_GROUP_OFFSET}, distance)
    for column, index in zip(_elements(group, _COLUMNS), places, strict=True):
        for page in _elements(index, _PAGE_LOCATIONS):
            _shift(page, {_PAGE_OFFSET}, distance)
        written = write_struct(index)
        column[_OFFSET_INDEX] = _I64, start + len(pages)
        column[_OFFSET_INDEX_SIZE] = _I32, len(written)
        pages += written
        _shift(column[_CHUNK][1], _PAGES, distance)
        _shift(column, {_CHUNK_OFFSET, _COLUMN_INDEX}, distance)


def _shift(fields: Struct, names: set[int], distance: int) -> None:
    """Add `distance` to the offsets in a struct, except zeros, which mean missing."""
    for field_id in names & fields.keys():
        kind, offset = fields[field_id]
        if offset:
            fields[field_id] = kind, offset + distance
