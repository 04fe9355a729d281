"""Hide the formulas of a text while it is converted, so that nothing in them is Markdown."""

from __future__ import annotations

import re
from html import escape
from urllib.parse import quote

_HIDDEN, _HIDDEN_END = "\U0010f805", "\U0010f806"
_DOLLAR = "\U0010f807"
"""Stands for a dollar sign in a code span, which starts no formula."""
_KEY = re.compile(f"{_HIDDEN}(\\d+){_HIDDEN_END}|{quote(_HIDDEN)}(\\d+){quote(_HIDDEN_END)}")
_CODE_OR_TAG = re.compile(r"(<pre[ >].*?</pre>|<code>.*?</code>|<[^<>]*>)", re.DOTALL)
_CODE_SPAN = re.compile(r"(?<![\\`])(`+)(?!`)([^\n]{1,2000}?)(?<!`)\1(?!`)")
_TOKEN = re.compile(
    r"(\$\$?|\\(?:begin|end)\{[a-zA-Z]{0,40}\*?\}|\\[\\{}$]|[{}]|\n(?:[^\S\n]*\n)+)"
)

_TEX = re.compile(r"[\\^_{}=]")
_PROSE = re.compile(r"^\s|\s$|\s[^\W\d]{2}|[^\W\d]{2}\s")
"""White space beside a dollar or a word."""


class HiddenFormulas:
    r"""The formulas of a text.

    The rules are those of the sites' editor (`mathjax-editing`): a formula between `$`, `$$` or
    `\begin` and `\end` has balanced braces, contains no blank line, and is not in a code span.

    Args:
        sign: Delimiter of inline formulas, `$` or `\$`.
        may_be_prices: Whether the text between two delimiters is a formula only if it looks so.
    """

    def __init__(self, sign: str, *, may_be_prices: bool = False) -> None:
        self._sign = sign
        self._may_be_prices = may_be_prices
        self._formulas: list[str] = []

    def hide(self, markdown: str) -> str:
        """Replace the formulas of a text by keys."""
        if "$" not in markdown and r"\begin" not in markdown:
            return markdown
        if "`" in markdown:
            markdown = _CODE_SPAN.sub(lambda match: match[0].replace("$", _DOLLAR), markdown)
        tokens = _TOKEN.split(markdown)
        number = 1
        while number < len(tokens):
            end = self._find_end(tokens, number)
            if end > number and self._is_price(tokens, number, end):
                end = -number
            if end > number:
                formula = "".join(tokens[number : end + 1]).replace(_DOLLAR, "$")
                key = f"{_HIDDEN}{len(self._formulas)}{_HIDDEN_END}"
                tokens[number : end + 1] = [key, *[""] * (end - number)]
                self._formulas.append(formula)
            number = abs(end) + 2
        return "".join(tokens).replace(_DOLLAR, "$")

    def _find_end(self, tokens: list[str], start: int) -> int:
        """Find the token that ends the formula that starts at a token.

        Returns:
            The number of the last token; if there is no formula, minus the last number read.
        """
        closing = tokens[start]
        if closing.startswith(r"\begin"):
            closing = r"\end" + closing[6:]
        elif closing not in (self._sign, "$$"):
            return -start
        depth = last = 0
        for number in range(start + 2, len(tokens), 2):
            token = tokens[number]
            if token == closing:
                if not depth:
                    return number
                last = number
            elif token[0] == "\n":
                return last or -number
            elif token in "{}":
                depth = max(depth + (1 if token == "{" else -1), 0)
        return last or -len(tokens)

    def _is_price(self, tokens: list[str], start: int, end: int) -> bool:
        """Whether two dollars are amounts of money, with text between them that is no TeX."""
        if not self._may_be_prices or tokens[start] != self._sign:
            return False
        text = "".join(tokens[start + 1 : end])
        is_before_digit = tokens[end + 1][:1].isdecimal()
        return not _TEX.search(text) and (is_before_digit or bool(_PROSE.search(text)))

    def show(self, html: str, *, marks: bool) -> str:
        """Put the formulas back.

        Args:
            html: HTML with keys.
            marks: Whether formulas outside of code become `span` elements.
        """
        if not self._formulas:
            return html
        parts = _CODE_OR_TAG.split(html)
        for number, part in enumerate(parts):
            start, end = "", ""
            if marks and number % 2 == 0:
                start, end = '<span class="math-container">', "</span>"
            parts[number] = _KEY.sub(lambda match: start + self._html(match) + end, part)  # noqa: B023
        return "".join(parts)

    def _html(self, match: re.Match[str]) -> str:
        if match[2]:
            return quote(self._formulas[int(match[2])])
        return escape(self._formulas[int(match[1])])
