"""Render bodies, comments and titles as safe HTML. Pure functions.

nh3 sanitizes bodies; links to pages of this reader become local, code is highlighted, and formulas
become MathML. Every pattern takes linear time for any text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from typing import Any, Literal
from urllib.parse import urlsplit

import nh3
from markupsafe import Markup

from so2docs.escape import unescape
from so2docs.extensions.elements import ATTRIBUTES
from so2docs.extensions.formulas import pieces, sign_in
from so2docs.extensions.serve.links import AFTER_ADDRESS, Link, parse_link
from so2docs.extensions.serve.mathml import mathml
from so2docs.extensions.sqlite.texts import is_html

Kind = Literal["body", "comment", "title"]

# nh3 sets `rel` itself.
_ATTRIBUTES = {tag: {*names} - {"rel"} for tag, names in ATTRIBUTES.items()}
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")
_MOST_CODE = 5_000
"""Maximum number of characters of highlighted code; some lexers take quadratic time."""
_MOST_WORK = 200_000
"""Maximum product of the depth of a body and the number of its tags; a body with more is shown as
its source, because HTML parsers may repeat all open elements at each tag."""
_VOID = {"area", "br", "col", "hr", "img", "input", "wbr"}
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
# Matches output of nh3, where `<` and `>` in text and `"` in attributes are escaped.
_TOKEN = re.compile(r'<(?P<end>/?)(?P<name>[a-z][a-z0-9]*+)(?P<rest>(?:[^<>"]|"[^"]*+")*+)>')
_CODE = re.compile(r'<pre(?: class="([^"]*)")?><code(?: class="([^"]*)")?>([^<]*+)</code></pre>')
_ATTRIBUTE = re.compile(r'\b(src|alt)="([^"]*)"')
_LITERAL = {"pre", "code", "kbd", "samp"}
"""Elements without formulas."""
_ALIGNMENT = re.compile(r"\s*text-align\s*:\s*(left|center|right)\s*;?\s*")
_LANGUAGE = re.compile(r"\blang-([\w+#.-]+)")
_NEVER_HIGHLIGHTED = {"none", "default", "text"}
# The Markdown of comments: `code`, [text](URL), a URL, **strong**, *emphasis*. Comments have at
# most 600 characters; the limits here bound the time for longer texts from other programs.
_IN_COMMENT = re.compile(
    r"(?P<tick>`{1,5}+)(?P<code>.{1,600}?)(?<!`)(?P=tick)(?!`)"
    r"|\[(?P<text>[^\[\]]{1,600}+)\]\((?P<to>https?://[^\s()]{1,600}+"
    r"(?:\([^\s()]{0,300}+\)[^\s()]{0,300}+)?+)[^()]{0,200}+\)"
    r"|(?P<bare>https?://[^\s<>\"']{1,2000}+)"
    r"|\*\*(?=\S)(?P<strong>[^*]{1,600}+)(?<=\S)\*\*"
    r"|(?<![\w*])\*(?=[^\s*])(?P<em>[^*]{1,600}+)(?<=\S)\*(?![\w*])"
    r"|(?<!\w)_(?=[^\s_])(?P<em2>[^_]{1,600}+)(?<=\S)_(?!\w)",
    re.DOTALL,
)
_WITHOUT_FORMULAS = re.compile(
    r"(?P<tick>`{1,5}+).{1,600}?(?<!`)(?P=tick)(?!`)|https?://[^\s<>\"']{1,2000}+", re.DOTALL
)
_MARKS = str.maketrans({"\x02": "<mark>", "\x03": "</mark>"})
_NO_MARKS = str.maketrans("", "", "\x02\x03")


def remove_bidi_controls(text: str) -> str:
    """Replace the characters that reverse the direction of the following text with U+FFFD.

    Marks for the direction at one position (U+061C, U+200E, U+200F) stay, since Arabic and Hebrew
    posts need them.
    """
    return _TURNING.sub("\ufffd", text)


@dataclass(frozen=True, slots=True)
class Renderer:
    r"""Renders the texts of one page as HTML.

    Attributes:
        host: The site's host name, for links without a host; None if unknown.
        find_page: Finds the path in this reader of a linked post; None if the post is not here.
        images: Whether images are loaded from their URLs.
        tags: Tags of the question, which suggest the language of its code.
        sign: The delimiter of formulas, `$` or `\$`; empty for texts without formulas; None if
            each text decides.
    """

    host: str | None = None
    find_page: Callable[[Link], str | None] = lambda _: None
    images: bool = False
    tags: tuple[str, ...] = ()
    sign: str | None = None

    def render(self, kind: Kind, text: str) -> Markup:
        """Render a text as HTML; one that a library fails to convert is shown as its source."""
        text = remove_bidi_controls(text)
        if self.sign is None:
            return replace(self, sign=sign_in(text)).render(kind, text)
        try:
            if kind == "body":
                return Markup(self._body(text))
            if kind == "comment":
                return Markup("".join(self._comment(text)))
            return Markup("".join(self._with_formulas(text, mark_words)))
        except BaseException as error:  # Compiled libraries also raise other errors.
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            return plain(text)

    def _body(self, body: str) -> str:
        """Render a body as safe HTML; a plain-text body keeps its line breaks."""
        if not body:
            return ""
        if not is_html(body):
            return f'<div class="plain">{"".join(self._with_formulas(body, _escape))}</div>'
        if _is_costly(body):
            return plain(body)
        safe = nh3.clean(
            body,
            tags=set(ATTRIBUTES),
            clean_content_tags={"script", "style", "iframe", "object", "svg", "math", "template"},
            attributes=_ATTRIBUTES,
            attribute_filter=self._attribute,
            url_schemes={"http", "https", "mailto"},
            link_rel="noopener noreferrer nofollow",
        )
        return "".join(self._parts(remove_bidi_controls(safe)))

    def _parts(self, safe: str) -> Iterator[str]:
        """Yield the HTML of a sanitized body, with formulas, highlighted code and spoilers."""
        run: list[str] = []  # Text so far, up to a tag that ends any formula.
        spoilers: list[bool] = []  # For each open quotation, whether it is a spoiler.
        headings: list[int] = []  # The levels of the headings that enclose the current text.
        at = literal = 0
        while match := _TOKEN.search(safe, at):
            run.append(safe[at : match.start()])
            at = match.end()
            name = match["name"]
            if name == "br":
                run.append("\0")
                continue
            yield from self._run(run, is_literal=literal > 0)
            run = []
            if name == "pre" and (code := _CODE.match(safe, match.start())):
                yield self._code(code)
                at = code.end()
                continue
            if name in _LITERAL:
                literal += -1 if match["end"] else 1
            if name == "blockquote":
                yield _quotation(spoilers, match)
                continue
            if _HEADING.fullmatch(name):
                yield _heading(headings, match)
                continue
            yield self._tag(match)
        run.append(safe[at:])
        yield from self._run(run, is_literal=literal > 0)

    def _run(self, run: list[str], *, is_literal: bool) -> Iterator[str]:
        """Yield the HTML of text between tags; U+0000 marks a line break.

        Args:
            run: The pieces of the text.
            is_literal: Whether the text is in an element without formulas, such as code.
        """
        text = "".join(run)
        if is_literal or not self.sign or not ("$" in text or "\\" in text):
            yield text.replace("\0", "<br>")
            return
        for part in self._with_formulas(unescape(text), _escape):
            yield part.replace("\0", "<br>")

    def _with_formulas(
        self, text: str, render_text: Callable[[str], str], hidden: str | None = None
    ) -> Iterator[str]:
        """Yield the HTML of a text, with its formulas as MathML.

        Args:
            text: The text.
            render_text: Function that renders the text outside formulas.
            hidden: The text with U+0000 in place of code and URLs, so that no formulas are found in
                them; None if the text has neither.
        """
        if not self.sign:
            yield render_text(text)
            return
        at = 0
        for piece in pieces(text if hidden is None else hidden, self.sign):
            part, at = text[at : at + len(piece.text)], at + len(piece.text)
            if piece.tex is None:
                yield render_text(part.replace(r"\$", "$") if self.sign == "$" else part)
                continue
            tex = piece.tex.translate(_NO_MARKS).replace("\0", " ")
            formula = mathml(tex, is_block=piece.is_block)
            if formula is None:
                source = _escape(part.translate(_NO_MARKS))
                yield f'<span class="tex">{source}</span>'
            else:
                # A block scrolls if it is wider than the screen, so the keyboard must reach it.
                kind = 'formula block" tabindex="0' if piece.is_block else "formula"
                yield f'<span class="{kind}">{formula}</span>'

    def _tag(self, match: re.Match[str]) -> str:
        name, is_end = match["name"], bool(match["end"])
        if name == "table":
            return "</table></div>" if is_end else '<div class="scroll" tabindex="0"><table>'
        if name in ("td", "th"):
            # Do not use `style`, which the page's content security policy forbids.
            return match[0].replace(" style=", " align=")
        return self._image(match[0]) if name == "img" else match[0]

    def _comment(self, text: str) -> Iterator[str]:
        """Yield the HTML of a comment, which is text with some Markdown."""
        hidden = _WITHOUT_FORMULAS.sub(lambda m: "\0" * len(m[0]), text) if self.sign else None
        return self._with_formulas(text, lambda part: "".join(self._markdown(part)), hidden)

    def _markdown(self, text: str) -> Iterator[str]:
        at = 0
        while match := _IN_COMMENT.search(text, at):
            yield _escape(text[at : match.start()])
            at = match.end()
            if match["code"]:
                yield f"<code>{_escape(match['code'].strip())}</code>"
            elif match["strong"]:
                yield f"<strong>{_escape(match['strong'])}</strong>"
            elif emphasis := match["em"] or match["em2"]:
                yield f"<em>{_escape(emphasis)}</em>"
            else:
                address = match["to"] or match["bare"].rstrip(AFTER_ADDRESS)
                if match["bare"]:
                    at = match.start() + len(address)
                link = Markup('<a href="{}" rel="noopener noreferrer nofollow">{}</a>')
                href = self.address(address) or "#"
                yield str(link.format(href, match["text"] or address))
        yield _escape(text[at:])

    def _attribute(self, tag: str, name: str, value: str) -> str | None:
        if name == "class" and tag == "blockquote":
            return "spoiler" if "spoiler" in value.split() else None
        if name == "class":
            language = _LANGUAGE.search(value)
            return f"lang-{language[1]}" if language else None
        if name in ("href", "src"):
            return self.address(value)
        if name == "style":
            alignment = _ALIGNMENT.fullmatch(value)
            return alignment[1] if alignment else None
        if name in ("start", "width", "height"):
            return value if re.fullmatch(r"\d{1,4}", value) else None
        return value

    def address(self, value: str) -> str | None:
        """Convert a URL to a path in this reader or an absolute URL; None if it is invalid."""
        value = value.strip()
        if value.lower().startswith("mailto:"):
            return value
        if (link := parse_link(value, self.host)) and (page := self.find_page(link)):
            return page
        if value.startswith("//"):
            value = f"https:{value}"
        elif value.startswith("/") and self.host:
            value = f"https://{self.host}{value}"
        try:
            parts = urlsplit(value)
        except ValueError:
            return None
        is_web = parts.scheme.lower() in ("http", "https") and parts.netloc
        return value if is_web else None

    def _image(self, tag: str) -> str:
        attributes = dict(_ATTRIBUTE.findall(tag))
        source, alt = attributes.get("src", ""), attributes.get("alt", "") or "image"
        if self.images and source:
            return f'<img src="{source}" alt="{alt}" loading="lazy" referrerpolicy="no-referrer">'
        return f'<span class="image">{alt} <span class="where">{source}</span></span>'

    def _code(self, match: re.Match[str]) -> str:
        language = _LANGUAGE.search(f"{match[1] or ''} {match[2] or ''}")
        names = (language[1],) if language else self.tags
        code = unescape(match[3])
        html = _highlight(code, names) if len(code) <= _MOST_CODE else None
        return f'<pre tabindex="0"><code>{match[3] if html is None else html}</code></pre>'


_HEADING = re.compile(r"h[1-6]")


def _heading(levels: list[int], match: re.Match[str]) -> str:
    """Render a heading's start or end tag, below the page's headings and without skipped levels."""
    level = int(match["name"][1])
    if not match["end"]:
        while levels and levels[-1] >= level:
            levels.pop()
        levels.append(level)
    return f"<{match['end']}h{min(2 + len(levels), 6)}>"


def _quotation(spoilers: list[bool], match: re.Match[str]) -> str:
    """Render the start or end tag of a quotation; spoilers are collapsed."""
    if match["end"]:
        return "</blockquote></details>" if spoilers.pop() else "</blockquote>"
    spoilers.append("spoiler" in match["rest"])
    start = '<details class="spoiler"><summary>Spoiler</summary>' if spoilers[-1] else ""
    return f"{start}<blockquote>"


def _highlight(code: str, names: tuple[str, ...]) -> str | None:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter

    lexer = next((lexer_found for name in names if (lexer_found := _lexer(name.lower()))), None)
    if lexer is None:
        return None
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True))).rstrip("\n")


@cache
def _lexer(name: str) -> Any:
    """Find the lexer of a language by its name in a tag or class; None if there is none."""
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    if name in _NEVER_HIGHLIGHTED:
        return None
    name = re.sub(r"-\d[\d.x]*$", "", name)
    try:
        return get_lexer_by_name(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def _is_costly(body: str) -> bool:
    """Whether a parser may take long for a body; see `_MOST_WORK`."""
    tags = _TAG.findall(body)
    steps = (-1 if end else 1 for end, name in tags if name.lower() not in _VOID)
    return max(accumulate(steps), default=0) * len(tags) > _MOST_WORK


def plain(text: str) -> Markup:
    """Show a text as it is, with its line breaks."""
    return Markup('<div class="plain">{}</div>').format(text)


def mark_words(text: str) -> str:
    """Escape a text for HTML, with the words between U+0002 and U+0003 in `<mark>` elements."""
    return _escape(text).translate(_MARKS)


def _escape(text: str) -> str:
    return str(Markup.escape(text))
