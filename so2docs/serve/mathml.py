"""Formulas in TeX -> MathML, which a browser shows. Pure.

The sites show formulas with MathJax. math-core makes MathML of them here, with every text in it
escaped; what is missing in it (commands of plain TeX, mhchem) is rewritten before. A formula that
cannot be read is shown as it was typed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from so2docs.formulas import MOST_CHARACTERS

_MOST_DEPTH = 200
"""Groups inside each other, beyond which a formula stays source."""


@lru_cache(maxsize=4096)
def mathml(tex: str, *, is_block: bool) -> str | None:
    """A formula as MathML; None if it cannot be read."""
    if len(tex) > MOST_CHARACTERS or _depth(tex) > _MOST_DEPTH or not tex.strip():
        return None
    converter, error = _converter()
    try:
        output = converter.convert_with_local_state(_rewritten(tex), displaystyle=is_block)
    except error:
        return None
    return _STYLE.sub(_style, output)


@lru_cache(maxsize=1)
def _converter() -> tuple[Any, type[Exception]]:
    from math_core import LatexError, LatexToMathML

    return LatexToMathML(fancy_error=False), LatexError


def _depth(tex: str) -> int:
    depth = most = 0
    for brace in re.findall(r"[{}]", tex):
        depth += 1 if brace == "{" else -1
        most = max(most, depth)
    return most


# The page's policy allows no `style` attributes: what they say of a cell is in classes, of a colour
# in an attribute of MathML. What else there is goes.
_STYLE = re.compile(r' style="([^"]*)"')
_CLASSES = {
    "text-align: left": "cell-left",
    "text-align: right": "cell-right",
    "padding-left: 0": "cell-joined-left",
    "padding-right: 0": "cell-joined-right",
    "padding-left:1em": "cell-apart",
    "border-right: 0.05em solid currentcolor": "line-right",
    "border-left: 0.05em solid currentcolor": "line-left",
    "border-top: 0.05em solid currentcolor": "line-top",
    "width: 100%": "wide",
    "width: 50%": "half",
}


def _style(match: re.Match[str]) -> str:
    rules = [rule.strip() for rule in match[1].split(";")]
    classes = " ".join(_CLASSES[rule] for rule in rules if rule in _CLASSES)
    colour = next((rule[6:].strip() for rule in rules if rule.startswith("color:")), "")
    attribute = f' class="{classes}"' if classes else ""
    return attribute + (
        f' mathcolor="{colour}"' if re.fullmatch(r"#[0-9A-Fa-f]{6}", colour) else ""
    )


_NAMES = {"eqnarray": "align", "split": "aligned"}
_RENAMED = re.compile(r"\\(begin|end)\{(eqnarray|split)(\*?)\}")
_DROPPED = re.compile(
    r"\\(?:label|require|color\{[^{}]*\}\s*(?=$))\{[^{}]*\}"
    r"|\\(?:displaylimits|nonumber|notag|tiny|small|normalsize|large|Large|LARGE|huge|Huge)"
    r"(?![a-zA-Z])"
)
_TEXT = re.compile(r"\\(?:mbox|hbox|textnormal|textup)(?![a-zA-Z])")
_TAG = re.compile(r"\\tag\*?\{([^{}]*)\}")
_WITH_GROUP = re.compile(r"\\(ce|text|substack|cases|matrix|pmatrix|eqalign)\s*\{")
_PLAIN_TEX = {
    "cases": "cases",
    "matrix": "matrix",
    "pmatrix": "pmatrix",
    "eqalign": "aligned",
    "substack": "matrix",
}


def _rewritten(tex: str) -> str:
    """A formula with what math-core lacks in terms of what it has."""
    tex = _RENAMED.sub(lambda m: rf"\{m[1]}{{{_NAMES[m[2]]}{m[3]}}}", tex)
    tex = _TEXT.sub(r"\\text", _DROPPED.sub("", tex))
    tex = _TAG.sub(r"\\qquad\\text{(\1)}", tex)
    parts, at = [], 0
    for match in _WITH_GROUP.finditer(tex):
        if match.start() < at or (end := _group_end(tex, match.end())) is None:
            continue
        group = tex[match.end() : end - 1]
        parts += [tex[at : match.start()], _with_group(match[1], group)]
        at = end
    return "".join([*parts, tex[at:]])


def _group_end(tex: str, at: int) -> int | None:
    depth = 1
    for match in re.compile(r"\\.|[{}]", re.DOTALL).finditer(tex, at):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if not depth:
            return match.end()
    return None


def _with_group(command: str, group: str) -> str:
    if command == "ce":
        return _chemistry(group)
    if command == "text":
        # Formulas inside of text.
        parts = re.split(r"(?<!\\)\$", group)
        text = [rf"\text{{{part}}}" if n % 2 == 0 else part for n, part in enumerate(parts)]
        return "".join(text) if len(parts) % 2 else rf"\text{{{group}}}"
    name = _PLAIN_TEX[command]
    rows = _rewritten(group).replace(r"\cr", r"\\")
    matrix = rf"\begin{{{name}}}{rows}\end{{{name}}}"
    return rf"{{\scriptstyle {matrix}}}" if command == "substack" else matrix


_CHEMICAL = re.compile(
    r"(?P<arrow><=>>|<<=>|<=>|<->|->|<-)"
    r"|(?P<element>[A-Z][a-z]?|[)\]])(?P<count>\d{0,9})"
    r"|\^(?P<charge>\{[^{}]*\}|[\d]*[+-]|.)"
    r"|(?P<sign>(?<=[\w)\]])[+-](?=$|[\s)\]]))"
    r"|(?P<number>\d+)"
    r"|(?P<space>\s+)"
    r"|(?P<other>\\[a-zA-Z]+|[\\_]?.)",
    re.DOTALL,
)
_ARROWS = {"->": r"\to ", "<-": r"\leftarrow ", "<->": r"\leftrightarrow "}


def _chemistry(group: str) -> str:
    """Convert the most frequent forms of mhchem: counts below, charges above, arrows."""
    parts = []
    for match in _CHEMICAL.finditer(group):
        if arrow := match["arrow"]:
            parts.append(_ARROWS.get(arrow, r"\rightleftharpoons "))
        elif element := match["element"]:
            count = f"_{{{match['count']}}}" if match["count"] else ""
            parts.append(rf"\mathrm{{{element}}}{count}")
        elif (charge := match["charge"] or match["sign"]) is not None:
            parts.append("^{" + charge.strip("{}") + "}")
        elif match["space"]:
            parts.append(r"\,")
        else:
            parts.append(match[0])
    return "".join(parts)
