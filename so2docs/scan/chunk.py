"""Read a chunk of a table in a worker: slices -> rows -> a visitor.

A visitor processes the rows of one chunk. The compiled core reads a slice if the visitor supports
it; otherwise, the reference parses the rows. Memory is bounded by the size of a slice
plus the visitor's result.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from so2docs.counts import ChunkTally
from so2docs.dump.dump import SLICE_BYTES, Chunk, Dump, slices
from so2docs.dump.root import closes_within
from so2docs.errors import Location, MalformedDumpError, flag
from so2docs.parse import core, rows
from so2docs.parse.core import Added
from so2docs.parse.rows import Malformed, TextRow


class Visitor(AbstractContextManager["Visitor"]):
    """Processes the rows of a chunk, in the order of the dump.

    Attributes:
        tally: Counts of the chunk. `read_chunk` counts rows, lines and repaired characters.
        slice_bytes: Size of a slice, in bytes.
    """

    slice_bytes = SLICE_BYTES

    def __init__(self) -> None:
        self.tally = ChunkTally()

    def __exit__(self, *exception: object) -> None:
        pass

    def add_compiled(self, data: bytes) -> Added | None:
        """Process a slice with the compiled core; if impossible, change nothing and return None."""
        return None

    def add(self, rows: list[TextRow]) -> None:
        """Process one or more parsed rows, which may be changed in place."""
        raise NotImplementedError

    def reject(self, offset: int, row: Malformed) -> bool:
        """Process a row that is not XML; return False to make the caller raise an error."""
        return False

    def end_slice(self, dump: Dump, start: Location, data: bytes) -> None:
        """Called after each slice, with its location; lines count from the start of the chunk."""

    def result(self) -> Any:
        """Return the result for the chunk; called after `__exit__`."""
        return None


@dataclass(frozen=True, slots=True)
class ChunkTask:
    """A chunk to read.

    Attributes:
        chunk: The range of the table.
        open: Opens the visitor. Tasks are pickled, so this must be a module-level class or
            function, or a `partial` of one.
    """

    chunk: Chunk
    open: Callable[[], AbstractContextManager[Visitor]]


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """The result of reading a chunk."""

    chunk: Chunk
    tally: ChunkTally
    value: Any


def read_chunk(task: ChunkTask) -> ChunkResult:
    """Read a chunk, and return the result of its visitor."""
    _, dump, start, end = task.chunk
    with task.open() as visitor:
        tally = visitor.tally
        for offset, data in slices(dump, start, end, visitor.slice_bytes):
            location = Location(offset, tally.lines, tally.last_id)
            added = visitor.add_compiled(data)
            if added is not None:
                tally.count_rows(*added)
            else:
                _parse_slice(dump, visitor, offset, data)
            visitor.end_slice(dump, location, data)
            tally.lines += core.count_lines(data)
    return ChunkResult(task.chunk, tally, visitor.result())


def _parse_slice(dump: Dump, visitor: Visitor, offset: int, data: bytes) -> None:
    """Parse a slice with the reference, and pass its rows to the visitor."""
    tally = visitor.tally
    for part in rows.parse(data):
        if isinstance(part, Malformed):
            at = part.position
            if not visitor.reject(offset + at, part):
                line = tally.lines + data.count(b"\n", 0, at)
                raise _malformed_error(dump, Location(offset + at, line, tally.last_id), part)
            tally.count_rows(1)
            continue
        tally.repaired_characters += part.repaired
        if part.rows:
            tally.count_rows(len(part.rows), rows.row_id(part.rows[-1]))
            visitor.add(part.rows)


def _malformed_error(dump: Dump, location: Location, row: Malformed) -> MalformedDumpError:
    """Make the error for a row of a chunk that is not XML."""
    opening, closing = dump.frame
    problem, advice = row.problem, "download the dump again"
    if closes_within(row.raw, dump.frame):
        problem = f"content after its closing {closing.decode(errors='replace')}"
        advice = "if two dumps were joined, split them and convert each"
    if row.is_xml:
        problem = f"holds XML of another shape than a dump ({problem}) in the row"
        advice = "give a file whose rows have only attributes, as in published dumps"
    else:
        problem = f"is not well-formed XML ({problem}) in the row"
    advice += f", or leave such rows out with {flag('errors', 'skip')}"
    if not row.can_be_skipped:
        problem, advice = f"has {row.problem}", "remove it from the dump"
    excerpt = opening + b"\n" + row.raw + closing
    return MalformedDumpError(dump.path, problem, location, advice=advice, excerpt=excerpt)
