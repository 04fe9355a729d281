"""Ids of the fields of structs in Parquet files, by struct and name, from parquet.thrift.

Only those of structs that this package reads or writes. Plain integers, because notes of segments
are written with `marshal`.
"""

from __future__ import annotations


class FileMetaData:
    """The footer."""

    VERSION, SCHEMA, NUM_ROWS, ROW_GROUPS, KEY_VALUE_METADATA, CREATED_BY, COLUMN_ORDERS = range(
        1, 8
    )


class KeyValue:
    """A pair in the footer."""

    KEY, VALUE = 1, 2


class SchemaElement:
    """A column, or a group of columns."""

    TYPE, REPETITION_TYPE, NAME, NUM_CHILDREN, CONVERTED_TYPE, LOGICAL_TYPE = 1, 3, 4, 5, 6, 10


class LogicalType:
    """The meaning of a column's values: one of these fields."""

    STRING, LIST, TIMESTAMP = 1, 3, 8


class TimestampType:
    """A kind of dates."""

    IS_ADJUSTED_TO_UTC, UNIT = 1, 2


class TimeUnit:
    """The unit of dates: one of these fields."""

    MILLIS = 1


class ColumnOrder:
    """How values of a column are compared: one of these fields."""

    TYPE_ORDER = 1


class RowGroup:
    """A row group."""

    (
        COLUMNS,
        TOTAL_BYTE_SIZE,
        NUM_ROWS,
        SORTING_COLUMNS,
        FILE_OFFSET,
        TOTAL_COMPRESSED_SIZE,
        ORDINAL,
    ) = range(1, 8)


class SortingColumn:
    """A column by which rows are sorted."""

    COLUMN_IDX, DESCENDING, NULLS_FIRST = 1, 2, 3


class ColumnChunk:
    """The values of a column in a row group."""

    (
        FILE_OFFSET,
        META_DATA,
        OFFSET_INDEX_OFFSET,
        OFFSET_INDEX_LENGTH,
        COLUMN_INDEX_OFFSET,
        COLUMN_INDEX_LENGTH,
    ) = range(2, 8)


class ColumnMetaData:
    """The description of a column chunk."""

    (
        TYPE,
        ENCODINGS,
        PATH_IN_SCHEMA,
        CODEC,
        NUM_VALUES,
        TOTAL_UNCOMPRESSED_SIZE,
        TOTAL_COMPRESSED_SIZE,
    ) = range(1, 8)
    DATA_PAGE_OFFSET, INDEX_PAGE_OFFSET, DICTIONARY_PAGE_OFFSET, STATISTICS = range(9, 13)
    BLOOM_FILTER_OFFSET = 14


class Statistics:
    """The bounds of a column chunk."""

    NULL_COUNT, MAX_VALUE, MIN_VALUE = 3, 5, 6


class PageHeader:
    """The header of a page."""

    TYPE, UNCOMPRESSED_PAGE_SIZE, COMPRESSED_PAGE_SIZE, DATA_PAGE_HEADER = 1, 2, 3, 5
    DICTIONARY_PAGE_HEADER = 7


class DataPageHeader:
    """The part of the header that only pages of data have."""

    NUM_VALUES, ENCODING, DEFINITION_LEVEL_ENCODING, REPETITION_LEVEL_ENCODING = range(1, 5)


class DictionaryPageHeader:
    """The part of the header that only the page of a dictionary has."""

    NUM_VALUES, ENCODING = 1, 2


class OffsetIndex:
    """The positions of the pages of a column chunk."""

    PAGE_LOCATIONS = 1


class PageLocation:
    """The position of a page."""

    OFFSET, COMPRESSED_PAGE_SIZE, FIRST_ROW_INDEX = 1, 2, 3


class ColumnIndex:
    """The bounds of the pages of a column chunk."""

    NULL_PAGES, MIN_VALUES, MAX_VALUES, BOUNDARY_ORDER, NULL_COUNTS = range(1, 6)
