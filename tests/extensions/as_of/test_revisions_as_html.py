"""Markdown of revisions as HTML, by the rules of their time and with the habits of the sites."""

import random
import re
import time

import pytest

from so2docs.extensions.as_of.rendering import Renderer
from so2docs.extensions.markdown.elements import ATTRIBUTES
from so2docs.extensions.markdown.formulas import formula_sign

STRICT, OLD, FENCED, NEW = "2013-01-01", "2016-01-01", "2019-06-01", "2021-01-01"
MAIN, META, MATHEMATICS = (
    "alcohol.stackexchange.com",
    "alcohol.meta.stackexchange.com",
    "math.stackexchange.com",
)


def find_title(host: str, post_id: int) -> str | None:
    return "Why &lt;ale&gt;?" if (host, post_id) == ("beer.stackexchange.com", 5) else None


def render(markdown: str, date: str = NEW, host: str = MAIN) -> str:
    return Renderer(host, formula_sign(host) or "", find_title).render(markdown, date)


def tag(site: str = "", name: str = "ale") -> str:
    return (
        f'<p><a href="{site}/questions/tagged/{name}" class="post-tag" '
        f'title="show questions tagged &#39;{name}&#39;" rel="tag">{name}</a></p>\n'
    )


ALWAYS = {
    "a *b*\r\n\r\nc": "<p>a <em>b</em></p><p>c</p>",
    ">! boo\n>! hoo": '<blockquote class="spoiler"><p>boo hoo</p></blockquote>',
    "> quote": "<blockquote><p>quote</p></blockquote>",
    "[tag:Ale]": tag(),
    "[meta-tag:ale]": tag("https://alcohol.meta.stackexchange.com"),
    "`[tag:ale]`": "<p><code>[tag:ale]</code></p>",
    "b.com, me@b.com, www.b.com": "<p>b.com, me@b.com, www.b.com</p>",
    "[b.com](http://b.com)": '<p><a href="http://b.com">b.com</a></p>',
    "see https://beer.stackexchange.com/q/5/9": (
        '<p>see <a href="https://beer.stackexchange.com/q/5/9">Why &lt;ale&gt;?</a></p>'
    ),
    "https://ale.com/q/5/9": '<p><a href="https://ale.com/q/5/9">https://ale.com/q/5/9</a></p>',
    "(http://a.com/b_(c)) http://a.com/d.": (
        '<p>(<a href="http://a.com/b_(c)">http://a.com/b_(c)</a>) '
        '<a href="http://a.com/d">http://a.com/d</a>.</p>'
    ),
    "[Crème](http://a.com/Crème)": '<p><a href="http://a.com/Cr%C3%A8me">Crème</a></p>',
    "- a\nb\n- c": "<ul><li>a b</li><li>c</li></ul>",
    "<!-- language: lang-c -->\n\n    x": (
        '<pre class="lang-c prettyprint-override"><code>x </code></pre>'
    ),
    "<!-- language-all: lang-c -->\n\n    x": (
        '<pre class="lang-c prettyprint-override"><code>x </code></pre>'
    ),
    "a <b>b</b> <i>c</b> List<Foo> <center>d</center>": "<p>a <b>b</b> c List d</p>",
    '<img src="http://a.b/c" onerror="d()">e': "<p>e</p>",
    '<img src="https://a.b/c" width="5" alt="d">': (
        '<p><img src="https://a.b/c" width="5" alt="d"></p>'
    ),
    "[a](javascript:b) <a href='/c'>d</a>": "<p>a d</p>",
    "<script>a</script>": "a",
    "![a](https://b.c/d)": '<p><img src="https://b.c/d" alt="a"></p>',
    "![schematic](https://i.c/d.png)\n\n<!-- End schematic -->": (
        '<p><img src="https://i.c/d.png" alt="schematic"></p>'
        '<p><sup><a href="/plugins/schematics?image=https%3a%2f%2fi.c%2fd.png">simulate this '
        "circuit</a> \u2013 Schematic created using "
        '<a href="https://www.circuitlab.com/">CircuitLab</a></sup></p>'
    ),
}
"""Markdown, and its HTML on any date."""

