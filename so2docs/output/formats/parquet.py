"""Parquet: typed and nested columns, for DuckDB, pandas, polars, Spark and data set hubs.

Each segment is a row group that a worker has made whole, so that memory does not grow with the
dump.
"""

from __future__ import annotations

import inspect
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import orjson

from so2docs.merge import Document
from so2docs.nest import Buffer
from so2docs.options.field_paths import Fields
from so2docs.output.compression import SEGMENT_BYTES
from so2docs.output.formats import footer
from so2docs.output.formats.base import Format
from so2docs.output.formats.columns import ObjectColumns, PartColumns, Row, make_columns, ordered
from so2docs.output.journal import Journal
from so2docs.output.provenance import KEY
from so2docs.output.segments import Segment
from so2docs.schema import (
    ANSWER_ATTRIBUTES,
    ANSWERS,
    POSTS,
    QUESTION_ATTRIBUTES,
    TEXT,
    TEXTS,
    Attributes,
    select_parts,
)

ROW_GROUP_BYTES = 32 * 1024 * 1024
"""JSON of a row group, at most; that of a bucket, where this is less.

For 300 MB of dump this makes 17 groups of up to 22 MB and a footer of 81 kB, in 631 MiB at two
jobs; 8 MiB made 40 groups and a footer of 184 kB, in 580 MiB. More would need documents of several
buckets in one task.
"""

_FOOTER_ROOM = 64 * 1024
_NOTE_ROOM = 512


class Parquet(Format):
    """One Parquet file: a row a question, its answers and what is nested lists of structures."""

    holds_record: ClassVar[bool] = True
    header = footer.MAGIC
    segment_bytes = ROW_GROUP_BYTES

    @cached_property
    def record(self) -> ObjectColumns:
        """What a document is, from the options alone."""
        return _question(self.fields, self.tables, self.site, is_attributed=self.is_attributed)

    def frame(self, document: Document) -> Iterable[Buffer]:
        """The object on a line, which only `segment` sees."""
        document.parts.append(b"}\n")
        return document.parts

    def segment(self, raw: bytes, first_id: int = 0, documents: int = 0) -> Segment:
        """A row group of some documents."""
        if not documents:
            return super().segment(raw)
        import pyarrow as pa

        with system_memory():
            tables = [self.table(rows) for rows in _batches(raw)]
            data, note = footer.split_row_group(self._file(pa.concat_tables(tables)))
        plain = super().segment(data, first_id, documents)
        return Segment(data, len(raw), plain.crc, first_id, documents, note)

    def footer(self, journal: Journal | None, record: bytes = b"") -> bytes:
        """Schema, place of every row group, and how the file was made."""
        groups, at = [], 0
        for entry in journal or ():
            if entry.note:
                groups.append((at, entry.note))
            at += entry.size
        schema = self.schema.with_metadata({KEY: record}) if record else self.schema
        return footer.join_footers(self._file(no_rows(schema)), groups, at)

    def footer_bytes(self, journal: Journal | None, segment: Segment) -> int:
        """Of the notes so far and this one, with room for larger offsets."""
        notes = len(segment.note) + (journal.note_bytes if journal else 0)
        return _FOOTER_ROOM + 2 * notes + _NOTE_ROOM * (1 + (journal.count if journal else 0))

    @cached_property
    def schema(self) -> Any:
        """The Arrow schema."""
        import pyarrow as pa

        return pa.schema(self.record.fields)

    @cached_property
    def _more(self) -> dict[str, Any]:
        """What this version of pyarrow can do for readers, and for storage by content.

        Pages end where the content says, so that the output of the next quarter has most pages in
        common with this one, and a hub stores and transfers only the others.
        """
        import pyarrow.parquet as pq

        parameters = inspect.signature(pq.ParquetWriter.__init__).parameters
        more: dict[str, Any] = {}
        if "use_content_defined_chunking" in parameters:
            more["use_content_defined_chunking"] = True
        if self.sorted_by and "sorting_columns" in parameters:
            order = [(self.sorted_by, "ascending")]
            more["sorting_columns"] = pq.SortingColumn.from_ordering(self.schema, order)
        return more

    @property
    def sorted_by(self) -> str:
        """The column by which the rows of the file ascend; empty if none is known to."""
        return "Id" if self.fields.has("Id") else ""

    def _file(self, table: Any) -> bytes:
        return encode_parquet(table, self.level or None, **self._more)

    def table(self, rows: list[Row]) -> Any:
        """The Arrow table of some documents, which are taken apart."""
        import pyarrow as pa

        return pa.Table.from_arrays(self.record.columns(rows), schema=self.schema)


def _question(
    fields: Fields,
    tables: Sequence[str],
    site: tuple[str, str] | None,
    *,
    is_attributed: bool,
) -> ObjectColumns:
    """What a document is; the site comes after the attributes, as in the JSON object."""
    added: Attributes = {"Url": TEXT} if is_attributed else {}
    question = _post(fields, tables, "", QUESTION_ATTRIBUTES, added)
    attributes, parts = dict(question.attributes), question.parts
    if site is not None:
        attributes[site[0]] = TEXT
    if is_attributed:
        attributes["Licenses"] = TEXTS
        author = ObjectColumns({"DisplayName": TEXT, "Url": TEXT})
        parts = (*parts, PartColumns("Authors", "list", author))
    if fields.has_answers:
        answers = _post(fields, tables, f"{ANSWERS}.", ANSWER_ATTRIBUTES, added)
        parts = (*parts, PartColumns(ANSWERS, "list", answers))
    return replace(question, attributes=attributes, parts=parts)


def _post(
    fields: Fields, tables: Sequence[str], prefix: str, names: Sequence[str], added: Attributes
) -> ObjectColumns:
    """The attributes of a post, and what is nested in it in the order of the JSON object."""
    own = {name: POSTS.attributes[name] for name in names if fields.has(prefix + name)}
    return make_columns(own, select_parts(tables, fields.has, prefix), added, is_post=True)


@contextmanager
def system_memory() -> Iterator[None]:
    """Arrow's own allocators keep what was freed: 50 MiB more a worker."""
    import pyarrow as pa

    usual = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(usual)


def _batches(raw: bytes) -> Iterator[list[Row]]:
    """Documents of about a MiB at a time: as dictionaries they take several times their bytes."""
    lines = io.BytesIO(raw)
    while batch := lines.readlines(SEGMENT_BYTES):
        yield [orjson.loads(line) for line in batch]


def encode_parquet(table: Any, level: int | None, **more: Any) -> bytes:
    """A Parquet file with one row group.

    Args:
        table: An Arrow table.
        level: Of zstd; that of the library if None.
        more: Other options of `pyarrow.parquet.write_table`.
    """
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(
        table,
        sink,
        row_group_size=max(1, table.num_rows),
        compression="zstd",
        compression_level=level,
        # Those of long texts would only make the footer long.
        write_statistics=ordered(list(table.schema)),
        write_page_index=True,  # Readers of a few rows fetch only the pages that have them.
        **more,
    )
    return sink.getvalue()


def no_rows(schema: Any) -> Any:
    """An Arrow table without rows; `empty_table` would import pandas, where that is installed."""
    import pyarrow as pa

    return pa.Table.from_batches([], schema)
