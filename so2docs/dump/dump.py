"""Find the start and end of the rows of a dump, and split a file into chunks and slices.

This is the first step, which does not look inside rows. Before the passes start, only the head and
the tail of the file are read, so a truncated dump is detected within milliseconds. Memory is
bounded by `SLICE_BYTES` and the longest row.

XML does not allow a raw `<` in an attribute value (XML 1.0, [10] AttValue), so the bytes `<row`
followed by white space always start a row.

Files and streams have the same rules for prolog and end. The root ends at the first closing tag
that is followed only by comments, processing instructions and white space (XML 1.0, [27] Misc). A
closing tag with a row or another closing tag after it counts as text between rows. Any other
content after a closing tag is an error. Every byte is read once.
"""

from __future__ import annotations

import io
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

from so2docs.counts import plural
from so2docs.dump import storage
from so2docs.dump.kinds import check_head, check_root
from so2docs.dump.layers import BLOCK_BYTES
from so2docs.dump.storage import changed_error, check_unchanged, unreadable_dump
from so2docs.errors import (
    DumpError,
    Location,
    MalformedDumpError,
    TruncatedDumpError,
)
from so2docs.parse import core, rows
from so2docs.parse.rows import ROW_START
from so2docs.schema import POSTS, Table

BLANK = b" \t\r\n"
"""White space in XML (XML 1.0, [3] S); Python counts more characters as white space."""

HEAD_LIMIT = 16 * 1024 * 1024
"""Maximum size of the prolog in bytes; longer prologs are rejected."""

_WINDOW = 64 * 1024

# Content before the root's start tag: XML 1.0, [22] prolog. No byte can match in two ways, so even
# an unclosed prolog takes linear time.
_BEFORE_ROOT = re.compile(
    rb"""(?:\xef\xbb\xbf)?
    (?: [ \t\r\n]++ | <\?.*?\?> | <!--.*?-->
      | <!DOCTYPE (?: [^\[<>"']++ | "[^"]*+" | '[^']*+' )*+
          (?: \[ (?: <!--.*?--> | <\?.*?\?> | "[^"]*+" | '[^']*+' | [^\]"'<]++ | <(?!!--|\?) )*+
              \] [ \t\r\n]*+ )?+ >
    )*+""",
    re.DOTALL | re.VERBOSE,
)
_ROOT = re.compile(
    rb"""(?P<tag> < (?P<root> [^ \t\r\n/>!?<]++ )
        (?: [ \t\r\n]++ [^ \t\r\n=<>]++ [ \t\r\n]*+ = [ \t\r\n]*+ (?: "[^"<]*+" | '[^'<]*+' ) )*+
        [ \t\r\n]*+ )
    (?P<empty>/)? >""",
    re.VERBOSE,
)

Frame = tuple[bytes, bytes]
"""The start and closing tags to put around a slice of rows."""


@dataclass(frozen=True, slots=True)
class Prolog:
    """The start of a dump.

    Attributes:
        head: Bytes read from the start of the dump, at least up to the first row.
        start: Offset of the first byte after the root's start tag.
        first_line: Line number of this byte, from 1.
        frame: The root's start and closing tags.
        is_empty: Whether the root is a single empty tag, `<posts/>`.
    """

    head: bytes
    start: int
    first_line: int
    frame: Frame
    is_empty: bool


def read_prolog(path: str, read: Callable[[int], bytes], table: Table) -> Prolog:
    """Read a dump in UTF-8 up to the root's start tag."""
    head, match = _find_root(path, read, table)
    start, frame = match.end(), (match["tag"] + b">", b"</" + match["root"] + b">")
    is_empty = match["empty"] is not None
    check_root(path, match["root"].decode(errors="replace"), table)
    try:
        rows.check_prolog(head[:start] if is_empty else head[:start] + frame[1])
    except rows.RowError as error:
        raise MalformedDumpError(
            path,
            f"is not well-formed XML before its first row: {error}",
            Location(0, 1, row=table.row),
            advice="download it again",
            excerpt=head[:start],
        ) from None
    return Prolog(head, start, 1 + head.count(b"\n", 0, start), frame, is_empty)


