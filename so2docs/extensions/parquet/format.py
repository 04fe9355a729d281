"""Parquet: typed and nested columns, for DuckDB, pandas, Polars, Spark and dataset hubs.

Each segment is a complete row group made by a worker, so that memory does not grow with the dump.
The columns depend only on the options and the recipe, so all row groups have the same columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from isal.isal_zlib import crc32

from so2docs.dump.kinds import PARQUET
from so2docs.errors import RecipeError
from so2docs.extensions.parquet.footer import join_footers
from so2docs.merge import Document
from so2docs.options.table import Options
from so2docs.output.formats import Format, OpenSegment
from so2docs.output.segments import Journal, Segment

if TYPE_CHECKING:
    import pyarrow as pa

    from so2docs.extensions.parquet.columns import Columns

ROW_GROUP_BYTES = 4 * 1024 * 1024
"""Usual size of a row group in bytes of JSON; row groups are larger in large outputs."""

_LARGEST_ROW_GROUP = 32 * 1024 * 1024
"""Maximum size of a row group in bytes of JSON, which is held in memory as Arrow."""

_MOST_CHUNKS = 80_000
"""Maximum number of column chunks in a file of up to about 50 GB; the footer describes each."""

_DOCUMENTS_PER_MARK = 64
"""A row group may end after one document in this many, or at twice its usual size."""

_FOOTER_ROOM = 64 * 1024


class Parquet(Format):
    """A Parquet file with one row per question; answers and nested rows are lists of structs.

    Attributes:
        absent: Tables whose columns contain only nulls, because the dump lacks them.
        record_schema: JSON Schema of the records of a recipe, of which each is a row; None for
            documents.
        sorted_by: The column by which the rows are sorted in ascending order; empty if unknown.
    """

    holds_record: ClassVar[bool] = True
    header = PARQUET
    absent: Sequence[str] = ()
    record_schema: Mapping[str, Any] | None = None
    sorted_by = ""

    @classmethod
    def of(cls, options: Options) -> Format:
        """Make the format object for documents, or for records of a recipe with a schema."""
        form = super().of(options)
        assert isinstance(form, Parquet)
        transform = options.transform
        form.absent = options.absent
        form.record_schema = transform.schema
        if transform.is_by_site or (transform.schema is None and form.fields.has("Id")):
            form.sorted_by = "Id"
        return form

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        """The JSON Schema of a row."""
        from so2docs.extensions.json_schema import describe_documents

        if self.record_schema is not None:
            return self.record_schema
        tables = (*self.tables, *self.absent)
        return describe_documents(self.fields, tables, self.site, is_attributed=self.is_attributed)

    @cached_property
    def columns(self) -> Columns:
        """The columns, which depend only on the options."""
        from so2docs.extensions.parquet.columns import question_columns, record_columns

        if self.record_schema is not None:
            return record_columns(self.schema)
        return question_columns(self.schema, self.absent)

    def frame(self, document: Document) -> Iterable[bytes | memoryview]:
        """Return the object on a line, for use by `OpenRowGroup` only."""
        document.parts.append(b"}\n")
        return document.parts

    def open_segment(self, first_id: int) -> OpenSegment:
        """Begin a row group."""
        return OpenRowGroup(self, first_id)

    def bytes_of_segments(self, total: int) -> int:
        """Return the size of a row group in bytes of JSON, which grows with the output."""
        size = total * self._count_columns(self.schema) // _MOST_CHUNKS
        size = max(ROW_GROUP_BYTES, min(size, _LARGEST_ROW_GROUP))
        return size if self.form.split.size is None else min(size, self.form.split.size // 4)

    def _count_columns(self, schema: Mapping[str, Any]) -> int:
        """Count the columns of single values; each object of a document has one for `Other`."""
        if "items" in schema:
            return self._count_columns(schema["items"])
        columns = sum(map(self._count_columns, schema.get("properties", {}).values()))
        return columns + (self.record_schema is None) if columns else 1

    def ends_segment(self, document: Document) -> bool:
        """Return whether a row group may end after a document.

        Only the question id decides this. Most row groups of the next quarter's output therefore
        stay the same, and a hub stores and transfers only the others.
        """
        return crc32(b"%d" % document.question_id) % _DOCUMENTS_PER_MARK == 0

    def make_batch(self, lines: bytes) -> pa.RecordBatch:
        """Make an Arrow record batch of documents or records on lines.

        Raises:
            RecipeError: A record does not fit the columns.
        """
        import pyarrow as pa

        from so2docs.extensions.parquet import arrow

        try:
            return arrow.make_batch(self.columns, lines)
        except pa.ArrowInvalid as error:
            reason = str(error).splitlines()[0]
            raise RecipeError(
                f"a record does not fit the schema of its recipe: {reason}"
            ) from error

    def footer(self, journal: Journal, record: bytes = b"") -> bytes:
        """Make the footer: schema, positions of the row groups, and provenance."""
        return join_footers(journal, record, self._without_rows)

    def _without_rows(self) -> bytes:
        from so2docs.extensions.parquet.arrow import encode_no_rows

        return encode_no_rows(self.columns.schema, self.level)

    def footer_bytes(self, journal: Journal, segment: Segment) -> int:
        """Return an upper limit for the footer, which is shorter than the notes it is made of."""
        return _FOOTER_ROOM + len(segment.note) + journal.note_bytes


class OpenRowGroup(OpenSegment):
    """Documents of a row group, which become Arrow when they have the usual size of one."""

    def __init__(self, form: Parquet, first_id: int) -> None:
        super().__init__(form, first_id)
        self._parquet = form
        self._batches: list[pa.RecordBatch] = []
        self._raw_size = self._converted = 0

    def add(self, document: Document) -> None:
        """Add a document."""
        super().add(document)
        if self.size - self._converted >= ROW_GROUP_BYTES:
            self._convert()

    def end(self) -> Segment:
        """Encode the documents as a row group."""
        import pyarrow as pa

        from so2docs.extensions.parquet.arrow import make_row_group

        if self.size > self._converted:
            self._convert()
        form, table = self._parquet, pa.Table.from_batches(self._batches)
        segment = make_row_group(table, self._raw_size, form.level, form.sorted_by)
        return segment._replace(first_id=self._first_id)

    def _convert(self) -> None:
        lines = self._take()
        self._raw_size += len(lines)
        self._converted = self.size
        self._batches.append(self._parquet.make_batch(lines))
