"""Encode rows as the row group of a Parquet file.

Rows are divided into columns level by level: the definition and repetition levels of each column
say where values are missing and where lists begin. The compiled core does the same with the JSON of
the rows. Columns are encoded plain in pages, and compressed with zstd. (Structs, encodings and
field ids: Encodings.md and parquet.thrift of the Parquet format.)

This module replaces an Arrow library, which would take 60 MiB in each process.
"""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from itertools import chain, pairwise
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal

import orjson
from isal.isal_zlib import crc32

from so2docs.dump.kinds import PARQUET
from so2docs.extensions.parquet import ids
from so2docs.extensions.parquet.footer import (
    BINARY,
    I32,
    I64,
    LENGTH,
    STRUCT,
    Field,
    Struct,
    binary,
    boolean,
    booleans,
    i32,
    i64,
    listed,
    make_note,
    nested,
    unsigned,
    write_struct,
)
from so2docs.output.segments import Segment
from so2docs.parse import core
from so2docs.schema import BOOLEAN, DATE, INTEGER, INTEGERS, TEXT, TEXTS, Type
from so2docs.zstd import frame_compressor

if TYPE_CHECKING:
    from so2docs.parse._core import ShredPlan

ValueKind = Type | Literal["number"]
"""Type of the single values of a column; dates are milliseconds since 1970."""

NUMBER: ValueKind = "number"

ELEMENTS: dict[Type, ValueKind] = {TEXTS: TEXT, INTEGERS: INTEGER}
"""Types of the elements of lists."""

Convert = Callable[[Type, list[Any]], Any]
"""Function that converts the values of an attribute to a column, and raises `TypeError` or
`ValueError` for values of another type."""


@dataclass(frozen=True)
class Column:
    """A column of single values; `is_other` if they are the JSON of members without a column."""

    name: str
    kind: ValueKind
    is_required: bool = False
    is_other: bool = False


@dataclass(frozen=True)
class Group:
    """The columns of objects.

    Attributes:
        name: The key of the objects; empty for rows.
        split: Function that turns a list of objects, which it may change, into the values of each
            column; the second argument converts those of attributes.
        holds_counts: Whether missing integers are zero, also if the object is missing.
        is_open: Whether the objects may have members without a column, which are left out.
    """

    name: str
    children: tuple[Node, ...]
    split: Callable[[list[Any], Convert], list[Any]] = field(compare=False)
    is_required: bool = False
    holds_counts: bool = False
    is_open: bool = False


@dataclass(frozen=True)
class Repeated:
    """A column of lists; `is_never_null` if a missing list is empty."""

    name: str
    element: Node
    is_required: bool = False
    is_never_null: bool = False


Node = Column | Group | Repeated

_PYTHON_TYPES: dict[str, set[type]] = {
    INTEGER: {int},
    NUMBER: {int, float},
    TEXT: {str},
    BOOLEAN: {bool},
}
# There is no lower limit, since orjson rejects integers too small for 64 bits.
_MOST = (1 << 63) - 1


def check(kind: ValueKind, values: Iterable[Any]) -> None:
    """Raise `TypeError` unless all values except null have the type of a column."""
    values = list(values)
    if not {*map(type, values)} <= {*_PYTHON_TYPES[kind], NoneType}:
        raise TypeError(f"not every value is of the type {kind}")
    if kind == INTEGER and max(filter(None, values), default=0) > _MOST:
        raise TypeError("not every integer fits in 64 bits")


def check_lists(values: list[Any]) -> None:
    """Raise `TypeError` unless all values except null are lists."""
    if not {*map(type, values)} <= {list, NoneType}:
        raise TypeError("not every value is a list")


def _convert(kind: Type, values: list[Any]) -> list[Any]:
    """Check the values of an attribute, and convert dates; raise an error for other types."""
    if kind == DATE:
        return [*milliseconds(values)]
    if kind not in ELEMENTS:
        check(kind, values)
        return values
    check_lists(values)
    check(ELEMENTS[kind], chain.from_iterable(value for value in values if value))
    return values


