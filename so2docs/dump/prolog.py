"""The prolog of a dump, before its first row: declaration, comments, document type, root tag.

The same code for a file and for a stream: it asks for bytes until the root's start tag is whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from so2docs.dump.kinds import check_head, check_root
from so2docs.errors import DumpError, Location, MalformedDumpError
from so2docs.parse import rows
from so2docs.schema import Table

BLANK = b" \t\r\n"
"""White space: XML 1.0, [3] S. Python counts more characters as such."""

HEAD_LIMIT = 16 * 1024 * 1024
"""Longer prologs are refused."""

_WINDOW = 64 * 1024

# What may precede the root's start tag: XML 1.0, [22] prolog. No byte is tried in two ways, so
# that a prolog without an end takes no longer than any other.
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
        first_line: Line of that byte, from 1.
        frame: The root's start and closing tags.
        is_empty: Whether the root is one empty tag, `<posts/>`.
    """

    head: bytes
    start: int
    first_line: int
    frame: Frame
    is_empty: bool


def read_prolog(path: str, read: Callable[[int], bytes], wanted: Table) -> Prolog:
    """Read the start of a dump, encoded as UTF-8.

    Args:
        path: Name of the dump, for messages.
        read: Returns at most as many bytes as asked for; none at the end of the dump.
        wanted: What it is to be.

    Raises:
        MalformedDumpError: There is no root element, or the prolog is not XML.
        DumpError: There is nothing at all, or it is the start of something else.
    """
    head, match = _find_root(path, read, wanted)
    start, frame = match.end(), (match["tag"] + b">", b"</" + match["root"] + b">")
    is_empty = match["empty"] is not None
    check_root(path, match["root"].decode(errors="replace"), wanted)
    try:
        rows.check_prolog(head[:start] if is_empty else head[:start] + frame[1])
    except rows.RowError as error:
        raise MalformedDumpError(
            path,
            f"is not well-formed XML before its first row: {error}",
            Location(0, 1, row=wanted.row),
            advice="download it again",
            excerpt=head[:start],
        ) from None
    return Prolog(head, start, 1 + head.count(b"\n", 0, start), frame, is_empty)


def _find_root(
    path: str, read: Callable[[int], bytes], wanted: Table
) -> tuple[bytes, re.Match[bytes]]:
    head, searched = b"", 0
    while len(head) < HEAD_LIMIT:
        more = read(max(_WINDOW, len(head)))
        head += more
        # Short reads (of a pipe) are gathered: each search starts from the beginning.
        if more and len(head) < min(2 * searched, HEAD_LIMIT):
            continue
        searched = len(head)
        before = _BEFORE_ROOT.match(head)
        at = before.end() if before else 0
        if match := _ROOT.match(head, at):
            return head, match
        if not more or head[at : at + 1] not in (b"<", b""):
            break
    if not head:
        raise DumpError(path, "is empty", advice="download it again")
    check_head(path, head, wanted)
    raise MalformedDumpError(
        path,
        f"is not a {wanted.file}: no root element such as <{wanted.root}> "
        f"in its first {len(head):,} byte{'s'[len(head) == 1 :]}",
        Location(0, 1, row=wanted.row),
        advice=f"check that this is the complete {wanted.file} of a Stack Exchange dump",
        excerpt=head[:_WINDOW],
    )
