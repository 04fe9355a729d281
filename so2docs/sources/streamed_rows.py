"""The rows of a stream, handed on in pieces of whole rows, and the end of the dump checked.

Cutting relies on the same rule of XML as that of a file (`dump`): `<row` starts a row, wherever it
stands. Memory is a block, and what a block may end with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from so2docs.errors import MalformedDumpError, TruncatedDumpError
from so2docs.sources.dump import ROW_START
from so2docs.sources.prolog import HEAD_LIMIT, Frame
from so2docs.sources.source import BLOCK_BYTES

MOST_ROW_BYTES = 128 * 1024 * 1024
"""A longer row is no row: posts end at 30,000 characters. Bounds what a bomb takes of disk."""

_OVERLAP = 64
_MISC = {b"<!--": b"-->", b"<?": b"?>"}


class StreamedRows:
    """What stands in a stream between the root's tags, handed on in pieces of whole rows.

    Args:
        path: Name of the dump, for messages.
        read: Returns at most so many bytes; none at the end of the stream.
        frame: The root's start and closing tags.
        data: What has been read already, after the start tag.
        is_empty: Whether the root is one empty tag.
    """

    def __init__(
        self, path: str, read: Callable[[int], bytes], frame: Frame, data: bytes, is_empty: bool
    ) -> None:
        self._path = path
        self._read = read
        self._opening = frame[1][:-1]
        self._closing = re.compile(re.escape(self._opening) + rb"\s*>")
        self._name = frame[1].decode(errors="replace")
        self._overlap = max(_OVERLAP, len(frame[1]))
        self._data = data
        self._is_empty = is_empty
        self.at_end = is_empty

    def copy(self, size: int, write: Callable[[bytes], object]) -> Iterator[int]:
        """Hand on whole rows, at least `size` bytes of them unless the root closes before.

        Args:
            size: Bytes after which the next row start ends the piece.
            write: Gets the bytes.

        Yields:
            The number of bytes handed on, each time that some are.

        Raises:
            TruncatedDumpError: The stream ends before the root closes.
            MalformedDumpError: No row starts for longer than any row is.
        """
        copied = 0
        while True:
            data = self._data
            limit, closes = self._limit(data)
            cut = ROW_START.search(data, max(0, size - copied)) if copied + limit >= size else None
            if cut is not None and (cut.start() <= limit or not closes):
                limit = cut.start()
                closes = False
            if limit:
                write(data[:limit])
                copied += limit
                self._data = data[limit:]
                yield limit
            self.at_end = closes
            if cut is not None or closes:
                return
            if copied > size + MOST_ROW_BYTES:
                raise MalformedDumpError(
                    self._path,
                    f"has no start of a row in {MOST_ROW_BYTES >> 20} MiB",
                    advice="check that this is the Posts.xml of a Stack Exchange dump",
                )
            more = self._read(BLOCK_BYTES)
            if not more:
                write(self._data)
                yield len(self._data)
                raise TruncatedDumpError(
                    self._path,
                    f"is cut off: it ends without {self._name}",
                    advice="download it again, or the part that is missing",
                )
            self._data += more

    def _limit(self, data: bytes) -> tuple[int, bool]:
        """Up to where `data` is rows for certain, and whether the root closes there."""
        at = data.find(self._opening)
        while at >= 0:
            if self._closing.match(data, at):
                return at, True
            if not data[at + len(self._opening) :].strip():
                return at, False
            at = data.find(self._opening, at + 1)
        return max(0, len(data) - self._overlap), False

    def check_rest(self) -> None:
        """Read the stream to its end, and raise unless only comments follow the root."""
        rest = self._data
        if found := None if self._is_empty else self._closing.match(rest):
            rest = rest[found.end() :]
        while True:
            rest = rest.lstrip(b" \t\r\n")
            opening = next((start for start in _MISC if rest.startswith(start)), None)
            if opening is not None:
                end = rest.find(_MISC[opening], len(opening))
                if end >= 0:
                    rest = rest[end + len(_MISC[opening]) :]
                    continue
            elif not any(start.startswith(rest) for start in _MISC):
                break
            more = self._read(BLOCK_BYTES) if len(rest) < HEAD_LIMIT else b""
            if not more:
                break
            rest += more
        if rest:
            raise MalformedDumpError(
                self._path,
                "has content after its empty root element"
                if self._is_empty
                else f"has content after its closing {self._name}",
                advice="are these two files in one? convert them one by one",
            )
