"""A slice of a dump -> its rows as dictionaries of attributes: the only user of lxml.

The reference parser. A slice is parsed strictly first; only a slice that fails is repaired, and
only one that still fails is taken apart row by row. lxml's `recover=True` is never used: it drops
attributes and accepts cut-off files without a word. Entities are never expanded nor fetched: the
document type declaration stands in the prolog, which no slice contains.

lxml calls the target of the parser for every element, which builds no tree: 20 % faster than
iterparse with the rows freed, and what one slice needs is all the memory there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lxml import etree

from so2docs.errors import So2docsError
from so2docs.posts.posts import number
from so2docs.posts.repair import repair

Row = dict[str, str]

_ROW_START = re.compile(rb"<row[\s/>]")
_GAP = re.compile(rb"(/>\s*)<row\s")
_TAIL = 64
# XML 1.0, [3] S: Python counts more characters as white space, which would be lost unseen.
_BLANK = " \t\r\n"


class RowError(So2docsError):
    """What lxml, or the shape that a dump must have, has against some bytes."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """A row that is not well-formed XML.

    Attributes:
        position: Where in the slice it starts.
        raw: Its bytes, up to where the next row starts.
        problem: What is wrong with it.
    """

    position: int
    raw: bytes
    problem: str


class _RowTarget:
    """Collects the attributes of every row; lxml makes a new dictionary for each."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def start(self, tag: str, attributes: Row) -> None:
        if tag == "row":
            # Of a row without attributes lxml gives a mapping of its own, which is no JSON.
            self.rows.append(attributes or {})

    def close(self) -> list[Row]:
        # Parser and target hold each other until the garbage collector comes by; the rows must not
        # wait for it.
        rows, self.rows = self.rows, []
        return rows


class _CheckingTarget(_RowTarget):
    """Also refuses everything that is not a row directly below the root."""

    def __init__(self) -> None:
        super().__init__()
        self.depth = 0

    def start(self, tag: str, attributes: Row) -> None:
        if self.depth == 1:
            if tag.rpartition("}")[2] != "row":
                raise RowError(f"found <{tag}> where <row> was expected")
            self.rows.append(dict(attributes))
        elif self.depth > 1:
            raise RowError(f"found <{tag}> inside a row")
        self.depth += 1

    def end(self, tag: str) -> None:
        self.depth -= 1

    def data(self, text: str) -> None:
        if text.strip(_BLANK):
            raise RowError(f"found the text {text.strip()[:40]!r} between rows")


def _parse(data: bytes, target: _RowTarget) -> list[Row]:
    parser = etree.XMLParser(
        target=target,
        encoding="utf-8",
        huge_tree=True,
        # Off, `&amp;amp;` would reach the target as `&#38;amp;`. A slice has no declaration that
        # could define an entity, so only the five predefined ones are ever resolved.
        resolve_entities="internal",
        no_network=True,
        load_dtd=False,
    )
    parsed: list[Row] = etree.fromstring(data, parser)
    return parsed


def _is_plain(data: bytes, count: int) -> bool:
    """Whether nothing but white space stands around the `count` rows of a well-formed slice.

    A raw `<` cannot stand in an attribute value, so as many of them as rows, each with the same gap
    before it that starts at the row's first `>`, leave no room for anything else. Looking from one
    to the next takes a quarter of the time of counting the gaps.
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
        # Text may end in `/>` too, so that the row's own `>` has to be the one of the gap.
        if end != at - size or data[end:at] != before:
            return False
    end = data.find(b">", at) + 1
    return data.find(b"<", at + 1) < 0 and not data[end:].strip()


def check_prolog(document: bytes) -> None:
    """Raise `RowError` unless `document`, a prolog and an empty root, is well-formed."""
    try:
        etree.fromstring(
            document,
            etree.XMLParser(
                # A stream of another encoding comes as UTF-8, whatever its declaration says.
                encoding="utf-8",
                resolve_entities=False,
                no_network=True,
                load_dtd=False,
                huge_tree=True,
            ),
        )
    except etree.XMLSyntaxError as error:
        raise RowError(_problem(error)) from None


def _problem(error: etree.XMLSyntaxError) -> str:
    """Lxml's message without its line and column, which count from the start of a slice."""
    return re.sub(r",? line \d+(, column \d+)?", "", error.msg or "not well-formed")


def _parse_strictly(data: bytes, frame: tuple[bytes, bytes]) -> list[Row]:
    """Rows of a slice, or `etree.XMLSyntaxError` or `RowError`."""
    document = frame[0] + data + frame[1]
    found = _parse(document, _RowTarget())
    if _is_plain(data, len(found)):
        return found
    return _parse(document, _CheckingTarget())


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that stand one after the other in a slice.

    Attributes:
        rows: Attributes of each row, names to values, in the order of the dump.
        repaired: Characters that were replaced by U+FFFD.
    """

    rows: list[Row]
    repaired: int = 0


def parse(data: bytes, frame: tuple[bytes, bytes]) -> Iterator[Rows | Malformed]:
    """Parse a slice of whole rows.

    Args:
        data: Whole rows, from one row's start to another's.
        frame: The root's start and closing tags.

    Yields:
        The rows in their order; one `Rows` for all, unless a row is malformed.
    """
    try:
        yield Rows(_parse_strictly(data, frame))
        return
    except (etree.XMLSyntaxError, RowError):
        pass
    repaired, count = repair(data)
    try:
        yield Rows(_parse_strictly(repaired, frame), count)
        return
    except (etree.XMLSyntaxError, RowError):
        pass
    for position, raw in pieces(data):
        mended, count = repair(raw)
        try:
            yield Rows(_parse_strictly(mended, frame), count)
        except etree.XMLSyntaxError as error:
            yield Malformed(position, raw, _problem(error))
        except RowError as error:
            yield Malformed(position, raw, str(error))


def pieces(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Cut a slice where rows start; text before the first row is a part of its own unless blank."""
    starts = [found.start() for found in _ROW_START.finditer(data)]
    if not starts or data[: starts[0]].strip(_BLANK.encode()):
        starts.insert(0, 0)
    for start, end in zip(starts, [*starts[1:], len(data)], strict=True):
        yield start, data[start:end]


def last_id(data: bytes, frame: tuple[bytes, bytes]) -> int | None:
    """`Id` of the last row of some bytes; None unless they are well-formed rows with numbers."""
    found: list[Row] = []
    for part in parse(data, frame):
        if isinstance(part, Malformed):
            return None
        found = part.rows or found
    return row_id(found[-1]) if found else None


def row_id(row: Row) -> int | None:
    """`Id` of a row as far as it is a number."""
    value = number(row.get("Id", ""))
    return value if isinstance(value, int) else None
