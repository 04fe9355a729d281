"""Parquet: typed and nested columns, for DuckDB, pandas, Polars, Spark and dataset hubs.

Each segment is a complete row group made by a worker, so that memory does not grow with the dump.
The columns of questions, answers and nested rows are fixed, so all row groups have the same
columns; the columns of a recipe's records come from their JSON Schema.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from types import NoneType
from typing import Any, ClassVar

import orjson
from isal.isal_zlib import crc32

from so2docs.dump.kinds import PARQUET
from so2docs.errors import OptionError, RecipeError, flag
from so2docs.extensions.parquet import footer
from so2docs.extensions.parquet.columns import question_columns
from so2docs.extensions.parquet.row_group import (
    NUMBER,
    Column,
    Convert,
    Group,
    Node,
    Repeated,
    RowGroup,
    ValueKind,
    check,
    check_lists,
    count_columns,
    file_metadata,
)
from so2docs.merge import Document
from so2docs.nest import Buffer
from so2docs.options.choices import Core
from so2docs.options.table import Options
from so2docs.output.compression import SEGMENT_BYTES
from so2docs.output.formats.base import Format, OpenSegment
from so2docs.output.provenance import KEY
from so2docs.output.segments import Journal, Segment
from so2docs.schema import BOOLEAN, INTEGER, TEXT, Row

ROW_GROUP_BYTES = 4 * 1024 * 1024
"""Usual size of a row group in bytes of JSON; row groups are larger in large outputs."""

_MOST_CHUNKS = 80_000
"""Approximate maximum number of column chunks in a file; the footer describes each."""

_DOCUMENTS_PER_MARK = 64
"""A page or a row group may end after one document in this many, or at twice its usual size."""


class Parquet(Format):
    """A Parquet file with one row per question; answers and nested rows are lists of structs.

    Attributes:
        core: The core that encodes rows.
        absent: Tables whose columns contain only nulls, because the dump lacks them.
    """

    holds_record: ClassVar[bool] = True
    header = PARQUET
    core: Core = "python"
    absent: Sequence[str] = ()
    segment_bytes = ROW_GROUP_BYTES

    @classmethod
    def of(cls, options: Options) -> Format:
        """Make the format object for documents, or for records of a recipe with a schema."""
        transform = options.transform
        if transform is None or transform.schema is None:
            form = super().of(options)
        else:
            form = RecordParquet(options.form, level=options.level)
            form.record_schema = transform.schema
            form.is_one_a_question = transform.is_by_site
        assert isinstance(form, Parquet)
        form.core, form.absent = options.core, options.absent
        return form

    @cached_property
    def columns(self) -> Group:
        """The columns, which depend only on the options."""
        tables = dict.fromkeys(self.tables, True) | dict.fromkeys(self.absent, False)
        return question_columns(self.fields, tables, self.site, is_attributed=self.is_attributed)

    def frame(self, document: Document) -> Iterable[Buffer]:
        """Return the object on a line, for use by `OpenRowGroup` only."""
        document.parts.append(b"}\n")
        return document.parts

    def open_segment(self, first_id: int) -> OpenSegment:
        """Begin a row group."""
        return OpenRowGroup(self, first_id)

    def bytes_of_segments(self, total: int) -> int:
        """Return the size of a row group in bytes of JSON, which grows with the output."""
        if self.form.split.size is not None:
            return self.segment_bytes
        return max(self.segment_bytes, total * count_columns(self.columns) // _MOST_CHUNKS)

    def ends_segment(self, document: Document) -> bool:
        """Return whether a page or a row group may end after a document.

        Only the question id decides this. Most pages of the next quarter's output therefore stay
        the same, and a hub stores and transfers only the other pages.
        """
        return crc32(b"%d" % document.question_id) % _DOCUMENTS_PER_MARK == 0

    def add_page(self, group: RowGroup, rows: list[Row]) -> None:
        """Add a page of documents to a row group; this changes the documents."""
        group.add(rows)

    def footer(self, journal: Journal, record: bytes = b"") -> bytes:
        """Make the footer: schema, positions of the row groups, and provenance."""
        pairs = {KEY: record} if record else {}
        return footer.join_footers(file_metadata(self.columns, pairs), journal)

    def footer_bytes(self, journal: Journal, segment: Segment) -> int:
        """Return an upper limit for the footer, which is shorter than the notes it is made of."""
        return _FOOTER_ROOM + len(segment.note) + journal.note_bytes

    @property
    def sorted_by(self) -> str:
        """The column by which the rows are sorted in ascending order; empty if unknown."""
        return "Id" if self.fields.has("Id") else ""


_FOOTER_ROOM = 64 * 1024


class OpenRowGroup(OpenSegment):
    """Documents of a row group; all pages but the last are already encoded."""

    def __init__(self, form: Parquet, first_id: int) -> None:
        super().__init__(form, first_id)
        self._parquet = form
        is_compiled = form.core == "compiled"
        self._group = RowGroup(form.columns, form.level, form.sorted_by, is_compiled=is_compiled)
        self._encoded = self._raw_size = 0

    def add(self, document: Document) -> None:
        """Add a document."""
        super().add(document)
        times = 1 if self._parquet.ends_segment(document) else 2
        if self.size - self._encoded >= times * SEGMENT_BYTES:
            self._end_page()

    def end(self) -> Segment:
        """Encode the last page, and make a segment of the row group."""
        if self.size > self._encoded:
            self._end_page()
        return self._group.segment(self._raw_size, self._first_id)

    def _end_page(self) -> None:
        raw = self._take()
        self._raw_size += len(raw)
        self._encoded = self.size
        if not self._group.add_lines(raw):
            self._parquet.add_page(self._group, [orjson.loads(line) for line in io.BytesIO(raw)])


class RecordParquet(Parquet):
    """A Parquet file with a row per record.

    Attributes:
        record_schema: JSON Schema of a record.
        is_one_a_question: Whether each record is a question, with the question's id as `Id`.
    """

    record_schema: Mapping[str, Any]
    is_one_a_question: bool = False

    @property
    def sorted_by(self) -> str:
        """The column by which the rows are sorted in ascending order; empty if unknown."""
        return "Id" if self.is_one_a_question else ""

    @cached_property
    def columns(self) -> Group:
        """The columns of a record."""
        return _record_group("", self.record_schema, is_required=True)

    def add_page(self, group: RowGroup, rows: list[Row]) -> None:
        """Add a page of records to a row group; raise `RecipeError` if one is unlike the schema."""
        try:
            group.add(rows)
        except TypeError as error:
            raise RecipeError(f"a record does not fit the schema of its recipe: {error}") from error


def _record_group(name: str, schema: Mapping[str, Any], *, is_required: bool) -> Group:
    required = schema.get("required", ())
    children = tuple(
        _record_node(name, kind, is_required=name in required)
        for name, kind in schema["properties"].items()
    )
    return Group(name, children, partial(_split_records, children), is_required, is_open=True)


_KINDS: dict[str, ValueKind] = {
    "string": TEXT,
    "integer": INTEGER,
    "number": NUMBER,
    "boolean": BOOLEAN,
}


def _record_node(name: str, schema: Mapping[str, Any], *, is_required: bool = False) -> Node:
    kind = schema.get("type")
    if kind == "object" and schema.get("properties"):
        return _record_group(name, schema, is_required=is_required)
    if kind == "array" and "items" in schema:
        return Repeated(name, _record_node("element", schema["items"]), is_required)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise OptionError(f"{flag('format', 'parquet')}: no column type for {dict(schema)!r}")
    return Column(name, _KINDS[kind], is_required)


def _split_records(children: tuple[Node, ...], rows: list[Row], _: Convert) -> list[list[Any]]:
    """Make a list of values for each column from a list of records, and check their types."""
    columns = [[row.get(child.name) for row in rows] for child in children]
    for child, values in zip(children, columns, strict=True):
        try:
            _check(child, values)
        except TypeError as error:
            raise TypeError(f"{child.name}: {error}") from error
    return columns


def _check(node: Node, values: list[Any]) -> None:
    if isinstance(node, Column):
        check(node.kind, values)
    elif isinstance(node, Repeated):
        check_lists(values)
        _check(node.element, list(chain.from_iterable(value for value in values if value)))
    elif not {*map(type, values)} <= {dict, NoneType}:
        raise TypeError("not every value is an object")