CHANGED = {
    "###Head##": ("<h3>Head</h3>", "<p>###Head##</p>"),
    "1) one": ("<p>1) one</p>", "<ol><li>one</li></ol>"),
    "a\n- b": ("<p>a - b</p>", "<p>a</p><ul><li>b</li></ul>"),
    "> a\n\n> b": (
        "<blockquote><p>a</p><p>b</p></blockquote>",
        "<blockquote><p>a</p></blockquote><blockquote><p>b</p></blockquote>",
    ),
    "> a\n> \n> - b\n> - c": ("<blockquote><p>a</p><ul><li>b</li><li>c</li></ul></blockquote>",)
    * 2,
    "1. a\n\n- b\n- c": (
        "<ol><li><p>a</p><ul><li>b</li><li>c</li></ul></li></ol>",
        "<ol><li>a</li></ol><ul><li>b</li><li>c</li></ul>",
    ),
    "-   a\n\n    b\n\n        c\n- d": (
        "<ul><li><p>a</p><p>b</p><pre><code>c </code></pre></li><li>d</li></ul>",
        "<ul><li><p>a</p><p>b</p><pre><code>c </code></pre></li><li><p>d</p></li></ul>",
    ),
    "2. a\n3. b": ('<ol start="2"><li>a</li><li>b</li></ol>',) * 2,
    "1. a\n-----": ("<h2>1. a</h2>", "<ol><li>a</li></ol><hr>"),
    "<hr>\na": ("<p><hr> a</p>", "<hr> a"),
    "<div>\n*a*\n</div>\n\n*b*": ("*a* <p><em>b</em></p>",) * 2,
    "a [b] [1]\n[1]: http://c": (
        '<p>a <a href="http://c">b</a></p>',
        "<p>a [b] [1] [1]: http://c</p>",
    ),
    '[b][1] [c]\n\n[1]: <http://d> "e"\n[C]: /f': (
        '<p><a href="http://d" title="e">b</a> <a href="/f">c</a></p>',
    )
    * 2,
    "***a***": ("<p><strong><em>a</em></strong></p>", "<p><em><strong>a</strong></em></p>"),
    "a\\*b*c* 1*2*3": ("<p>a*b<em>c</em> 1*2*3</p>", "<p>a*b<em>c</em> 1<em>2</em>3</p>"),
    "```\na\n```": ("<p><code> a </code></p>", "<pre><code>a </code></pre>"),
    "```python\na\n```": (
        "<p><code>python a </code></p>",
        '<pre class="lang-python prettyprint-override"><code>a </code></pre>',
    ),
    "| a | b |\n|---|--:|\n| 1 | 2 |": (
        "<p>| a | b | |---|--:| | 1 | 2 |</p>",
        '<div class="s-table-container"><table class="s-table"><thead><tr><th>a</th>'
        '<th style="text-align: right;">b</th></tr></thead><tbody><tr><td>1</td>'
        '<td style="text-align: right;">2</td></tr></tbody></table></div>',
    ),
    "(http://a.b http://c http://d.e/(f": (
        '<p>(<a href="http://a.b">http://a.b</a> <a href="http://c">http://c</a> '
        '<a href="http://d.e/(f">http://d.e/(f</a></p>',
        '<p>(<a href="http://a.b">http://a.b</a> http://c http://d.e/(f</p>',
    ),
    '[a http://b.c "http://d.e"': (
        '<p>[a <a href="http://b.c">http://b.c</a> "<a href="http://d.e">http://d.e</a>"</p>',
        '<p>[a http://b.c "http://d.e"</p>',
    ),
    "a <!-- b --> c\n\n<!-- d -->\n\ne": ("<p>a  c</p><p>e</p>",) * 2,
}
"""Markdown, and its HTML before and after the sites changed to CommonMark."""

