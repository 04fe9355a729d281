"""Find the root element of a dump: its start tag and its closing tag.

A file and a stream have the same rules. Only white space may follow the closing tag. A closing tag
with a row or another closing tag after it counts as text between rows. Any other content after a
closing tag is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

from so2docs.counts import plural
from so2docs.dump.kinds import GIVE_DUMP, check_root, piece_error
from so2docs.errors import DumpError, Location, MalformedDumpError, TruncatedDumpError
from so2docs.parse import core, rows
from so2docs.parse.rows import ROW_START
from so2docs.schema import Table

BLANK = b" \t\r\n"
"""White space in XML (XML 1.0, [3] S); Python counts more characters as white space."""

HEAD_LIMIT = 64 * 1024
"""Maximum size of the prolog in bytes; longer prologs are rejected."""

TAIL_LIMIT = 16 * 1024 * 1024
"""Maximum number of bytes kept in memory until the content after a closing tag is known."""

_WINDOW = 64 * 1024
_OVERLAP = 64
_MOST_TRIED = 200

# The prolog (XML 1.0, [22]) and the root's start tag. No byte can match in two ways, so even an
# unclosed prolog takes linear time.
_ROOT = re.compile(
    rb"""(?:\xef\xbb\xbf)?
    (?: [ \t\r\n]++ | <\?.*?\?> | <!--.*?-->
      | <!DOCTYPE (?: [^\[<>"']++ | "[^"]*+" | '[^']*+' )*+
          (?: \[ (?: <!--.*?--> | <\?.*?\?> | "[^"]*+" | '[^']*+' | [^\]"'<]++ | <(?!!--|\?) )*+
              \] [ \t\r\n]*+ )?+ >
    )*+
    (?P<tag> < (?P<root> [^ \t\r\n/>!?<]++ )
        (?: [ \t\r\n]++ [^ \t\r\n=<>]++ [ \t\r\n]*+ = [ \t\r\n]*+ (?: "[^"<]*+" | '[^'<]*+' ) )*+
        [ \t\r\n]*+ )
    (?P<empty>/)? >""",
    re.DOTALL | re.VERBOSE,
)

Frame = tuple[bytes, bytes]
"""The start and closing tags to put around a slice of rows."""


@dataclass(frozen=True, slots=True)
class Prolog:
    """The start of a dump.

    Attributes:
        head: Bytes read from the start of the dump, at least up to the root's start tag.
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
    """Read a dump in UTF-8 up to the root's start tag.

    Raises:
        DumpError: It is empty, not XML, or another table.
        MalformedDumpError: It has no root element in its first 64 KiB, or an empty one that is
            followed by other content.
    """
    head = b""
    while (match := _ROOT.match(head)) is None and len(head) < HEAD_LIMIT:
        if not (block := read(HEAD_LIMIT)):
            break
        head += block
    if match is None:
        raise _without_root(path, head, table)
    start, frame = match.end(), (match["tag"] + b">", b"</" + match["root"] + b">")
    is_empty = match["empty"] is not None
    check_root(path, match["root"].decode(errors="replace"), table)
    rest = head[start:] if is_empty else b""
    while is_empty and not rest.strip(BLANK) and (rest := read(HEAD_LIMIT)):
        pass
    if rest:
        raise Ending(path, frame, table).content_after(start)
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


_GIVE_OUTPUT = f"to read it, use so2docs show or so2docs inspect; otherwise, {GIVE_DUMP}"
_PAGE = re.compile(rb"<(?:!doctype[ \t\r\n]+)?html[ \t\r\n/>]", re.IGNORECASE)


def _without_root(path: str, head: bytes, table: Table) -> DumpError:
    """Make the error for a file without a root element: empty, or of a kind such as JSON."""
    if not head:
        return DumpError(
            path, "is empty", advice="download it again, or check the command that writes it"
        )
    start = head.lstrip(b"\xef\xbb\xbf" + BLANK)
    if _PAGE.match(start):
        check_root(path, "html", table)
    if start[:1] in (b"{", b"["):
        is_output = b'"PostTypeId":' in start or b'"Answers":' in start
        problem = f"is JSON{' that so2docs wrote' if is_output else ''}, not a {table.file}"
        return DumpError(path, problem, advice=_GIVE_OUTPUT if is_output else GIVE_DUMP)
    if ROW_START.search(head):
        problem = f"starts in the middle of the rows, expected <{table.root}> before them"
        return piece_error(path, problem, table)
    return MalformedDumpError(
        path,
        f"is not a {table.file}: no root element such as <{table.root}> "
        f"in its first {plural(len(head), 'byte')}",
        Location(0, 1, row=table.row),
        advice=f"check that this is the complete {table.file} of a Stack Exchange dump",
        excerpt=head[:HEAD_LIMIT],
    )


def _closing_tag(frame: Frame) -> bytes:
    return re.escape(frame[1][:-1]) + rb"[ \t\r\n]*+>"


def closes_within(raw: bytes, frame: Frame) -> bool:
    """Whether the bytes of a malformed row contain the root's closing tag."""
    return re.search(_closing_tag(frame), raw) is not None


class Ending:
    """Finds the end of the root element of a dump."""

    def __init__(self, path: str, frame: Frame, table: Table) -> None:
        self._path, self._table = path, table
        self._name = frame[1].decode(errors="replace")
        self._start = frame[1][:-1]
        self._tag = re.compile(_closing_tag(frame))
        self._blank = re.compile(rb"[ \t\r\n]*\Z")

    def rows_before(self, data: bytearray, size: int) -> int:
        """Return the offset up to which the first `size` bytes are certainly rows."""
        if core.contains(data, self._start, size):
            at = data.rfind(self._start, 0, size)
            if ROW_START.search(data, at, size) is None:
                return at
        return max(0, size - max(_OVERLAP, len(self._start)))

    def find(self, data: bytes, offset: int = 0) -> int:
        """Return the position of the closing tag in the last bytes of a dump.

        Args:
            data: The bytes.
            offset: Offset of the bytes in the dump, for errors.

        Raises:
            MalformedDumpError: The dump has other content after the tag.
            TruncatedDumpError: The dump ends without the tag.
        """
        at = data.rfind(self._start)
        if tag := self._tag.match(data, at) if at >= 0 else None:
            if self._blank.match(data, tag.end()):
                return at
            if ROW_START.search(data, at) is None:
                raise self.content_after(offset + tag.end())
        raise TruncatedDumpError(
            self._path,
            f"is truncated: it ends without {self._name}",
            Location(offset + len(data), row=self._table.row),
            advice="download it again, or the missing part",
        )

    def content_after(self, offset: int) -> MalformedDumpError:
        """Make the error for content after the root element, at an offset."""
        return MalformedDumpError(
            self._path,
            f"has content after its closing {self._name}",
            Location(offset, row=self._table.row),
            advice="if two dumps were joined, split them and convert each",
        )


def find_in_file(path: str, file: BinaryIO, size: int, *, prolog: Prolog, table: Table) -> int:
    """Find the offset of the closing tag in a file, searching backwards from the end."""
    start, frame = prolog.start, prolog.frame
    ending = Ending(path, frame, table)
    if prolog.is_empty:
        return start
    window = _WINDOW
    while True:
        begin = max(start, size - window)
        file.seek(begin)
        tail = file.read(size - begin)
        if begin == start or window >= TAIL_LIMIT or last_good_row(tail) is not None:
            break
        window *= 4
    try:
        return begin + ending.find(tail, begin)
    except DumpError as error:
        add_last_row(error, tail, frame)
        raise


def add_last_row(error: DumpError, tail: bytes, frame: Frame) -> None:
    """Add the last complete row of a dump to an error, and an excerpt if the dump is truncated."""
    last_id, start = last_good_row(tail) or (None, max(0, len(tail) - _WINDOW))
    if error.location is not None:
        error.location.last_id = last_id
    if isinstance(error, TruncatedDumpError):
        error.excerpt = frame[0] + b"\n" + tail[start:]


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
