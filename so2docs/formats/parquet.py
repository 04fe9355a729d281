"""Parquet: typed and nested columns, for DuckDB, pandas, polars, Spark and data set hubs.

Each piece is a row group that a worker has made whole, so that memory does not grow with the dump.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

import orjson

from so2docs.attributes import (
    ANSWER_ATTRIBUTES,
    COMMENT_ATTRIBUTES,
    LINK_ATTRIBUTES,
    QUESTION_ATTRIBUTES,
    USER_ATTRIBUTES,
)
from so2docs.errors import OptionError
from so2docs.formats import footer
from so2docs.formats.base import Format
from so2docs.formats.columns import Part, Record, Row, ordered
from so2docs.merge import Buffer, Document
from so2docs.output import PIECE_BYTES, Piece
from so2docs.piece_log import PieceLog
from so2docs.tables import TABLES, VOTE_COLUMNS

if TYPE_CHECKING:
    from so2docs.options import Options

ROW_GROUP_BYTES = 8 * 1024 * 1024
"""JSON of a row group: about 2.5 MB in the file."""

_FOOTER_ROOM = 64 * 1024
_NOTE_ROOM = 512


class Parquet(Format):
    """One Parquet file: a row a question, its answers and what is nested lists of structures."""

    extensions: ClassVar[tuple[str, ...]] = (".parquet",)
    compressed: ClassVar[bool] = False
    logs: ClassVar[bool] = True
    header = footer.MAGIC
    piece_bytes = ROW_GROUP_BYTES

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.record = _question(options)

    @staticmethod
    def check() -> None:
        """Raise `OptionError` unless pyarrow is installed."""
        if find_spec("pyarrow") is None:
            raise OptionError("--format parquet needs pyarrow: pip install 'so2docs[parquet]'")

    def frame(self, document: Document) -> Iterable[Buffer]:
        """The object on a line, which only `piece` sees."""
        document.parts.append(b"}\n")
        return document.parts

    def piece(self, raw: bytes, first_id: int = 0, documents: int = 0) -> Piece:
        """A row group of some documents."""
        if not documents:
            return super().piece(raw)
        import pyarrow as pa

        with _system_memory():
            tables = [self._table(rows) for rows in _batches(raw)]
            data, note = footer.split(self._file(pa.concat_tables(tables)))
        plain = super().piece(data, first_id, documents)
        return Piece(data, len(raw), plain.crc, first_id, documents, note)

    def footer(self, log: PieceLog | None) -> bytes:
        """Schema, and place of every row group."""
        groups, at = [], 0
        for size, _, note in log or ():
            if note:
                groups.append((at, note))
            at += size
        return footer.joined(self._file(self.schema.empty_table()), groups)

    def footer_bytes(self, log: PieceLog | None, piece: Piece) -> int:
        """Of the notes so far and this one, with room for larger offsets."""
        notes = len(piece.note) + (log.note_bytes if log else 0)
        return _FOOTER_ROOM + notes + _NOTE_ROOM * (1 + (log.count if log else 0))

    @cached_property
    def schema(self) -> Any:
        """The Arrow schema."""
        import pyarrow as pa

        return pa.schema(self.record.fields)

    def _file(self, table: Any) -> bytes:
        import pyarrow.parquet as pq

        sink = io.BytesIO()
        pq.write_table(
            table,
            sink,
            row_group_size=max(1, table.num_rows),
            compression="zstd",
            compression_level=self.level or None,
            # Those of long texts would only make the footer long.
            write_statistics=ordered(self.record.fields),
        )
        return sink.getvalue()

    def _table(self, rows: list[Row]) -> Any:
        import pyarrow as pa

        return pa.Table.from_arrays(self.record.columns(rows), schema=self.schema)


def _question(options: Options) -> Record:
    """What a document is, from the options alone."""
    fields = options.filters.fields
    question = tuple(name for name in QUESTION_ATTRIBUTES if fields.has_question(name))
    answer = tuple(name for name in ANSWER_ATTRIBUTES if fields.has_answer(name))
    parts = _nested(options)
    if fields.has_answers:
        parts = (*parts, Part("Answers", "list", Record(answer, _nested(options))))
    return Record(question, parts)


def _nested(options: Options) -> tuple[Part, ...]:
    """What the rows of other tables become in a post, in the order of the JSON object."""
    user = Record(USER_ATTRIBUTES)
    has_users = "users" in options.nest
    in_comment = (Part("User", "record", user),) if has_users else ()
    lists = {"comments": Record(COMMENT_ATTRIBUTES, in_comment), "links": Record(LINK_ATTRIBUTES)}
    parts = [
        Part(TABLES[name].key, "list", lists[name])
        if name in lists
        else Part(TABLES[name].key, "counts", Record(VOTE_COLUMNS))
        for name in options.nest
        if TABLES[name].key
    ]
    if has_users:
        parts += [Part(key, "record", user) for key in ("Owner", "LastEditor")]
    return tuple(parts)


@contextmanager
def _system_memory() -> Iterator[None]:
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
    while batch := lines.readlines(PIECE_BYTES):
        yield [orjson.loads(line) for line in batch]
