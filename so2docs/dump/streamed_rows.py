"""Hand on the rows of a stream in pieces of whole rows, and check the end of the dump.

A stream is cut where rows start (`rows.ROW_START`), as a file is. Memory is a block, and what a
block may end with.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from so2docs.dump.ending import MISC_LIMIT, Ending, check_misc, empty_root_error
from so2docs.dump.prolog import Prolog
from so2docs.dump.source import BLOCK_BYTES
from so2docs.errors import Location, MalformedDumpError
from so2docs.parse.rows import ROW_START
from so2docs.schema import Table

MOST_ROW_BYTES = 128 * 1024 * 1024
"""A longer row is no row: posts end at 30,000 characters. Bounds what a bomb takes of disk."""


class StreamedRows:
    """The rows of a stream, between the root's tags, handed on in chunks of whole rows.

    Args:
        path: Name of the dump, for messages.
        read: Returns at most as many bytes as asked for; none at the end of the stream.
        prolog: The start of the stream, which has been read already.
        wanted: What the dump is to be.
    """

    def __init__(
        self, path: str, read: Callable[[int], bytes], prolog: Prolog, wanted: Table
    ) -> None:
        self._path = path
        self._read = read
        self._ending = Ending(path, prolog.frame, wanted)
        self._wanted = wanted
        self._data = prolog.head[prolog.start :]
        self._is_empty = prolog.is_empty
        self.at_end = prolog.is_empty

    def copy(self, size: int, write: Callable[[bytes], object]) -> Iterator[int]:
        """Hand on whole rows, at least `size` bytes of them unless the root closes before.

        Args:
            size: Bytes after which the next row start ends the piece.
            write: Gets the bytes.

        Yields:
            The number of bytes handed on, each time that some are.

        Raises:
            TruncatedDumpError: The stream ends before the root closes.
            MalformedDumpError: Content follows the root, or no row starts for longer than any row
                is. A place counts from the end of what was handed on.
        """
        copied = 0
        while True:
            limit, _ = self._ending.find(self._data, is_all=False)
            cut = self._row_after(size - copied, limit)
            copied += yield from self._hand_on(limit if cut is None else cut, write)
            if cut is not None:
                return
            if copied > size + MOST_ROW_BYTES:
                raise MalformedDumpError(
                    self._path,
                    f"has no start of a row in {MOST_ROW_BYTES >> 20} MiB",
                    advice=f"check that this is the {self._wanted.file} of a Stack Exchange dump",
                )
            more = self._read(BLOCK_BYTES) if len(self._data) <= MISC_LIMIT else b""
            if not more:
                yield from self._finish(write)
                return
            self._data += more

    def _row_after(self, position: int, limit: int) -> int | None:
        """Where the first row starts at `position` or later, if that is certain."""
        if limit < position:
            return None
        found = ROW_START.search(self._data, max(0, position))
        return found.start() if found and found.start() <= limit else None

    def _hand_on(self, size: int, write: Callable[[bytes], object]) -> Generator[int, None, int]:
        if size:
            write(self._data[:size])
            self._data = self._data[size:]
            yield size
        return size

    def _finish(self, write: Callable[[bytes], object]) -> Iterator[int]:
        """Hand on what is left before the closing tag."""
        if len(self._data) > MISC_LIMIT:  # Only a closing tag makes so much wait.
            self.at_end = True
            return
        limit, self.at_end = self._ending.find(self._data, is_all=True)
        yield from self._hand_on(limit, write)
        if not self.at_end:
            raise self._ending.cut_off()

    def check_rest(self) -> None:
        """Read the stream to its end, and raise unless only comments follow the root.

        Raises:
            MalformedDumpError: Its location counts from the end of what was handed on.
        """
        if self._is_empty:
            check_misc(self._data, self._read, empty_root_error(self._path, Location(0, 0)))
        else:
            end = self._ending.after(self._data)
            check_misc(self._data[end:], self._read, self._ending.content_after(self._data, end))
