"""Bodies and comments -> HTML that is safe to show: sanitized, links made local, code highlighted.

What nh3 lets through is written by nh3, so that what follows may go by its form.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import nh3
from markupsafe import Markup

from so2docs.sqlite.rows import is_html

LocalLink = Callable[[str], str | None]

# fmt: off
_TAGS = {
    "a", "abbr", "b", "blockquote", "br", "code", "dd", "del", "div", "dl", "dt", "em", "h1",
    "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "ins", "kbd", "li", "ol", "p", "pre", "q",
    "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "table", "tbody", "td",
    "tfoot", "th", "thead", "tr", "u", "ul", "var",
}
# fmt: on
_ATTRIBUTES = {
    "a": {"href", "title"},
    "img": {"src", "alt", "title"},
    "pre": {"class"},
    "code": {"class"},
    "ol": {"start"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan"},
}
_MOST_CODE = 20_000
_POST = re.compile(
    r"/(?:questions|q)/(\d{1,18})(?:/[^/#?]*)?(?:/(\d{1,18}))?/?(?:\?[^#]*)?(?:#.*)?"
)
_ANSWER = re.compile(r"/a/(\d{1,18})(?:/\d+)?/?(?:\?[^#]*)?(?:#.*)?")
_LANGUAGE = re.compile(r"\blang-([\w+#.-]+)")
_CODE = re.compile(r'<pre(?: class="([^"]*)")?><code(?: class="([^"]*)")?>([^<]*)</code></pre>')
_IMAGE = re.compile(r"<img\b[^>]*>")
_ATTRIBUTE = re.compile(r'\b(src|alt)="([^"]*)"')
_HEADING = re.compile(r"<(/?)h[1-6]>")
_TABLE = re.compile(r"<(/?)table>")
_NEVER_HIGHLIGHTED = {"none", "default", "text"}
# `code`, [text](address), an address: all the Markdown of comments that is common.
_IN_COMMENT = re.compile(
    r"(?P<tick>`+)(?P<code>.+?)(?P=tick)"
    r"|\[(?P<text>[^\[\]]+)\]\((?P<to>https?://[^\s()]+(?:\([^\s()]*\))?[^\s()]*)[^)]*\)"
    r"|(?P<bare>https?://[^\s<>\"']+[^\s<>\"'.,;:!?)])"
    r"|\*\*(?P<strong>[^*]+)\*\*"
)


@dataclass(frozen=True, slots=True)
class Renderer:
    """Makes the HTML of one page.

    Attributes:
        host: The site's address, which links without one are meant for; None if nobody knows it.
        local: The place of an address in the reader, if the post is in the database.
        images: Whether images are loaded, from wherever they are.
        tags: Of the question: a guess at the language of its code.
    """

    host: str | None
    local: LocalLink
    images: bool = False
    tags: tuple[str, ...] = ()

    def body(self, body: str | None) -> Markup:
        """A body; one that is no HTML as text with its line breaks."""
        if not body:
            return Markup("")
        if not is_html(body):
            return Markup('<div class="plain">{}</div>').format(body)
        safe = nh3.clean(
            body,
            tags=_TAGS,
            clean_content_tags={"script", "style", "iframe", "object", "svg", "math", "template"},
            attributes=_ATTRIBUTES,
            attribute_filter=self._attribute,
            url_schemes={"http", "https", "mailto"},
            link_rel="noopener noreferrer nofollow",
        )
        safe = _HEADING.sub(lambda m: f"<{m[1]}p{'' if m[1] else ' class=heading'}>", safe)
        safe = _TABLE.sub(
            lambda m: "</table></div>" if m[1] else '<div class="scroll" tabindex="0"><table>', safe
        )
        safe = _IMAGE.sub(self._image, safe)
        return Markup(_CODE.sub(self._code, safe))

    def comment(self, text: str | None) -> Markup:
        """A comment, which is text with a little Markdown."""
        text = text or ""
        parts: list[Markup] = []
        end = 0
        for found in _IN_COMMENT.finditer(text):
            parts.append(Markup.escape(text[end : found.start()]))
            end = found.end()
            if found["code"]:
                parts.append(Markup("<code>{}</code>").format(found["code"].strip()))
            elif found["strong"]:
                parts.append(Markup("<strong>{}</strong>").format(found["strong"]))
            else:
                address = found["to"] or found["bare"]
                href = self._address(address) or "#"
                link = Markup('<a href="{}" rel="noopener noreferrer nofollow">{}</a>')
                parts.append(link.format(href, found["text"] or address))
        return Markup("").join([*parts, Markup.escape(text[end:])])

    def _attribute(self, tag: str, name: str, value: str) -> str | None:
        if name == "class":
            language = _LANGUAGE.search(value)
            return f"lang-{language[1]}" if language else None
        if name in ("href", "src"):
            return self._address(value)
        if name in ("start", "colspan", "rowspan"):
            return value if re.fullmatch(r"\d{1,4}", value) else None
        return value

    def _address(self, value: str) -> str | None:
        """An absolute address, or one in the reader; None for what leads nowhere."""
        value = value.strip()
        if value.lower().startswith("mailto:"):
            return value
        if value.startswith("//"):
            value = f"https:{value}"
        elif value.startswith("/") and self.host:
            value = f"https://{self.host}{value}"
        try:
            parts = urlsplit(value)
        except ValueError:
            return None
        if parts.scheme.lower() not in ("http", "https") or not parts.netloc:
            return None
        return self.local(value) or value

    def _image(self, found: re.Match[str]) -> str:
        attributes = dict(_ATTRIBUTE.findall(found[0]))
        source, alt = attributes.get("src", ""), attributes.get("alt", "") or "image"
        if self.images and source:
            return f'<img src="{source}" alt="{alt}" loading="lazy" referrerpolicy="no-referrer">'
        return f'<span class="image" title="{source}">{alt}</span>'

    def _code(self, found: re.Match[str]) -> str:
        language = _LANGUAGE.search(f"{found[1] or ''} {found[2] or ''}")
        names = (language[1],) if language else self.tags
        code = html.unescape(found[3])
        made = _highlighted(code, names) if len(code) <= _MOST_CODE else None
        return f'<pre tabindex="0"><code>{found[3] if made is None else made}</code></pre>'


def local_links(host: str | None, question_of: Callable[[int], int | None], base: str) -> LocalLink:
    """What turns addresses of posts on the site into their places in the reader.

    Args:
        host: The site's address.
        question_of: The question of a post; None if there is no such post.
        base: What the paths of the reader start with.
    """

    def local(address: str) -> str | None:
        if host is None:
            return None
        parts = urlsplit(address)
        if (parts.hostname or "").removeprefix("www.") not in _names_of(host):
            return None
        path = parts.path + (f"#{parts.fragment}" if parts.fragment else "")
        if found := _ANSWER.fullmatch(path):
            post_id = int(found[1])
        elif found := _POST.fullmatch(path):
            post_id = int(found[2] or found[1])
        else:
            return None
        question_id = question_of(post_id)
        if question_id is None:
            return None
        end = "" if question_id == post_id else f"#answer-{post_id}"
        return f"{base}/questions/{question_id}{end}"

    return local


def _names_of(host: str) -> set[str]:
    """The addresses that a site has had: meta sites had their names the other way round."""
    old = re.fullmatch(r"(.+)\.meta\.stackexchange\.com", host)
    return {host, f"meta.{old[1]}.stackexchange.com"} if old else {host}


def _highlighted(code: str, names: tuple[str, ...]) -> str | None:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter

    lexer = next((found for name in names if (found := _lexer(name.lower()))), None)
    if lexer is None:
        return None
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True))).rstrip("\n")


@cache
def _lexer(name: str) -> Any:
    """The lexer of a language, by the name that tags and classes have for it."""
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    if name in _NEVER_HIGHLIGHTED:
        return None
    name = re.sub(r"-\d[\d.x]*$", "", name)
    try:
        return get_lexer_by_name(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
