"""Texts as HTML: the result, linear time, and the end of a text that takes too long."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import orjson
import pytest

from so2docs.extensions.serve.bodies import Kind, Renderer
from so2docs.extensions.serve.rendering import Renderings

HOST = "bread.stackexchange.com"
SITE = Renderer(HOST, {f"{HOST} post 5 ": "/a/5"}, sign="$")


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


@pytest.mark.parametrize("kind", ["body", "comment", "title", "diff", "plain"])
@pytest.mark.parametrize("text", ["a\u202eb", "<p>a&#8238;b</p>", "`\u2067`", "$\u202ex$"])
def test_text_direction_marks_are_isolated(kind: Kind, text: str) -> None:
    html = SITE.render(kind, text)
    assert not set(html) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    assert "\u05d0\u200f" in SITE.render(kind, "\u05d0\u200f")


def test_changed_lines_are_marked() -> None:
    old = "\n".join(["same"] * 3 + ["one two three <b>"] + list("abcdefgh") + ["end"])
    new = old.replace("two", "2").replace("end", "quite\nother")
    assert SITE.render("diff", f"{old}\0{new}") == (
        '<div class="gap">…</div><div>same</div><div>same</div>'
        "<del>one two three &lt;b&gt;</del><ins>one 2 three &lt;b&gt;</ins>"
        '<div>a</div><div>b</div><div class="gap">…</div><div>g</div><div>h</div>'
        "<del>end</del><ins>quite</ins><ins>other</ins>"
    )
    assert SITE.render("diff", "same\0same") == ""
    assert SITE.render("diff", "\0new") == '<div class="gap">…</div><ins>new</ins>'
    assert SITE.render("plain", "old\0new") == '<div class="plain">old\n\nnew</div>'


def test_long_texts_are_not_compared() -> None:
    lines = ("x\n" * count for count in (10, 2_000))
    few, many = (SITE.render("diff", f"{text}\0{text}y") for text in lines)
    assert (few.count("<del>"), few.count("<ins>")) == (0, 1)
    assert (many.count("<del>"), many.count("<ins>")) == (2_000, 2_001)


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


def stubborn_worker(requests: BinaryIO, rendered: BinaryIO) -> None:
    for line in requests:
        for _, text in orjson.loads(line)[1]:
            while text == "forever":
                pass
            if text == "dies":
                sys.exit()
            rendered.write(orjson.dumps(f"[{text}]") + b"\n")
            rendered.flush()


@pytest.fixture
def stubborn() -> Iterator[Renderings]:
    """Workers that never finish one text, and die on another."""
    renderings = Renderings(stubborn_worker)
    yield renderings
    renderings.close()


def test_a_dead_worker_loses_one_text(stubborn: Renderings) -> None:
    texts: list[tuple[Kind, str]] = [("body", "a"), ("body", "dies"), ("comment", "b")]
    for _ in range(2):
        assert stubborn.render(SITE, texts) == ["[a]", '<div class="plain">dies</div>', "[b]"]


def test_an_idle_worker_killed_from_outside_is_replaced(stubborn: Renderings) -> None:
    for _ in range(3):
        assert stubborn.render(SITE, [("body", "a")]) == ["[a]"]
        for process in list(stubborn._running):
            process.kill()
            process.wait()


def test_a_page_full_of_such_texts_does_not_start_a_worker_for_each(stubborn: Renderings) -> None:
    texts: list[tuple[Kind, str]] = [("body", "dies"), ("comment", "dies"), ("title", "dies")]
    texts.append(("comment", "b"))
    assert [str(text) for text in stubborn.render(SITE, texts)][3] == '<div class="plain">b</div>'


def test_an_endless_text_does_not_block_others(stubborn: Renderings) -> None:
    results: list[str] = []
    slow = threading.Thread(
        target=lambda: results.extend(stubborn.render(SITE, [("body", "forever")]))
    )
    slow.start()
    assert stubborn.render(SITE, [("body", "a")]) == ["[a]"]
    assert slow.is_alive()
    stubborn.close()  # This is what SIGTERM does.
    slow.join()
    assert results == ['<div class="plain">forever</div>']
    assert stubborn.render(SITE, [("body", "a")]) == ['<div class="plain">a</div>']


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="limits of the system")
def test_the_system_kills_slow_workers() -> None:
    """Elements that a parser repeats in each paragraph: 700 kB become gigabytes."""
    bold = "".join(f"<b class=x{number}>" for number in range(199))
    harmful = f"<p>{bold}x</p>" + "<p>x</p>" * 80_000
    renderings = Renderings()
    try:
        results = renderings.render(SITE, [("body", "<p>a</p>"), ("body", harmful), ("body", "b")])
        assert results[0] == "<p>a</p>"
        assert results[1].startswith('<div class="plain">&lt;p&gt;&lt;b class=x0')
        assert results[2] == '<div class="plain">b</div>'
    finally:
        renderings.close()


def test_an_error_of_a_library_costs_one_text() -> None:
    renderings = Renderings()
    try:
        texts: list[tuple[Kind, str]] = [("nothing", "a & b"), ("body", "<p>b</p>")]  # type: ignore[list-item]
        assert renderings.render(SITE, texts) == ['<div class="plain">a &amp; b</div>', "<p>b</p>"]
    finally:
        renderings.close()


def test_output_at_the_start_of_python_does_not_reach_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('loaded')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    renderings = Renderings()
    try:
        assert renderings.render(SITE, [("body", "<p>b</p>")]) == ["<p>b</p>"]
    finally:
        renderings.close()
