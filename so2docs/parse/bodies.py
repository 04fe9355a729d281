"""Convert the HTML of bodies to plain text or Markdown."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from so2docs.escape import remove_comments
from so2docs.options.choices import Core
from so2docs.registry import find_hook

if TYPE_CHECKING:
    from lxml import etree

_TAG = re.compile("<[^<>]*>")
_STRAY = re.compile("<(?![a-zA-Z/][^<>]*>)")
_LONG_TAG = re.compile("<([a-zA-Z][a-zA-Z0-9]*)([^<>]{2000,})>")
# libxml2 drops everything after the end of a page.
_END_OF_PAGE = re.compile("</html(?:[\\s/][^<>]*)?>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r'\s(?:href|src|alt|title|class)="[^"]*"')
_MOST_STRAY = 100
_MOST_ATTRIBUTES = 8
_DEEPEST = 255
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def converter(
    body: str, core: Core = "python", host: str | None = None
) -> Callable[[str], str] | None:
    """Choose the function that converts the HTML of a body.

    Args:
        body: Form of the converted bodies: `html`, `text` or `markdown`.
        core: The core that converts to Markdown.
        host: Host of the site, which determines the delimiter of formulas in Markdown. If it is
            None or a site without formulas, each body with formulas gets `$`.

    Returns:
        The function; None for `html`, which needs no conversion.
    """
    if body == "html":
        return None
    if body == "text":
        return _text
    convert: Callable[[str], str] = find_hook(f"body {body}")(core, host)
    return convert


def tame(body: str) -> str:
    """Simplify a body that libxml2 would take quadratic time to parse; other bodies stay unchanged.

    Sites do not publish such bodies. libxml2 compares every attribute of a tag with all others,
    looks for the end of every comment, and reads the text after an unclosed tag as attributes.
    """
    if len(_STRAY.findall(body)) > _MOST_STRAY:
        body = _STRAY.sub("&lt;", remove_comments(body))
    return _LONG_TAG.sub(_shorten_tag, body)


def _shorten_tag(tag: re.Match[str]) -> str:
    attributes = itertools.islice(_ATTRIBUTE.finditer(tag[2]), _MOST_ATTRIBUTES)
    return f"<{tag[1]}{''.join(match[0] for match in attributes)}>"


def parse_body(body: str) -> etree._Element:
    """Parse the HTML of a body; return the root element.

    If the tags are nested too deeply for libxml2, the root contains only the text of the body.
    """
    from lxml import html

    body = _END_OF_PAGE.sub("", tame(body))
    parser = html.HTMLParser(encoding="utf-8", huge_tree=True)
    page = f"<html><body>{body}".encode()
    root: etree._Element = html.document_fromstring(page, parser=parser)
    if body.count("<") > _DEEPEST and parser.error_log.filter_from_fatals():
        # With tags nested this deeply, libxml2 gives up and drops the remaining text.
        root.clear()
        root.text = _remove_forbidden(_TAG.sub(" ", body))
    return root


def plain_text(root: etree._Element) -> str:
    """Extract the text that readers see, without links or emphasis, but with its line breaks.

    Images become their alt text. The line feed between two blocks of a body stays in the text.
    """
    for element in root.iter("br"):
        element.tail = _remove_forbidden("\n" + (element.tail or "").removeprefix("\n"))
    for element in root.iter("img"):
        element.tail = _remove_forbidden(element.get("alt", "") + (element.tail or ""))
    return str(root.text_content()).strip()


def _remove_forbidden(text: str) -> str:
    """Replace characters that XML forbids, such as that of `&#x1b;`, with U+FFFD."""
    return _FORBIDDEN.sub("\ufffd", text)


def _text(body: str) -> str:
    return plain_text(parse_body(body)) if body.strip() else ""
