"""Cut Markdown into passages with semantic-text-splitter.

The library cuts at headings if the passages between them fit, or else at blocks, paragraphs,
sentences or words. It takes quadratic time for text without white space, and for adding an overlap.
This module therefore passes long texts to the library in windows, and adds the overlap itself. A
passage that begins or ends inside a code block gets the missing fence.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from so2docs.plugin import OptionError, flag, require_packages

CHARACTERS, TOKENS = 2000, 512
"""Default maximum length of a passage, in characters and in tokens."""
_WINDOW = 1 << 14
"""Minimum size of a window in characters; windows have at least eight times a passage's length."""
_HEADINGS = re.compile(r"(?:#{1,6}(?: [^\n]*)?(?:\n\s*|\Z))+")
_WORD = re.compile(r"(?<=\s)\S")
_OPENING = re.compile(r"[ >]*(?:(?:[-+]|\d{1,9}[.)]) +[ >]*)*(`{3,})([^`]*)")


class _Block(NamedTuple):
    """A fenced code block: its fence and language, and the positions where its parts begin and end.

    Each position is the start of a line, or the end of the text.
    """

    fence: str
    language: str
    start: int
    code: int
    code_end: int
    end: int


class _Passage(NamedTuple):
    """A range of a text; `text` includes missing fences."""

    start: int
    end: int
    text: str


