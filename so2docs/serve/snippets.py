"""Marks the words of a search in titles, and finds the part of a body that has most of them. Pure.

SQLite's own `snippet` looks every result up in the full-text index again, which for frequent words
takes longer than the search.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

START, END = "\x02", "\x03"

# As the tokenizer unicode61 of FTS5 tells words apart.
_WORD = re.compile(r"[^\W_]+")
_WORDS = 36
_ENDING = re.compile(r"(?:ing|ed|es|s|e|y|ies|ly|er|ation|ment)$")


def fold(word: str) -> str:
    """A word as the full-text index compares it: without case and accents."""
    if word.isascii():
        return word.lower()
    parts = unicodedata.normalize("NFKD", word.casefold())
    return "".join(part for part in parts if not unicodedata.combining(part))


def split_terms(words: Sequence[str], *, stemming: bool = False) -> list[str]:
    """The single words of what was asked for, `*` after those that others may start with.

    Args:
        words: What was asked for.
        stemming: Whether other forms of an English word were found, too: with which the first
            letters are the same, all but its ending.
    """
    terms = []
    for text in words:
        for match in _WORD.finditer(text):
            word = fold(match[0])
            stem = _ENDING.sub("", word) if stemming and len(word) > 4 else word
            terms.append(stem + "*" * (text.endswith("*") or stem != word or stemming))
    return terms


def mark(text: str, terms: Sequence[str]) -> str:
    """Text with the words that were found between `START` and `END`."""
    whole, starts = _split_words(terms)

    def mark_word(match: re.Match[str]) -> str:
        word = fold(match[0])
        is_found = word in whole or (starts and word.startswith(starts))
        return f"{START}{match[0]}{END}" if is_found else match[0]

    return _WORD.sub(mark_word, text.replace(START, " ").replace(END, " "))


def snippet(text: str, terms: Sequence[str]) -> str:
    """The part of a text with most of the words, marked; its start, if it has none."""
    whole, starts = _split_words(terms)
    places = [match.span() for match in _WORD.finditer(text)]
    hits = []
    for number, (start, end) in enumerate(places):
        word = fold(text[start:end])
        if word in whole or (starts and word.startswith(starts)):
            hits.append((number, word))
    best, most = 0, 0
    for at, (number, _) in enumerate(hits):
        near = {word for other, word in hits[at : at + _WORDS] if other < number + _WORDS - 4}
        if len(near) > most:
            best, most = max(0, number - 4), len(near)
    part = places[best : best + _WORDS]
    if not part:
        return ""
    before = "… " if best else ""
    after = " …" if best + _WORDS < len(places) else text[part[-1][1] :].strip()[:3]
    return before + mark(text[part[0][0] : part[-1][1]], terms) + after


def _split_words(terms: Sequence[str]) -> tuple[frozenset[str], tuple[str, ...]]:
    starts = tuple(term[:-1] for term in terms if term.endswith("*"))
    return frozenset(term for term in terms if not term.endswith("*")), starts
