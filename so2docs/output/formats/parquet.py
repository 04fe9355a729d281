"""Parquet: typed and nested columns, for DuckDB, pandas, polars, Spark and data set hubs.

Each segment is a complete row group made by a worker, so that memory does not grow with the dump.
The columns of questions, answers and nested rows are fixed, so all row groups have the same
columns; the columns of a recipe's records come from their JSON Schema.
"""

from __future__ import annotations

import inspect
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.parquet as pq

from so2docs.dump.kinds import PARQUET
from so2docs.errors import OptionError, RecipeError, flag
from so2docs.merge import Document
from so2docs.nest import Buffer
from so2docs.options.field_paths import Fields
from so2docs.output.compression import SEGMENT_BYTES
from so2docs.output.formats import footer
from so2docs.output.formats.base import Format
from so2docs.output.provenance import KEY
from so2docs.output.segments import Journal, Segment
from so2docs.schema import (
    ANSWER_ATTRIBUTES,
    ANSWERS,
    BOOLEAN,
    DATE,
    INTEGER,
    INTEGERS,
    OTHER,
    POSTS,
    QUESTION_ATTRIBUTES,
    TEXT,
    TEXTS,
    Attributes,
    Part,
    Shape,
    Type,
    select_parts,
)

_NONE: set[str] = set()

Row = dict[str, Any]


@dataclass(frozen=True)
class ObjectColumns:
    """The columns of a document, or of the objects under one of its keys.

    Attributes:
        attributes: Attributes of the object.
        parts: Nested parts after the attributes.
        is_post: Whether the object is a post, whose `Id` and `Answers` are never null.
        key: The key; empty for a document.
        shape: Shape of the value under the key.
    """

    attributes: Attributes
    parts: tuple[ObjectColumns, ...] = ()
    is_post: bool = False
    key: str = ""
    shape: Shape = "record"

    @cached_property
    def fields(self) -> list[Any]:
        """The Arrow fields."""
        always = {"Id", "Answers"} if self.is_post else set()
        types = [(name, TYPES[kind]) for name, kind in self.attributes.items()]
        types.append((OTHER, pa.string()))
        types += [(part.key, part.type) for part in self.parts]
        return [pa.field(name, kind, name not in always) for name, kind in types]

    @cached_property
    def type(self) -> Any:
        """The Arrow type of the value under the key."""
        inside = pa.struct(self.fields)
        return pa.list_(pa.field("element", inside)) if self.shape == "list" else inside

    def columns(self, rows: list[Row]) -> list[Any]:
        """Make a column for each field; this removes the parts from the rows."""
        nested = [[row.pop(part.key, None) for row in rows] for part in self.parts]
        arrays = _columns(rows, self.attributes)
        return arrays + [
            part.array(values) for part, values in zip(self.parts, nested, strict=True)
        ]

    def array(self, values: list[Any]) -> Any:
        """Make an array of the values under the key, one for each object."""
        if self.shape == "list":
            offsets = list(accumulate((len(items or ()) for items in values), initial=0))
            structs = self._structs([row for items in values for row in items or ()])
            return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs, type=self.type)
        if self.shape == "counts":
            none = dict.fromkeys(self.attributes, 0)
            return self._structs([none | (value or {}) for value in values])
        missing = pa.array([value is None for value in values], pa.bool_())
        return self._structs([value or {} for value in values], missing)

    def _structs(self, rows: list[Row], missing: Any = None) -> Any:
        return pa.StructArray.from_arrays(self.columns(rows), fields=self.fields, mask=missing)


def ordered(fields: list[Any], path: str = "") -> list[str]:
    """Paths of the ordered columns, whose statistics are worth their space."""
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
    attributes: Attributes,
    parts: Iterable[Part],
    added: Attributes,
    *,
    is_post: bool = False,
    key: str = "",
    shape: Shape = "record",
) -> ObjectColumns:
    """Make the columns of an object."""
    values = {part.key: part.attributes[part.key] for part in parts if part.shape == "value"}
    inner = tuple(_part_columns(part, added) for part in parts if part.shape != "value")
    all_attributes = {**attributes, **values, **(added if is_post else {})}
    return ObjectColumns(all_attributes, inner, is_post, key, shape)


def _part_columns(part: Part, added: Attributes) -> ObjectColumns:
    names = part.attributes if part.columns is None else part.columns
    attributes = {name: kind for name, kind in part.attributes.items() if name in names}
    attributes |= added if part.by else {}
    return make_columns(attributes, part.parts, added, key=part.key, shape=part.shape)


TYPES: dict[Type, Any] = {
    INTEGER: pa.int64(),
    TEXT: pa.string(),
    DATE: pa.timestamp("ms", tz="UTC"),
    BOOLEAN: pa.bool_(),
    TEXTS: pa.list_(pa.field("element", pa.string())),
    INTEGERS: pa.list_(pa.field("element", pa.int64())),
}
"""The Arrow types of attributes."""


