"""Parse slices of a dump with lxml into rows, which are dictionaries of attributes.

This reference parser accounts for every byte of a slice: each `<row` is a row, a malformed row, or
an error. lxml's `recover=True` is never used, since it drops attributes and accepts truncated
files. A parse with a logged error is also rejected, because after a namespace error libxml2 ignores
everything after the root. Entities are never expanded or fetched, since the document type
declaration is in the prolog, which no slice contains.

Attributes keep their exact names. lxml cannot turn namespaces off, so a slice with
namespaces is parsed with escaped names.

lxml calls the parser's target for every element and builds no tree. This is 20 % faster than
`iterparse` with rows that are freed after use, and needs memory only for one slice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

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

# The markup of a slice. Unclosed sections match up to the end of the slice, so no byte is read
# twice.
_MARKUP = re.compile(
    rb"""<!--(?:.*?-->|(?P<comment>.*)) | <!\[CDATA\[(?:.*?\]\]>|(?P<cdata>.*))
      | <\?(?:.*?\?>|(?P<instruction>.*)) | (?P<tag><(?:[^<>"']++|"[^"]*+"|'[^']*+')*+)""",
    re.DOTALL | re.VERBOSE,
)
_SECTIONS = {
    "comment": "a comment",
    "cdata": "a CDATA section",
    "instruction": "a processing instruction",
}

# An unassigned character that is allowed in names (XML 1.0, [4] NameStartChar).
_ESCAPE = "\U000effff"
_ESCAPES = {_ESCAPE: "0", ":": "1", "xmlns": "2"}
_TO_ESCAPE = re.compile(
    rb"""(?P<kept>"[^"]*+"|'[^']*+'|(?<=\s)xmlns:xml(?=[\s=]))|xmlns|:|%b""" % _ESCAPE.encode()
)
_ESCAPED = re.compile(f"{_ESCAPE}([012])")
_ESCAPED_TO = {code: text for text, code in _ESCAPES.items()}


_ROOT_END = re.compile(rb"</root(_*)")


class RowError(So2docsError):
    """The bytes are not valid XML."""


class ShapeError(RowError):
    """The bytes are well-formed XML, but not rows of attributes."""


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


class _CheckingTarget:
    """Collects rows with escaped names.

    Raises `RowError` for anything except rows, white space, comments and processing instructions.
    """

    def __init__(self) -> None:
        self.rows: list[TextRow] = []
        self.depth = 0

    def start(self, tag: str, attributes: TextRow) -> None:
        if self.depth == 1:
            if tag != "row":
                kind = ShapeError if _unescape(tag).endswith(":row") else RowError
                raise kind(f"found <{_unescape(tag)}> where <row> was expected")
            self.rows.append({_unescape(name): value for name, value in attributes.items()})
        elif self.depth > 1:
            raise ShapeError(f"found <{_unescape(tag)}> inside a row")
        self.depth += 1

    def end(self, tag: str) -> None:
        self.depth -= 1

    def data(self, text: str) -> None:
        if text.strip(_BLANK):
            shown = repr(text.strip()[:40])
            if self.depth > 1:
                raise ShapeError(f"found the text {shown} inside a row")
            raise RowError(f"found the text {shown} between rows")  # Damage cuts rows to text.

    def comment(self, text: str) -> None:
        # Reject `<row` in a comment: slices start at `<row`, so a slice could start inside it.
        if ROW_START.search(text.encode()):
            raise RowError("found <row in a comment or a processing instruction")

    def pi(self, name: str, text: str | None) -> None:
        self.comment(text or "")

    def close(self) -> list[TextRow]:
        return self.rows


def _escape(data: bytes) -> bytes:
    """Escape the names in the tags of a slice, which removes its namespaces.

    This changes neither whether the slice is well-formed nor where tags end. Declarations of the
    prefix `xml` stay, because they can only repeat the default.
    """

    def escape_names(markup: re.Match[bytes]) -> bytes:
        return _TO_ESCAPE.sub(escape, markup[0]) if markup.lastgroup == "tag" else markup[0]

    def escape(match: re.Match[bytes]) -> bytes:
        return match["kept"] or (_ESCAPE + _ESCAPES[match[0].decode()]).encode()

    return _MARKUP.sub(escape_names, data)


def _unescape(text: str) -> str:
    """Restore the escaped names in a name or a message."""
    if _ESCAPE not in text:
        return text
    return _ESCAPED.sub(lambda match: _ESCAPED_TO[match[1]], text)


def _parser(target: _RowTarget | _CheckingTarget) -> etree.XMLParser:
    return etree.XMLParser(
        target=target,
        encoding="utf-8",
        huge_tree=True,
        # Without this, the target would get `&#38;amp;` for `&amp;amp;`. A slice cannot declare
        # entities, so only the five predefined ones are ever resolved.
        resolve_entities="internal",
        no_network=True,
        load_dtd=False,
    )


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
    try:
        etree.fromstring(
            document,
            etree.XMLParser(
                # Input in other encodings is already converted to UTF-8, whatever its declaration
                # says.
                encoding="utf-8",
                resolve_entities=False,
                no_network=True,
                load_dtd=False,
                huge_tree=True,
            ),
        )
    except etree.XMLSyntaxError as error:
        raise RowError(_problem(error)) from None


def _problem(error: etree.XMLSyntaxError | RowError) -> str:
    """Describe an error without lxml's line and column, which count from the start of the slice."""
    if isinstance(error, RowError):
        return str(error)
    return _unescape(re.sub(r",? line \d+(, column \d+)?", "", error.msg or "not well-formed"))


def _parse_plain(data: bytes) -> list[TextRow] | None:
    """Parse a slice of rows without namespaces; None if it contains anything else.

    Raises:
        etree.XMLSyntaxError: The slice is not well-formed.
    """
    target = _RowTarget()
    parser = _parser(target)
    rows: list[TextRow] = etree.fromstring(b"<root>%b</root>" % data, parser)
    if parser.error_log or target.has_namespaces or not _is_plain(data, len(rows)):
        return None
    # The prefix `xml` needs no declaration.
    return None if "{" in "".join(set().union(*rows)) else rows


def _parse_carefully(data: bytes) -> list[TextRow]:
    """Parse a slice that may have namespaces, comments and processing instructions.

    Nothing in the slice can close the root, and the parser must reach the end of the root, so no
    byte is skipped.

    Raises:
        etree.XMLSyntaxError: The slice is not well-formed.
        RowError: The slice contains other markup, or text between rows.
    """
    root = b"root" + max(_ROOT_END.findall(data), default=b"") + b"_"
    target = _CheckingTarget()
    parser = _parser(target)
    rows: list[TextRow] = etree.fromstring(b"<%b>%b</%b>" % (root, _escape(data), root), parser)
    if target.depth:
        raise RowError("found the end of the rows too early")
    for entry in parser.error_log:
        if entry.type == etree.ErrorTypes.NS_ERR_XML_NAMESPACE:
            raise RowError(entry.message)
    return rows


def _parse_strictly(data: bytes) -> list[TextRow]:
    """Parse a slice; raise `etree.XMLSyntaxError` or `RowError` if it is malformed."""
    try:
        rows = _parse_plain(data)
    except etree.XMLSyntaxError:
        if _escape(data) == data:
            raise
        rows = None
    return _parse_carefully(data) if rows is None else rows


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
    try:
        yield Rows(_parse_strictly(data))
        return
    except (etree.XMLSyntaxError, RowError):
        pass
    repaired, count = repair(data)
    with suppress(etree.XMLSyntaxError):
        if (rows := _parse_plain(repaired)) is not None:
            yield Rows(rows, count)
            return
    for position, raw in pieces(data):
        yield from _parse_piece(position, raw)


def _parse_piece(position: int, raw: bytes) -> Iterator[Rows | Malformed]:
    """Parse one row with the bytes up to the next row, after repairs if it needs them."""
    try:
        yield Rows(_parse_strictly(raw))
        return
    except (etree.XMLSyntaxError, RowError):
        pass
    repaired, count = repair(raw)
    try:
        yield Rows(_parse_strictly(repaired), count)
        return
    except (etree.XMLSyntaxError, RowError) as error:
        problem = _problem(error)
        is_xml = isinstance(error, ShapeError) and _is_xml(raw)
    for markup in _MARKUP.finditer(raw):
        if kind := _SECTIONS.get(markup.lastgroup or ""):
            start = markup.start()
            if start:
                yield from _parse_piece(position, raw[:start])
            problem = f"{kind} that contains <row or has no end"
            yield Malformed(position + start, raw[start:], problem, can_be_skipped=False)
            return
    yield Malformed(position, raw, problem, is_xml=is_xml)


def _is_xml(raw: bytes) -> bool:
    """Whether elements and text are well-formed XML, whatever their shape."""
    try:
        check_prolog(b"<root>%b</root>" % _escape(raw))
    except RowError:
        return False
    return True


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
