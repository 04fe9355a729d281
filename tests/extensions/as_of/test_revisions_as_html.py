"""Markdown of revisions as HTML, by the rules of their time and with the habits of the sites."""

import json
import random
import re
import time
from itertools import pairwise

import pytest
from support.golden import THREADS, compare

from so2docs.extensions.as_of.rendering import Renderer
from so2docs.extensions.elements import ATTRIBUTES
from so2docs.extensions.formulas import formula_sign

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


def squeeze(html: str) -> str:
    """Remove white space between elements, and the slash of empty elements, which vary."""
    html = re.sub(r"(?<=>)\s*\n\s*(?=<)|\s+$|^\s+", "", html.replace(" />", ">"))
    return re.sub(r"\s*\n\s*", " ", html)


def test_markdown_of_each_time() -> None:
    """A line of the reviewed file has a Markdown text, and its HTML from each date on."""
    lines = []
    for line in (THREADS / "revisions.jsonl").read_text(encoding="utf-8").splitlines():
        markdown = json.loads(line)["markdown"]
        html = {date: render(markdown, date) for date in (STRICT, OLD, FENCED, NEW)}
        new = [STRICT, *(b for a, b in pairwise(html) if html[a] != html[b])]
        values = {"markdown": markdown, **{date: html[date] for date in new}}
        lines.append(json.dumps(values, ensure_ascii=False) + "\n")
    compare("".join(lines), "revisions.jsonl")


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
        assert any(seconds(text * 8) < 32 * seconds(text) for _ in range(2)), piece


def test_numbers_too_long_for_python() -> None:
    digits = "5" * 5000
    address = f"https://beer.stackexchange.com/q/{digits}"
    assert render(f"<{address}>") == f'<p><a href="{address}">{address}</a></p>\n'
    assert render(f"{digits}. a", OLD) == "<ol>\n<li>a</li>\n</ol>\n"
