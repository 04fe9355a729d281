"""Links of typed addresses, as the sites made them until June 2020."""

from __future__ import annotations

import re
from collections.abc import Callable

_SCHEME = re.compile("(?:http|https|ftp)$")
_LONGEST_SCHEME = len("https")
_LAST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789#%&+-/=@[]_|~")
"""Characters with which an address can end, unless a letter or digit follows."""
_ADDRESS = re.compile(f"[{re.escape(''.join(sorted(_LAST)))}!().,:;?]*")
_IN_ANGLES = re.compile(r"[^'\"<>\s]+>")


def link_addresses(text: str, link: Callable[[str], str]) -> str:
    """Replace the addresses in a text, bare or in angle brackets, but not those in attributes.

    Args:
        text: The text of a paragraph.
        link: Returns the HTML for an address.
    """
    parts, at = list[str](), 0
    colon = text.find(":")
    while colon >= 0:
        scheme = _SCHEME.search(text, max(at, colon - _LONGEST_SCHEME), colon)
        start = scheme.start() if scheme else colon
        end = bracket = 0
        if scheme and start > at and text[start - 1] == "<":
            match = _IN_ANGLES.match(text, colon + 1)
            end, bracket = (match.end() - 1, 1) if match else (0, 0)
        elif scheme and text.startswith("://", colon) and _can_start(text, start):
            end = _find_end(text, colon + len("://"))
        if end:
            parts += text[at : start - bracket], link(text[start:end])
            at = end + bracket
        colon = text.find(":", max(at, colon + 1))
    return "".join((*parts, text[at:]))


def _can_start(text: str, start: int) -> bool:
    """Whether a bare address can start: not inside of a word, nor as the value of an attribute."""
    return not (_is_word(text[start - 1 : start]) or text.startswith('="', max(start - 2, 0)))


def _is_word(sign: str) -> bool:
    return sign.isalnum() or sign == "_"


def _find_end(text: str, start: int) -> int:
    """Find the end of a bare address that is not empty; 0 if it is.

    Punctuation at its end, and closing parentheses that it does not open, belong to the text.

    Args:
        text: The text.
        start: Index after `://`.
    """
    match = _ADDRESS.match(text, start)
    end = match.end() if match else start
    closed = _match_parentheses(text, start, end)
    while end > start:
        is_last = text[end - 1] in _LAST or end - 1 in closed
        if is_last and not _is_word(text[end : end + 1]):
            return end
        end -= 1
    return 0


def _match_parentheses(text: str, start: int, end: int) -> set[int]:
    """Find the closing parentheses that an address opens."""
    closed, depth = set[int](), 0
    for index in range(start, end):
        if text[index] == "(":
            depth += 1
        elif text[index] == ")" and depth:
            depth -= 1
            closed.add(index)
    return closed
