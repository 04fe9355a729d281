"""Code that reads text from a dump or a message takes linear time for any text."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from blocks import blocks

from so2docs.errors import without_secrets
from so2docs.extensions.show.page import as_text
from so2docs.extensions.sqlite.texts import html_to_text
from so2docs.parse import core
from so2docs.parse.bodies import converter

REPEATED = [
    *("<img ", '<img alt="', "<img alt=", '<img alt="x">', "<a ", "<a", '<a "', '<a href="x">'),
    *("<p ", "<", "<!", "<!--", "<!-->", "<!-- language: lang-js -->", "<?", "</b>", "</p>"),
    *("\n", " ", "x", "x ", "&", "&a", "*", "_", "_ ", "`", "`a", "[", "](", "\\", "~", "#"),
    *("- ", "1. ", "$", "$ {", "$\n", "\\(", "\\begin{", "\\begin{align}", "<b>a", "<b> ", "<em>x"),
    *("<em>a</em>", "<i><b>", "<pre><code>", "<code>", "<ul><li>", "<li>", "<blockquote>", "<h1>"),
    *("<table><tr><td>", "<table>", "<td>", "<th>a</th>", "<sup>", "<p><font>", "x<br>y "),
    '<a href="x">x</a>',
]
"""Pieces of a body that are repeated after the start of a paragraph."""
OTHERS: list[Callable[[int], str]] = [
    lambda n: "<p><img " + "".join(f"a{i} " for i in range(n)) + ">",
    lambda n: "<p><a " + "x " * n + ">",
    lambda n: "<p>" + "<" * n + ">",
    lambda n: " " * n + "x",
    lambda n: "<p>&#" + "1" * n,
    lambda n: "<p>&#x" + "1" * n,
    lambda n: "<div>" * n + "x" + "</div>" * n,
    lambda n: "<div>" * n + "</p>" * n,
    lambda n: "<ol>" + "<li>x" * n,
]


def read_blocks(body: str) -> str:
    question = {"Id": 1, "Url": "", "Body": f"<p>{body}</p><pre><code>{body}</code></pre>"}
    return str(list(blocks(question)))


FUNCTIONS: dict[str, Callable[[str], str] | None] = {
    "words": html_to_text,
    "show": as_text,
    "blocks": read_blocks,
    "text": converter("text"),
    "markdown": converter("markdown", host="math.stackexchange.com"),
    "compiled": converter("markdown", core.built()),
}


def assert_linear(work: Callable[[str], str], small: str, large: str) -> None:
    """Compare the least CPU time of this thread: 8 times as long, or 64 times if quadratic."""
    for _ in range(4):
        after = cpu_seconds(work, large)
        if after < 0.02 or after < 24 * (before := cpu_seconds(work, small)):
            return
    pytest.fail(f"{after:.3f} s for {large[:40]!r}…, {before:.3f} s for an eighth of it")


def cpu_seconds(work: Callable[[str], str], body: str) -> float:
    started = time.thread_time()
    work(body)
    return time.thread_time() - started


@pytest.mark.parametrize("name", FUNCTIONS)
def test_time_grows_with_the_body(name: str) -> None:
    work = FUNCTIONS[name]
    assert work is not None
    for piece in REPEATED:
        assert_linear(work, "<p>" + piece * 400, "<p>" + piece * 3_200)
    for body in OTHERS:
        assert_linear(work, body(400), body(3_200))


def test_secrets_are_removed_in_linear_time() -> None:
    for part in ("https://", "https://a?", "http://a:", "a://b:c", "a://@", "a://["):
        assert_linear(without_secrets, part * 500, part * 4_000)


def test_a_huge_character_reference_is_replaced() -> None:
    assert html_to_text("<p>a &#" + "1" * 5000 + "; b</p>") == " a \ufffd b "
    assert html_to_text("<p>&#0000000065;&#65;&#x41;</p>").strip() == "AAA"


def test_words_equal_the_text() -> None:
    text = converter("text")
    assert text is not None
    for body in (
        '<p>one <img src="x" alt="a > b"> two</p>',
        '<p><a href="x" rel="nofollow">link</a> &lt;not a tag&gt;</p>',
        "<p>one<!-- language: lang-js --> two</p>",
    ):
        assert html_to_text(body).split() == text(body).split()


def test_a_body_with_many_odd_parts_keeps_its_words() -> None:
    body = (
        "<p>first </p>" + "<!-- note -->word <b>" * 300 + '<a href="u" ' + "x " * 2000 + ">link</a>"
    )
    text = converter("text")
    assert text is not None
    assert text(body).split() == ["first", *["word"] * 300, "link"]
    assert "link" in as_text(body)
