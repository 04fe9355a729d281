"""Make additional forms of words, so that FTS5 finds them. Pure functions.

FTS5 removes accents from Latin letters only, so Greek and Cyrillic words are also indexed without
accents. FTS5 treats a run of Chinese or Japanese characters as one word, so pairs of adjacent
characters are also indexed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_GREEK = (*range(0x370, 0x400), *range(0x1F00, 0x2000))
_CYRILLIC = range(0x400, 0x530)
_GRAVE = "\u0300"
_IO = "\u0435\u0308"
"""The Cyrillic letter io, decomposed by Unicode. It is often written without its dots; short i, yi
and short u are separate letters, not accented ones."""


def _bases() -> dict[str, str]:
    """Map each accented letter to the letter without its accents."""
    bases = {}
    for letter in map(chr, (*_GREEK, *_CYRILLIC)):
        decomposed = unicodedata.normalize("NFD", letter)
        base, marks = decomposed[0], decomposed[1:]
        is_accented = ord(letter) not in _CYRILLIC or marks == _GRAVE or decomposed.lower() == _IO
        if marks and base.isalpha() and is_accented:
            bases[letter] = base
    return bases


_BASES = _bases()
_TO_BASES = str.maketrans(_BASES)
_ACCENTED = re.compile(f"[{''.join(_BASES)}]")
_SIGNS = re.compile("[\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
_NO_ASCII = bytes.maketrans(bytes(range(0x80)), b" " * 0x80)
_WORD = re.compile(r"(?:[^\W_]|[\u0300-\u036f])+")


def remove_accents(text: str) -> str:
    """Remove the accents of Greek and Cyrillic letters."""
    return text if text.isascii() else text.translate(_TO_BASES)


def pair_signs(text: str) -> list[str]:
    """List pairs of adjacent Chinese or Japanese characters, and the last character of each run."""
    return [run[at : at + 2] for run in _SIGNS.findall(text) for at in range(len(run))]


def list_forms(texts: Iterable[str | None]) -> str | None:
    """List Greek and Cyrillic words without accents, and pairs of Chinese or Japanese characters.

    Returns:
        The words, separated by spaces; None if there are none.
    """
    words: dict[str, None] = {}
    for text in texts:
        if text and not text.isascii():
            # Search only the characters that are not ASCII, which are few in most texts.
            encoded = text.encode("utf-8", "surrogatepass").translate(_NO_ASCII)
            others = b" ".join(encoded.split()).decode("utf-8", "surrogatepass")
            if _ACCENTED.search(others):
                parts = " ".join(part for part in text.lower().split() if not part.isascii())
                accented = filter(_ACCENTED.search, _WORD.findall(parts))
                words |= dict.fromkeys(map(remove_accents, accented))
            words |= dict.fromkeys(pair_signs(others))
    return " ".join(words) or None
