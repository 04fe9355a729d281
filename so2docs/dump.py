"""A dump on disk: what stands around its rows, and how it is cut into ranges of whole rows.

First in the flow: nothing here looks inside a row. Only the head and the tail of the file are read
before the passes start, so a dump that was cut off is noticed within milliseconds; memory is
bounded by `SLICE_BYTES` and the longest row.

Cutting relies on the XML rule that a raw `<` cannot stand in an attribute value (XML 1.0, [10]
AttValue): the bytes `<row` followed by white space always start a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from so2docs import files, rows
from so2docs.errors import (
    ChangedDumpError,
    DumpError,
    MalformedDumpError,
    Place,
    TruncatedDumpError,
)

SLICE_BYTES = 256 * 1024
"""Rows are parsed in slices of this size: the fastest of 64 KiB to 1 MiB, and small in memory."""

ROW_START = re.compile(rb"<row[\s/>]")
_ROW_START_BYTES = 5
_HEAD_LIMIT = 16 * 1024 * 1024
_WINDOW = 64 * 1024
_UTF8_BOM = b"\xef\xbb\xbf"

# What may stand before the first row: XML 1.0, [22] prolog, then the root's start tag.
_PROLOG = re.compile(
    rb"""(?:\xef\xbb\xbf)?
    (?: \s++ | <\?.*?\?> | <!--.*?-->
      | <!DOCTYPE (?: [^\[<>"'] | "[^"]*" | '[^']*' )*+
          (?: \[ (?: <!--.*?--> | <\?.*?\?> | "[^"]*" | '[^']*' | [^\]"'] )*+ \] \s* )? >
    )*+
    (?P<tag> < (?P<root> [^\s/>!?<]++ )
        (?: \s+ [^\s=<>]+ \s*=\s* (?: "[^"<]*" | '[^'<]*' ) )*+ \s* )
    (?P<empty>/)? >""",
    re.DOTALL | re.VERBOSE,
)
_ENCODING = re.compile(rb"""<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_MISC = re.compile(rb"(?:\s|<!--.*?-->|<\?.*?\?>)*+", re.DOTALL)
_PACKED = {
    b"\x1f\x8b": "gzip",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
}


Frame = tuple[bytes, bytes]
"""The start and closing tags to put around a slice of rows."""


@dataclass(frozen=True, slots=True)
class Dump:
    """A dump file whose head and tail are sound.

    Attributes:
        path: The file.
        identity: Size in bytes, modification time in ns and inode, to notice a change.
        start: Offset of the first byte after the root's start tag.
        end: Offset of the root's closing tag.
        first_line: Line of the byte at `start`, from 1.
        frame: The root's start and closing tags, to put around a slice of rows.
    """

    path: str
    identity: tuple[int, int, int]
    start: int
    end: int
    first_line: int
    frame: Frame

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.identity[0]

    def check_unchanged(self, file: BinaryIO | None = None) -> None:
        """Raise `ChangedDumpError` if the file (an open one, or the path) is another by now."""
        try:
            found = files.identity(self.path, file)
        except OSError as error:
            raise ChangedDumpError(
                self.path, f"is gone while being read ({error.strerror})"
            ) from None
        if found != self.identity:
            raise ChangedDumpError(
                self.path,
                f"changed while being read ({self.size:,} bytes before, {found[0]:,} now)",
                advice="wait until it is complete and run the command again with --restart",
            )

    def ranges(self, size: int) -> list[tuple[int, int]]:
        """Cut the rows into consecutive ranges of `size` bytes; `slices` finds the whole rows."""
        return [(at, min(at + size, self.end)) for at in range(self.start, self.end, size)]


def open_dump(path: str) -> Dump:
    """Look at the head and the tail of a dump.

    Raises:
        TruncatedDumpError: It ends before the closing tag of its root.
        MalformedDumpError: It is not XML, or something follows the closing tag.
        DumpError: It cannot be opened, is empty, or is compressed.
    """
    try:
        with files.open_file(path) as file:
            return _inspect(path, file)
    except OSError as error:
        raise DumpError(path, f"cannot be read: {error.strerror or error}") from error


def _inspect(path: str, file: BinaryIO) -> Dump:
    identity = files.identity(path, file)
    size = identity[0]
    head, match = _read_prolog(path, file)
    start, frame = match.end(), (match["tag"] + b">", b"</" + match["root"] + b">")
    first_line = 1 + head.count(b"\n", 0, start)
    _check_encoding(path, head)
    try:
        rows.check_prolog(head[:start] if match["empty"] else head[:start] + frame[1])
    except rows.RowError as error:
        raise MalformedDumpError(
            path,
            f"is not well-formed XML before its first row: {error}",
            Place(0, 1),
            excerpt=head[:start],
        ) from None
    if match["empty"]:
        file.seek(start)
        if not _MISC.fullmatch(file.read(_HEAD_LIMIT)):
            raise MalformedDumpError(path, "has content after its empty root element", Place(start))
        return Dump(path, identity, start, start, first_line, frame)
    if match["root"] == b"row":
        raise MalformedDumpError(
            path, "starts with <row>; expected <posts> around the rows", Place(0, 1)
        )
    end = _find_closing_tag(path, file, start, size, frame)
    return Dump(path, identity, start, end, first_line, frame)


def _read_prolog(path: str, file: BinaryIO) -> tuple[bytes, re.Match[bytes]]:
    head = b""
    while len(head) < _HEAD_LIMIT:
        more = file.read(_WINDOW if not head else len(head))
        head += more
        if match := _PROLOG.match(head):
            return head, match
        if not more:
            break
    if not head:
        raise DumpError(path, "is empty", advice="download it again")
    for magic, name in _PACKED.items():
        if head.startswith(magic):
            raise DumpError(path, f"is a {name} file, not XML", advice="unpack it first")
    raise MalformedDumpError(
        path,
        f"is not a Posts.xml: no root element such as <posts> in its first {len(head):,} bytes",
        Place(0, 1),
        advice="check that this is the Posts.xml of a Stack Exchange dump, and that it is complete",
        excerpt=head[:_WINDOW],
    )


def _check_encoding(path: str, head: bytes) -> None:
    found = _ENCODING.match(head.removeprefix(_UTF8_BOM))
    name = found[1].decode().lower() if found else "utf-8"
    if name not in {"utf-8", "utf8", "ascii", "us-ascii"}:
        raise DumpError(
            path, f"is encoded as {name}, not UTF-8", advice="convert it to UTF-8 first"
        )


def _find_closing_tag(path: str, file: BinaryIO, start: int, size: int, frame: Frame) -> int:
    """Offset of the root's closing tag; the search goes back from the end as far as it must."""
    closing = re.compile(re.escape(frame[1][:-1]) + rb"\s*>")
    window = _WINDOW
    while True:
        begin = max(start, size - window)
        file.seek(begin)
        tail = file.read(size - begin)
        for found in reversed(list(closing.finditer(tail))):
            if _MISC.fullmatch(tail, found.end()):
                return begin + found.start()
            raise MalformedDumpError(
                path,
                f"has content after its closing {frame[1].decode(errors='replace')}",
                Place(begin + found.end()),
                advice="are these two files in one? convert them one by one",
            )
        last = _last_good_row(tail, frame)
        if last is not None or begin == start or window >= _HEAD_LIMIT:
            break
        window *= 4
    last_id, row_start = last if last is not None else (None, max(0, len(tail) - _WINDOW))
    file.seek(0)
    raise TruncatedDumpError(
        path,
        f"is cut off: it ends without {frame[1].decode(errors='replace')}",
        Place(size, _count_lines(file, size), last_id),
        advice="download it again, or the part that is missing",
        excerpt=frame[0] + b"\n" + tail[row_start:],
    )


def _last_good_row(tail: bytes, frame: Frame) -> tuple[int | None, int] | None:
    """`Id` and position of the last complete row in `tail`; None if no row in it is complete."""
    ends = [len(tail)]
    for found in reversed(list(ROW_START.finditer(tail))):
        last = rows.last_id(tail[found.start() : ends[-1]], frame)
        if last is not None:
            return last, found.start()
        ends.append(found.start())
    return None


def _count_lines(file: BinaryIO, end: int) -> int:
    """Line (from 1) of the byte at `end`, counted from where the file stands."""
    lines = 1
    while end > 0 and (data := file.read(min(end, 4 * 1024 * 1024))):
        lines += data.count(b"\n")
        end -= len(data)
    return lines


def _find_row(file: BinaryIO, offset: int, limit: int) -> int:
    """Offset of the first row that starts at `offset` or later; `limit` if none does before it."""
    file.seek(offset)
    window = b""
    while offset + len(window) < limit + _ROW_START_BYTES and (more := file.read(_WINDOW)):
        window += more
        if found := ROW_START.search(window):
            return min(offset + found.start(), limit)
        offset += max(0, len(window) - _ROW_START_BYTES)
        window = window[-_ROW_START_BYTES:]
    return limit


def slices(
    dump: Dump, start: int, end: int, size: int = SLICE_BYTES
) -> Iterator[tuple[int, bytes]]:
    """Read the rows that start in `[start, end)` as slices of whole rows.

    Args:
        dump: The dump to read.
        start: Offset of the range's first byte.
        end: Offset after the range's last byte; the last row may reach beyond it.
        size: Bytes of a slice, about; a longer row makes a longer slice.

    Yields:
        The offset of a slice in the file, and its bytes.

    Raises:
        ChangedDumpError: The file is not the one that `open_dump` saw.
    """
    with files.open_file(dump.path) as file:
        dump.check_unchanged(file)
        at = start if start == dump.start else _find_row(file, start, dump.end)
        stop = dump.end if end >= dump.end else _find_row(file, end, dump.end)
        file.seek(at)
        rest = b""
        searched = 0
        while at + len(rest) < stop:
            # A row longer than a slice is read in doubling steps, not copied once per slice.
            more = file.read(min(max(size, len(rest)), stop - at - len(rest)))
            if not more:
                dump.check_unchanged(file)
                raise ChangedDumpError(dump.path, "became shorter while being read")
            rest += more
            if at + len(rest) >= stop:
                break
            cut = _last_row_start(rest, searched)
            searched = len(rest) - _ROW_START_BYTES if cut <= 0 else 0
            if cut > 0:
                yield at, rest[:cut]
                at, rest = at + cut, rest[cut:]
        if rest:
            yield at, rest


def _last_row_start(data: bytes, searched: int) -> int:
    """Position of the last row start in `data` after `searched`; -1 if there is none."""
    position = len(data)
    while (position := data.rfind(b"<row", max(searched, 0), position)) > 0:
        if ROW_START.match(data, position):
            return position
    return -1