def _find_root(
    path: str, read: Callable[[int], bytes], table: Table
) -> tuple[bytes, re.Match[bytes]]:
    head, searched = b"", 0
    while len(head) < HEAD_LIMIT:
        block = read(max(_WINDOW, len(head)))
        head += block
        # Each search starts from the beginning, so collect short reads (from a pipe) first.
        if block and len(head) < min(2 * searched, HEAD_LIMIT):
            continue
        searched = len(head)
        before = _BEFORE_ROOT.match(head)
        at = before.end() if before else 0
        if match := _ROOT.match(head, at):
            return head, match
        if not block or head[at : at + 1] not in (b"<", b""):
            break
    if not head:
        raise DumpError(
            path, "is empty", advice="download it again, or check the command that writes it"
        )
    check_head(path, head, table)
    raise MalformedDumpError(
        path,
        f"is not a {table.file}: no root element such as <{table.root}> "
        f"in its first {plural(len(head), 'byte')}",
        Location(0, 1, row=table.row),
        advice=f"check that this is the complete {table.file} of a Stack Exchange dump",
        excerpt=head[:_WINDOW],
    )


MISC_LIMIT = HEAD_LIMIT
"""Maximum number of bytes kept in memory until the content after a closing tag is known."""

_MISC = re.compile(rb"(?:[ \t\r\n]++|<!--.*?-->|<\?.*?\?>)*+", re.DOTALL)
_UNCLOSED = re.compile(rb"<(?:!--|\?|!?-?\Z)")
_MOST_BLANKS = 1024
_MOST_TRIED = 200
_OVERLAP = 64


def _closing_tag(frame: Frame) -> re.Pattern[bytes]:
    """Return a pattern for the root's closing tag, complete or truncated at the end of data."""
    blanks = rb"[ \t\r\n]{0,%d}+" % _MOST_BLANKS
    return re.compile(re.escape(frame[1][:-1]) + blanks + rb"(?:(>)|\Z)")


def closes_within(raw: bytes, frame: Frame) -> bool:
    """Whether the bytes of a malformed row contain the root's closing tag."""
    return any(match[1] for match in _closing_tag(frame).finditer(raw))


class Ending:
    """Finds the end of the root element of a dump."""

    def __init__(self, path: str, frame: Frame, table: Table) -> None:
        self._path = path
        self._table = table
        self.name = frame[1].decode(errors="replace")
        self._start = frame[1][:-1]
        self._tag = _closing_tag(frame)
        self._later = re.compile(ROW_START.pattern + b"|" + self._tag.pattern.replace(rb"|\Z", b""))
        self._overlap = max(_OVERLAP, len(frame[1]))

    def rows_before(self, data: bytearray, size: int) -> int:
        """Return the offset up to which the first `size` bytes are certainly rows."""
        if core.contains(data, self._start, size):
            return self.find(bytes(memoryview(data)[:size]), is_all=False)[0]
        return max(0, size - self._overlap)

    def find(self, data: bytes, *, is_all: bool) -> tuple[int, bool]:
        """Find the end of the root element.

        Args:
            data: Bytes after the root's start tag, or the last part of them.
            is_all: Whether no bytes follow `data`.

        Returns:
            The offset up to which all bytes are rows, and whether the root closes there.
        """
        at = 0
        while match := self._tag.search(data, at):
            if not match[1]:
                return (len(data), False) if is_all else (match.start(), False)
            misc = _MISC.match(data, match.end())
            after = misc.end() if misc else match.end()
            if after == len(data):
                return match.start(), is_all
            later = None if _UNCLOSED.match(data, after) else self._later.search(data, after)
            if later is None:
                if is_all:
                    raise self.content_after(data, match.end())
                return match.start(), False
            at = later.start()
        return (len(data) if is_all else max(at, len(data) - self._overlap, 0)), False

    def after(self, data: bytes) -> int:
        """Return the offset after the closing tag at the start of `data`; 0 if there is none."""
        match = self._tag.match(data)
        return match.end() if match else 0

    def content_after(self, data: bytes, end: int, offset: int = 0) -> MalformedDumpError:
        """Make the error for content after the closing tag.

        Args:
            data: Bytes that start with the closing tag.
            end: Offset of the end of the closing tag in `data`.
            offset: Offset of `data`.
        """
        return MalformedDumpError(
            self._path,
            f"has content after its closing {self.name}",
            Location(offset + end, row=self._table.row),
            advice="if two dumps were joined, split them and convert each",
        )

    def cut_off(
        self, location: Location | None = None, excerpt: bytes | None = None
    ) -> TruncatedDumpError:
        """Make the error for a dump that ends before the closing tag."""
        return TruncatedDumpError(
            self._path,
            f"is truncated: it ends without {self.name}",
            location,
            advice="download it again, or the missing part",
            excerpt=excerpt,
        )


