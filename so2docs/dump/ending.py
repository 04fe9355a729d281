"""Where the root of a dump closes: one rule, for a file and for a stream.

The root closes at the first closing tag that only comments, processing instructions and white space
follow (XML 1.0, [27] Misc), up to the end of the dump. A closing tag that a row or another closing
tag follows is part of the text between rows; anything else after it is an error. Every byte is
looked at once, whatever the dump is made of.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from typing import BinaryIO

from so2docs.dump.prolog import BLANK, HEAD_LIMIT, Frame
from so2docs.dump.source import BLOCK_BYTES
from so2docs.errors import Location, MalformedDumpError, TruncatedDumpError
from so2docs.parse import rows
from so2docs.parse.rows import ROW_START
from so2docs.schema import Table

MISC_LIMIT = HEAD_LIMIT
"""More than this is not held until it is clear what follows a closing tag."""

_MISC = re.compile(rb"(?:[ \t\r\n]++|<!--.*?-->|<\?.*?\?>)*+", re.DOTALL)
_UNCLOSED = re.compile(rb"<(?:!--|\?|!?-?\Z)")
_MOST_BLANKS = 1024
_MOST_TRIED = 200
_OVERLAP = 64
_WINDOW = 64 * 1024
# Beyond, the line of a cut is worth less than the minute of reading that it takes to tell.
_MOST_COUNTED = 8 * 1024 * 1024 * 1024


def _closing_tag(frame: Frame) -> re.Pattern[bytes]:
    """Matches the root's closing tag, or what may become one at the end of the data."""
    blanks = rb"[ \t\r\n]{0,%d}+" % _MOST_BLANKS
    return re.compile(re.escape(frame[1][:-1]) + blanks + rb"(?:(>)|\Z)")


def closes_within(raw: bytes, frame: Frame) -> bool:
    """Whether the root closes in the bytes of a row: rows follow, or it would be the end."""
    return any(found[1] for found in _closing_tag(frame).finditer(raw))


class Ending:
    """The end of a dump's root.

    Args:
        path: Name of the dump, for messages.
        frame: The root's start and closing tags.
        wanted: What the dump is to be.
    """

    def __init__(self, path: str, frame: Frame, wanted: Table) -> None:
        self._path = path
        self._wanted = wanted
        self.name = frame[1].decode(errors="replace")
        self._tag = _closing_tag(frame)
        self._later = re.compile(ROW_START.pattern + b"|" + self._tag.pattern.replace(rb"|\Z", b""))
        self._overlap = max(_OVERLAP, len(frame[1]))

    def find(self, data: bytes, *, is_all: bool) -> tuple[int, bool]:
        """Look for the end in what follows the root's start tag, or a part of that.

        Args:
            data: Bytes of the dump.
            is_all: Whether the dump ends with them.

        Returns:
            Up to where they are rows for certain, and whether the root closes there.

        Raises:
            MalformedDumpError: Content follows the closing tag.
        """
        at = 0
        while found := self._tag.search(data, at):
            if not found[1]:
                return (len(data), False) if is_all else (found.start(), False)
            misc = _MISC.match(data, found.end())
            after = misc.end() if misc else found.end()
            if after == len(data):
                return found.start(), is_all
            later = None if _UNCLOSED.match(data, after) else self._later.search(data, after)
            if later is None:
                if is_all:
                    raise self.content_after(data, found.end())
                return found.start(), False
            at = later.start()
        return (len(data) if is_all else max(at, len(data) - self._overlap, 0)), False

    def after(self, data: bytes) -> int:
        """Where the closing tag ends that `data` starts with."""
        found = self._tag.match(data)
        return found.end() if found else 0

    def content_after(self, data: bytes, end: int) -> MalformedDumpError:
        """The error for what follows the closing tag, which ends there in `data`.

        Its location counts bytes, and lines from 0, from the start of `data`.
        """
        return MalformedDumpError(
            self._path,
            f"has content after its closing {self.name}",
            Location(end, data.count(b"\n", 0, end), row=self._wanted.row),
            advice="if two dumps were joined, split them and convert each",
        )

    def cut_off(
        self, location: Location | None = None, excerpt: bytes | None = None
    ) -> TruncatedDumpError:
        """The error for a dump that ends before its root closes."""
        return TruncatedDumpError(
            self._path,
            f"is cut off: it ends without {self.name}",
            location,
            advice="download it again, or the missing part",
            excerpt=excerpt,
        )


