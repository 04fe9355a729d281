"""Render the Markdown of revisions to HTML, as the sites did on the day of the revision.

Until June 2020, the sites used MarkdownSharp; since then, they follow CommonMark. What both have in
common are the habits of the sites: formulas, tags, languages of code, and the HTML that they keep.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote

from so2docs.extensions.as_of import common_mark, markdown_sharp
from so2docs.extensions.as_of.hidden_formulas import HiddenFormulas
from so2docs.extensions.elements import MADE, sanitize

FindTitle = Callable[[str, int], str | None]
"""Function that returns the title of a question or of the question of an answer, as HTML text,
given the host and the id in an address; None if unknown."""

# Days on which the sites changed, from dumps of that time.
_COMMONMARK_SINCE = "2020-06-01"
_TABLES_SINCE = "2020-11-23"
"""https://meta.stackexchange.com/q/356997."""
_IMAGES_BY_HTTPS_SINCE = "2017-03-01"
"""Images that are not available by HTTPS are shown as addresses since then, in all bodies."""
_AMAZON_COM_SINCE = "2019-01-01"

_RESERVED = re.compile("[\U0010f000-\U0010ffff]")
_CODE_OR_TAG = re.compile(r"(<(?:pre[ >].*?</pre|code>.*?</code|[^<>]*)>)", re.DOTALL)
_LANGUAGE = re.compile(r"<!-- language: (lang-[\w+#.-]+) -->\s*+<pre><code>")
_LANGUAGE_OF_ALL = re.compile(r"<!-- language-all: (lang-[\w+#.-]+) -->")
_SCHEMATIC = re.compile(
    r"!\[schematic\]\((https?://[\w./-]+)\)\s*+<!-- End schematic -->", re.ASCII
)
_TAG = re.compile(r"\[(meta-)?tag:([^\]\s<>\"]{1,100}+)\]", re.IGNORECASE)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_ADDRESS = re.compile(r'(?<=<a href=")[^"<>]*|(?<=<img src=")[^"<>]*')
_BARE_LINK = re.compile(
    r'<a href="https?://((?:[\w-]+\.)+(?:com|net))/(?:questions|q|a)/(\d{1,18})'
    r'(?:/[^"#]*?)?(?:#(\d+))?">(https?://[^<]*)</a>'
)
_IMAGE = re.compile(r'<img src="(http://([^"/]*)[^"]*)"(?:[^<>]*? alt="([^"]*)")?[^<>]*>')
_KEPT_HOST = re.compile(r"(?:^|\.)(?:stackexchange|stackoverflow|imgur)\.com$")
"""Hosts whose pictures stayed in the bodies typed before."""
_AMAZON = re.compile(
    r'(?<=<a href=")https?://(?:www\.)?amazon\.com/(?:[^"<>]*/)?(?:dp|gp/product)/(\w{10})[^"<>]*'
)


