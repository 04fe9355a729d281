"""Parse slices of a dump into rows, which are dictionaries of attributes.

This reference parser accounts for every byte of a slice: each `<row` is a row, a malformed row, or
an error. lxml's `recover=True` is never used, since it drops attributes and accepts truncated
files. A parse with a logged error is also rejected, because after a namespace error libxml2 ignores
everything after the root. Entities are never expanded or fetched, since the document type
declaration is in the prolog, which no slice contains.

lxml parses slices of plain rows. It calls the parser's target for every element and builds no tree:
this is 20 % faster than `iterparse` with rows that are freed after use, takes two thirds of the
time of expat, and needs memory only for one slice. expat parses all other slices: it has no
namespaces, so attributes keep their exact names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from xml.parsers import expat

from lxml import etree

from so2docs.errors import So2docsError
from so2docs.parse.posts import number

# All numeric references, and the raw characters that are forbidden (XML 1.0, [2] Char).
_REFERENCE = re.compile(rb"&#(?:x([0-9A-Fa-f]+)|([0-9]+));")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_REPLACEMENT_BYTES = _REPLACEMENT.encode()


def repair(data: bytes) -> tuple[bytes, int]:
    """Replace forbidden characters with U+FFFD, and pairs of surrogates with their character.

    XML 1.0, [2] Char forbids surrogates, U+FFFE, U+FFFF, numbers above U+10FFFF, and control
    characters except tab, line feed and carriage return, both raw and as references. Bytes that are
    not UTF-8 are replaced too. Serializers for Java write a character above U+FFFF as references to
    two surrogates, such as `&#xD83D;&#xDE00;`; this counts as one.

    Returns:
        The repaired bytes and the number of characters replaced.
    """
    count = end_of_pair = 0

    def reference(match: re.Match[bytes]) -> bytes:
        nonlocal count, end_of_pair
        if match.end() == end_of_pair:
            return b""
        code = _code(match)
        if _is_allowed(code):
            return match[0]
        count += 1
        following = _REFERENCE.match(data, match.end()) if 0xD800 <= code <= 0xDBFF else None
        if following is not None and 0xDC00 <= (low := _code(following)) <= 0xDFFF:
            end_of_pair = following.end()
            return chr(0x10000 + (code - 0xD800 << 10) + low - 0xDC00).encode()
        return _REPLACEMENT_BYTES

    try:
        data.decode()
    except UnicodeDecodeError:
        existing = data.count(_REPLACEMENT_BYTES)
        data = data.decode(errors="replace").encode()
        count += data.count(_REPLACEMENT_BYTES) - existing
    data, controls = _CONTROL.subn(_REPLACEMENT_BYTES, data)
    return _REFERENCE.sub(reference, data), count + controls


def _code(reference: re.Match[bytes]) -> int:
    # Limit the digits: allowed numbers have fewer than nine, and int() takes hours for millions of
    # digits.
    digits = (reference[1] or reference[2]).lstrip(b"0")[:9] or b"0"
    return int(digits, 16 if reference[1] else 10)


def _is_allowed(code: int) -> bool:
    return (
        code in (0x9, 0xA, 0xD)
        or 0x20 <= code <= 0xD7FF
        or 0xE000 <= code <= 0xFFFD
        or 0x10000 <= code <= 0x10FFFF
    )


TextRow = dict[str, str]

ROW_START = re.compile(rb"<row[\s/>]")
"""Matches the start of a row and nothing in attribute values, which cannot contain a raw `<` (XML
1.0, [10] AttValue). Comments, CDATA sections and processing instructions with a match are
rejected."""

_GAP = re.compile(rb"(/>\s*)<row\s")
_TAIL = 64
# White space (XML 1.0, [3] S). By default, strip() would silently remove other characters too.
_BLANK = " \t\r\n"

# The markup of a row. Unclosed sections match up to the end of the slice, so no byte is read
# twice.
_MARKUP = re.compile(
    rb"""<!--(?:.*?-->|(?P<comment>.*)) | <!\[CDATA\[(?:.*?\]\]>|(?P<cdata>.*))
      | <\?(?:.*?\?>|(?P<instruction>.*)) | <(?:[^<>"']++|"[^"]*+"|'[^']*+')*+""",
    re.DOTALL | re.VERBOSE,
)
_SECTIONS = {
    "comment": "a comment",
    "cdata": "a CDATA section",
    "instruction": "a processing instruction",
}

_NAMESPACE_OF_XML = "http://www.w3.org/XML/1998/namespace"


class RowError(So2docsError):
    """The bytes are not rows of attributes.

    Attributes:
        is_xml: Whether they are well-formed XML, with elements or text inside a row.
    """

    def __init__(self, problem: str, *, is_xml: bool = False) -> None:
        super().__init__(problem)
        self.is_xml = is_xml


@dataclass(frozen=True, slots=True)
class Malformed:
    """A row that is not well-formed XML, or a comment or similar section that reaches the next row.

    Attributes:
        position: Offset of the row in the slice.
        raw: Bytes up to the start of the next row.
        problem: The reason why the row is not well-formed, or has another shape.
        is_xml: Whether it is well-formed XML, with elements or text where a dump has none.
        can_be_skipped: Whether the following rows are certainly rows, not part of a comment.
    """

    position: int
    raw: bytes
    problem: str
    can_be_skipped: bool = True
    is_xml: bool = False


class _RowTarget:
    """Collects the attributes of every row; lxml makes a new dictionary for each row."""

    def __init__(self) -> None:
        self.rows: list[TextRow] = []
        self.has_namespaces = False

    def start(self, tag: str, attributes: TextRow, namespaces: dict[str | None, str]) -> None:
        if tag == "row":
            # If a row has no attributes, lxml passes a mapping that is not a dict.
            self.rows.append(attributes or {})
        if namespaces:
            self.has_namespaces = True

    def close(self) -> list[TextRow]:
        # Release the rows now: parser and target form a reference cycle, which only the garbage
        # collector frees.
        rows, self.rows = self.rows, []
        return rows


class _CarefulReader:
    """Reads rows from the events of a parser.

    Only white space, comments and processing instructions may be between rows.

    Attributes:
        rows: The rows.
        problem: The first problem; empty if there is none.
        is_other_shape: Whether it is inside a row, or nothing before it is a row.
    """

    def __init__(self) -> None:
        self.rows: list[TextRow] = []
        self.problem, self.is_other_shape = "", False
        self._depth = 0

    def start(self, tag: str, attributes: TextRow) -> None:
        if self._depth == 1 and tag == "row":
            if attributes.get("xmlns:xml") == _NAMESPACE_OF_XML:
                del attributes["xmlns:xml"]  # It repeats the default, and lxml leaves it out too.
            self.rows.append(attributes)
        elif self._depth:
            self._refuse(f"found <{tag}>", "where <row> was expected")
        self._depth += 1

    def end(self, tag: str) -> None:
        self._depth -= 1

    def text(self, text: str) -> None:
        if text.strip(_BLANK):
            self._refuse(f"found the text {text.strip()[:40]!r}", "between rows")

    def comment(self, text: str) -> None:
        # Reject `<row` in a comment: slices start at `<row`, so a slice could start inside it.
        if ROW_START.search(text.encode()):
            self._refuse("found <row", "in a comment or a processing instruction")

    def instruction(self, name: str, text: str) -> None:
        self.comment(text)

    def _refuse(self, problem: str, where: str) -> None:
        if not self.problem:
            is_inside = self._depth > 1
            self.is_other_shape = is_inside or not self.rows
            self.problem = f"{problem} {'inside a row' if is_inside else where}"


def _parse_carefully(data: bytes) -> list[TextRow]:
    """Parse rows with any names, comments and processing instructions.

    Raises:
        RowError: The bytes are not well-formed, or contain other markup, or text between rows.
    """
    reader = _CarefulReader()
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = reader.start, reader.end
    parser.CharacterDataHandler, parser.CommentHandler = reader.text, reader.comment
    parser.ProcessingInstructionHandler = reader.instruction
    _run(parser, b"<root>%b</root>" % data)
    if reader.problem:
        raise RowError(reader.problem, is_xml=reader.is_other_shape)
    return reader.rows


def _run(parser: expat.XMLParserType, document: bytes) -> None:
    try:
        parser.Parse(document, True)
    except expat.ExpatError as error:
        raise RowError(expat.ErrorString(error.code)) from None


def _is_plain(data: bytes, count: int) -> bool:
    """Whether a well-formed slice consists of its `count` rows and white space.

    A raw `<` cannot occur in an attribute value. A slice therefore contains only rows if
    it has as many `<` as rows, and if the same gap separates all rows: the end of a row, at its
    first `>`, and white space.

    Searching from one `<` to the next takes a quarter of the time of counting the gaps.
    """
    last = data[-_TAIL:].rstrip()
    if not count or not data.startswith(b"<row") or not last.endswith(b"/>"):
        return False
    gap = _GAP.search(data)
    before = gap[1] if gap else b"/>"
    size, at = len(before), 0
    for _ in range(count - 1):
        end = data.find(b">", at) - 1
        at = data.find(b"<", at + 1)
        # Check that the row ends at its first `>`, since text between rows may also end with `/>`.
        if end != at - size or data[end:at] != before:
            return False
    end = data.find(b">", at) + 1
    return data.find(b"<", at + 1) < 0 and not data[end:].strip()


def check_prolog(document: bytes) -> None:
    """Raise `RowError` if `document`, a prolog and an empty root, is not well-formed."""
    # Input in other encodings is already converted to UTF-8, whatever its declaration says.
    _run(expat.ParserCreate("utf-8"), document)


def _parse_plain(data: bytes) -> list[TextRow] | None:
    """Parse a slice of rows without namespaces; None if it contains anything else.

    Raises:
        etree.XMLSyntaxError: The slice is not well-formed.
    """
    target = _RowTarget()
    parser = etree.XMLParser(
        target=target,
        encoding="utf-8",
        huge_tree=True,
        # Without this, the target would get `&#38;amp;` for `&amp;amp;`. A slice cannot declare
        # entities, so only the five predefined ones are ever resolved.
        resolve_entities="internal",
        no_network=True,
        load_dtd=False,
    )
    rows: list[TextRow] = etree.fromstring(b"<root>%b</root>" % data, parser)
    if parser.error_log or target.has_namespaces or not _is_plain(data, len(rows)):
        return None
    # The prefix `xml` needs no declaration.
    return None if "{" in "".join(set().union(*rows)) else rows


@dataclass(frozen=True, slots=True)
class Rows:
    """Consecutive rows of a slice.

    Attributes:
        repaired: Number of forbidden characters that were replaced in the rows.
    """

    rows: list[TextRow]
    repaired: int = 0


def parse(data: bytes) -> Iterator[Rows | Malformed]:
    """Parse a slice of whole rows.

    The result for each row does not depend on the bounds of the slice.

    Yields:
        The rows in order: one `Rows` if possible, else a `Rows` or `Malformed` for each row.
    """
    for count, text in _repairs(data):
        with suppress(RowError):
            yield Rows(_parse_rows(text), count)
            return
    for position, raw in pieces(data):
        yield from _parse_piece(position, raw)


def _repairs(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the bytes unchanged and, if they are not accepted, after repairs."""
    yield 0, data
    repaired, count = repair(data)
    yield count, repaired


def _parse_piece(position: int, raw: bytes) -> Iterator[Rows | Malformed]:
    """Parse one row with the bytes up to the next row, after repairs if it needs them."""
    problem, is_xml = "", False
    for count, text in _repairs(raw):
        try:
            yield Rows(_parse_rows(text), count)
            return
        except RowError as error:
            problem, is_xml = str(error), error.is_xml
    for markup in _MARKUP.finditer(raw):
        if kind := _SECTIONS.get(markup.lastgroup or ""):
            start = markup.start()
            if start:
                yield from _parse_piece(position, raw[:start])
            problem = f"{kind} that contains <row or has no end"
            yield Malformed(position + start, raw[start:], problem, can_be_skipped=False)
            return
    yield Malformed(position, raw, problem, is_xml=is_xml)


def _parse_rows(data: bytes) -> list[TextRow]:
    """Parse whole rows; raise `RowError` if one is malformed."""
    with suppress(etree.XMLSyntaxError):
        if (rows := _parse_plain(data)) is not None:
            return rows
    return _parse_carefully(data)


def pieces(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Split a slice at the starts of rows into pieces, each with its offset.

    Text before the first row is a separate piece, unless it is blank.
    """
    starts = [match.start() for match in ROW_START.finditer(data)]
    if not starts or data[: starts[0]].strip(_BLANK.encode()):
        starts.insert(0, 0)
    for start, end in zip(starts, [*starts[1:], len(data)], strict=True):
        yield start, data[start:end]


def last_id(data: bytes) -> int | None:
    """Return the last row's `Id`; None if it is not a number, or the rows are not well-formed."""
    rows: list[TextRow] = []
    for part in parse(data):
        if isinstance(part, Malformed):
            return None
        rows = part.rows or rows
    return row_id(rows[-1]) if rows else None


def row_id(row: TextRow | dict[str, Any]) -> int | None:
    """Return the `Id` of a row, typed or not; None if it is not a number."""
    value = number(str(row.get("Id", "")))
    return value if isinstance(value, int) else None