_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:]{5}(?::[0-9]{2}(?:\.[0-9]{1,3})?)?)?"
_TIMES = re.compile(rf"{_TIME}(?:\n{_TIME})*+")
_EPOCH = datetime(1970, 1, 1)
_MILLISECOND = timedelta(milliseconds=1)


def milliseconds(times: list[str | None]) -> list[int | None]:
    """Convert the times of a dump to Unix times in milliseconds.

    Raises:
        TypeError, ValueError: A text is not a time, or is more precise than milliseconds.
    """
    present = [time for time in times if time is not None]
    if present and not _TIMES.fullmatch("\n".join(present)):
        other = next(text for text in present if not _TIMES.fullmatch(text))
        raise ValueError(f"{other!r} is not a time with at most milliseconds")
    moments = map(datetime.fromisoformat, present)
    stamps = ((moment - _EPOCH) // _MILLISECOND for moment in moments)
    return [None if time is None else next(stamps) for time in times]


@dataclass(frozen=True, slots=True)
class Levels:
    """Definition and repetition levels of a column, down to the objects reached so far.

    Attributes:
        definitions: Definition level of each value, null or empty list.
        repetitions: Repetition level of each value, null or empty list.
        defined: Definition level of objects that are neither null nor inside a null.
        repeated: Number of lists that contain the objects.
    """

    definitions: bytes
    repetitions: bytes
    defined: int = 0
    repeated: int = 0

    def with_nulls(self, values: list[Any], nulls: int) -> Levels:
        """Return the levels inside an optional column, `nulls` of whose values are null."""
        level, following = self.defined, self.defined + 1
        if not nulls:
            table = bytes.maketrans(bytes([level]), bytes([following]))
            definitions = self.definitions.translate(table)
        elif len(values) == len(self.definitions):
            definitions = bytes([level if value is None else following for value in values])
        else:
            rest = iter(values)
            definitions = bytes(
                [
                    following if definition == level and next(rest) is not None else definition
                    for definition in self.definitions
                ]
            )
        return Levels(definitions, self.repetitions, following, self.repeated)

    def with_lists(self, lists: list[list[Any]]) -> Levels:
        """Return the levels of the elements inside a column of lists."""
        definitions, repetitions = bytearray(), bytearray()
        element, again = bytes([self.defined + 1]), bytes([self.repeated + 1])
        sizes = map(len, lists)
        for definition, repetition in zip(self.definitions, self.repetitions, strict=True):
            size = next(sizes) if definition == self.defined else 0
            repetitions.append(repetition)
            if size:
                definitions += element * size
                repetitions += again * (size - 1)
            else:
                definitions.append(definition)
        return Levels(bytes(definitions), bytes(repetitions), self.defined + 1, self.repeated + 1)


_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8
_DIGITS = b"0123456789abcdefghijklmnopqrstuv".ljust(256)


def _pack_bits(values: bytes, width: int) -> bytes:
    """Pack values of at most five bits each, the first value in the lowest bits."""
    digits = values[::-1].translate(_DIGITS)
    return int(digits, 1 << width).to_bytes(-(-len(values) * width // 8), "little")


def _encode_levels(levels: bytes, highest: int) -> bytes:
    """Encode levels as one run of equal or packed levels, preceded by its size."""
    if not highest:
        return b""
    if levels.count(levels[0]) == len(levels):
        run = unsigned(len(levels) << 1) + levels[:1]
    else:
        padded = levels + bytes(-len(levels) % 8)
        run = unsigned(len(padded) // 8 << 1 | 1) + _pack_bits(padded, highest.bit_length())
    return LENGTH.pack(len(run)) + run


def _encode_plain(kind: ValueKind, values: list[Any]) -> bytes:
    """Encode values in the encoding `PLAIN`, but booleans as one byte each."""
    if kind == TEXT:
        texts = [*map(str.encode, values)]
        lengths = map(LENGTH.pack, map(len, texts))
        return b"".join(chain.from_iterable(zip(lengths, texts, strict=True)))
    if kind == BOOLEAN:
        return bytes(values)
    return struct.pack(f"<{len(values)}{'d' if kind == NUMBER else 'q'}", *values)


_TYPES: dict[str, int] = {BOOLEAN: 0, INTEGER: 2, DATE: 2, NUMBER: 5, TEXT: 6}
"""Types in a Parquet file: `BOOLEAN`, `INT64`, `DOUBLE`, `BYTE_ARRAY`."""
_ZSTD = 6

_PAGE_BYTES = 256 * 1024
"""Approximate size of the values in a page, in bytes.

Columns of numbers have a page or two in a row group: more pages would not be read faster, but the
positions of all pages of Stack Overflow would take 50 MB instead of 6 MB.
"""

_Compress = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class _Page:
    data: bytes
    raw_size: int
    first_row: int
    nulls: int
    bounds: tuple[int, ...]


class _ColumnChunk:
    """The pages of a column in a row group.

    All are encoded plain, except lists of texts, such as tags: dictionaries save 0.2 to 0.8 % after
    zstd, and fastparquet reads nulls from a column that has a dictionary in some row groups only.
    From a list of texts without a dictionary, it reads only nulls.
    """

    def __init__(self, column: Column, path: tuple[str, ...], defined: int, repeated: int) -> None:
        self.path = path
        self.kind = column.kind
        self._defined, self._repeated = defined, repeated
        self._pages: list[_Page] = []
        self._count = 0
        self._is_ordered = column.kind in (INTEGER, DATE) and not repeated
        is_list_of_texts = column.kind == TEXT and repeated == 1 and path[-2] == "list"
        self._dictionary: dict[bytes, int] | None = {} if is_list_of_texts else None
        self._dictionary_size = 0
        # State of the next page.
        self._definitions, self._repetitions, self._values = bytearray(), bytearray(), bytearray()
        self._first_row = 0

    def add(
        self, definitions: bytes, repetitions: bytes, values: bytes, end: int, compress: _Compress
    ) -> None:
        """Add the values of the rows up to `end`, from `_encode_plain`, and their levels."""
        self._definitions += definitions
        self._repetitions += repetitions
        self._values += values
        if len(self._values) >= _PAGE_BYTES:
            self._end_page(compress)
            self._first_row = end

    def _end_page(self, compress: _Compress) -> None:
        definitions, repetitions = bytes(self._definitions), bytes(self._repetitions)
        values = bytes(self._values)
        count = len(definitions)
        if not count:
            return
        for buffer in (self._definitions, self._repetitions, self._values):
            buffer.clear()
        levels = _encode_levels(repetitions, self._repeated)
        levels += _encode_levels(definitions, self._defined)
        encoding = _PLAIN
        if self._dictionary is not None:
            encoding, values = _RLE_DICTIONARY, _encode_places(values, self._dictionary)
        raw = levels + (_pack_bits(values, 1) if self.kind == BOOLEAN and values else values)
        details = {
            ids.DataPageHeader.NUM_VALUES: i32(count),
            ids.DataPageHeader.ENCODING: i32(encoding),
            ids.DataPageHeader.DEFINITION_LEVEL_ENCODING: i32(_RLE),
            ids.DataPageHeader.REPETITION_LEVEL_ENCODING: i32(_RLE),
        }
        page, size = _make_page(_DATA_PAGE, ids.PageHeader.DATA_PAGE_HEADER, details, raw, compress)
        bounds: tuple[int, ...] = ()
        nulls = 0
        if self._is_ordered:
            integers = struct.unpack(f"<{len(values) // 8}q", values)
            bounds = (min(integers), max(integers)) if integers else ()
            nulls = count - len(integers)
        self._pages.append(_Page(page, size, self._first_row, nulls, bounds))
        self._count += count

    def write(self, out: bytearray, compress: _Compress) -> tuple[Struct, Struct]:
        """Append the pages to a file; return descriptions of the column chunk and of its pages."""
        self._end_page(compress)
        start, pages = len(out), self._pages
        self._write_dictionary(out, compress)
        data_start = len(out)
        places: list[Struct] = []
        for page in pages:
            place = {
                ids.PageLocation.OFFSET: i64(len(out)),
                ids.PageLocation.COMPRESSED_PAGE_SIZE: i32(len(page.data)),
                ids.PageLocation.FIRST_ROW_INDEX: i64(page.first_row),
            }
            places.append(place)
            out += page.data
        metadata = {
            ids.ColumnMetaData.TYPE: i32(_TYPES[self.kind]),
            ids.ColumnMetaData.ENCODINGS: listed(I32, self._encodings()),
            ids.ColumnMetaData.PATH_IN_SCHEMA: listed(BINARY, map(str.encode, self.path)),
            ids.ColumnMetaData.CODEC: i32(_ZSTD),
            ids.ColumnMetaData.NUM_VALUES: i64(self._count),
            ids.ColumnMetaData.TOTAL_UNCOMPRESSED_SIZE: i64(self.raw_size),
            ids.ColumnMetaData.TOTAL_COMPRESSED_SIZE: i64(len(out) - start),
            ids.ColumnMetaData.DATA_PAGE_OFFSET: i64(data_start),
            **self._statistics(),
        }
        if data_start > start:
            metadata[ids.ColumnMetaData.DICTIONARY_PAGE_OFFSET] = i64(start)
        # The position of `places` is set later, because they are at the end of the file.
        chunk = {
            ids.ColumnChunk.FILE_OFFSET: i64(0),
            ids.ColumnChunk.META_DATA: nested(metadata),
            ids.ColumnChunk.OFFSET_INDEX_OFFSET: i64(0),
            ids.ColumnChunk.OFFSET_INDEX_LENGTH: i32(0),
        }
        return chunk, {ids.OffsetIndex.PAGE_LOCATIONS: listed(STRUCT, places)}

    @property
    def raw_size(self) -> int:
        """Size of all pages before compression, in bytes."""
        return self._dictionary_size + sum(page.raw_size for page in self._pages)

    def _encodings(self) -> list[int]:
        return [_PLAIN, _RLE] if self._dictionary is None else [_PLAIN, _RLE, _RLE_DICTIONARY]

    def _write_dictionary(self, out: bytearray, compress: _Compress) -> None:
        """Append the page with the values of the dictionary, if the column has one."""
        if self._dictionary is None:
            return
        raw = b"".join(LENGTH.pack(len(text)) + text for text in self._dictionary)
        details = {
            ids.DictionaryPageHeader.NUM_VALUES: i32(len(self._dictionary)),
            ids.DictionaryPageHeader.ENCODING: i32(_PLAIN),
        }
        page, self._dictionary_size = _make_page(
            _DICTIONARY_PAGE, ids.PageHeader.DICTIONARY_PAGE_HEADER, details, raw, compress
        )
        out += page

    def _statistics(self) -> dict[int, Field]:
        """Return the bounds and number of nulls of an ordered column; empty for other columns."""
        bounds = [page.bounds for page in self._pages if page.bounds]
        if not bounds:
            return {}
        least, greatest = min(low for low, _ in bounds), max(high for _, high in bounds)
        nulls = sum(page.nulls for page in self._pages)
        statistics = {
            ids.Statistics.NULL_COUNT: i64(nulls),
            ids.Statistics.MAX_VALUE: binary(_BOUND.pack(greatest)),
            ids.Statistics.MIN_VALUE: binary(_BOUND.pack(least)),
        }
        return {ids.ColumnMetaData.STATISTICS: nested(statistics)}

    def write_bounds(self, out: bytearray) -> dict[int, Field]:
        """Append the page bounds of an ordered column, if it is one; return their position."""
        bounds = [page.bounds for page in self._pages]
        if not any(bounds):
            return {}
        known = [pair for pair in bounds if pair]
        is_ascending = all(a[0] <= b[0] and a[1] <= b[1] for a, b in pairwise(known))
        index = {
            ids.ColumnIndex.NULL_PAGES: booleans(not pair for pair in bounds),
            ids.ColumnIndex.MIN_VALUES: listed(BINARY, [_pack_bound(pair[:1]) for pair in bounds]),
            ids.ColumnIndex.MAX_VALUES: listed(BINARY, [_pack_bound(pair[1:]) for pair in bounds]),
            ids.ColumnIndex.BOUNDARY_ORDER: i32(int(is_ascending)),
            ids.ColumnIndex.NULL_COUNTS: listed(I64, [page.nulls for page in self._pages]),
        }
        start = len(out)
        out += write_struct(index)
        return {
            ids.ColumnChunk.COLUMN_INDEX_OFFSET: i64(start),
            ids.ColumnChunk.COLUMN_INDEX_LENGTH: i32(len(out) - start),
        }


def _make_page(
    page_type: int, details_id: int, details: Struct, raw: bytes, compress: _Compress
) -> tuple[bytes, int]:
    """Return a page with its header, and its size before compression."""
    data = compress(raw)
    page_header = {
        ids.PageHeader.TYPE: i32(page_type),
        ids.PageHeader.UNCOMPRESSED_PAGE_SIZE: i32(len(raw)),
        ids.PageHeader.COMPRESSED_PAGE_SIZE: i32(len(data)),
        details_id: nested(details),
    }
    header = bytes(write_struct(page_header))
    return header + data, len(header) + len(raw)


_BOUND = struct.Struct("<q")


def _pack_bound(bound: tuple[int, ...]) -> bytes:
    """Pack a bound of a page; empty for a page of nulls."""
    return _BOUND.pack(*bound) if bound else b""


def _encode_places(values: bytes, dictionary: dict[bytes, int]) -> bytes:
    """Encode texts in the encoding `PLAIN` by their places in a dictionary, which grows.

    The places are one packed run of 16 or 32 bits each.
    """
    places, at = array("I"), 0
    while at < len(values):
        end = at + LENGTH.size + LENGTH.unpack_from(values, at)[0]
        text = values[at + LENGTH.size : end]
        places.append(dictionary.setdefault(text, len(dictionary)))
        at = end
    places.extend([0] * (-len(places) % 8))
    width = 16 if len(dictionary) <= 1 << 16 else 32
    packed = struct.pack(f"<{len(places)}{'H' if width == 16 else 'I'}", *places)
    return bytes([width]) + unsigned(len(places) // 8 << 1 | 1) + packed


class RowGroup:
    """Encodes rows as a row group.

    Args:
        root: The columns of a row.
        level: zstd compression level.
        sorted_by: The column by which the rows are sorted in ascending order; empty if unknown.
        is_compiled: Whether `add_lines` uses the compiled core.
    """

    def __init__(
        self, root: Group, level: int, sorted_by: str = "", *, is_compiled: bool = False
    ) -> None:
        self.count = 0
        self._plan = plan_shredding(root) if is_compiled else None
        self._root = root
        self._sorted_by = sorted_by
        self._chunks = [_ColumnChunk(*leaf) for leaf in _leaves(root)]
        self._compress = frame_compressor(level)

    def add(self, rows: list[Any]) -> None:
        """Add rows; in each column with enough bytes for a page, end a page after the last row."""
        zeros = bytes(len(rows))
        self.count += len(rows)
        self._put(self._root, rows, Levels(zeros, zeros), iter(self._chunks))

    def add_lines(self, lines: bytes) -> bool:
        """Add rows from lines of JSON with the compiled core; return False if `add` must do it."""
        columns = None if self._plan is None else core.shred(lines, self._plan)
        if columns is None:
            return False
        self.count += core.count_lines(lines)
        for chunk, column in zip(self._chunks, columns, strict=True):
            chunk.add(*column, self.count, self._compress)
        return True

    def _put(
        self, node: Node, values: list[Any], levels: Levels, chunks: Iterator[_ColumnChunk]
    ) -> None:
        nulls = values.count(None)
        if not node.is_required:
            levels = levels.with_nulls(values, nulls)
        elif nulls:
            raise TypeError(f"{node.name} is missing")
        if nulls:
            values = [value for value in values if value is not None]
        if isinstance(node, Column):
            data = _encode_plain(node.kind, values)
            next(chunks).add(
                levels.definitions, levels.repetitions, data, self.count, self._compress
            )
        elif isinstance(node, Repeated):
            elements = list(chain.from_iterable(values))
            self._put(node.element, elements, levels.with_lists(values), chunks)
        else:
            for child, column in zip(node.children, node.split(values, _convert), strict=True):
                self._put(child, column, levels, chunks)

    def segment(self, raw_size: int, first_id: int) -> Segment:
        """Make a segment of the row group."""
        out = bytearray(PARQUET)
        written = [chunk.write(out, self._compress) for chunk in self._chunks]
        size = len(out) - len(PARQUET)
        columns = [
            {**description, **chunk.write_bounds(out)}
            for chunk, (description, _) in zip(self._chunks, written, strict=True)
        ]
        group = {
            ids.RowGroup.COLUMNS: listed(STRUCT, columns),
            ids.RowGroup.TOTAL_BYTE_SIZE: i64(sum(chunk.raw_size for chunk in self._chunks)),
            ids.RowGroup.NUM_ROWS: i64(self.count),
            **self._sorting(),
            ids.RowGroup.FILE_OFFSET: i64(len(PARQUET)),
            ids.RowGroup.TOTAL_COMPRESSED_SIZE: i64(size),
        }
        data = bytes(memoryview(out)[len(PARQUET) :])
        segment = Segment.of(data, raw_size, crc32(data), first_id, self.count)
        return segment._replace(note=make_note(group, [places for _, places in written]))

    def _sorting(self) -> dict[int, Field]:
        paths = [chunk.path for chunk in self._chunks]
        if (self._sorted_by,) not in paths:
            return {}
        order = {
            ids.SortingColumn.COLUMN_IDX: i32(paths.index((self._sorted_by,))),
            ids.SortingColumn.DESCENDING: boolean(False),
            ids.SortingColumn.NULLS_FIRST: boolean(False),
        }
        return {ids.RowGroup.SORTING_COLUMNS: listed(STRUCT, [order])}


def _leaves(
    node: Node, path: tuple[str, ...] = (), defined: int = 0, repeated: int = 0
) -> Iterator[tuple[Column, tuple[str, ...], int, int]]:
    """Yield each column with its path and its maximum definition and repetition levels."""
    path = (*path, node.name) if node.name else path
    defined += not node.is_required
    if isinstance(node, Column):
        yield node, path, defined, repeated
    elif isinstance(node, Repeated):
        yield from _leaves(node.element, (*path, "list"), defined + 1, repeated + 1)
    else:
        for child in node.children:
            yield from _leaves(child, path, defined, repeated)


_LEAF_KINDS: dict[str, int] = {TEXT: 0, INTEGER: 1, DATE: 2, BOOLEAN: 3}
_OTHER_KIND = 4
_NEVER = b'"'
"""Name that no member has, for the column of members without a column."""


@cache
def plan_shredding(node: Node, repeated: int = 0) -> ShredPlan | None:
    """Describe columns for the compiled core; None if it has no kind for one of them."""
    name = orjson.dumps(node.name)[1:-1]
    children: tuple[Node, ...] = ()
    if isinstance(node, Column):
        kind = _OTHER_KIND if node.is_other else _LEAF_KINDS.get(node.kind)
        name = _NEVER if node.is_other else name
    elif isinstance(node, Repeated):
        kind, children, repeated = (6 if node.is_never_null else 5), (node.element,), repeated + 1
    else:
        kind, children = (9 if node.holds_counts else 8 if node.is_open else 7), node.children
    planned = [plan_shredding(child, repeated) for child in children]
    plans = tuple(plan for plan in planned if plan is not None)
    if kind is None or len(plans) < len(planned) or len(plans) > core.MOST_CHILDREN:
        return None
    return kind, name, not node.is_required, repeated, plans


def count_columns(root: Group) -> int:
    """Count the columns of single values, at any depth."""
    return sum(1 for _ in _leaves(root))


_REQUIRED, _OPTIONAL, _REPEATED = 0, 1, 2
_LIST, _TIMESTAMP_MILLIS, _UTF8 = 3, 9, 0
_NOTHING = nested({})


def _elements(node: Node) -> Iterator[Struct]:
    """Yield the elements of the schema, depth first."""
    element = {
        ids.SchemaElement.REPETITION_TYPE: i32(_REQUIRED if node.is_required else _OPTIONAL),
        ids.SchemaElement.NAME: binary(node.name.encode() or b"schema"),
    }
    if isinstance(node, Column):
        yield {
            ids.SchemaElement.TYPE: i32(_TYPES[node.kind]),
            **element,
            **_logical_type(node.kind),
        }
    elif isinstance(node, Repeated):
        one_child = {ids.SchemaElement.NUM_CHILDREN: i32(1)}
        yield {**element, **one_child, **_meaning(_LIST, ids.LogicalType.LIST, _NOTHING)}
        yield {
            ids.SchemaElement.REPETITION_TYPE: i32(_REPEATED),
            ids.SchemaElement.NAME: binary(b"list"),
            **one_child,
        }
        yield from _elements(node.element)
    else:
        yield {**element, ids.SchemaElement.NUM_CHILDREN: i32(len(node.children))}
        for child in node.children:
            yield from _elements(child)


@cache
def _encoded_elements(root: Group) -> list[bytes]:
    return [bytes(write_struct(element)) for element in _elements(root)]


def _meaning(converted: int, logical: int, details: Field) -> dict[int, Field]:
    """Return the meaning of a column in its old form and its new form."""
    return {
        ids.SchemaElement.CONVERTED_TYPE: i32(converted),
        ids.SchemaElement.LOGICAL_TYPE: nested({logical: details}),
    }


def _logical_type(kind: ValueKind) -> dict[int, Field]:
    if kind == TEXT:
        return _meaning(_UTF8, ids.LogicalType.STRING, _NOTHING)
    if kind == DATE:
        milliseconds_of_utc = {
            ids.TimestampType.IS_ADJUSTED_TO_UTC: boolean(True),
            ids.TimestampType.UNIT: nested({ids.TimeUnit.MILLIS: _NOTHING}),
        }
        return _meaning(_TIMESTAMP_MILLIS, ids.LogicalType.TIMESTAMP, nested(milliseconds_of_utc))
    return {}


_VERSION = 2


def file_metadata(root: Group, pairs: Mapping[bytes, bytes]) -> Struct:
    """Return the metadata of a file with these columns and pairs of keys and values, no rows."""
    key_values = [
        {ids.KeyValue.KEY: binary(key), ids.KeyValue.VALUE: binary(value)}
        for key, value in pairs.items()
    ]
    type_order = bytes(write_struct({ids.ColumnOrder.TYPE_ORDER: _NOTHING}))
    metadata = {
        ids.FileMetaData.VERSION: i32(_VERSION),
        ids.FileMetaData.SCHEMA: listed(STRUCT, _encoded_elements(root)),
        ids.FileMetaData.NUM_ROWS: i64(0),
        ids.FileMetaData.ROW_GROUPS: listed(STRUCT, []),
        ids.FileMetaData.CREATED_BY: binary(b"so2docs"),
        ids.FileMetaData.COLUMN_ORDERS: listed(STRUCT, [type_order] * count_columns(root)),
    }
    if key_values:
        metadata[ids.FileMetaData.KEY_VALUE_METADATA] = listed(STRUCT, key_values)
    return metadata
