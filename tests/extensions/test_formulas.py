"""Formulas: sites and bodies that have them, and their positions in a text."""

from __future__ import annotations

import pytest

from so2docs.extensions.formulas import (
    MOST_CHARACTERS,
    formula_sign,
    pieces,
    sign_in,
    without_cut_formula,
)
from so2docs.extensions.markdown.bodies import make_converter
from so2docs.options.choices import Core


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        ("a $x$ b $y$", ["x", "y"]),
        ("$$x$$ and \\[y\\] and \\(z\\)", ["x", "y", "z"]),
        ("costs \\$5 and \\$6, $x$", ["x"]),
        ("a \\\\$x$", ["x"]),
        ("$a{$}b$", ["a{$}b"]),
        ("$\\text{a \\$ b}$", ["\\text{a \\$ b}"]),
        ("only $5", []),
        ("$$ and $", []),
        ("\\begin{align}a\\begin{array}{c}b\\end{array}\\end{align} $c$",
         ["\\begin{align}a\\begin{array}{c}b\\end{array}\\end{align}", "c"]),
        ("\\begin{document}x\\end{document}", []),
        ("\\begin{align}x", []),
        ("$" + "x" * (MOST_CHARACTERS + 1) + "$ $y$", ["y"]),
        ("\\(" * 49 + "$x$", ["x"]),
        ("\\(" * 50 + "$x$", []),
        ("", []),
    ],
)  # fmt: skip
def test_positions_of_formulas(text: str, formulas: list[str]) -> None:
    parts = list(pieces(text, "$"))
    if len(text) < MOST_CHARACTERS:
        assert [piece.tex for piece in parts if piece.tex is not None] == formulas
    assert "".join(piece.text for piece in parts) == text


def test_escaped_dollar_signs() -> None:
    parts = list(pieces(r"$5 \$x\$ and $6", r"\$"))
    assert [piece.tex for piece in parts] == [None, "x", None]


@pytest.mark.parametrize(
    ("host", "sign"),
    [
        ("math.stackexchange.com", "$"),
        ("math.meta.stackexchange.com", "$"),
        ("mathoverflow.net", "$"),
        ("meta.mathoverflow.net", "$"),
        ("physics.stackexchange.com", "$"),
        ("electronics.stackexchange.com", r"\$"),
        ("beer.stackexchange.com", None),
        ("stackoverflow.com", None),
        ("", None),
    ],
)
def test_sites_with_formulas(host: str, sign: str | None) -> None:
    assert formula_sign(host) == sign


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<p>If $x_1$ then</p>", True),
        ("<p>$$\\alpha$$</p>", True),
        ("<p>\\(\\alpha\\)</p>", True),
        ("<p>\\begin{align}a\\end{align}</p>", True),
        ("<p>$HOME_DIR and $PATH</p>", False),
        ("<p>$a_b,$c</p>", False),
        ("<p>the pattern \\[a_z\\]</p>", False),
        ("<p><code>$x_1$</code></p><pre class='lang-php'><code>$a_b$</code></pre>", False),
        ("<p>$a</p><p>b_c$</p>", False),
        ("<p>costs $5 or 6$</p>", False),
        ('<p>of <span class="math-container">$85\\%$</span></p>', True),
        ('<p>of <span class="math-container">words</span></p>', False),
        ("<p>math-container: $HOME and $5</p>", False),
        ("", False),
    ],
)
def test_bodies_with_formulas(body: str, expected: bool) -> None:
    assert bool(sign_in(body)) is expected


@pytest.mark.parametrize(
    ("body", "sign"),
    [
        (r'<p>$5 is <span class="math-container">\$x\$</span></p>', r"\$"),
        (r'<p><span class="math-container">$5</span></p>', "$"),
        (r'<p><span class="math-container">\(x\)</span></p>', "$"),
        (r"<p>If $x_1$ then</p>", "$"),
        (r"<p>for $5 or $6</p>", ""),
    ],
)
def test_the_marks_of_the_publisher_decide(body: str, sign: str) -> None:
    assert sign_in(body) == sign


@pytest.mark.parametrize("core", ["compiled", "python"])
def test_formulas_that_a_dump_marks_stay(core: Core) -> None:
    """Also if the name of the site is unknown, and nothing else tells a formula."""
    for formula in (r"$85\%$", r"$ A \in \{b,s\}$", r"$N = 200\,099$"):
        body = f'<p>Say <span class="math-container">{formula}</span> here.</p>'
        assert make_converter(core, None)(body) == f"Say {formula} here."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a $x$ b", "a $x$ b"),
        ("a $x$ b $\\frac{1", "a $x$ b …"),
        ("a \\begin{align} x", "a …"),
        ("costs \\$5", "costs \\$5"),
        ("", ""),
    ],
)
def test_text_truncated_within_a_formula(text: str, expected: str) -> None:
    assert without_cut_formula(text, "$") == expected