def empty_root_error(path: str, location: Location) -> MalformedDumpError:
    """Make the error for content after an empty root element, such as `<posts/>`, at `location`."""
    return MalformedDumpError(
        path, "has content after its empty root element", location, advice="remove that content"
    )


def check_misc(data: bytes, read: Callable[[int], bytes], error: MalformedDumpError) -> None:
    """Read to the end of a dump, and raise `error` unless only Misc (XML 1.0, [27]) follows."""
    while True:
        misc = _MISC.match(data)
        data = data[misc.end() :] if misc else data
        if data and (len(data) > MISC_LIMIT or not _UNCLOSED.match(data)):
            raise error
        # Each search of an unclosed comment starts from the beginning, so double the data between
        # searches.
        block = b"".join(_read_all(read, max(BLOCK_BYTES, len(data))))
        if not block:
            break
        data += block
    if data:
        raise error


def _read_all(read: Callable[[int], bytes], size: int) -> list[bytes]:
    blocks = []
    while size > 0 and (block := read(size)):
        blocks.append(block)
        size -= len(block)
    return blocks


def find_in_file(
    path: str, file: BinaryIO, *, start: int, size: int, frame: Frame, table: Table
) -> int:
    """Find the offset of the closing tag in a file, searching backwards from the end."""
    ending = Ending(path, frame, table)
    content = _end_of_content(file, start, size)
    window = _WINDOW
    while True:
        begin = max(start, content - window)
        tail = _read_range(file, begin, content)
        try:
            at, is_closed = ending.find(tail, is_all=True)
        except MalformedDumpError as error:
            if begin > start and window < HEAD_LIMIT:  # A long comment may follow the closing tag.
                window = HEAD_LIMIT
                continue
            end = error.location.offset if error.location else 0
            last = last_good_row(tail[: tail.rfind(b"<", 0, end)])
            error.location = Location(begin + end, None, last and last[0], table.row)
            raise
        if is_closed:
            return begin + at
        last = last_good_row(tail)
        if last is not None or begin == start or window >= HEAD_LIMIT:
            break
        window *= 4
    last_id, row_start = last if last is not None else (None, max(0, len(tail) - _WINDOW))
    location = Location(size, None, last_id, table.row)
    raise ending.cut_off(location, frame[0] + b"\n" + tail[row_start:])


def _read_range(file: BinaryIO, begin: int, end: int) -> bytes:
    file.seek(begin)
    return b"".join(_read_all(file.read, end - begin))


