"""Formulas as MathML, and the cost of hostile ones."""

from __future__ import annotations

import re
import time
import xml.etree.ElementTree as ET

import pytest

from so2docs.extensions.formulas import MOST_CHARACTERS
from so2docs.extensions.serve.bodies import Renderer
from so2docs.extensions.serve.mathml import mathml

TEX = [
    r"x^2",
    r"\frac{a}{b} + \sqrt[3]{x} - \binom{n}{k}",
    r"\sum_{i=1}^n \int_0^\infty \lim_{x\to 0}",
    r"\begin{pmatrix}1&2\\3&4\end{pmatrix}",
    r"\begin{align}a&=b\\c&=d\end{align}",
    r"\begin{eqnarray}a&=&b\end{eqnarray}",
    r"\begin{split}a&=b\end{split}",
    r"\begin{array}{l|c}a&b\\\hline c&d\end{array}",
    r"\mathbb{R} \mathcal{L} \mathfrak{g} \boldsymbol{\beta} \operatorname{Var}(X)",
    r"\color{red}{x} \boxed{x} \cancel{x}",
    r"a < b > c & d".replace(" & d", ""),
    r"\dotsb\smallsetminus \widetilde{AB} \pmb{x}",
]


@pytest.mark.parametrize("tex", TEX)
def test_formulas_are_mathml(tex: str) -> None:
    markup = mathml(tex, is_block=len(tex) % 2 == 0)
    assert markup is not None
    tree = ET.fromstring(re.sub(r"&(?!lt;|gt;|amp;|quot;|#)\w+;", "", markup))
    assert tree.tag == "math"
    names = {name for element in tree.iter() for name in element.attrib}
    assert not {name for name in names if name == "style" or name.startswith("on")}
    assert names.isdisjoint({"href", "src", "id"})


@pytest.mark.parametrize(
    ("tex", "expected"),
    [
        (r"\text{<b> 5\$, y}", "<b> 5$, y"),
        (r"\begin{align}a&b\\c\end{align}", "abc"),
        (r"\begin{equation}a\end{equation}", "a"),
        (r"\def\a#1{(#1)}\a{x}", "(x)"),
    ],
)
def test_text_of_a_formula(tex: str, expected: str) -> None:
    markup = mathml(tex, is_block=False)
    assert markup is not None
    tree = ET.fromstring(re.sub(r"&(?!lt;|gt;|amp;|quot;|#)\w+;", "", markup))
    assert "".join(tree.itertext()).replace("\xa0", " ").strip("\u2063") == expected


@pytest.mark.parametrize(
    "tex", [r"\nosuch{x}", r"\ce{H2O}", "{", r"\frac", " ", "", "{" * 300 + "}" * 300]
)
def test_unreadable_formulas_have_no_mathml(tex: str) -> None:
    assert mathml(tex, is_block=False) is None


def test_unreadable_formulas_are_shown_as_typed() -> None:
    site = Renderer(sign="$")
    assert site.render("body", r"<p>a $\nosuch{&lt;}$ b</p>") == (
        r'<p>a <span class="tex">$\nosuch{&lt;}$</span> b</p>'
    )
    assert site.render("body", "<p>$a$<code>$b$</code></p>").count("<math>") == 1
    assert Renderer().render("body", "<p>$a$</p>") == "<p>$a$</p>"
    # Line breaks can be part of a formula; other elements cannot.
    assert "<math" in site.render("body", "<p>$a<br>b$</p>")
    assert "<math" not in site.render("body", "<p>$a<b>b</b>$</p>")


HOSTILE = [
    "{", "\\frac", "\\left(", "\\sqrt", "\\begin{matrix}", "x^{", "\\hat", "\\not", "\\overset{",
    "\\text{", "\\text{$", "\\cases{", "\\ce{", "\\ce{A^", "\\begin{array}{c}", "&", "\\\\", "'",
    "\\substack{\\cases{", "\\label{", "\\tag{", "\\color{red}{", "\\def\\a{\\a\\a}\\a",
    "\\newcommand{\\b}{\\b\\b}\\b",
    "\\def\\a{", "\\bbox[", "\\left<", "\\color{#c00}{", "}\\limits", "} ", "\\text{_",
    "\\unicode{x3c}", "a", "\\", "_", "^", "}{",
]  # fmt: skip


@pytest.mark.parametrize("part", HOSTILE)
def test_hostile_formulas_cost_little(part: str) -> None:
    """The longest formulas take less than a tenth of a second of CPU."""
    tex = (part * MOST_CHARACTERS)[:MOST_CHARACTERS]
    times = []
    for end in ("", "x"):  # Two formulas that are not cached.
        start = time.thread_time()
        mathml(tex[: len(tex) - len(end)] + end, is_block=True)
        times.append(time.thread_time() - start)
    # A hundred times the usual time; a quadratic parser needs seconds.
    assert min(times) < 1
