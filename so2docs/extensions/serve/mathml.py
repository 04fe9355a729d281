"""Convert formulas from TeX to MathML, which browsers display. Pure functions.

The sites display formulas with MathJax. Here, math-core converts them to MathML and escapes all
text; commands that it does not support (plain TeX, mhchem) are rewritten first. Invalid formulas
are shown as typed.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate
from typing import Any

from so2docs.extensions.markdown.formulas import MOST_CHARACTERS

_MOST_DEPTH = 200
"""Maximum nesting depth of groups; a deeper formula is shown as its source."""


def mathml(tex: str, *, is_block: bool, macros: dict[str, str] | None = None) -> str | None:
    """Convert a formula to MathML; None if it is empty, invalid, too long or nested too deeply.

    Args:
        tex: The formula.
        is_block: Whether the formula is displayed on a line of its own.
        macros: Macro definitions in earlier formulas of the page, by name; the definitions in this
            formula are added.
    """
    if len(tex) > MOST_CHARACTERS or _depth(tex) > _MOST_DEPTH or not tex.strip():
        return None
    macros = {} if macros is None else macros
    tex, found = _take_definitions(tex)
    if sum(map(len, (macros | found).values())) <= MOST_CHARACTERS:
        macros |= found
    return _convert("".join(macros.values()) + tex, is_block=is_block)


@lru_cache(maxsize=4096)
def _convert(tex: str, *, is_block: bool) -> str | None:
    converter, error = _converter()
    tex = _rewritten(tex)
    # If this fails, try again without colours: the converter does not know all of them.
    for source in dict.fromkeys((tex, _COLOUR.sub("", tex))):
        with suppress(error):
            output = converter.convert_with_local_state(source, displaystyle=is_block)
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


# The page's content security policy forbids `style` attributes, so styles of cells become classes,
# colours become attributes of MathML, and other styles are removed.
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


_DEFINITION = re.compile(
    r"\\(?P<kind>(?:re)?newcommand|DeclareMathOperator|def)\*?\s*\{?\s*"
    r"(?P<name>\\(?:[a-zA-Z]+|[^a-zA-Z]))\s*\}?\s*(?:\[(?P<count>\d)\]|(?P<arguments>(?:#\d)+))?\s*\{"
)


def _take_definitions(tex: str) -> tuple[str, dict[str, str]]:
    """Take the macro definitions out of a formula; return the rest, and the definitions by name."""
    parts, definitions, at = [], dict[str, str](), 0
    for match in _DEFINITION.finditer(tex):
        if match.start() < at:
            continue
        if (end := _group_end(tex, match.end())) is None:
            break
        body = tex[match.end() : end - 1]
        if match["kind"] == "DeclareMathOperator":
            body = rf"\operatorname{{{body}}}"
        arguments = "".join(f"#{number}" for number in range(1, int(match["count"] or 0) + 1))
        arguments = match["arguments"] or arguments
        definitions[match["name"]] = rf"\def{match['name']}{arguments}{{{body}}}"
        parts.append(tex[at : match.start()])
        at = end
    return "".join([*parts, tex[at:]]), definitions


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
    "align": "align*",  # The sites number only formulas with a \tag.
    "alignat": "align*",
    "alignedat": "aligned",
    "eqnarray": "align*",
    "equation": "equation*",
    "flalign": "align*",
    "gather": "gather*",
    "multline": "multline*",
    "split": "aligned",
}
_RENAMED = re.compile(
    rf"\\(begin|end)\{{({'|'.join(_NAMES)})\*?\}}(?:(?<=at\}}|t\*\}})\s*\{{\d+\}})?"
)
_DROPPED = re.compile(
    r"\\(?:label|require)\{[^{}]*\}"
    # math-core accepts limits only after operators.
    r"|(?<=\})\s*\\(?:no)?limits(?![a-zA-Z])"
    r"|\\(?:small|large|Large|LARGE|huge|Huge)(?![a-zA-Z])"
)
_TEXT = re.compile(r"\\(?:mbox|hbox|textnormal)(?![a-zA-Z])")
# On the sites, a colour applies to the next group only.
_COLOURED = re.compile(r"\\color\s*\{\s*(\w+)\s*\}\s*\{")
_COLOUR = re.compile(r"\\color\s*\{[^{}]*\}")
_SPECIAL = re.compile(r"(?<!\\)[_&#]")
_ANGLE = re.compile(r"(\\(?:left|right|middle|[bB]igg?[lmr]?))\s*(<|>|\\[lg]t(?![a-zA-Z]))")
_ANGLES = {"<": r"\langle ", r"\lt": r"\langle ", ">": r"\rangle ", r"\gt": r"\rangle "}
_TAG = re.compile(r"\\tag\*?\{([^{}]*)\}")
_WITH_GROUP = re.compile(r"\\(ce|text|substack|cases)\s*\{")


def _rewritten(tex: str) -> str:
    """Replace commands that math-core lacks with supported ones."""
    tex = _RENAMED.sub(lambda m: rf"\{m[1]}{{{_NAMES[m[2]]}}}", tex)
    tex = _TEXT.sub(r"\\text", _DROPPED.sub("", tex))
    tex = _COLOURED.sub(r"{\\color{\1}", tex)
    tex = _TAG.sub(r"\\qquad\\text{(\1)}", tex)
    tex = _ANGLE.sub(lambda m: m[1] + _ANGLES[m[2]], tex)
    tex = tex.replace(r"\begin{smallmatrix}", r"{\scriptstyle\begin{matrix}")
    tex = tex.replace(r"\end{smallmatrix}", r"\end{matrix}}")
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
        # The text may contain formulas between dollar signs.
        parts = re.split(r"(?<!\\)\$", group)
        parts[::2] = (_SPECIAL.sub(r"{\\\g<0>}", part) for part in parts[::2])
        text = [rf"\text{{{part}}}" if n % 2 == 0 else part for n, part in enumerate(parts)]
        return "".join(text) if len(parts) % 2 else rf"\text{{{group}}}"
    rows = _rewritten(group).replace(r"\cr", r"\\")
    if command == "cases":
        return rf"\begin{{cases}}{rows}\end{{cases}}"
    return rf"{{\scriptstyle\begin{{matrix}}{rows}\end{{matrix}}}}"


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
    """Convert common mhchem notation to TeX: subscript counts, superscript charges, arrows."""
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