ON_A_DATE = [
    (STRICT, "a*b*c", "<p>a*b*c</p>"),
    (OLD, f"{'9' * 5000}. a", "<ol><li>a</li></ol>"),
    (OLD, "a*b*c", "<p>a<em>b</em>c</p>"),
    (OLD, "http://a.b/café", '<p><a href="http://a.b">http://a.b</a>/café</p>'),
    (STRICT, "***a***", "<p><em><strong>a</em></strong></p>"),
    (STRICT, "[a](http://b/(c))", '<p><a href="http://b/%28c%29">a</a></p>'),
    (OLD, "[a](http://b/(c))", '<p><a href="http://b/(c)">a</a></p>'),
    (FENCED, "```c\na\n\nb\n```\n\nc", "<pre><code>a b </code></pre><p>c</p>"),
    (FENCED, "```\na", "<p>``` a</p>"),
    (OLD, "![a](http://b/c)", '<p><img src="http://b/c" alt="a"></p>'),
    (FENCED, "![a](http://b/c)", "<p>a http://b/c</p>"),
    (OLD, "[a](http://www.amazon.com/b/dp/B000Q6ARMY/c)",
     '<p><a href="https://rads.stackoverflow.com/amzn/click/B000Q6ARMY">a</a></p>'),
]  # fmt: skip


EMPHASIS = {
    "a **dark ale** and _two_ hops": ("a <strong>dark ale</strong> and <em>two</em> hops",) * 2,
    "un*believ*able **pre**fix": (
        "un*believ*able *<em>pre</em>*fix", "un<em>believ</em>able <strong>pre</strong>fix"
    ),
    "snake_case_name 2*3*4 a*1*b": ("snake_case_name 2*3*4 a*1*b",) * 2,
    "2 * 3 * 4, *, * and **": ("2 * 3 * 4, *, * and **",) * 2,
    "so ***very*** sour": ("so <strong><em>very</em></strong> sour",) * 2,
    "***very** dry*": ("<em><strong>very</strong> dry</em>", "<strong><em>very</strong> dry</em>"),
    "*malt **and** hops*": ("<em>malt <strong>and</strong> hops</em>",) * 2,
    "**malt *and* hops**": ("<strong>malt <em>and</em> hops</strong>",) * 2,
    "**hops** or **malt**, *or*\n*both*": (
        "<strong>hops</strong> or <strong>malt</strong>, <em>or</em><em>both</em>",
    ) * 2,
    "**no end, *one start*": ("**no end, <em>one start</em>",) * 2,
    "*a (b)* c*(d)*e": ("<em>a (b)</em> c*(d)*e",) * 2,
    "__a b__ c__d__ _e__f_": ("<strong>a b</strong> c_<em>d</em>_ <em>e</em>_f_",
                              "<strong>a b</strong> c__d__ _e__f_"),
    "\\*a\\* *b\\** c\\_*d*": ("*a* <em>b*</em> c_*d*",) * 2,
    "*a* *b * c*": ("<em>a</em> *b * c*",) * 2,
}  # fmt: skip
"""Markdown, and its HTML until 2015 and then."""

ADDRESSES = {
    "see http://a.b/c_d?e=f&g#h.": "see {http://a.b/c_d?e=f&amp;g#h}.",
    "(at ftp://a.b/c), 'https://d.e'": "(at {ftp://a.b/c}), '{https://d.e}'",
    "http://a.b/c(d) (http://a.b/(c))": "{http://a.b/c(d)} ({http://a.b/(c)})",
    "http://a.b/c)). http://a.b/(c)d)": "{http://a.b/c})). {http://a.b/(c)d})",
    "http://a.b/c)(d http://a.b/((c).": "{http://a.b/c)(d} {http://a.b/((c)}.",
    "http://a.b... http://a.b?! http://a.b/;": "{http://a.b}... {http://a.b}?! {http://a.b/};",
    "<http://a.b/c d> <http://a.b/,c>!": " {http://a.b/,c}!",
    "xhttp://a.b _http://a.b http:// mailto:a@b.c": "xhttp://a.b _http://a.b http:// mailto:a@b.c",
    "http://a.b/*c* **http://d.e**": "{http://a.b/}<em>c</em> <strong>{http://d.e}</strong>",
    "http://a.b/caf\u00e9 http://a.b/\u2014": "{http://a.b}/caf\u00e9 {http://a.b/}\u2014",
    "`http://a.b` <b>http://a.b</b>": "<code>http://a.b</code> <b>{http://a.b}</b>",
    "[http://a.b](http://a.b) http://c.d": "{http://a.b} {http://c.d}",
    "http://a.b,http://c.d|e": "{http://a.b,http://c.d|e}",
}
"""Markdown, and its HTML until June 2020, with links in braces."""