def _columns(rows: list[Row], attributes: Attributes) -> list[Any]:
    """Make a column for each attribute, and one for the other values."""
    misfits: dict[int, set[str]] = {}
    columns = [_column(name, kind, rows, misfits) for name, kind in attributes.items()]
    names = attributes.keys()
    other = [
        orjson.dumps({name: row[name] for name in row if name not in names or name in misfit})
        if (misfit := misfits.get(index, _NONE)) or row.keys() - names
        else None
        for index, row in enumerate(rows)
    ]
    columns.append(pa.array(other, pa.binary()).cast(pa.string()))
    return columns


def _column(name: str, kind: Type, rows: list[Row], misfits: dict[int, set[str]]) -> Any:
    """Make the column of an attribute; values of another type are left for `OTHER`."""
    values = [row.get(name) for row in rows]
    try:
        return _array(kind, values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        pass
    for index, value in enumerate(values):
        try:
            _array(kind, [value])
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            values[index] = None
            misfits.setdefault(index, set()).add(name)
    return _array(kind, values)


def _array(kind: Type, values: list[Any]) -> Any:
    if kind == "date":
        texts = pa.array(values, pa.string())
        return pc.assume_timezone(texts.cast(pa.timestamp("ms")), "UTC")
    return pa.array(values, TYPES[kind])


ROW_GROUP_BYTES = 32 * 1024 * 1024
"""Maximum bytes of JSON in a row group; a bucket may have less.

For 300 MB of dump this makes 17 groups of up to 22 MB and a footer of 81 kB, in 631 MiB at two
jobs; 8 MiB made 40 groups and a footer of 184 kB, in 580 MiB. More would require documents of
several buckets in one task.
"""

_SMALL_GROUPS = ((1 << 20, 4 * 1024 * 1024), (1 << 22, 8 * 1024 * 1024))
"""Smaller row groups for the first ids, which are all ids of a small dump.

A dump of 60 MB took 450 to 485 MiB with recipes instead of 740 to 840. With larger ids, most row
groups are a bucket each anyway, and their number determines the size of the footer.
"""

_FOOTER_ROOM = 64 * 1024
_NOTE_ROOM = 512


class Parquet(Format):
    """A Parquet file with a row per question; answers and nested rows are lists of structures."""

    holds_record: ClassVar[bool] = True
    header = PARQUET
    segment_bytes = ROW_GROUP_BYTES

    @cached_property
    def record(self) -> ObjectColumns:
        """The columns of a document, which depend only on the options."""
        return _question(self.fields, self.tables, self.site, is_attributed=self.is_attributed)

    def frame(self, document: Document) -> Iterable[Buffer]:
        """The object on a line, for use by `segment` only."""
        document.parts.append(b"}\n")
        return document.parts

    def segment(self, raw: bytes, first_id: int = 0, documents: int = 0) -> Segment:
        """Make a row group of some documents."""
        if not documents:
            return super().segment(raw)
        with system_memory():
            file = self._file(self.read(raw))
        return footer.row_group(file, len(raw), first_id, documents)

    def enough_bytes(self, first_id: int) -> int:
        """Bytes of JSON after which a row group ends."""
        size = next((size for before, size in _SMALL_GROUPS if first_id < before), ROW_GROUP_BYTES)
        return min(size, self.segment_bytes)

    def footer(self, journal: Journal, record: bytes = b"") -> bytes:
        """Make the footer: schema, positions of the row groups, and provenance."""
        schema = self.schema.with_metadata({KEY: record}) if record else self.schema
        return footer.join_footers(self._file(no_rows(schema)), journal)

    def footer_bytes(self, journal: Journal, segment: Segment) -> int:
        """Size for the notes so far and this note, with room for larger offsets."""
        notes = len(segment.note) + journal.note_bytes
        return _FOOTER_ROOM + 2 * notes + _NOTE_ROOM * (1 + journal.count)

    @cached_property
    def schema(self) -> Any:
        """The Arrow schema."""
        return pa.schema(self.record.fields)

    @cached_property
    def _writer_options(self) -> dict[str, Any]:
        """Options that this version of pyarrow supports, for readers and content-defined chunking.

        The content determines the ends of pages. So the output of the next quarter shares most
        pages with this output, and a hub stores and transfers only the others.
        """
        parameters = inspect.signature(pq.ParquetWriter.__init__).parameters
        options: dict[str, Any] = {}
        if "use_content_defined_chunking" in parameters:
            options["use_content_defined_chunking"] = True
        if self.sorted_by and "sorting_columns" in parameters:
            order = [(self.sorted_by, "ascending")]
            options["sorting_columns"] = pq.SortingColumn.from_ordering(self.schema, order)
        return options

    @property
    def sorted_by(self) -> str:
        """The column by which the rows are sorted in ascending order; empty if unknown."""
        return "Id" if self.fields.has("Id") else ""

    def _file(self, table: Any) -> bytes:
        return encode_parquet(table, self.level or None, **self._writer_options)

    def read(self, raw: bytes) -> Any:
        """The Arrow table of lines of JSON."""
        return pa.concat_tables([self.table(rows) for rows in _batches(raw)])

    def table(self, rows: list[Row]) -> Any:
        """Make an Arrow table of some documents, which are changed."""
        return pa.Table.from_arrays(self.record.columns(rows), schema=self.schema)


def _question(
    fields: Fields,
    tables: Sequence[str],
    site: tuple[str, str] | None,
    *,
    is_attributed: bool,
) -> ObjectColumns:
    """The columns of a document; the site follows the attributes, as in the JSON object."""
    added: Attributes = {"Url": TEXT} if is_attributed else {}
    question = _post(fields, tables, "", QUESTION_ATTRIBUTES, added)
    attributes, parts = dict(question.attributes), question.parts
    if site is not None:
        attributes[site[0]] = TEXT
    if is_attributed:
        attributes["Licenses"] = TEXTS
        author: Attributes = {"DisplayName": TEXT, "Url": TEXT}
        parts = (*parts, ObjectColumns(author, key="Authors", shape="list"))
    if fields.has_answers:
        answers = _post(fields, tables, f"{ANSWERS}.", ANSWER_ATTRIBUTES, added)
        parts = (*parts, replace(answers, key=ANSWERS, shape="list"))
    return replace(question, attributes=attributes, parts=parts)


def _post(
    fields: Fields, tables: Sequence[str], prefix: str, names: Sequence[str], added: Attributes
) -> ObjectColumns:
    """The attributes of a post and its nested parts, in the order of the JSON object."""
    attributes = {name: POSTS.attributes[name] for name in names if fields.has(prefix + name)}
    return make_columns(attributes, select_parts(tables, fields.has, prefix), added, is_post=True)


@contextmanager
def system_memory() -> Iterator[None]:
    """Arrow's default allocators keep freed memory, 50 MiB per worker."""
    usual = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(usual)


def _batches(raw: bytes) -> Iterator[list[Row]]:
    """Yield about a MiB of documents at a time; dictionaries take several times their bytes."""
    lines = io.BytesIO(raw)
    while batch := lines.readlines(SEGMENT_BYTES):
        yield [orjson.loads(line) for line in batch]


def encode_parquet(table: Any, level: int | None, **options: Any) -> bytes:
    """Encode a Parquet file with one row group."""
    sink = io.BytesIO()
    pq.write_table(
        table,
        sink,
        row_group_size=max(1, table.num_rows),
        compression="zstd",
        compression_level=level,
        # Statistics of long texts would only make the footer longer.
        write_statistics=ordered(list(table.schema)),
        write_page_index=True,  # Readers of a few rows fetch only their pages.
        **options,
    )
    return sink.getvalue()


def no_rows(schema: Any) -> Any:
    """Make an Arrow table without rows; `empty_table` would import pandas if it is installed."""
    return pa.Table.from_batches([], schema)


class RecordParquet(Parquet):
    """A Parquet file with a row per record.

    Attributes:
        record_schema: JSON Schema of a record.
        is_one_a_question: Whether a record is a question, with its id as `Id`.
    """

    record_schema: Mapping[str, Any]
    is_one_a_question: bool = False

    @property
    def sorted_by(self) -> str:
        """The column by which the rows are sorted in ascending order; empty if unknown."""
        return "Id" if self.is_one_a_question else ""

    @cached_property
    def schema(self) -> Any:
        """The Arrow schema."""
        return pa.schema(_fields(self.record_schema))

    def read(self, raw: bytes) -> Any:
        """The Arrow table of lines of JSON."""
        reading = pj.ReadOptions(use_threads=False, block_size=len(raw) + 1)
        parsing = pj.ParseOptions(explicit_schema=self.schema, unexpected_field_behavior="ignore")
        try:
            return pj.read_json(pa.BufferReader(raw), reading, parsing).cast(self.schema)
        except pa.ArrowInvalid:  # The slower way converts more values, and names one that is wrong.
            return super().read(raw)

    def table(self, rows: list[Row]) -> Any:
        """Make an Arrow table of some records."""
        try:
            return pa.Table.from_pylist(rows, schema=self.schema)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise RecipeError(f"a record does not fit the schema of its recipe: {error}") from error


def _fields(schema: Mapping[str, Any]) -> list[Any]:
    required = schema.get("required", ())
    return [
        pa.field(name, _record_type(kind), nullable=name not in required)
        for name, kind in schema["properties"].items()
    ]


_JSON_TYPES = {
    "string": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
}


def _record_type(schema: Mapping[str, Any]) -> Any:
    kind = schema.get("type")
    if kind == "object" and "properties" in schema:
        return pa.struct(_fields(schema))
    if kind == "array" and "items" in schema:
        return pa.list_(pa.field("element", _record_type(schema["items"])))
    if not isinstance(kind, str) or kind not in _JSON_TYPES:
        raise OptionError(f"{flag('format', 'parquet')}: no column type for {dict(schema)!r}")
    return _JSON_TYPES[kind]
