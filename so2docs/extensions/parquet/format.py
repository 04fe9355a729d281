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
from so2docs.extensions.parquet import footer
from so2docs.merge import Document
from so2docs.nest import Buffer
from so2docs.options.table import Options
from so2docs.output.formats import Format, OpenSegment
from so2docs.output.provenance import KEY
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
    """

    holds_record: ClassVar[bool] = True
    header = PARQUET
    absent: Sequence[str] = ()
    segment_bytes = ROW_GROUP_BYTES

    @classmethod
    def of(cls, options: Options) -> Format:
        """Make the format object for documents, or for records of a recipe with a schema."""
        transform = options.transform
        if transform.schema is None:
            form = super().of(options)
        else:
            form = RecordParquet(options.form, level=options.level)
            form.record_schema = transform.schema
            form.is_one_a_question = transform.is_by_site
        assert isinstance(form, Parquet)
        form.absent = options.absent
        return form

    @cached_property
    def columns(self) -> Columns:
        """The columns, which depend only on the options."""
        from so2docs.extensions.parquet.columns import question_columns

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
        from so2docs.extensions.parquet.columns import count_leaves

        if self.form.split.size is not None:
            return self.segment_bytes
        size = total * count_leaves(self.columns.schema) // _MOST_CHUNKS
        return max(self.segment_bytes, min(size, _LARGEST_ROW_GROUP))

    def ends_segment(self, document: Document) -> bool:
        """Return whether a row group may end after a document.

        Only the question id decides this. Most row groups of the next quarter's output therefore
        stay the same, and a hub stores and transfers only the others.
        """
        return crc32(b"%d" % document.question_id) % _DOCUMENTS_PER_MARK == 0

    def make_batch(self, lines: bytes) -> pa.RecordBatch:
        """Make an Arrow record batch of documents on lines."""
        from so2docs.extensions.parquet import arrow

        return arrow.make_batch(self.columns, lines)

    def footer(self, journal: Journal, record: bytes = b"") -> bytes:
        """Make the footer: schema, positions of the row groups, and provenance."""
        from so2docs.extensions.parquet.arrow import encode_parquet, no_rows

        file = encode_parquet(no_rows(self.columns.schema), self.level)
        return footer.join_footers(file, journal, {KEY: record} if record else {})

    def footer_bytes(self, journal: Journal, segment: Segment) -> int:
        """Return an upper limit for the footer, which is shorter than the notes it is made of."""
        return _FOOTER_ROOM + len(segment.note) + journal.note_bytes

    @property
    def sorted_by(self) -> str:
        """The column by which the rows are sorted in ascending order; empty if unknown."""
        return "Id" if self.fields.has("Id") else ""


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
        from so2docs.extensions.parquet.arrow import encode_parquet, system_memory

        if self.size > self._converted:
            self._convert()
        import pyarrow as pa

        with system_memory():
            table = pa.Table.from_batches(self._batches)
            data = encode_parquet(table, self._parquet.level, self._parquet.sorted_by)
        segment = footer.row_group(data, self._raw_size, table.num_rows)
        return segment._replace(first_id=self._first_id)

    def _convert(self) -> None:
        from so2docs.extensions.parquet.arrow import system_memory

        lines = self._take()
        self._raw_size += len(lines)
        self._converted = self.size
        with system_memory():
            self._batches.append(self._parquet.make_batch(lines))


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
    def columns(self) -> Columns:
        """The columns of a record."""
        from so2docs.extensions.parquet.columns import record_columns

        return record_columns(self.record_schema)

    def make_batch(self, lines: bytes) -> pa.RecordBatch:
        """Make an Arrow record batch of records; raise `RecipeError` if one has another form."""
        import pyarrow as pa

        try:
            return super().make_batch(lines)
        except pa.ArrowInvalid as error:
            reason = str(error).splitlines()[0]
            raise RecipeError(
                f"a record does not fit the schema of its recipe: {reason}"
            ) from error