@dataclass(frozen=True, slots=True)
class Renderer:
    r"""Renders revisions of a site.

    Attributes:
        host: Host of the site; None if unknown.
        sign: Delimiter of formulas, `$` or `\$`; empty on sites without formulas.
        find_title: Finds titles; addresses of questions without a title remain addresses.
        marks_formulas: Whether formulas are in `span` elements, as in dumps since 2018.
        formulas_since: Date since which texts have formulas, on a site that is not known to have
            them, but whose bodies mark them: dollars may also be prices. Empty for other sites.
    """

    host: str | None = None
    sign: str = ""
    find_title: FindTitle = lambda host, post_id: None
    marks_formulas: bool = False
    formulas_since: str = ""

    def render(self, markdown: str, date: str = _COMMONMARK_SINCE, shown: str = "") -> str:
        """Render a body to HTML.

        Args:
            markdown: The body as typed.
            date: Date of the revision.
            shown: Date on which the body is shown; empty for the date of the revision.
        """
        text = _RESERVED.sub("", markdown.replace("\r\n", "\n"))
        formulas = None
        if self.sign and date >= self.formulas_since:
            formulas = HiddenFormulas(self.sign, may_be_prices=bool(self.formulas_since))
            text = formulas.hide(text)
        text = _SCHEMATIC.sub(_add_circuit_lab, text)
        if date < _COMMONMARK_SINCE:
            html = markdown_sharp.render(text, date)
        else:
            html = common_mark.make_parser(date >= _TABLES_SINCE).render(text)
        html = sanitize(_name_languages(html))
        html = self._complete(html, date, shown or date)
        return formulas.show(html, marks=self.marks_formulas) if formulas else html

    def _complete(self, html: str, date: str, shown: str) -> str:
        """Apply the habits of the sites to sanitized HTML."""
        if "<img" in html and shown >= _IMAGES_BY_HTTPS_SINCE:
            html = html.replace('src="http://i.stack.imgur.com', 'src="https://i.stack.imgur.com')
            is_older = date < _IMAGES_BY_HTTPS_SINCE
            html = _IMAGE.sub(partial(_show_address, is_older=is_older), html)
        if "amazon.com/" in html:
            folder = "com/" if date >= _AMAZON_COM_SINCE else ""
            html = _AMAZON.sub(rf"https://rads.stackoverflow.com/amzn/click/{folder}\1", html)
        if not html.isascii():
            html = _ADDRESS.sub(
                lambda match: _NOT_ASCII.sub(lambda part: quote(part[0]), match[0]), html
            )
        if "tag:" in html.lower():
            parts = _CODE_OR_TAG.split(html)
            parts[::2] = [_TAG.sub(self._link_tag, part) for part in parts[::2]]
            html = "".join(parts)
        if "</a>" in html:
            html = _BARE_LINK.sub(self._name_link, html)
        return html

    def _link_tag(self, match: re.Match[str]) -> str:
        name = match[2].lower()
        return (
            f'<a href="{self._tag_site(is_meta=bool(match[1]))}/questions/tagged/'
            f'{quote(name, safe=".#-").replace("%2B", "%2b")}" class="post-tag" '
            f'title="show questions tagged &#39;{name}&#39;" rel="tag">{name}</a>'
        )

    def _tag_site(self, *, is_meta: bool) -> str:
        """Return the start of addresses of tags: empty on the site of the tag itself."""
        host = self.host or ""
        labels = host.split(".")
        if host == "meta.stackexchange.com" or ("meta" in labels) == is_meta:
            return ""
        if not is_meta:
            labels.remove("meta")
        elif host.endswith(".stackexchange.com") or len(labels) > 2:
            labels.insert(1, "meta")
        else:
            labels.insert(0, "meta")
        return f"https://{'.'.join(labels)}" if host else "https://meta.stackexchange.com"

    def _name_link(self, match: re.Match[str]) -> str:
        title = self.find_title(match[1], int(match[2]))
        return match[0] if title is None else match[0].replace(f">{match[4]}<", f">{title}<")


def _show_address(image: re.Match[str], *, is_older: bool) -> str:
    """Replace a picture by its text and address, but keep those of some hosts in older bodies."""
    if is_older and _KEPT_HOST.search(image[2]):
        return image[0]
    return f"{image[3] or ''} {image[1]}"


def _name_languages(html: str) -> str:
    """Turn comments that name the language of code to classes."""
    if "<!-- language" not in html:
        return html
    start = f'<pre{MADE} class="{{}} prettyprint-override"><code>'
    html = _LANGUAGE.sub(lambda match: start.format(match[1]), html)
    if match := _LANGUAGE_OF_ALL.search(html):
        html = html.replace("<pre><code>", start.format(match[1]))
    return html


def _add_circuit_lab(match: re.Match[str]) -> str:
    """Add the link below a schematic, which the sites add to the picture."""
    address = quote(match[1], safe="").replace("%3A", "%3a").replace("%2F", "%2f")
    return (
        f"![schematic]({match[1]})\n\n"
        f'<sup><a href="/plugins/schematics?image={address}">simulate this circuit</a> \u2013 '
        'Schematic created using <a href="https://www.circuitlab.com/">CircuitLab</a></sup>\n\n'
    )
