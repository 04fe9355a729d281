"""The HTML that sites keep in bodies; they remove all other tags.

The elements that users may type are those of the sites' help, "What HTML tags are allowed on Stack
Exchange sites?" (https://meta.stackexchange.com/q/1777). The sites themselves add tables,
formulas, snippets and classes. No other element or attribute occurs in the dumps of 43 sites.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Mapping
from itertools import chain

# fmt: off
TYPED = frozenset({
    "b", "blockquote", "code", "dd", "del", "dl", "dt", "em", "h1", "h2", "h3", "h4", "h5", "h6",
    "i", "kbd", "li", "ol", "p", "pre", "s", "strike", "strong", "sub", "sup", "ul",
})
# fmt: on
"""Elements that users may type, without attributes."""

ATTRIBUTES: Mapping[str, frozenset[str]] = {
    **dict.fromkeys((*TYPED, "br", "hr", "tbody", "thead", "tr"), frozenset()),
    "a": frozenset({"class", "href", "rel", "title"}),
    "blockquote": frozenset({"class"}),
    "div": frozenset({"class"}),
    "img": frozenset({"alt", "height", "src", "title", "width"}),
    "ol": frozenset({"start"}),
    "pre": frozenset({"class"}),
    "span": frozenset({"class"}),
    "table": frozenset({"class"}),
    "td": frozenset({"style"}),
    "th": frozenset({"style"}),
}
"""Attributes in bodies, by element."""

MADE = "\U0010f804"
"""Follows the name of an element that the renderer makes with attributes, so that it is kept."""

_TAG = re.compile(r"<[^>]*>?")
_NAME = re.compile(r"</?(\w+)")
_URL = r"[^\"<>\s]+"
_KEPT = re.compile(
    rf"</?(?:{'|'.join(sorted(TYPED))})>|<[bh]r ?/?>|</a>"
    rf"|<a\shref=\"(?:(?:https?|ftp)://|/){_URL}\"(?:\stitle=\"[^\"<>]+\")?\s?>"
    rf"|<img\ssrc=\"(?:https?://|/){_URL}\"(?:\swidth=\"\d{{1,3}}\")?(?:\sheight=\"\d{{1,3}}\")?"
    r"(?:\salt=\"[^\"<>]*\")?(?:\stitle=\"[^\"<>]*\")?\s?/?>"
    r"|<ol start=\"\d{1,9}\">",
    re.IGNORECASE,
)
_MADE_TAG = re.compile(rf"</?(?:{'|'.join(ATTRIBUTES)}){MADE}[^<>]*>")
_UNPAIRED = {"p", "img", "br", "li", "hr"}


def sanitize(html: str) -> str:
    """Remove all tags but those that the sites keep, and those that have no counterpart.

    Like the sites (PageDown's Markdown.Sanitizer.js), this removes tags and leaves their text, and
    pairs each start tag with the next free end tag of its name.
    """
    tags: list[str] = []
    names: list[str] = []
    at, texts = 0, list[str]()
    for match in _TAG.finditer(html):
        is_kept = _KEPT.fullmatch(match[0]) or _MADE_TAG.fullmatch(match[0])
        texts.append(html[at : match.start()])
        tags.append(match[0] if is_kept else "")
        name = _NAME.match(tags[-1])
        names.append(name[1].lower() if name else "")
        at = match.end()
    for number in _find_unpaired(tags, names):
        tags[number] = ""
    parts = [part for text, tag in zip(texts, tags, strict=True) for part in (text, tag)]
    return "".join((*parts, html[at:])).replace(MADE, "")


def _find_unpaired(tags: list[str], names: list[str]) -> list[int]:
    """Find start tags without an end tag, and end tags without a start tag."""
    waiting: defaultdict[str, deque[int]] = defaultdict(deque)
    unpaired: list[int] = []
    for number, (tag, name) in enumerate(zip(tags, names, strict=True)):
        if not tag or name in _UNPAIRED:
            continue
        if not tag.startswith("</"):
            waiting[name].append(number)
        elif waiting[name]:
            waiting[name].popleft()
        else:
            unpaired.append(number)
    return [*unpaired, *chain.from_iterable(waiting.values())]