def _end_of_content(file: BinaryIO, start: int, size: int) -> int:
    """Return the offset after the last byte in the file that is not white space."""
    end = size
    while end > start:
        begin = max(start, end - BLOCK_BYTES if end < size else end - _WINDOW)
        if content := _read_range(file, begin, end).rstrip(BLANK):
            return begin + len(content)
        end = begin
    return end


def last_good_row(tail: bytes) -> tuple[int | None, int] | None:
    """Return the `Id` and position of the last complete row in `tail`; None if there is none."""
    # A truncated dump may end within a tag, such as `<ro` or `</po`.
    last_tag = tail.rfind(b"<")
    ends = [len(tail) if last_tag < 0 or ROW_START.match(tail, last_tag) else last_tag]
    starts = list(ROW_START.finditer(tail))
    for start in islice(reversed(starts), _MOST_TRIED):
        last = rows.last_id(tail[start.start() : ends[-1]])
        if last is not None:
            return last, start.start()
        ends.append(start.start())
    return None


PIECES, PIECE_END = "pieces", ".xml"
"""Subfolder of the spill for the pieces of a stream, and the extension of their files."""

SLICE_BYTES = 256 * 1024
"""Approximate size of a slice in bytes. Larger slices, up to 1 MiB, are not faster, but take more
memory."""

_ROW_START_BYTES = 5
_MOST_HEAD = 64 * 1024
_SMALLEST_CHUNK = 8 * 1024 * 1024
SMALLEST_PIECE = 8 * 1024 * 1024
"""Size of the first pieces of a stream, in bytes."""
_MOST_CHUNKS = 400


@dataclass(frozen=True, slots=True)
class End:
    """The result of reading a dump to its end.

    Attributes:
        size: Size of the dump in bytes.
        repaired: Number of characters that the decoder replaced.
        chunks: Exclusive upper limit of the chunk numbers.
    """

    size: int
    repaired: int
    chunks: int


