"""Escape text for terminals, HTML pages and YAML, and extract the text of HTML.

Posts, tags, dates and file names in archives may contain any character. All code that shows such
text uses `for_terminal` or `for_html`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(name: str) -> str:
    """Replace the bytes of a file name that are not UTF-8 with U+FFFD."""
    return name.encode(errors="surrogateescape").decode(errors="replace")


def for_terminal(text: object) -> str:
    """Replace control characters, including those for text direction, with U+FFFD."""
    return _CONTROL.sub("\ufffd", str(text).replace("\r\n", "\n"))


def on_one_line(text: object) -> str:
    """Replace line breaks, tabs and the characters that `for_terminal` replaces with U+FFFD."""
    return re.sub("[\n\t]", "\ufffd", for_terminal(text))


def for_html(text: object) -> str:
    """Escape text for HTML, between tags and in attributes."""
    import html

    return html.escape(for_terminal(text))


_LONG_REFERENCE = re.compile(r"&#[0-9]{4000,};?")
"""An invalid character reference, with more digits than Python converts to a number."""


def unescape(text: str) -> str:
    """Replace HTML character references; those with thousands of digits become U+FFFD."""
    import html

    return html.unescape(_LONG_REFERENCE.sub("\ufffd", text)) if "&" in text else text


_TAG = re.compile(r"</?[a-zA-Z!][^<>]*>")


def strip_tags(body: str) -> str:
    """Remove the comments and tags of a body, and replace its character references."""
    return unescape(_TAG.sub("", remove_comments(body)))


def remove_comments(body: str) -> str:
    """Remove the comments of a body in linear time; an unclosed comment stays."""
    parts, at = [], 0
    while (start := body.find("<!--", at)) >= 0 and (end := body.find("-->", start)) >= 0:
        parts.append(body[at:start])
        at = end + len("-->")
    return "".join((*parts, body[at:])) if parts else body


_PLAIN_WORD = re.compile(r"[a-z][a-z0-9_.-]*")
_YAML_WORDS = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))


def to_yaml(value: Mapping[str, Any] | Sequence[Any], indent: str = "") -> Iterator[str]:
    """Yield the lines of a YAML mapping or list; texts other than plain words are quoted as JSON.

    Members and items that are empty are left out.
    """
    import json

    items = value.items() if isinstance(value, Mapping) else (("-", item) for item in value)
    for name, item in items:
        start = f"{indent}{name}" if name == "-" else f"{indent}{name}:"
        if not isinstance(item, Mapping | list | tuple):
            is_plain = isinstance(item, str) and _PLAIN_WORD.fullmatch(item)
            yield f"{start} {item if is_plain and item not in _YAML_WORDS else json.dumps(item)}"
        elif item and name == "-":
            first, *others = to_yaml(item, f"{indent}  ")
            yield f"{start} {first.lstrip()}"
            yield from others
        elif item:
            yield start
            yield from to_yaml(item, indent if isinstance(item, list | tuple) else f"{indent}  ")
