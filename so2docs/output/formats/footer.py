"""One Parquet file from files of one row group each, made apart from each other.

The data of a row group may be anywhere in a file: only the footer says where. So row groups are
appended like any other segment, and their descriptions, moved to their final offsets, make the
footer. (Structures and field ids: parquet.thrift of the Parquet format.)
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable

from so2docs.output.formats.thrift import (
    I64,
    LIST,
    STRUCT,
    Field,
    Sequence,
    Struct,
    ThriftReader,
    write_struct,
)

MAGIC = b"PAR1"
_LENGTH = struct.Struct("<I")

_NUM_ROWS, _ROW_GROUPS, _KEY_VALUES = 3, 4, 5
_COLUMNS, _GROUP_ROWS, _GROUP_OFFSET, _ORDINAL = 1, 3, 5, 7
_CHUNK_OFFSET, _CHUNK_METADATA, _OFFSET_INDEX, _COLUMN_INDEX = 2, 3, 4, 6
_COLUMN_OFFSETS = {9, 10, 11, 14}  # data, index and dictionary page, bloom filter


def split_row_group(file: bytes) -> tuple[bytes, bytes]:
    """The data of a file with one row group, and the description of that row group."""
    metadata, size = _metadata(file)
    (group,) = next(field.value for field in metadata if field.id == _ROW_GROUPS).values
    return file[len(MAGIC) : -len(MAGIC) - _LENGTH.size - size], bytes(write_struct(group))


def join_footers(empty: bytes, groups: Iterable[tuple[int, bytes]]) -> bytes:
    """The footer of a file.

    Args:
        empty: A file without row groups, for the schema.
        groups: Where the data of each row group starts, and what `split` said of it.
    """
    moved: list[Struct] = []
    rows = 0
    for offset, description in groups:
        group = _move(ThriftReader(description).struct(), offset - len(MAGIC))
        rows += next(field.value for field in group if field.id == _GROUP_ROWS)
        moved.append(group)
    metadata = [field for field in _metadata(empty)[0] if field.id not in (_NUM_ROWS, _ROW_GROUPS)]
    metadata.append(Field(_NUM_ROWS, I64, rows))
    metadata.append(Field(_ROW_GROUPS, LIST, Sequence(STRUCT, moved)))
    written = write_struct(sorted(metadata, key=lambda field: field.id))
    return bytes(written) + _LENGTH.pack(len(written)) + MAGIC


def read_value(path: str, key: bytes) -> bytes:
    """A value among the metadata of a Parquet file; empty if it has none of this name.

    Raises:
        OSError: The file cannot be read.
    """
    end = _LENGTH.size + len(MAGIC)
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        if size < len(MAGIC) + end:
            return b""
        file.seek(size - end)
        (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
        if file.read() != MAGIC or length > size - end:
            return b""
        file.seek(size - end - length)
        tail = file.read(length + end)
    try:
        metadata, _ = _metadata(tail)
    except (IndexError, ValueError):
        return b""
    found_pairs = (field.value.values for field in metadata if field.id == _KEY_VALUES)
    pairs: list[Struct] = next(found_pairs, [])
    found = (_text(pair) for pair in pairs)
    return next((value for name, value in found if name == key), b"")


def _text(pair: Struct) -> tuple[bytes, bytes]:
    """Key and value of an entry of the metadata."""
    values = {field.id: field.value for field in pair}
    return values.get(1, b""), values.get(2, b"")


def _metadata(file: bytes) -> tuple[Struct, int]:
    (size,) = _LENGTH.unpack_from(file, len(file) - len(MAGIC) - _LENGTH.size)
    return ThriftReader(file, len(file) - len(MAGIC) - _LENGTH.size - size).struct(), size


def _move(group: Struct, distance: int) -> Struct:
    """The description of a row group so many bytes further on."""
    found: Struct = []
    for field in group:
        if field.id == _COLUMNS:
            columns = [_moved_column(column, distance) for column in field.value.values]
            found.append(field._replace(value=Sequence(field.value.type, columns)))
        elif field.id == _GROUP_OFFSET:
            found.append(field._replace(value=field.value + distance))
        elif field.id != _ORDINAL:  # Sixteen bits, and no reader needs it.
            found.append(field)
    return found


def _moved_column(column: Struct, distance: int) -> Struct:
    found: Struct = []
    for field in column:
        if field.id == _CHUNK_METADATA:
            inner = [
                part._replace(value=part.value + distance) if part.id in _COLUMN_OFFSETS else part
                for part in field.value
            ]
            found.append(field._replace(value=inner))
        elif field.id in (_CHUNK_OFFSET, _OFFSET_INDEX, _COLUMN_INDEX) and field.value:
            found.append(field._replace(value=field.value + distance))
        else:
            found.append(field)
    return found