class Chunk(NamedTuple):
    """A range of a dump that one task of the first pass reads; the input of `slices`."""

    number: int
    dump: Dump
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Dump:
    """A dump file with a valid head and tail.

    Attributes:
        path: Name of the file.
        identity: Identity of the file, to detect a change.
        start: Offset of the first byte after the root's start tag.
        end: Offset of the root's closing tag.
        first_line: Line number of the byte at `start`, from 1.
        frame: The root's start and closing tags, for slices of rows.
        location: Path of a piece of a stream; empty if the bytes are in `path` or `content`.
        base: Offset of the piece in the stream.
        head: The bytes before `start`, at most 64 KiB; empty for a piece.
        encoding: Encoding of the dump.
        content: The bytes of a small piece; None if they are in a file.
    """

    path: str
    identity: storage.FileIdentity
    start: int
    end: int
    first_line: int
    frame: Frame
    location: str = ""
    base: int = 0
    head: bytes = b""
    encoding: str = "utf-8"
    content: bytes | None = None

    @property
    def file(self) -> str:
        """Path of the file to read."""
        return self.location or self.path

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return self.identity.size

    @property
    def chunk_bytes(self) -> int:
        """Default size of a chunk in bytes."""
        return max(_SMALLEST_CHUNK, -(-self.size // _MOST_CHUNKS))

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the file to read; raise `ChangedDumpError` if it has changed."""
        if self.content is not None:
            yield io.BytesIO(self.content)
            return
        self.check_unchanged()
        with storage.open_file(self.file) as file:
            self.check_unchanged(file)
            yield file

    def check_unchanged(self, file: BinaryIO | None = None) -> None:
        """Raise `ChangedDumpError` if the file has changed; `file` is the open file, if any."""
        check_unchanged(self.path, self.file, self.identity, file)

    def check_end(self) -> None:
        """After the last chunk, raise any error that concerns the whole dump."""
        self.check_unchanged()

    def chunks(self, size: int, done_chunks: Collection[int], folder: Path) -> Iterator[Chunk]:
        """Split the rows into consecutive ranges of `size` bytes; `slices` finds the whole rows."""
        for number, start in enumerate(range(self.start, self.end, size)):
            if number not in done_chunks:
                yield Chunk(number, self, start, min(start + size, self.end))

    def progress_total(self, size: int, done_chunks: Collection[int]) -> tuple[int | None, int]:
        """Return the size of the file, and the size of the chunks in `done_chunks`, in bytes."""
        before = sum(min(size, self.end - self.start - chunk * size) for chunk in done_chunks)
        return self.size, before

    def progress(self, chunk: Chunk) -> int:
        """Return the size of a finished chunk, in bytes of the file."""
        return chunk.end - chunk.start

    def chunk_end(self, size: int) -> End:
        """Return the result of reading all ranges of `size` bytes."""
        return End(self.size, 0, -(-self.size // size))

    def close(self) -> None:
        """Do nothing, since readers open the file themselves."""


def open_dump(path: str, table: Table = POSTS) -> Dump:
    """Read and check the head and the tail of a dump file."""
    try:
        # Reject a pipe here: opening it would block until something writes to it.
        if not (storage.is_url(path) or stat.S_ISREG(os.stat(path).st_mode)):
            raise DumpError(
                path,
                "is not a file",
                advice=f"give the {table.file} of a dump, or the archive of its site",
            )
        with storage.open_file(path) as file:
            return _inspect(path, file, table)
    except OSError as error:
        raise unreadable_dump(path, error) from error


def _inspect(path: str, file: BinaryIO, table: Table) -> Dump:
    identity = storage.identify(path, file)
    prolog = read_prolog(path, file.read, table)
    start, frame, head = prolog.start, prolog.frame, prolog.head[: min(prolog.start, _MOST_HEAD)]
    if prolog.is_empty:
        file.seek(start)
        error = empty_root_error(path, Location(start, row=table.row))
        check_misc(b"", file.read, error)
        return Dump(path, identity, start, start, prolog.first_line, frame, head=head)
    end = find_in_file(path, file, start=start, size=identity.size, frame=frame, table=table)
    return Dump(path, identity, start, end, prolog.first_line, frame, head=head)


def _find_row(file: BinaryIO, offset: int, limit: int) -> int:
    """Find the first row at `offset` or later; return `limit` if no row starts before it."""
    file.seek(offset)
    window = b""
    while offset + len(window) < limit + _ROW_START_BYTES and (block := file.read(_WINDOW)):
        window += block
        if match := ROW_START.search(window):
            return min(offset + match.start(), limit)
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
        size: Approximate size of a slice in bytes; a longer row makes a longer slice.

    Yields:
        The offset of each slice in the dump, and its bytes.
    """
    with dump.open() as file:
        at = start if start == dump.start else _find_row(file, start, dump.end)
        stop = dump.end if end >= dump.end else _find_row(file, end, dump.end)
        file.seek(at)
        pending = b""
        while at + len(pending) < stop:
            # Double the size of reads for a row longer than a slice, so that the row is copied only
            # a few times.
            block = file.read(min(max(size, len(pending)), stop - at - len(pending)))
            if not block:
                dump.check_unchanged(file)
                raise changed_error(dump.path, "shrank while being read")
            is_last = at + len(pending) + len(block) >= stop
            # A row start split across two reads is not found here, so its row goes to the next
            # slice.
            cut = -1 if is_last else _last_row_start(block)
            if cut < 0:
                pending += block
                continue
            lines = b"".join((pending, memoryview(block)[:cut]))
            pending = block[cut:]
            if lines:
                yield dump.base + at, lines
                at += len(lines)
        if pending:
            yield dump.base + at, pending


def _last_row_start(data: bytes) -> int:
    """Find the last start of a row in `data`; -1 if there is none."""
    position = len(data)
    while (position := data.rfind(b"<row", 0, position)) >= 0:
        if ROW_START.match(data, position):
            return position
    return -1
