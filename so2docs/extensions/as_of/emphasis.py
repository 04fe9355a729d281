"""Strong text and emphasis, as the sites rendered them until June 2020.

A run is a sequence of one sign, `*` or `_`. It opens emphasis where text follows, and closes it
where text precedes; on its other side, it needs a character that is not part of a word. Since 2015,
asterisks also work inside of words. Strong text is rendered first. Each step is one walk over the
runs, so the time is linear in the length of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

_RUN = re.compile(r"\*+|_+")
_ESCAPED = re.compile("[\U0010f000-\U0010f0ff]")
"""Private code points that stand for escaped characters. The sites hid such a character behind a
control character and a letter, so it is punctuation for a sign before it, and a letter for a sign
after it."""


def render_emphasis(text: str, *, is_strict: bool) -> str:
    """Render strong text and emphasis in HTML whose tags have no bare signs.

    Args:
        text: The HTML.
        is_strict: Whether signs inside of words are text, as until 2015.
    """
    if "**" in text or "__" in text:
        text = _wrap(text, _find_strong(text, is_strict=is_strict), 2, "strong")
    return _wrap(text, _find_single(text, is_strict=is_strict), 1, "em")


def _wrap(text: str, spans: Iterator[tuple[int, int]], width: int, tag: str) -> str:
    """Replace signs by tags; spans are from the opening signs to the closing ones."""
    parts, at = list[str](), 0
    for start, end in spans:
        parts += text[at:start], f"<{tag}>{text[start + width : end]}</{tag}>"
        at = end + width
    return "".join((*parts, text[at:]))


def _find_strong(text: str, *, is_strict: bool) -> Iterator[tuple[int, int]]:
    """Yield the places of the opening and closing pairs of signs of strong text."""
    openings = list[tuple[int, str]]()
    closings: dict[str, list[int]] = {"*": [], "_": []}
    for run in _RUN.finditer(text):
        sign, size = run[0][0], len(run[0])
        if size < 2 or (size > 3 and not is_strict):
            continue
        in_words = sign == "*" and not is_strict
        opening = run.start()
        if is_strict and size > 2 and (not opening or text[opening - 1].isalnum()):
            opening += 1
        if _binds(text, opening, opening + 2, opens=True, in_words=in_words):
            openings.append((opening, sign))
        if _binds(text, run.end() - 2, run.end(), opens=False, in_words=in_words):
            closings[sign].append(run.end() - 2)
    at = 0
    for opening, sign in openings:
        number = bisect_left(closings[sign], opening + 3)
        if opening >= at and number < len(closings[sign]):
            yield opening, closings[sign][number]
            at = closings[sign][number] + 2


def _find_single(text: str, *, is_strict: bool) -> Iterator[tuple[int, int]]:
    """Yield the places of the opening and closing signs of emphasis, which has no such sign in it.

    Before 2015, the last sign of a run could open emphasis, and the first one close it.
    """
    openings: dict[str, int] = {}
    pairs = list[tuple[int, int]]()
    for run in _RUN.finditer(text):
        sign = run[0][0]
        if not is_strict and len(run[0]) > 1:
            openings.pop(sign, None)
            continue
        in_words = sign == "*" and not is_strict
        start, end = openings.get(sign, -1), run.start()
        if start >= 0 and _is_emphasis(text, start, end, in_words=in_words):
            pairs.append((start, end))
        openings[sign] = run.end() - 1
    at = -1
    for start, end in sorted(pairs):
        if start > at:
            yield start, end
            at = end + 1


def _is_emphasis(text: str, start: int, end: int, *, in_words: bool) -> bool:
    """Whether the text between two signs is emphasized; inside of words, it has no digits."""
    is_opened = _binds(text, start, start + 1, opens=True, in_words=in_words, digits=False)
    return is_opened and _binds(text, end, end + 1, opens=False, in_words=in_words, digits=False)


def _binds(
    text: str, start: int, end: int, *, opens: bool, in_words: bool, digits: bool = True
) -> bool:
    """Whether signs can open or close emphasis; inside of words if these may have emphasis."""
    before, after = text[start - 1 : start] if start else "", text[end : end + 1]
    inner, outer = (after, before) if opens else (before, after)
    if not inner or inner.isspace():
        return False
    if not (outer.isalnum() or (opens and _ESCAPED.match(outer))):
        return True
    return in_words and _joins(before, digits=digits) and _joins(after, digits=digits)


def _joins(sign: str, *, digits: bool) -> bool:
    """Whether a sign beside an asterisk makes it part of a word."""
    return sign == "_" or (sign.isalnum() if digits else sign.isalpha())
