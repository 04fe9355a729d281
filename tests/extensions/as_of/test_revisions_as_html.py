"""Markdown of revisions as HTML, with the habits of the sites."""

from so2docs.extensions.as_of.rendering import render

OLD, NEW = "2016-01-01T00:00:00.000", "2021-01-01T00:00:00.000"
TAG = (
    '<p><a href="{}/questions/tagged/ale" class="post-tag" '
    'title="show questions tagged &#39;ale&#39;" rel="tag">ale</a></p>\n'
)


def find_title(host: str, post_id: int) -> str | None:
    return "Why &lt;ale&gt;?" if (host, post_id) == ("beer.stackexchange.com", 5) else None


ALWAYS = {
    "a *b*\r\n\r\nc": "<p>a <em>b</em></p>\n<p>c</p>\n",
    "<!-- language: c -->\n\n    x": "<pre><code>x\n</code></pre>\n",
    ">! boo\n>! hoo": '<blockquote class="spoiler">\n<p>boo\nhoo</p>\n</blockquote>\n',
    "> quote": "<blockquote>\n<p>quote</p>\n</blockquote>\n",
    "[tag:ale]": TAG.format(""),
    "[meta-tag:ale]": TAG.format("https://meta.stackexchange.com"),
    "`[tag:ale]`": "<p><code>[tag:ale]</code></p>\n",
    '<img src="x">': '<p><img src="x"></p>\n',
    "b.com, me@b.com, www.b.com": "<p>b.com, me@b.com, www.b.com</p>\n",
    "see https://beer.stackexchange.com/q/5/9": (
        '<p>see <a href="https://beer.stackexchange.com/q/5/9">Why &lt;ale&gt;?</a></p>\n'
    ),
    "https://ale.com/q/5/9": '<p><a href="https://ale.com/q/5/9">https://ale.com/q/5/9</a></p>\n',
    "- a\nb\n- c": "<ul>\n<li>a\nb</li>\n<li>c</li>\n</ul>\n",
    "```\n- a\n###b\n```": "<pre><code>- a\n###b\n</code></pre>\n",
}
CHANGED = {
    "###Head": ("<h3>Head</h3>\n", "<p>###Head</p>\n"),
    "1) one": ("<p>1) one</p>\n", "<ol>\n<li>one</li>\n</ol>\n"),
    "a\n- b": ("<p>a\n- b</p>\n", "<p>a</p>\n<ul>\n<li>b</li>\n</ul>\n"),
    "> a\n\n> b": (
        "<blockquote>\n<p>a</p>\n<p>b</p>\n</blockquote>\n",
        "<blockquote>\n<p>a</p>\n</blockquote>\n<blockquote>\n<p>b</p>\n</blockquote>\n",
    ),
    "a [b][1]\n[1]: c": ('<p>a <a href="c">b</a></p>\n', "<p>a [b][1]\n[1]: c</p>\n"),
    "***a***": (
        "<p><strong><em>a</em></strong></p>\n",
        "<p><em><strong>a</strong></em></p>\n",
    ),
}
"""Markdown before and after the sites changed to CommonMark."""


def test_habits_of_the_sites() -> None:
    for markdown, (old, new) in {
        **{text: (ALWAYS[text],) * 2 for text in ALWAYS},
        **CHANGED,
    }.items():
        assert render(markdown, OLD, find_title) == old
        assert render(markdown, NEW, find_title) == new
