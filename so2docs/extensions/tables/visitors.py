"""Read a chunk of a table in a worker: choose its rows, and pass them to an encoder."""

from __future__ import annotations

from collections.abc import Callable

from so2docs.extensions.tables.columns import SLICE_BYTES, Batch, TableColumns
from so2docs.extensions.tables.options import RowOptions
from so2docs.extensions.tables.selection import RowSelection
from so2docs.extensions.tables.writing import LEVEL, Encoder
from so2docs.options.choices import Core
from so2docs.output.compression import SEGMENT_BYTES, compress
from so2docs.output.segments import Segment, store
from so2docs.parse import bodies
from so2docs.parse.core import Added
from so2docs.parse.keys import BY_OPTED_OUT
from so2docs.parse.opt_outs import OptOuts
from so2docs.parse.posts import READ, malformed_line, stray_line
from so2docs.parse.rows import Malformed, TextRow
from so2docs.plugin import POSTS
from so2docs.scan.chunk import Visitor
from so2docs.schema import INTEGER, OTHER, Table

_UNKNOWN_BEFORE = {
    "comments": ("Score",),
    "users": ("Reputation", "LastAccessDate", "Views", "UpVotes", "DownVotes"),
    "tags": ("Count",),
}
"""Columns that change without a record of their former values, by table."""

OpenEncoder = Callable[[TableColumns], Encoder]


class BatchVisitor(Visitor):
    """Reads the rows of a chunk in batches. Rows without a usable `Id` are left out.

    Args:
        table: Table of the chunk.
        options: The core, whether malformed rows are left out, and the users and posts to drop.
    """

    slice_bytes = SLICE_BYTES

    def __init__(self, table: Table, options: RowOptions) -> None:
        super().__init__()
        self.table, self.columns = table, TableColumns(table)
        self._opt_outs = OptOuts(options, table)
        self._core: Core = "python" if self._opt_outs.needs_rows else options.core
        self._skip_malformed = options.errors == "skip"

    def add_batch(self, batch: Batch) -> None:
        """Process the rows of a slice."""
        raise NotImplementedError

    def add_compiled(self, data: bytes) -> Added | None:
        """Add the rows of a canonical slice; return None if the reference must parse it."""
        compiled = self.columns.parse(data) if self._core == "compiled" else None
        if compiled is None:
            return None
        batch, last_id = compiled
        count = len(batch)
        self.add_batch(batch)
        return count, last_id

    def add(self, rows: list[TextRow]) -> None:
        """Add rows, except for dropped rows and those without a usable `Id`."""
        usable = []
        for row in self._opt_outs.filter(rows, self.tally):
            if BY_OPTED_OUT in row:
                self.tally.filtered += 1
            elif READ[INTEGER](row.get("Id", "")) is not None:
                usable.append(row)
            else:
                reason = f"{self.table.row}_{'invalid' if 'Id' in row else 'missing'}_id"
                self.leave_out(reason, stray_line(reason, row))
        if usable:
            self.add_batch(self.columns.from_rows(usable))

    def reject(self, offset: int, row: Malformed) -> bool:
        """Leave out a malformed row if such rows are skipped; return whether it was left out."""
        if not (self._skip_malformed and row.can_be_skipped):
            return False
        if self._opt_outs.drops_malformed(row.raw, self.tally):
            return True
        reason = f"malformed_{self.table.row}"
        self.leave_out(reason, malformed_line(offset, row.raw, reason))
        return True

    def leave_out(self, reason: str, line: bytes) -> None:
        """Handle a row that is left out, given its line for the strays file; a hook, empty here."""


class ColumnsVisitor(BatchVisitor):
    """Converts the rows of a chunk to segments of a file.

    Args:
        table: Table of the chunk.
        options: The options.
        selection: Filter of the rows.
        host: Host of the site, which determines the delimiter of formulas in Markdown.
        open_encoder: Opens the encoder of the rows. Tasks are pickled, so this must be a
            module-level class or function, or a `partial` of one.
        path: File for the segments.
    """

    def __init__(
        self,
        table: Table,
        options: RowOptions,
        selection: RowSelection,
        host: str | None,
        open_encoder: OpenEncoder,
        *,
        path: str,
    ) -> None:
        super().__init__(table, options)
        self._selection, self._path = selection, path
        self._encoder = open_encoder(self.columns)
        # Restored bodies already have their form, and values that change have none.
        self._unknown = () if options.as_of is None else _UNKNOWN_BEFORE.get(table.name, ())
        self._convert = None
        if table == POSTS and options.as_of is None:
            self._convert = bodies.converter(options.body, options.core, host)
        self._written = self._misfits = 0
        self._stray_lines = bytearray()
        self._segments: list[Segment] = []
        self._strays: list[Segment] = []

    def add_batch(self, batch: Batch) -> None:
        """Filter and encode the rows of a slice."""
        count = len(batch)
        self._selection.apply(batch)
        self.tally.filtered += count - len(batch)
        self._written += len(batch)
        self._misfits += sum(other is not None for other in batch.column(OTHER))
        for name in self._unknown:
            batch.replace(name, [None] * len(batch))
        if self._convert is not None:
            texts = batch.column("Body")
            batch.replace("Body", [text and self._convert(text) for text in texts])
        if len(batch):
            self._encoder.add(batch)

    def leave_out(self, reason: str, line: bytes) -> None:
        """Count a stray, and add its line to the strays file."""
        self.tally.strays[reason] += 1
        self._stray_lines += line
        if len(self._stray_lines) >= SEGMENT_BYTES:
            self._compress_strays()

    def _compress_strays(self) -> None:
        if self._stray_lines:
            self._strays.append(compress(bytes(self._stray_lines), "gzip", LEVEL))
            self._stray_lines.clear()

    def __exit__(self, *exception: object) -> None:
        """Write the segments of the chunk to the file; `OutputError` if it cannot be written."""
        if any(exception):
            return
        self._compress_strays()
        segments = self._encoder.segments()
        if segments or self._strays:
            self._segments, self._strays = store(self._path, segments, self._strays)

    def result(self) -> tuple[list[Segment], list[Segment], int, int]:
        """Return the segments of the table, those of the strays file, and counts.

        The counts are the numbers of rows written, and of those with a value in `Other`.
        """
        return self._segments, self._strays, self._written, self._misfits
