"""Bodies as Markdown: what each becomes, and that another parser makes the same of it again."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.places import DUMPS, NO_DUMPS
from support.rendered import is_sound, rendered, seen, words

import so2docs
from so2docs.parse.markdown import to_markdown

CASES = {
    "10<sup>15</sup> of CO<sub>2</sub>": "10<sup>15</sup> of CO<sub>2</sub>",
    "write &lt;div&gt; or a &lt; b": r"write \<div> or a < b",
    "(40*50) and *p": r"(40\*50) and \*p",
    "a * b, snake_case and _x": r"a * b, snake_case and \_x",
    "&amp;lt; and R&amp;D": r"\&lt; and R&D",
    "C:\\dir\\*.txt": "C:\\dir\\\\\\*.txt",
    "<p># no heading</p>": r"\# no heading",
    "<p>1. no list</p>": r"1\. no list",
    "<p>- no list\n+ nor this\n> nor that</p>": "\\- no list\n\\+ nor this\n\\> nor that",
    "<p>a<br>b</p>": "a  \nb",
    "<p><strong>Note:</strong> x</p>": "**Note:** x",
    "<p><strong>Note:</strong>x</p>": "<strong>Note:</strong>x",
    "<p>a<em> b </em>c</p>": "a *b* c",
    "<p>un<em>frigging</em>real</p>": "un<em>frigging</em>real",
    "<p><em>a</em><em>b</em></p>": "<em>a</em><em>b</em>",
    "<p><code>a`b</code> <code>`</code></p>": "``a`b`` `` ` ``",
    "<p><code>a &lt; b*c*</code></p>": "`a < b*c*`",
    '<p><a href="http://a.com/x_(y)">x</a></p>': r"[x](http://a.com/x_\(y\))",
    '<p>Hi!<a href="http://a.com">x</a></p>': r"Hi\![x](http://a.com)",
    '<p><a href="http://a.com/_b_">http://a.com/_b_</a></p>': "<http://a.com/_b_>",
    '<p>[a](b) <img src="c" alt="d [e]"></p>': "[a\\](b) ![d \\[e\\]](c)",
    "<h2>C#</h2><h3>a #</h3>": "## C#\n\n### a \\#",
    "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>": "- a\n  - b\n- c",
    "<ul><li><p>a</p></li><li><p>b</p><p>c</p></li></ul>": "- a\n\n- b\n\n  c",
    "<ol start='3'><li>a</li></ol><ol><li>b</li></ol>": "3. a\n\n1) b",
    "<p>a</p><hr><blockquote><p>b</p><ul><li>c</li></ul></blockquote>": "a\n\n---\n\n> b\n>\n> - c",
    "<pre><code>a &lt; *b*\n\n  c\n</code></pre>": "```\na < *b*\n\n  c\n```",
    '<pre class="lang-py prettyprint-override"><code>x</code></pre>': "```py\nx\n```",
    "<pre><code>```\n</code></pre>": "````\n```\n````",
    "<pre><b>x</b> y</pre>": "<pre><b>x</b> y</pre>",
    "<ol><li><pre><code>a\n\tb</code></pre></li></ol>": "1. ```\n   a\n   \tb\n   ```",
    "<table><tr><th>a</th><th align='right'>b</th></tr><tr><td>c|d</td><td>e</td></tr></table>": (
        "| a | b |\n| --- | --: |\n| c\\|d | e |"
    ),
    "<table><tr><td>a</td></tr></table>": "<table><tr><td>a</td></tr></table>",
    "<p>a <del>b</del> ~5 ~~</p>": r"a ~~b~~ \~5 \~\~",
    "": "",
    "<p></p>": "",
}


@pytest.mark.parametrize("body", CASES)
def test_markdown(body: str) -> None:
    assert to_markdown(body) == CASES[body]
    if is_sound(body):
        assert seen(rendered(to_markdown(body))) == seen(body)


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


@settings(max_examples=60)
@given(blocks())
def test_another_parser_makes_the_same_of_it(body: str) -> None:
    assert seen(rendered(to_markdown(body))) == seen(body)


TAGS = ["<", ">", "<b>", "<b", "</b>", "<p>", "<ul>", "<li>", "</ul>", "</li>", "<!--", "-->", '"']
TAGS += ["<pre>", "</pre>", "<code>", "</code>", "<table>", "<tr>", "<th>", "</th>", "</table>"]
TAGS += ["<a href='b'>", "</a>", "<blockquote>", "</blockquote>", "<br>", "<h1>", "</h1>", " "]


@given(st.lists(st.sampled_from(TAGS) | st.integers(0, 99).map("{}y".format)))
def test_no_tags_lose_text(parts: list[str]) -> None:
    body = "".join(parts)
    shown = re.sub("<b[^<>]*>", "", body)  # A tag that is left open takes what follows into it.
    texts = [] if "<!--" in body else re.findall("[0-9]+y", shown)
    made = to_markdown(body)
    assert [made.count(text) >= texts.count(text) for text in texts] == [True] * len(texts)


@pytest.mark.parametrize(
    "piece",
    [
        *("<", "<a", "<a x", '<a "', "<!--", "&", "&a", "*", "_", "_ ", "`", "`a", "[", "](", "\\"),
        *(
            "<b>",
            "<b>a",
            "<i><b>",
            "<ul><li>",
            "<blockquote>",
            "<ol>",
            "<pre><code>",
            "<table><tr>",
        ),
        *("<a href=''>", "<br>", " ", "\n", "- ", "1. ", "</b>", "<p>", "<code>", "<td>", "~", "#"),
        *("<img ", "<table>", "<h1>", "<li>", "<b> ", " <b>", "<sup>", "<em>a</em>", "<th>a</th>"),
    ],
)
def test_time_is_in_proportion_to_the_length(piece: str) -> None:
    """100 kB of it: what takes the square of that does not end while somebody waits."""
    to_markdown(piece * (100_000 // len(piece)))


@pytest.mark.long
@pytest.mark.skipif(not DUMPS.is_dir(), reason=NO_DUMPS)
def test_published_bodies_lose_nothing(unpacked_dumps: Path) -> None:
    count = unsound = 0
    for folder in sorted(path for path in unpacked_dumps.iterdir() if path.is_dir()):
        for question in so2docs.documents(folder, core="python", jobs=1):
            for post in (question, *question["Answers"]):
                body = post.get("Body", "")
                back = rendered(to_markdown(body))
                count += 1
                if is_sound(body):
                    assert seen(back) == seen(body), f"{folder.name} {post['Id']}"
                else:
                    unsound += 1
                    assert re.sub(r"\s", "", "".join(words(back))) == "".join(words(body))
    assert count > 10_000
    assert unsound < count / 100
