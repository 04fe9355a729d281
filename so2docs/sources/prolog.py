"""What stands before the first row of a dump: declaration, comments, document type, root tag.

The same code for a file and for a stream: it asks for bytes until the root's start tag is whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from so2docs.errors import DumpError, MalformedDumpError, Place
from so2docs.posts import rows

HEAD_LIMIT = 16 * 1024 * 1024
"""A longer prolog is none."""

_WINDOW = 64 * 1024

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

MISC = re.compile(rb"(?:\s|<!--.*?-->|<\?.*?\?>)*+", re.DOTALL)
"""What may follow the root's closing tag: XML 1.0, [27] Misc."""

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


def read_prolog(path: str, read: Callable[[int], bytes]) -> Prolog:
    """Read the start of a dump, encoded as UTF-8.

    Args:
        path: Name of the dump, for messages.
        read: Returns at most so many bytes; none at the end of the dump.

    Raises:
        MalformedDumpError: There is no root element, or what stands before it is not XML.
        DumpError: There is nothing at all.
    """
    head, match = _find_root(path, read)
    start, frame = match.end(), (match["tag"] + b">", b"</" + match["root"] + b">")
    is_empty = match["empty"] is not None
    try:
        rows.check_prolog(head[:start] if is_empty else head[:start] + frame[1])
    except rows.RowError as error:
        raise MalformedDumpError(
            path,
            f"is not well-formed XML before its first row: {error}",
            Place(0, 1),
            excerpt=head[:start],
        ) from None
    first_line = 1 + head.count(b"\n", 0, start)
    if match["root"] == b"row":
        raise MalformedDumpError(
            path,
            "starts with <row>; expected <posts> around the rows",
            Place(match.start("tag"), first_line),
            advice="check that this is the whole Posts.xml of a Stack Exchange dump",
            excerpt=head[:_WINDOW],
        )
    return Prolog(head, start, first_line, frame, is_empty)


def _find_root(path: str, read: Callable[[int], bytes]) -> tuple[bytes, re.Match[bytes]]:
    head, searched = b"", 0
    while len(head) < HEAD_LIMIT:
        more = read(max(_WINDOW, len(head)))
        head += more
        # Short reads (of a pipe) are gathered: each search starts from the beginning.
        if more and len(head) < min(2 * searched, HEAD_LIMIT):
            continue
        searched = len(head)
        if match := _PROLOG.match(head):
            return head, match
        if not more:
            break
    if not head:
        raise DumpError(path, "is empty", advice="download it again")
    raise MalformedDumpError(
        path,
        f"is not a Posts.xml: no root element such as <posts> in its first {len(head):,} bytes",
        Place(0, 1),
        advice="check that this is the Posts.xml of a Stack Exchange dump, and that it is complete",
        excerpt=head[:_WINDOW],
    )
