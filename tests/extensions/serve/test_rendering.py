"""Texts as HTML: the result, and the time of the worst texts."""

from __future__ import annotations

import time

import pytest

from so2docs.extensions.serve.bodies import Kind, Renderer
from so2docs.extensions.serve.links import Link

HOST = "bread.stackexchange.com"
SITE = Renderer(HOST, {Link(HOST, (5,)): "/a/5"}.get, sign="$")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("*soft* and _slow_", "<em>soft</em> and <em>slow</em>"),
        ("**very** hot", "<strong>very</strong> hot"),
        ("2*3*4, snake_case_name, * a * b, _ a _", None),
        ("`*a*` ``b ` c``", "<code>*a*</code> <code>b ` c</code>"),
        ("`unclosed *a", None),
        (
            "see [a](https://x.org/a_(b)_c), https://x.org/d_e_f.",
            'see <a href="https://x.org/a_(b)_c" rel="noopener noreferrer nofollow">a</a>, '
            '<a href="https://x.org/d_e_f" rel="noopener noreferrer nofollow">'
            "https://x.org/d_e_f</a>.",
        ),
        (
            '[b](https://bread.stackexchange.com/a/5 "title")',
            '<a href="/a/5" rel="noopener noreferrer nofollow">b</a>',
        ),
        ("<b>x</b> & y", "&lt;b&gt;x&lt;/b&gt; &amp; y"),
        ("[a](javascript:x)", None),
    ],
)
def test_comments(text: str, expected: str | None) -> None:
    assert SITE.render("comment", text) == (text if expected is None else expected)


@pytest.mark.parametrize("kind", ["body", "comment", "title"])
@pytest.mark.parametrize("text", ["a\u202eb", "<p>a&#8238;b</p>", "`\u2067`", "$\u202ex$"])
def test_text_direction_marks_are_isolated(kind: Kind, text: str) -> None:
    html = SITE.render(kind, text)
    assert not set(html) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    assert "\u05d0\u200f" in SITE.render(kind, "\u05d0\u200f")


LINEAR: dict[Kind, list[str]] = {
    "comment": [
        "[a](http://@", "@a", "[a](http://x", "[a](http://x(", "[", "[a]", "`", "`a", "``a`",
        "`a``b```c", "*", "*a ", "**a ", "_a ", "_", "https://", "https://.", "$", "$a", "${", "\\",
        "a*b_c ", "\x02",
    ],
    "body": [
        "<", "<a", "<a ", "<img ", "<img alt=\"", "</", "<p>", "<p></p>", "<b><p>", "<pre><code>",
        "<pre><code>x</code></pre>", "<table>", "<br>$", "<h1>", "<a href='/q/1'>", "&", "&#8238;",
        "&amp;lt;", "$", "$a", "$a$", "$${", "\\(", "\\[", "\\begin{align}", "x^{", "{", "a ",
        "<p>$x", "</p>$", "<!--", "]]>", "\0",
    ],
    "title": ["$", "$a{", "\\begin{array}", "\x02\x03", "$\\frac"],
}  # fmt: skip


@pytest.mark.parametrize("kind", LINEAR)
def test_time_grows_with_the_text(kind: Kind) -> None:
    """Four times the text takes about four times as long; quadratic time would be 16 times."""
    for part in LINEAR[kind]:
        ratios = list[float]()
        for characters in (3_000, 12_000, 48_000):
            count = characters // len(part)
            ratios.append(_seconds(kind, part, count * 4) / _seconds(kind, part, count))
            if ratios[-1] < 8:
                break
        else:
            pytest.fail(f"{kind} of {part!r}: four times the text took {ratios} times as long")


def _seconds(kind: Kind, part: str, count: int) -> float:
    """Return the CPU seconds of this thread: the lesser of two attempts, with a common start."""
    text = part.replace("@", "a" * count) if "@" in part else part * count
    times = []
    for _ in range(2):
        start = time.thread_time()
        SITE.render(kind, text)
        times.append(time.thread_time() - start)
    return min(times) + 0.002


def test_deep_bodies_are_shown_as_their_source() -> None:
    assert SITE.render("body", "<p>" + "<pre><code>" * 50_000).startswith(
        '<div class="plain">&lt;p&gt;&lt;pre&gt;'
    )
    nested = "<blockquote>" * 100 + "deep" + "</blockquote>" * 100
    assert SITE.render("body", nested).count("<blockquote>") == 100
    assert SITE.render("body", "<p>a<br></p>" * 1000).count("<br>") == 1000


def test_spoilers_are_folded() -> None:
    body = '<blockquote class="spoiler x"><p>It <blockquote>was</blockquote> Ann.</p></blockquote>'
    html = SITE.render("body", f"{body}<blockquote><p>Who?</p></blockquote>")
    assert html.count('<details class="spoiler"><summary>Spoiler</summary><blockquote>') == 1
    assert html.index("</blockquote></details>") > html.index("Ann.")
    assert html.endswith("<blockquote><p>Who?</p></blockquote>")


def test_headings_are_below_those_of_the_page_and_without_gaps() -> None:
    html = SITE.render("body", "<h1>a</h1><h4>b</h4><h2>c</h2><h1>d</h1><h6>e</h6>")
    assert html == "<h3>a</h3><h4>b</h4><h4>c</h4><h3>d</h3><h4>e</h4>"


@pytest.mark.parametrize(
    ("attribute", "aligned"),
    [
        ('style="text-align: right;"', ' align="right"'),
        ('style="text-align:center"', ' align="center"'),
        ('style="position: fixed; text-align: right"', ""),
        ('style="text-align: right" onclick="x"', ' align="right"'),
        ('align="right"', ""),
    ],
)
def test_cells_of_tables_are_aligned(attribute: str, aligned: str) -> None:
    html = SITE.render("body", f"<table><tbody><tr><td {attribute}>1</td></tr></tbody></table>")
    assert f"<td{aligned}>1</td>" in html
    assert "style" not in html


@pytest.mark.parametrize("depth", [50, 100, 199])
def test_elements_repeated_by_the_parser_cost_little(depth: int) -> None:
    """Elements that a parser repeats in each paragraph: 60 kB become 10 MB."""
    bold = "".join(f"<b class=x{number}>" for number in range(depth))
    begun = time.thread_time()
    html = SITE.render("body", f"<p>{bold}x</p>" + "<p>x</p>" * 8_000)
    assert time.thread_time() - begun < 1
    assert html.startswith('<div class="plain">&lt;p&gt;&lt;b class=x0')


@pytest.mark.parametrize(
    ("language", "part"),
    [("python", "\n "), ("cpp", "//"), ("cpp", "\n"), ("javascript", "a.b."), ("perl", "&lt;a")],
)
def test_code_that_takes_lexers_long_is_not_highlighted(language: str, part: str) -> None:
    """These texts took the lexers seconds."""
    code = part * (20_000 // len(part))
    body = f'<pre class="lang-{language}"><code>{code}</code></pre>'
    begun = time.thread_time()
    html = SITE.render("body", body)
    assert time.thread_time() - begun < 1
    assert "<span" not in html
    short = SITE.render("body", body.replace(code, "def x(): return 1;" * 200))
    assert "<span" in short


def test_a_text_that_a_library_fails_to_convert_is_shown_as_its_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise BaseException("a panic of compiled code")

    monkeypatch.setattr("nh3.clean", fail)
    assert SITE.render("body", "<p>a</p>") == '<div class="plain">&lt;p&gt;a&lt;/p&gt;</div>'
