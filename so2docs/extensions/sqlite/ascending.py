"""Rows in ascending order of their ids, so that a table is written from left to right.

Documents are in the order of questions, and a later answer may be years away: inserting it at once
reads and writes a page in the middle of the table. These pages were 15 GB for a database of 2 GB.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import IO

from so2docs.extensions.sqlite.rows import Values, pack, unpack
from so2docs.output.part_files import explain_errors

_MOST_CHARACTERS = 12 * 1024 * 1024
"""Number of characters to keep in memory."""
_ROW_CHARACTERS = 500
"""Number of characters that take as much memory as a row without its texts."""
_BLOCK_ROWS = 16
_ID = itemgetter(0)


class AscendingRows:
    """Rows that wait until all rows with smaller ids have come.

    Rows that do not fit in memory are in a temporary file: sorted runs, each in blocks that hold
    the rows and, for the next block of the run, its first id and its size in bytes.

    Attributes:
        added: Number of characters added since the last rows were removed.
    """

    def __init__(self, path: str) -> None:
        """Make an empty collection.

        Args:
            path: Path of the temporary file, which is made when it is needed.
        """
        self._path = path
        self._rows: list[Values] = []
        self._characters = self.added = 0
        self._file: IO[bytes] | None = None
        self._runs: list[tuple[int, int, int]] = []
        """Heap of first id, offset and size of the next block of each run."""

    def close(self) -> None:
        """Close the temporary file."""
        if self._file is not None:
            self._file.close()

    def add(self, rows: Iterable[Values]) -> None:
        """Add rows, which start with their ids, in any order."""
        self.added += self._put(rows)
        if self._characters > _MOST_CHARACTERS:
            self._rows.sort(key=_ID)
            half = len(self._rows) // 2
            self._write(self._take(half, len(self._rows)))

    def up_to(self, limit: float) -> Iterator[list[Values]]:
        """Remove the rows whose ids are less than `limit`, and yield them in ascending order."""
        self.added = 0
        while True:
            while self._has_block(limit):
                self._read_block()
                if self._characters >= _MOST_CHARACTERS:
                    break
            least = self._runs[0][0] if self._runs else limit
            self._rows.sort(key=_ID)
            if rows := self._take(0, bisect_left(self._rows, min(least, limit), key=_ID)):
                yield rows
            if not self._has_block(limit):
                return

    def _put(self, rows: Iterable[Values]) -> int:
        """Keep rows in memory, and return the number of their characters."""
        rows = list(rows)
        characters = sum(len(value) for row in rows for value in row if type(value) is str)
        characters += len(rows) * _ROW_CHARACTERS
        self._rows += rows
        self._characters += characters
        return characters

    def _take(self, start: int, end: int) -> list[Values]:
        rows, before = self._rows[start:end], len(self._rows)
        del self._rows[start:end]
        # This is an estimate: counting again takes longer than sorting.
        self._characters = self._characters * len(self._rows) // max(before, 1)
        return rows

    def _has_block(self, limit: float) -> bool:
        return bool(self._runs) and self._runs[0][0] < limit

    def _write(self, rows: list[Values]) -> None:
        """Write sorted rows as a run."""
        blocks = [rows[at : at + _BLOCK_ROWS] for at in range(0, len(rows), _BLOCK_ROWS)]
        packed, following = [], (0, 0)
        for block in reversed(blocks):
            packed.append(pack((block, following)))
            following = block[0][0], len(packed[-1])
        with explain_errors(self._path):
            if self._file is None:
                self._file = open(self._path, "w+b")  # noqa: SIM115
            offset = self._file.seek(0, 2)
            self._file.writelines(reversed(packed))
        heapq.heappush(self._runs, (following[0], offset, following[1]))

    def _read_block(self) -> None:
        """Read the next block of the run that starts with the smallest id."""
        _, offset, size = self._runs[0]
        assert self._file is not None
        with explain_errors(self._path):
            self._file.seek(offset)
            rows, (first, following) = unpack(self._file.read(size))
        if following:
            heapq.heapreplace(self._runs, (first, offset + size, following))
        else:
            heapq.heappop(self._runs)
        self._put(rows)