def squeeze(html: str) -> str:
    """Remove white space between elements, and the slash of empty elements, which vary."""
    html = re.sub(r"(?<=>)\s*\n\s*(?=<)|\s+$|^\s+", "", html.replace(" />", ">"))
    return re.sub(r"\s*\n\s*", " ", html)


@pytest.mark.parametrize("markdown", [*ALWAYS, *CHANGED])
def test_rules_of_both_times(markdown: str) -> None:
    old, new = CHANGED.get(markdown) or (ALWAYS[markdown],) * 2
    assert squeeze(render(markdown, OLD)) == squeeze(old)
    assert squeeze(render(markdown, NEW)) == squeeze(new)


@pytest.mark.parametrize("markdown", EMPHASIS)
def test_emphasis_until_2020(markdown: str) -> None:
    for date, html in zip((STRICT, OLD), EMPHASIS[markdown], strict=True):
        assert squeeze(render(markdown, date)) == f"<p>{html}</p>"


@pytest.mark.parametrize("markdown", ADDRESSES)
def test_addresses_until_2020(markdown: str) -> None:
    html = squeeze(render(markdown, OLD))
    assert re.sub('<a href="[^"]*">(.*?)</a>', r"{\1}", html) == f"<p>{ADDRESSES[markdown]}</p>"


@pytest.mark.parametrize(("date", "markdown", "html"), ON_A_DATE)
def test_rules_of_a_date(date: str, markdown: str, html: str) -> None:
    assert squeeze(render(markdown, date)) == html


def test_pictures_hang_on_the_date_of_the_state() -> None:
    """Pictures by http became addresses in 2017, also in the bodies typed before."""
    for host, is_kept in (
        ("b.com", False),
        ("i.imgur.com", True),
        ("area51.stackexchange.com", True),
    ):
        body = Renderer().render(f"![a](http://{host}/c)", OLD, FENCED)
        assert ("<img" in body) == is_kept, host
        assert "<img" in Renderer().render(f"![a](http://{host}/c)", OLD, OLD)


@pytest.mark.parametrize(
    ("host", "main", "meta"),
    [
        (MAIN, "", f"https://{META}"),
        (META, f"https://{MAIN}", ""),
        ("meta.stackoverflow.com", "https://stackoverflow.com", ""),
        ("stackoverflow.com", "", "https://meta.stackoverflow.com"),
        ("pt.stackoverflow.com", "", "https://pt.meta.stackoverflow.com"),
        ("mathoverflow.net", "", "https://meta.mathoverflow.net"),
        ("meta.stackexchange.com", "", ""),
    ],
)
def test_tags_lead_to_their_site(host: str, main: str, meta: str) -> None:
    assert render("[tag:ale]", NEW, host) == tag(main)
    assert render("[meta-tag:ale]", OLD, host) == tag(meta)


FORMULAS = [
    r"$\{1,2\}$", r"$$a_b \\ c_d$$", "$a*b*c$", "$a<b>c$", "$`a`$", r"$[a](b)$",
    "\\begin{align}\n    a_b &= c_d \\\\\n- e\n\\end{align}", "$\\text{a $b_c$ d_e}$",
    "$$\n# a\n$$",
]  # fmt: skip


@pytest.mark.parametrize("date", [STRICT, OLD, FENCED, NEW])
@pytest.mark.parametrize("formula", FORMULAS)
def test_formulas_are_text(formula: str, date: str) -> None:
    shown = formula.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert render(f"a {formula} *b*", date, MATHEMATICS) == f"<p>a {shown} <em>b</em></p>\n"
    marked = Renderer(MATHEMATICS, "$", marks_formulas=True).render(f"{formula} `$a$ $b$`", date)
    assert squeeze(marked) == squeeze(
        f'<p><span class="math-container">{shown}</span> <code>$a$ $b$</code></p>'
    )


def test_dollars_that_are_no_formulas() -> None:
    assert render("$5 *a* \n\n$b", OLD, MATHEMATICS) == "<p>$5 <em>a</em> </p>\n\n<p>$b</p>\n"
    assert render("$*a*$", OLD, MAIN) == "<p>$<em>a</em>$</p>\n"
    code = "electronics.stackexchange.com"
    assert render(r"$5 *a* $6 \$b*c*d\$", OLD, code) == "<p>$5 <em>a</em> $6 \\$b*c*d\\$</p>\n"


