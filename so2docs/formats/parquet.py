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

from so2docs.attributes import ANSWER_ATTRIBUTES, DATES, QUESTION_ATTRIBUTES
from so2docs.compression import PIECE_BYTES, Piece
from so2docs.errors import OptionError
from so2docs.formats import footer
from so2docs.formats.base import Format
from so2docs.merge import Buffer, Document
from so2docs.piece_log import PieceLog
from so2docs.posts import NUMBERS

if TYPE_CHECKING:
    from so2docs.options import Options

ROW_GROUP_BYTES = 8 * 1024 * 1024
"""JSON of a row group: about 2.5 MB in the file."""

OTHER = "Other"
"""Column for attributes that have none of their own, or a value that is not of its type.

As the text of a JSON object: not all readers know maps (data set hubs do not), all know text.
"""

_Row = dict[str, Any]
_FOOTER_ROOM = 64 * 1024
_NOTE_ROOM = 512
_NONE: set[str] = set()


class Parquet(Format):
    """One Parquet file: a row a question, its answers a list of structures."""

    extensions: ClassVar[tuple[str, ...]] = (".parquet",)
    compressed: ClassVar[bool] = False
    logs: ClassVar[bool] = True
    header = footer.MAGIC
    piece_bytes = ROW_GROUP_BYTES

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        fields = options.filters.fields
        self.question_columns = [name for name in QUESTION_ATTRIBUTES if fields.has_question(name)]
        self.answer_columns = [name for name in ANSWER_ATTRIBUTES if fields.has_answer(name)]
        self.has_answers = fields.has_answers

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

        fields = self._fields(self.question_columns)
        if self.has_answers:
            answers = pa.struct(self._fields(self.answer_columns))
            fields.append(pa.field("Answers", pa.list_(pa.field("element", answers))))
        return pa.schema(fields)

    def _fields(self, names: list[str]) -> list[Any]:
        import pyarrow as pa

        return [pa.field(name, _type(name)) for name in (*names, OTHER)]

    def _file(self, table: Any) -> bytes:
        import pyarrow.parquet as pq

        sink = io.BytesIO()
        # Statistics of long texts would only make the footer long.
        counted = [name for name in self.question_columns if _is_ordered(name)]
        counted += [
            f"Answers.list.element.{name}" for name in self.answer_columns if _is_ordered(name)
        ]
        pq.write_table(
            table,
            sink,
            row_group_size=max(1, table.num_rows),
            compression="zstd",
            compression_level=self.level or None,
            write_statistics=counted,
        )
        return sink.getvalue()

    def _table(self, rows: list[_Row]) -> Any:
        import pyarrow as pa

        answers = [row.pop("Answers", ()) for row in rows]
        columns = _columns(rows, self.question_columns)
        if self.has_answers:
            flat = [answer for some in answers for answer in some]
            fields = list(self.schema.field("Answers").type.value_type)
            structs = pa.StructArray.from_arrays(_columns(flat, self.answer_columns), fields=fields)
            offsets = [0]
            for some in answers:
                offsets.append(offsets[-1] + len(some))
            columns.append(
                pa.ListArray.from_arrays(
                    pa.array(offsets, pa.int32()), structs, type=self.schema.field("Answers").type
                )
            )
        return pa.Table.from_arrays(columns, schema=self.schema)


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


def _batches(raw: bytes) -> Iterator[list[_Row]]:
    """Documents of about a MiB at a time: as dictionaries they take several times their bytes."""
    lines = io.BytesIO(raw)
    while batch := lines.readlines(PIECE_BYTES):
        yield [orjson.loads(line) for line in batch]


def _is_ordered(name: str) -> bool:
    return name in NUMBERS or name in DATES


def _type(name: str) -> Any:
    import pyarrow as pa

    if name in NUMBERS:
        return pa.int64()
    if name in DATES:
        return pa.timestamp("ms", tz="UTC")
    return pa.list_(pa.field("element", pa.string())) if name == "Tags" else pa.string()


def _columns(rows: list[_Row], names: list[str]) -> list[Any]:
    """A column for each name, and one for what is left."""
    import pyarrow as pa

    misfits: dict[int, set[str]] = {}
    columns = [_column(name, rows, misfits) for name in names]
    known = frozenset(names)
    other = [
        orjson.dumps({name: row[name] for name in row if name not in known or name in misfit})
        if (misfit := misfits.get(place, _NONE)) or row.keys() - known
        else None
        for place, row in enumerate(rows)
    ]
    columns.append(pa.array(other, pa.binary()).cast(pa.string()))
    return columns


def _column(name: str, rows: list[_Row], misfits: dict[int, set[str]]) -> Any:
    """The values of an attribute; those that are not of its type are left for `OTHER`."""
    import pyarrow as pa

    values = [row.get(name) for row in rows]
    try:
        return _array(name, values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        pass
    for place, value in enumerate(values):
        try:
            _array(name, [value])
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            values[place] = None
            misfits.setdefault(place, set()).add(name)
    return _array(name, values)


def _array(name: str, values: list[Any]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if name in DATES:
        texts = pa.array(values, pa.string())
        return pc.assume_timezone(texts.cast(pa.timestamp("ms")), "UTC")
    return pa.array(values, _type(name))
