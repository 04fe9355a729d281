"""Code that reads text from a dump or a message takes linear time for any text."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from so2docs.errors import without_secrets
from so2docs.parse import core
from so2docs.parse.bodies import converter
from so2docs.reader.page import as_text
from so2docs.recipes.parts import blocks
from so2docs.sqlite.rows import html_to_text

BODIES: dict[str, Callable[[int], str]] = {
    "open images": lambda n: "<p>" + "<img " * n,
    "open values": lambda n: "<p>" + '<img alt="' * n,
    "values without quotes": lambda n: "<p>" + "<img alt=" * n,
    "attributes": lambda n: "<p><img " + "".join(f"a{i} " for i in range(n)) + ">",
    "attributes of one name": lambda n: "<p><a " + "x " * n + ">",
    "open links": lambda n: "<p>" + "<a " * n,
    "open paragraphs": lambda n: "<p " * n,
    "brackets": lambda n: "<p>" + "<" * n,
    "brackets, closed once": lambda n: "<p>" + "<" * n + ">",
    "declarations": lambda n: "<p>" + "<!" * n,
    "open comments": lambda n: "<p>" + "<!--" * n,
    "comments without an end": lambda n: "<p>" + "<!-->" * n,
    "comments": lambda n: "<p>" + "<!-- language: lang-js -->" * n,
    "instructions": lambda n: "<p>" + "<?" * n,
    "spaces": lambda n: " " * n + "x",
    "line feeds": lambda n: "<p>" + "\n" * n,
    "one word": lambda n: "<p>" + "x" * n,
    "words": lambda n: "<p>" + "x " * n,
    "ampersands": lambda n: "<p>" + "&" * n,
    "digits of a reference": lambda n: "<p>&#" + "1" * n,
    "hexadecimal digits of a reference": lambda n: "<p>&#x" + "1" * n,
    "nested code": lambda n: "<pre><code>" * n,
    "nested divisions": lambda n: "<div>" * n + "x" + "</div>" * n,
    "nested lists": lambda n: "<ul><li>" * n,
    "nested quotations": lambda n: "<blockquote>" * n,
    "nested tables": lambda n: "<table><tr><td>" * n,
    "nested emphasis": lambda n: "<em>x" * n,
    "nested links": lambda n: '<a href="x">' * n,
    "fonts in paragraphs": lambda n: "<p><font>" * n,
    "closing tags": lambda n: "</p>" * n,
    "closing tags of others": lambda n: "<div>" * n + "</p>" * n,
    "links": lambda n: '<a href="x">x</a>' * n,
    "images": lambda n: '<img alt="x">' * n,
    "line breaks": lambda n: "x<br>y " * n,
    "items": lambda n: "<ol>" + "<li>x" * n,
}


def read_blocks(body: str) -> str:
    question = {"Id": 1, "Url": "", "Body": f"<p>{body}</p><pre><code>{body}</code></pre>"}
    return str(list(blocks(question)))


FUNCTIONS: dict[str, Callable[[str], str] | None] = {
    "words": html_to_text,
    "show": as_text,
    "blocks": read_blocks,
    "text": converter("text"),
    "markdown": converter("markdown"),
    "compiled": converter("markdown", core.built()),
}
SMALL, LARGE = 4_000, 32_000


def cpu_seconds(work: Callable[[str], str], body: str) -> float:
    started = time.thread_time()
    work(body)
    return time.thread_time() - started


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_time_grows_with_the_body(name: str, body: Callable[[int], str]) -> None:
    work = FUNCTIONS[name]
    assert work is not None
    small, large = body(SMALL), body(LARGE)
    cpu_seconds(work, small)
    # Least processor time of this thread: about 8 times as long, or 64 times if quadratic.
    for _ in range(4):
        before, after = cpu_seconds(work, small), cpu_seconds(work, large)
        if after < 0.05 or after < 24 * before:
            return
    pytest.fail(f"{after:.3f} s for {LARGE:,}, {before:.3f} s for {SMALL:,}")


@pytest.mark.parametrize(
    "part", ["https://", "https://a?", "http://a:", "a://b:c", "a://@", "a://["]
)
def test_secrets_are_removed_in_linear_time(part: str) -> None:
    small, large = part * 100, part * 4_000
    cpu_seconds(without_secrets, small)
    for _ in range(4):
        before, after = cpu_seconds(without_secrets, small), cpu_seconds(without_secrets, large)
        if after < 0.05 or after < 120 * before:
            return
    pytest.fail(f"{after:.3f} s for 4,000 addresses, {before:.3f} s for 100")


def test_a_huge_character_reference_is_replaced() -> None:
    assert html_to_text("<p>a &#" + "1" * 5000 + "; b</p>") == " a \ufffd b "
    assert html_to_text("<p>&#0000000065;&#65;&#x41;</p>").strip() == "AAA"


@pytest.mark.parametrize(
    "body",
    [
        '<p>one <img src="x" alt="a > b"> two</p>',
        '<p><a href="x" rel="nofollow">link</a> &lt;not a tag&gt;</p>',
        "<p>one<!-- language: lang-js --> two</p>",
    ],
)
def test_words_equal_the_text(body: str) -> None:
    text = converter("text")
    assert text is not None
    assert html_to_text(body).split() == text(body).split()


def test_a_body_with_many_odd_parts_keeps_its_words() -> None:
    body = (
        "<p>first </p>" + "<!-- note -->word <b>" * 300 + '<a href="u" ' + "x " * 2000 + ">link</a>"
    )
    text = converter("text")
    assert text is not None
    assert text(body).split() == ["first", *["word"] * 300, "link"]
    assert "link" in as_text(body)
