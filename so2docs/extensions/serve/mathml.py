"""Convert formulas from TeX to MathML, which browsers display. Pure functions.

math-core converts formulas and escapes all text. Formulas that it does not support are shown as
typed.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate
from typing import Any

from so2docs.extensions.formulas import MOST_CHARACTERS

_MOST_DEPTH = 200
"""Maximum nesting depth of groups; a deeper formula is shown as its source."""
_COMMANDS = {
    "LaTeX": r"\text{LaTeX}",
    "dotsb": r"\cdots",
    "dotsc": r"\ldots",
    "dotsi": r"\cdots",
    "dotsm": r"\cdots",
    "dotso": r"\ldots",
    "pmb": r"\boldsymbol",
    "smallsetminus": r"\setminus",
}
"""Commands that math-core lacks and that occur in more than one of a thousand formulas, with their
replacements."""
_NAMES = {
    "align": "align*",
    "eqnarray": "align*",
    "equation": "equation*",
    "gather": "gather*",
    "multline": "multline*",
    "split": "aligned",
}
"""Environments without the numbers that the sites do not show either."""
_RENAMED = re.compile(rf"\\(begin|end)\{{({'|'.join(_NAMES)})\}}")


@lru_cache(maxsize=4096)
def mathml(tex: str, *, is_block: bool) -> str | None:
    """Convert a formula to MathML; None if it is empty, unsupported, too long or nested too deeply.

    Args:
        tex: The formula.
        is_block: Whether the formula is displayed on a line of its own.
    """
    if len(tex) > MOST_CHARACTERS or _depth(tex) > _MOST_DEPTH or not tex.strip():
        return None
    converter, error = _converter()
    tex = _RENAMED.sub(lambda m: rf"\{m[1]}{{{_NAMES[m[2]]}}}", tex)
    with suppress(error):
        output = converter.convert_with_local_state(tex, displaystyle=is_block)
        return _STYLE.sub(_style, output)
    return None


@lru_cache(maxsize=1)
def _converter() -> tuple[Any, type[Exception]]:
    from math_core import LatexError, LatexToMathML

    return LatexToMathML(
        fancy_error=False, macros=_COMMANDS, allow_unreliable_rendering=True
    ), LatexError


def _depth(tex: str) -> int:
    return max(
        accumulate((1 if brace == "{" else -1 for brace in re.findall(r"[{}]", tex)), initial=0)
    )


# The page's content security policy forbids `style` attributes, so colours become attributes of
# MathML, and other styles become classes, such as `width-50` for `width: 50%`.
_STYLE = re.compile(r' style="([^"]*)"')


def _style(match: re.Match[str]) -> str:
    rules = [rule.strip() for rule in match[1].split(";")]
    colour = next((rule[6:].strip() for rule in rules if rule.startswith("color:")), "")
    others = (rule for rule in rules if rule and not rule.startswith("color:"))
    classes = " ".join(re.sub("[^a-z0-9]+", "-", rule).strip("-") for rule in others)
    attribute = f' class="{classes}"' if classes else ""
    return attribute + (
        f' mathcolor="{colour}"' if re.fullmatch(r"#[0-9A-Fa-f]{6}", colour) else ""
    )
