"""The HTML of a post as plain text for a terminal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from lxml import etree

from so2docs.escape import for_terminal
from so2docs.parse.bodies import parse_body, plain_text

_BLOCKS = {"p", "div", "blockquote", "pre", "hr", "br", "details", "summary"}
_BLOCKS |= {"ul", "ol", "li", "dl", "dt", "dd", "table", "tr"}
_BLOCKS |= {"html", "head", "body", "h1", "h2", "h3", "h4", "h5", "h6"}
_NARROWEST = 20
_SPACE = re.compile(r"\s+")


def as_text(body: str, width: int = 80) -> str:
    """Render the body of a post.

    Args:
        body: HTML, as Stack Exchange stores it.
        width: Columns to wrap paragraphs at; code is not wrapped.

    Returns:
        Paragraphs separated by empty lines, code indented by four spaces, list items marked,
        quotations behind `> `, links followed by their address.
    """
    if not body.strip():
        return ""
    root = parse_body(for_terminal(body))
    try:
        text = "\n\n".join(_blocks(root, width))
    except RecursionError:  # Tags nested hundreds deep.
        text = plain_text(root)
    return for_terminal(text)


def _blocks(element: etree._Element, width: int) -> Iterator[str]:
    """The paragraphs of an element, in order."""
    inline = [element.text or ""]
    for child in element:
        if child.tag in _BLOCKS:
            yield from _wrapped(inline, width)
            yield from _block(child, width)
            inline = []
        else:
            inline.append(_inline(child))
        inline.append(child.tail or "")
    yield from _wrapped(inline, width)


def _block(element: etree._Element, width: int) -> Iterator[str]:
    tag = element.tag
    if tag == "pre":
        code = "".join(element.itertext()).strip("\n").expandtabs(4)
        yield textwrap.indent(code, "    ", lambda line: True)
    elif tag in ("ul", "ol"):
        yield "\n".join(_items(element, width))
    elif tag == "blockquote":
        yield textwrap.indent("\n\n".join(_blocks(element, width - 2)), "> ", lambda line: True)
    elif tag == "hr":
        yield "-" * min(width, 20)
    elif tag == "tr":
        yield " | ".join(_SPACE.sub(" ", _inline(cell)).strip() for cell in element)
    elif tag == "table":
        yield "\n".join(row for part in element.iter("tr") for row in _block(part, width))
    else:
        yield from _blocks(element, width)


def _items(element: etree._Element, width: int) -> Iterator[str]:
    items = element.findall("li")
    for number, item in enumerate(items, 1):
        mark = f"{number}. " if element.tag == "ol" else "- "
        text = "\n".join(_blocks(item, width - len(mark)))
        yield mark + textwrap.indent(text, " " * len(mark)).lstrip(" ")


def _inline(element: etree._Element) -> str:
    """The text of an element within a paragraph."""
    if not isinstance(element.tag, str):
        return ""
    if element.tag == "img":
        return f"[image: {element.get('alt') or element.get('src') or ''}]"
    inside = (element.text or "") + "".join(
        _inline(child) + (child.tail or "") for child in element
    )
    if element.tag == "code":
        return f"`{inside}`"
    address = element.get("href")
    if element.tag == "a" and address and address.strip() != inside.strip():
        return f"{inside} [{address}]"
    return inside


def _wrapped(inline: list[str], width: int) -> Iterator[str]:
    text = _SPACE.sub(" ", "".join(inline)).strip()
    if text:
        yield textwrap.fill(
            text, max(width, _NARROWEST), break_long_words=False, break_on_hyphens=False
        )
