"""Bodies as Markdown: expected texts, and the same content in another parser."""

import os
import re
import sys
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.command import run_python
from support.places import DUMPS, NO_DUMPS
from support.rendered import is_sound, rendered, seen, words
from support.twins import FORMULAS, MARKDOWN, is_markdown_taken

import so2docs
from so2docs.extensions.markdown import bodies
from so2docs.extensions.markdown.conversion import to_markdown
from so2docs.parse import core


def test_markdown() -> None:
    for body, markdown in MARKDOWN.items():
        assert to_markdown(body) == markdown
        if is_sound(body):
            assert seen(rendered(markdown)) == seen(body)


def test_formulas_are_unchanged() -> None:
    for body, markdown in FORMULAS.items():
        assert to_markdown(body, "$") == markdown
        if core.built() == "compiled":
            assert bodies.to_markdown(body, "$") == markdown


def test_formulas_between_escaped_signs() -> None:
    assert to_markdown(r"<p>\$x_*\$ $_y$ \\$_z\$</p>", r"\$") == r"\$x_*\$ $\_y$ \\\\$\_z\\$"


needs_core = pytest.mark.skipif(
    core.built() == "python", reason="the compiled core is not built: no C compiler"
)
EXAMPLES = int(os.environ.get("SO2DOCS_EXAMPLES", "100"))


@needs_core
def test_the_compiled_core_leaves_rare_bodies_to_the_reference() -> None:
    fallbacks = {body for body in MARKDOWN if not is_markdown_taken(body)}
    assert all(body.startswith(("<table", "<pre><b", "<ol start='")) for body in fallbacks), (
        fallbacks
    )
    left = ("a<!-- b -->", "<P>a", "&copy", "<code><b>a</b></code>", "<pre>a", "a_\udfff")
    for body in (*left, "<em>a €</em>b"):
        assert not is_markdown_taken(body)
        assert bodies.to_markdown(body) == to_markdown(body)


TEXTS = st.text(st.sampled_from("ab1 \n*_`[]()<>&!\\#-+=|~.:\xa0é—'\""), max_size=12)


def element(inside: st.SearchStrategy[str], *tags: str) -> st.SearchStrategy[str]:
    return st.builds(lambda tag, text: f"<{tag}>{text}</{tag}>", st.sampled_from(tags), inside)


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def inline() -> st.SearchStrategy[str]:
    plain = TEXTS.map(escaped)
    code = TEXTS.filter(str.strip).map(lambda text: f"<code>{escaped(text)}</code>")
    link = plain.map(lambda text: f'<a href="http://a.com/b_(c)?d=1&amp;e">{text}x</a>')
    leaf = plain | code | link | st.sampled_from(["<br>", '<img src="a.png" alt="b*c*">'])
    emphasis = element(st.lists(leaf, max_size=3).map("".join), "em", "strong", "sup", "del")
    both = st.lists(emphasis | leaf, max_size=3).map("".join)
    return st.lists(leaf | emphasis | element(both, "strong"), min_size=1, max_size=5).map("".join)


def blocks() -> st.SearchStrategy[str]:
    paragraph = element(inline(), "p", "h2")
    code = TEXTS.map(lambda text: f"<pre><code>{escaped(text)}x</code></pre>")
    leaf = paragraph | paragraph | code | st.just("<hr>")

    def nest(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        several = st.lists(inner, min_size=1, max_size=3).map("\n\n".join)
        item = element(several | inline(), "li")
        items = st.lists(item, min_size=1, max_size=3).map("\n".join)
        return element(several, "blockquote") | element(items, "ul", "ol")

    return st.lists(st.recursive(leaf, nest, max_leaves=6), max_size=4).map("\n\n".join)


@settings(max_examples=50)
@given(blocks())
def test_another_parser_renders_the_markdown_to_the_same_text(body: str) -> None:
    assert seen(rendered(to_markdown(body))) == seen(body)


TAGS = ["<", ">", "<b>", "<b", "</b>", "<p>", "<ul>", "<li>", "</ul>", "</li>", "<!--", "-->", '"']
TAGS += ["<pre>", "</pre>", "<code>", "</code>", "<table>", "<tr>", "<th>", "</th>", "</table>"]
TAGS += ["<a href='b'>", "</a>", "<blockquote>", "</blockquote>", "<br>", "<h1>", "</h1>", " "]
PIECES = [*TAGS, *MARKDOWN, *FORMULAS, "<em>", "</em>", "<ol>", "</ol>", "<hr>", "<del>", "</del>"]
PIECES += ["<sup>", "</sup>", "</h2>", "<h1x>", "<p-x>", "<p\n>", "<pé>", "<td/>", "</"]
PIECES += [*"*_~[]\\#|!`&${}\n\t\u2003\xa0é”—日", "- ", "1. ", "``", "\n\n", "&amp;", "&#8217;"]
PIECES += ["$$", "\\$", "\\(", "\\)", "\\[", "\\]", "\\begin{align}", "\\end{align}"]
PIECES += ["</pre>", "&am", "p;", "http://a.com/b_(c)"]


@needs_core
@settings(max_examples=EXAMPLES)
@given(blocks() | st.lists(st.sampled_from(PIECES) | TEXTS, max_size=12).map("".join))
def test_the_compiled_core_makes_the_same(body: str) -> None:
    is_markdown_taken(body)


@given(st.lists(st.sampled_from(TAGS) | st.integers(0, 99).map("{}y".format)))
def test_no_tags_lose_text(parts: list[str]) -> None:
    body = "".join(parts)
    html = re.sub("<b[^<>]*>", "", body)  # An unclosed tag contains all following text.
    texts = [] if "<!--" in body else re.findall("[0-9]+y", html)
    markdown = to_markdown(body)
    assert [markdown.count(text) >= texts.count(text) for text in texts] == [True] * len(texts)


@pytest.mark.long
@pytest.mark.skipif(not DUMPS.is_dir(), reason=NO_DUMPS)
def test_published_bodies_lose_nothing(unpacked_dumps: Path) -> None:
    """Test every eighth post."""
    count = unsound = fallbacks = 0
    for folder in sorted(path for path in unpacked_dumps.iterdir() if path.is_dir()):
        questions = so2docs.documents(folder, jobs=1)
        posts = (post for question in questions for post in (question, *question["Answers"]))
        for post in islice(posts, 0, None, 8):
            body = post.get("Body", "")
            back = rendered(to_markdown(body))
            count += 1
            fallbacks += core.built() == "compiled" and not is_markdown_taken(body)
            if is_sound(body):
                assert seen(back) == seen(body), f"{folder.name} {post['Id']}"
            else:
                unsound += 1
                assert re.sub(r"\s", "", "".join(words(back))) == "".join(words(body))
    assert count > 1_000
    assert unsound < count / 100
    assert fallbacks < count / 100


FAULTS = """
import resource
from so2docs.parse import core
body = "<p>A <em>short</em> body with <code>code</code>.</p>" * 9
def convert():
    for _ in range(1000):
        core.compiled.to_markdown(body, "")
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
before = convert()
print(convert() - before)
"""


@needs_core
@pytest.mark.skipif(sys.platform != "linux", reason="sets a threshold of glibc")
def test_bodies_do_not_return_their_memory_to_the_system() -> None:
    """With 64 KiB for each buffer, glibc trimmed the heap after each body: 7,000 page faults."""
    done = run_python("-c", FAULTS, env={"MALLOC_TRIM_THRESHOLD_": "131072"})
    assert int(done.stdout) < 500
