"""The task of a worker for flat tables: a range of a table -> segments of files, and counts.

A chunk has a fixed size, and becomes a row group of Parquet or a segment of lines: so the bytes of
a file do not depend on the number of workers, nor on whether the table comes from an archive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from so2docs.counts import ChunkTally
from so2docs.dump.dump import Chunk, slices
from so2docs.flat.columns import RowSelection, TableColumns, periods, why_stray
from so2docs.flat.writing import ENCODERS
from so2docs.options.choices import Core, SplitBy, TableFormat
from so2docs.output.segments import Segment, store
from so2docs.parse import core, rows
from so2docs.parse.posts import malformed_line, stray_line
from so2docs.pipeline.chunk import malformed_error
from so2docs.schema import Table

CHUNK_BYTES = 16 * 1024 * 1024
"""XML of a row group: 6 MB of Parquet of posts, or 180,000 votes."""

_SLICE_BYTES = 1024 * 1024
"""Larger than for documents: each slice costs 0.3 ms for the objects of 23 columns."""


@dataclass(frozen=True, slots=True)
class TableTask:
    """A range of a table.

    Attributes:
        chunk: The range.
        path: File for the segments.
        table: The table.
        format: Format of the output.
        core: `compiled` or `python`.
        split_by: `year` or `month` to write a file for each period.
        selection: Which rows are kept.
        skip_malformed: Whether rows that are not XML are strays.
    """

    chunk: Chunk
    path: str
    table: Table
    format: TableFormat
    core: Core
    split_by: SplitBy | None
    selection: RowSelection
    skip_malformed: bool


@dataclass(slots=True)
class TableResult:
    """A range that was read.

    Attributes:
        task: The task.
        segments: The segments, with the positions of their data; the label is the period.
        tally: Counts of rows, filtered rows, and strays by reason.
        misfits: Rows with a value in `Other`.
        strays: The lines of the strays file.
    """

    task: TableTask
    segments: list[Segment] = field(default_factory=list)
    tally: ChunkTally = field(default_factory=ChunkTally)
    misfits: int = 0
    strays: bytes = b""


def read_chunk(task: TableTask) -> TableResult:
    """Parse a chunk once, and write its rows as segments.

    Raises:
        MalformedDumpError: A row is not XML; lines in it count from the start of the chunk.
        ChangedDumpError: The dump has changed since it was opened.
        OutputError: The file cannot be written.
    """
    import pyarrow as pa

    from so2docs.output.formats.parquet import system_memory

    result, columns = TableResult(task), TableColumns(task.table)
    with system_memory():
        batches, tally = [], result.tally
        for offset, data in slices(task.chunk.dump, task.chunk.start, task.chunk.end, _SLICE_BYTES):
            for batch in _batches(task, columns, result, offset, data):
                rows = task.selection.filter(batch, columns)
                tally.filtered += batch.num_rows - rows.num_rows
                result.misfits += rows.num_rows - rows.column(rows.num_columns - 1).null_count
                if rows.num_rows:
                    batches.append(rows)
            tally.lines += core.count_lines(data)
        table = pa.Table.from_batches(batches, columns.schema)
        if batches:
            encoder = ENCODERS[task.format](columns.schema)
            parts = periods(table, columns.date, task.split_by) if task.split_by else [("", table)]
            segments = [encoder.segment(part, label) for label, part in parts]
            (result.segments,) = store(task.path, segments)
    return result


def _batches(
    task: TableTask, columns: TableColumns, result: TableResult, offset: int, data: bytes
) -> Iterator[Any]:
    """Yield the record batches of a slice, and count its strays."""
    tally = result.tally
    compiled = columns.parse(data) if task.core == "compiled" else None
    if compiled is not None:
        batch, last_id = compiled
        tally.rows += batch.num_rows
        tally.last_id = tally.last_id if last_id is None else last_id
        yield batch
        return
    what = task.table.row
    for part in rows.parse(data):
        if isinstance(part, rows.Malformed):
            at = offset + part.position
            if not (task.skip_malformed and part.can_be_skipped):
                raise malformed_error(task.chunk.dump, at, tally, data, part)
            tally.rows += 1
            result.strays += malformed_line(at, part.raw, f"malformed_{what}")
            tally.strays[f"malformed_{what}"] += 1
            continue
        tally.repaired_characters += part.repaired
        tally.rows += len(part.rows)
        usable = []
        for row in part.rows:
            if reason := why_stray(row, "Id", what):
                result.strays += stray_line(reason, row)
                tally.strays[reason] += 1
            else:
                usable.append(row)
        if usable:
            tally.last_id = rows.row_id(usable[-1])
            yield columns.from_rows(usable)