class Splitter:
    """Cuts texts into passages.

    Args:
        max_length: Maximum length of a passage in characters, or in tokens with a tokenizer.
        overlap: Maximum overlap with the previous passage, in the same unit.
        tokenizer: A Hugging Face `tokenizer.json`, or the name of an OpenAI model.

    Raises:
        OptionError: The library is missing, the tokenizer is unknown, or the overlap is as long as
            a passage.
    """

    def __init__(
        self,
        max_length: int | None = None,
        overlap: int | None = None,
        tokenizer: str | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._most = max_length or (CHARACTERS if tokenizer is None else TOKENS)
        self._overlap = overlap or 0
        self._size = max(1, self._most - self._overlap - 2) if self._overlap else self._most
        if self._overlap >= self._most:
            raise OptionError(
                f"{flag('settings', f'overlap={overlap}')} must be less than the length of a "
                f"passage, {self._most:,}"
            )
        make_splitter(tokenizer, self._most)

    def cut(self, text: str) -> Iterable[tuple[int, str]]:
        """Return the passages of a text, each with its position."""
        if self._tokenizer is None and len(text) <= self._size and text == text.strip():
            return [(0, text)] if text.strip(" >\n") else []
        return self._cut(text)

    def _cut(self, text: str) -> Iterator[tuple[int, str]]:
        blocks = list(_blocks(text)) if "```" in text else []
        previous: _Passage | None = None
        for start, end in self._joined(text, list(self._ranges(text, blocks)), blocks):
            passage = _Passage(start, end, text[start:end])
            first = start if previous is None else self._repeat(text, previous, start)
            for at in dict.fromkeys((first, start)):
                fenced = _with_fences(text, at, end, blocks)
                is_next = previous is None or fenced.start > previous.start
                if is_next and self._fits(fenced.text):
                    passage = fenced
                    break
            yield passage.start, passage.text
            previous = passage

    def _ranges(self, text: str, blocks: list[_Block]) -> Iterator[tuple[int, int]]:
        """Yield the ranges of passages, short enough for the overlap to be added later."""
        size = self._size
        splitter = make_splitter(self._tokenizer, size)
        for low, high in _windows(text, max(_WINDOW, 8 * self._most)):
            for start, part in splitter.chunk_indices(text[low:high]):
                yield from self._fitted(text, low + start, low + start + len(part), blocks, size)

    def _fitted(
        self, text: str, start: int, end: int, blocks: list[_Block], size: int
    ) -> Iterator[tuple[int, int]]:
        """Yield a range of a text, or parts of the range if it is too long with missing fences."""
        passage = _with_fences(text, start, end, blocks)
        smaller = size * 3 // 4
        is_short = len(passage.text) <= end - start or self._fits(passage.text, size)
        if is_short or 4 * smaller < self._most:
            if passage.text:
                yield passage.start, passage.end
            return
        plain = make_splitter(self._tokenizer, smaller, is_plain=True)
        for at, part in plain.chunk_indices(text[start:end]):
            yield from self._fitted(text, start + at, start + at + len(part), blocks, smaller)

    def _joined(
        self, text: str, ranges: list[tuple[int, int]], blocks: list[_Block]
    ) -> Iterator[tuple[int, int]]:
        """Join each range of headings alone to the start of the next range, if both fit."""
        following = ranges[::-1]
        while following:
            start, end = following.pop()
            if following and _HEADINGS.fullmatch(text, start, end):
                after, last = following[-1]
                for cut, rest in self._ends(text, after, last):
                    passage = _with_fences(text, start, cut, blocks)
                    if passage.end > end and self._fits(passage.text):
                        following[-1:] = [(rest, last)] if rest < last else []
                        following.append((start, cut))
                        break
                else:
                    yield start, end
            else:
                yield start, end

    def _ends(self, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield positions at which to cut a range: at its end, then between its first parts.

        Each position is a pair: the end of the text before the cut, and the start of the text after
        it.
        """
        yield end, end
        half = make_splitter(self._tokenizer, max(1, self._most // 2), is_plain=True)
        parts = [
            (start + at, start + at + len(part)) for at, part in half.chunk_indices(text[start:end])
        ]
        yield from ((before[1], after[0]) for before, after in pairwise(parts[:4]))

    def _repeat(self, text: str, previous: _Passage, start: int) -> int:
        """Return the start of a passage after adding the overlap with the previous passage."""
        low, high = previous.start, previous.end
        if not self._overlap:
            return start
        if self._tokenizer is not None:
            splitter = make_splitter(self._tokenizer, self._overlap, is_plain=True)
            return low + int(splitter.chunk_indices(text[low:high])[-1][0])
        low = max(low, high - self._overlap)
        word = _WORD.search(text, low, high)
        return start if word is None else word.start()

    def _fits(self, text: str, most: int | None = None) -> bool:
        most = most or self._most
        if self._tokenizer is None:
            return len(text) <= most
        return len(make_splitter(self._tokenizer, most).chunks(text)) <= 1


def _windows(text: str, size: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of up to `size` characters, split at paragraphs, lines or words if possible."""
    start = 0
    while len(text) - start > size:
        end = start + size
        cuts = (text.rfind(sign, start + size // 2, end) for sign in ("\n\n", "\n", " "))
        end = next((cut for cut in cuts if cut > start), end)
        yield start, end
        start = end
    yield start, len(text)


def _blocks(text: str) -> Iterator[_Block]:
    """Yield the fenced code blocks of a text written by `parse.markdown`."""
    fence = language = ""
    start = code = end = 0
    while (mark := text.find("```", end)) >= 0:
        at = max(end, text.rfind("\n", end, mark) + 1)
        stop = text.find("\n", mark)
        stop, end = (len(text), len(text)) if stop < 0 else (stop, stop + 1)
        if not fence:
            if opening := _OPENING.fullmatch(text, at, stop):
                fence, language, start, code = opening[1], opening[2], at, end
        elif text[at:stop].lstrip(" >") == fence:
            yield _Block(fence, language, start, code, at, end)
            fence = ""


def _with_fences(text: str, start: int, end: int, blocks: list[_Block]) -> _Passage:
    """Make the passage of a range: remove partial fences at its ends, and add missing fences."""
    opening = closing = ""
    if (block := _block_at(blocks, start)) and block.start < start:
        if block.code_end <= start:
            start = block.end
        else:
            start = max(start, block.code)
            opening = f"{block.fence}{block.language}\n"
    if (block := _block_at(blocks, end - 1)) and text[end : block.end].strip():
        if end <= block.code:
            end = block.start
        else:
            end = min(end, block.code_end)
            closing = f"\n{block.fence}"
    part = text[start:end].rstrip()
    is_empty = not part.strip(" >\n")
    return _Passage(start, start + len(part), "" if is_empty else opening + part + closing)


def _block_at(blocks: list[_Block], at: int) -> _Block | None:
    if not blocks:
        return None
    number = bisect_right(blocks, at, key=lambda block: block.start) - 1
    return blocks[number] if number >= 0 and at < blocks[number].end else None


@cache
def make_splitter(tokenizer: str | None, most: int, *, is_plain: bool = False) -> Any:
    """Make the library's splitter for Markdown or plain text, for passages up to a length.

    Raises:
        OptionError: The library is missing, or the tokenizer is unknown.
    """
    require_packages(flag("recipe", "chunks"), "semantic-text-splitter", extra="chunks")
    import semantic_text_splitter as library

    kind: Any = library.TextSplitter if is_plain else library.MarkdownSplitter
    if tokenizer is None:
        return kind(most)
    is_file = os.sep in tokenizer or tokenizer.endswith(".json")
    make = kind.from_huggingface_tokenizer_file if is_file else kind.from_tiktoken_model
    try:
        return make(tokenizer, most)
    except Exception as error:  # The library raises only plain `Exception`.
        raise OptionError(
            f"{flag('settings', f'tokenizer={tokenizer}')} cannot be read: {error}; give a "
            "Hugging Face tokenizer.json, or the name of an OpenAI model such as gpt-4o"
        ) from error