def empty_root_error(path: str, location: Location) -> MalformedDumpError:
    """The error for what follows a root that is one empty tag, which ends at `location`."""
    return MalformedDumpError(
        path, "has content after its empty root element", location, advice="remove that content"
    )


def check_misc(data: bytes, read: Callable[[int], bytes], error: MalformedDumpError) -> None:
    """Read to the end of a dump, and raise `error` unless only Misc is there.

    Args:
        data: What has been read already.
        read: Returns at most as many bytes as asked for; none at the end of the dump.
        error: What to raise.
    """
    while True:
        misc = _MISC.match(data)
        data = data[misc.end() :] if misc else data
        if data and (len(data) > MISC_LIMIT or not _UNCLOSED.match(data)):
            raise error
        # An unclosed comment is looked at again when as much again has been read.
        more = b"".join(_read_all(read, max(BLOCK_BYTES, len(data))))
        if not more:
            break
        data += more
    if data:
        raise error


def _read_all(read: Callable[[int], bytes], size: int) -> list[bytes]:
    blocks = []
    while size > 0 and (block := read(size)):
        blocks.append(block)
        size -= len(block)
    return blocks


def find_in_file(
    path: str, file: BinaryIO, *, start: int, size: int, frame: Frame, wanted: Table
) -> int:
    """Offset of the closing tag in a file; the search goes back from the end as far as it must.

    Args:
        path: Name of the dump, for messages.
        file: The dump, open.
        start: Offset of the first byte after the root's start tag.
        size: Bytes of the file.
        frame: The root's tags.
        wanted: What the dump is to be.

    Raises:
        TruncatedDumpError: There is none.
        MalformedDumpError: Content follows it.
    """
    ending = Ending(path, frame, wanted)
    content = _end_of_content(file, start, size)
    is_counted = size <= _MOST_COUNTED
    window = _WINDOW
    while True:
        begin = max(start, content - window)
        tail = _read_range(file, begin, content)
        try:
            at, is_closed = ending.find(tail, is_all=True)
        except MalformedDumpError as error:
            if begin > start and window < HEAD_LIMIT:  # The tag may be in a long comment.
                window = HEAD_LIMIT
                continue
            end = error.location.offset if error.location else 0
            last = last_good_row(tail[: tail.rfind(b"<", 0, end)])
            line = _line_at(file, begin + end) if is_counted else None
            error.location = Location(begin + end, line, last and last[0], wanted.row)
            raise
        if is_closed:
            return begin + at
        last = last_good_row(tail)
        if last is not None or begin == start or window >= HEAD_LIMIT:
            break
        window *= 4
    last_id, row_start = last if last is not None else (None, max(0, len(tail) - _WINDOW))
    line = _line_at(file, size) if is_counted else None
    location = Location(size, line, last_id, wanted.row)
    raise ending.cut_off(location, frame[0] + b"\n" + tail[row_start:])


def _read_range(file: BinaryIO, begin: int, end: int) -> bytes:
    file.seek(begin)
    return b"".join(_read_all(file.read, end - begin))


def _end_of_content(file: BinaryIO, start: int, size: int) -> int:
    """Offset after the last byte that is not white space."""
    end = size
    while end > start:
        begin = max(start, end - BLOCK_BYTES if end < size else end - _WINDOW)
        if kept := _read_range(file, begin, end).rstrip(BLANK):
            return begin + len(kept)
        end = begin
    return end


def last_good_row(tail: bytes) -> tuple[int | None, int] | None:
    """`Id` and position of the last complete row in `tail`; None if no row in it is complete."""
    # The cut may have left only the `<ro` of a row, or the `</po` of the root.
    opened = tail.rfind(b"<")
    ends = [len(tail) if opened < 0 or ROW_START.match(tail, opened) else opened]
    starts = list(ROW_START.finditer(tail))
    for found in islice(reversed(starts), _MOST_TRIED):
        last = rows.last_id(tail[found.start() : ends[-1]])
        if last is not None:
            return last, found.start()
        ends.append(found.start())
    return None


def _line_at(file: BinaryIO, end: int) -> int:
    """Line (from 1) of the byte at `end`."""
    file.seek(0)
    lines = 1
    while end > 0 and (data := file.read(min(end, 4 * BLOCK_BYTES))):
        lines += data.count(b"\n")
        end -= len(data)
    return lines