PIECES = [
    "a", " ", "\n", "\n\n", "    ", "*", "**", "_", "`", "```\n", "[", "](", "]", "(", ")",
    "<", ">", '"', "'", "> ", ">! ", "- ", "1. ", "# ", "---\n", "&", "&lt;", "\\", "$", "|",
    "<a href=", '<a href="http://x" onclick="y">', "<script>", "</script>", "<svg/on=y>",
    "<img src=x onerror=y>",
    "javascript:x", "[a](javascript:x)", "![a](data:x)", "<javascript:x>", "[1]: javascript:x\n",
    "<style>", "<!--", "-->", "<div class=x>", "<b style=x>", "</b>", "<p>", "</ul>", "http://x/y",
    '<a href="javascript&colon;x">', "<pre>", "<table>", "[tag:a]", '[tag:"x]', '"onclick="y', "\t",
    "\U0010f804", "\U0010f802", "0", "\U0010f803", "\U0010f805", "\U0010f806", "\U0010f002",
]  # fmt: skip
WHOLE_TAG = re.compile(
    r"<(?P<end>/?)(?P<name>[a-zA-Z][a-zA-Z0-9]*)"
    r"(?P<attributes>(?:\s+[a-z]+=\"[^\"<>]*\")*)\s?/?>"
)


def test_no_text_yields_active_content() -> None:
    """Every `<` in the HTML starts a tag of the allow-list, with allowed attributes."""
    chance = random.Random(64)
    for _ in range(4_000):
        text = "".join(chance.choices(PIECES, k=chance.randrange(1, 30)))
        date = chance.choice((STRICT, OLD, FENCED, NEW))
        html = Renderer(MATHEMATICS, "$", marks_formulas=True).render(text, date)
        assert not re.search("[\U0010f000-\U0010ffff]", html), (text, html)
        for start in re.finditer("<", html):
            match = WHOLE_TAG.match(html, start.start())
            assert match, (text, html)
            attributes = dict(re.findall(r'([a-z]+)="([^"]*)"', match["attributes"]))
            assert attributes.keys() <= ATTRIBUTES[match["name"].lower()], (text, html)
            for name in ("href", "src"):
                address = attributes.get(name, "/")
                assert re.match(r"(?:https?|ftp)://|/", address), (text, html)


HARD = [
    "*", "_", "[", "`", ">", "<", "![", "**a ", "*a ", "a**", "[a](", "[a][", "![a]", '[a](b "',
    "`a``", '<a href="', "<div>\n", "<p ", "<!--", "- ", "-\n", "- a\n\n", "> > ", "> - ", "# #",
    "[a]: ", "[\n", "http://", "<http:", "&", "\\", "$", "$$a", "\\begin{a}", "{", "    ", "~~~\n",
    "<b>", "</b>", "<b></i>", "|a", "a|b\n---|---\n", "(", "[[a]", "[a]([", "[tag:", "a  \n", "://",
    "<pre>\n", "<img src=\"http://", "<!-- \n\n", "<?", "a_", "1.\n", "<ins>\n",
    "http://a.", "http://a(", "http://a)", "a*a ",
]  # fmt: skip


@pytest.mark.parametrize("date", [STRICT, FENCED, pytest.param(NEW, marks=pytest.mark.long)])
def test_hard_texts_take_no_quadratic_time(date: str) -> None:
    """Eight times the text takes about eight times as long; quadratic time would be 64 times."""

    def seconds(text: str) -> float:
        start = time.thread_time()
        render(text, date, MATHEMATICS)
        return time.thread_time() - start + 0.001

    for piece in HARD:
        text = piece * (1_000 // len(piece))
        ratio = min(seconds(text * 8) / seconds(text) for _ in range(2))
        assert ratio < 32, piece


def test_an_address_with_a_number_too_long_for_python() -> None:
    address = f"https://beer.stackexchange.com/q/{'5' * 5000}"
    assert render(f"<{address}>") == f'<p><a href="{address}">{address}</a></p>\n'
