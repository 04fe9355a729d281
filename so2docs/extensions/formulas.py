"""Recognize sites and texts with TeX formulas, and find the formulas in a text. Pure functions.

The sites show formulas with MathJax, which recognizes them by their delimiters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MOST_CHARACTERS = 4_000
"""Maximum length of a formula; anything longer is text."""
_MOST_UNCLOSED = 50
"""Maximum number of unclosed delimiters in a text. The text after them is not searched, because
each delimiter costs a search through the next `MOST_CHARACTERS`."""

_ENVIRONMENTS = (
    "align|alignat|aligned|array|bmatrix|Bmatrix|CD|cases|eqnarray|equation|gather|gathered|matrix"
    "|multline|pmatrix|smallmatrix|split|subarray|vmatrix|Vmatrix"
)
_REST = rf"|\\\(|\\\[|\\begin\{{(?:{_ENVIRONMENTS})\*?\}}"
_OPENING = {
    # An escaped delimiter does not start a formula, but a delimiter after an escaped backslash
    # does.
    "$": re.compile(r"(?P<escaped>\\\\|\\\$)|(?P<open>\$\$|\$" + _REST + ")"),
    r"\$": re.compile(r"(?P<escaped>\\\\)|(?P<open>\$\$|\\\$" + _REST + ")"),
}
_CLOSING = {"$": "$", "$$": "$$", r"\$": r"\$", r"\(": r"\)", r"\[": r"\]"}
_INSIDE = re.compile(r"\\begin\{[^{}]{1,20}\}|\\end\{[^{}]{1,20}\}|\\.|\$\$?|[{}]", re.DOTALL)

_RARE = ("\\(", "\\[", "\\begin{")
"""Delimiters that are rare in other texts."""

_HOSTS = {
    "$": """ai astronomy aviation bioinformatics biology chemistry cogsci cs cseducators
        cstheory datascience dsp earthscience economics engineering hsm
        math matheducators mathematica materials mattermodeling meta.math mathoverflow or
        philosophy physics poker proofassistants psychology puzzling quant quantumcomputing robotics
        scicomp space sports stats worldbuilding crypto""",
    r"\$": "codegolf codereview electronics gamedev ham computergraphics retrocomputing",
}


@dataclass(frozen=True, slots=True)
class Piece:
    """A formula, or the text before, between or after formulas.

    Attributes:
        text: Text as typed, including the delimiters.
        tex: The formula; None for text between formulas.
        is_block: Whether the formula is on a separate line.
    """

    text: str
    tex: str | None = None
    is_block: bool = False


def formula_sign(host: str) -> str | None:
    r"""Return the delimiter of formulas on a site, `$` or `\$`; None for sites without formulas."""
    name = re.sub(r"\.(?:stackexchange\.com|net)$", "", host).removeprefix("meta.")
    name = name.removesuffix(".meta")
    return next((sign for sign, names in _HOSTS.items() if name in names.split()), None)


_CODE = re.compile(r"<code\b[^<>]*+>[^<]*+</code>")
_TAG = re.compile(r"<(?!br\b)/?[a-zA-Z][^<>]*+>")
_COMMAND = re.compile(r"\\[a-zA-Z]{2}")
_TEX = re.compile(r"\\[a-zA-Z]{2}|[_^]")


_MARKED = re.compile(
    r"""<span\b[^<>]*\bclass=["']math-container["'][^<>]*>(?P<sign>\\?\$|\\[(\[]|\\begin)"""
)
"""Matches the start of a formula that the publisher of a dump marks as one."""


def sign_in(body: str) -> str:
    r"""Return the delimiter of the formulas in a body from an unknown site; empty if it has none.

    The marks of the publisher decide. Without one, the body is searched for formulas.
    """
    if "math-container" in body and (mark := _MARKED.search(body)):
        return r"\$" if mark["sign"] == r"\$" else "$"
    return "$" if _has_unmarked_formulas(body) else ""


def _has_unmarked_formulas(body: str) -> bool:
    r"""Whether a body certainly contains a formula, marked or not.

    A formula between dollar signs contains `_`, `^` or a command such as `\alpha`. No space follows
    the opening delimiter or precedes the closing one, and no letter or digit follows the closing
    one: `$HOME_DIR and $PATH` is not a formula. A formula between other delimiters has a command.
    """
    if body.count("$") < 2 and not any(sign in body for sign in _RARE):
        return False
    return any(map(_has_formula, _TAG.split(_CODE.sub("<code>", body))))


def _has_formula(text: str) -> bool:
    at = 0
    for piece in pieces(text, "$"):
        at += len(piece.text)
        if piece.tex is None:
            continue
        if piece.text[0] == "\\":
            is_formula = _COMMAND.search(piece.tex)
        else:
            is_apart = piece.tex.strip() == piece.tex and not text[at : at + 1].isalnum()
            is_formula = _TEX.search(piece.tex) if is_apart else None
        if is_formula:
            return True
    return False


def pieces(text: str, sign: str) -> Iterator[Piece]:
    r"""Split a text into formulas and the text between them.

    Args:
        text: Text without markup.
        sign: Delimiter of inline formulas, `$` or `\$`; `$$`, `\(`, `\[` and environments are
            always recognized.
    """
    start = at = unclosed = 0
    while unclosed < _MOST_UNCLOSED and (match := _OPENING[sign].search(text, at)):
        at = match.end()
        if match["escaped"]:
            continue
        opening = match["open"]
        end = _end(text, at, opening)
        if end is None:
            unclosed += 1
            continue
        if match.start() > start:
            yield Piece(text[start : match.start()])
        is_environment = opening.startswith(r"\begin")
        tex = text[match.start() : end] if is_environment else text[at : end - len(opening)]
        is_block = is_environment or opening in ("$$", r"\[")
        yield Piece(text[match.start() : end], tex, is_block)
        start = at = end
    if start < len(text):
        yield Piece(text[start:])


def without_cut_formula(text: str, sign: str) -> str:
    """Replace a formula that is truncated at the end of a text with an ellipsis."""
    last = ""
    for piece in pieces(text, sign):
        last = piece.text if piece.tex is None else ""
    opening = next((m for m in _OPENING[sign].finditer(last) if m["open"]), None)
    if opening is None:
        return text
    return text[: len(text) - len(last) + opening.start()].rstrip() + " …"


def _end(text: str, at: int, opening: str) -> int | None:
    """Return the index after the closing delimiter of a formula; None if the formula is not closed.

    Args:
        text: The text that contains the formula.
        at: Index after the opening delimiter.
        opening: The opening delimiter.
    """
    closing = _CLOSING.get(opening)
    depth = environments = 0
    for match in _INSIDE.finditer(text, at, at + MOST_CHARACTERS):
        token = match[0]
        if closing is None:
            environments += token.startswith(r"\begin{") - token.startswith(r"\end{")
            if environments < 0:
                return match.end()
        elif token == closing and depth <= 0:
            return match.end() if match.start() > at else None
        elif token in "{}":
            depth += 1 if token == "{" else -1
    return None
