"""Render the Markdown of revisions to HTML, as the sites do.

The sites follow CommonMark since June 2020, and have habits of their own. The program before
(MarkdownSharp) had other rules for lists, headings and quotations, and texts from that time keep
their meaning: they are changed here, so that CommonMark reads them as they were meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable

FindTitle = Callable[[str, int], str | None]
"""Function that returns the title of a question or of the question of an answer, as HTML text,
given the host and the id in an address; None if unknown."""

_COMMONMARK_SINCE = "2020-06-01"
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r"^((?:> ?)* {0,3}#{1,6})(?=[^#\s])")
_PARENTHESIS = re.compile(r"^((?:> ?)* {0,3}\d{1,9})\)(?=\s|$)")
_ITEM = re.compile(r"(?:> ?)* {0,3}(?:[-+*]|\d{1,9}[.])\s")
_MARKER = re.compile(r"([-+*]|[.])(?=\s)")
_QUOTE = re.compile(r" {0,3}>")
_INDENTED = re.compile(r" {4}|\t")
_INLINE_TAG = re.compile(
    r"^(?= {0,3}</?(?:a|b|br|code|del|em|i|img|kbd|s|strike|strong|sub|sup)\b)"
)
_SPOILER = re.compile(r"^( {0,3}>)!(?!\[) ?")
_DEFINITION = re.compile(r" {0,3}\[[^\]]+\]:\s*\S")
_TITLE_LINE = re.compile(r"(?:> ?)* {0,3}(?:#|=+\s*$|-+\s*$)")
_COMMENT = re.compile(r"^ {0,3}<!--.*?-->\s*$", re.MULTILINE | re.DOTALL)
_TAG = re.compile(r"\[(meta-)?tag:([^\]\s<>\"]+)\]")
_HERE = "\ue000"
"""Placeholder that keeps a line with an inline tag from starting a block of HTML."""

_SPOILED = "\ue001"
"""Placeholder at the start of a spoiler."""

_BARE_LINK = re.compile(
    r'<a href="https?://((?:[\w-]+\.)+com)/(?:questions|q|a)/(\d+)'
    r'(?:/[^"#]*?)?(?:#(\d+))?"(?: rel="nofollow")?>(https?://[^<]*)</a>'
)
_OTHER_LINK = re.compile(r'<a href="(?:http://|mailto:)([^"]*)">(?!https?://|ftp://)\1</a>')
_CODE = re.compile(r"(<pre[ >].*?</pre>|<code>.*?</code>)", re.DOTALL)
_STRONG = re.compile(r"<em><strong>(.*?)</strong></em>", re.DOTALL)


def render(
    markdown: str, date: str = _COMMONMARK_SINCE, find_title: FindTitle | None = None
) -> str:
    """Render a body to HTML.

    Args:
        markdown: The body as typed.
        date: Date of the revision.
        find_title: Finds titles; without it, addresses of questions remain addresses.
    """
    import cmarkgfm
    from cmarkgfm.cmark import Options

    text = markdown.replace("\r\n", "\n").replace(_HERE, "").replace(_SPOILED, "")
    is_old = date < _COMMONMARK_SINCE
    text = _prepare(_COMMENT.sub("", text), is_old=is_old)
    options = Options.CMARK_OPT_UNSAFE
    html: str = cmarkgfm.markdown_to_html_with_extensions(text, options, ["autolink"])
    html = html.replace(_HERE, "").replace(" />", ">").replace("&quot;", '"')
    html = re.sub(rf"<blockquote>\n<p>{_SPOILED}", '<blockquote class="spoiler">\n<p>', html)
    html = _OTHER_LINK.sub(r"\1", html.replace(_SPOILED, ""))
    if is_old:
        html = _STRONG.sub(r"<strong><em>\1</em></strong>", html)
    if "tag:" in html:
        parts = _CODE.split(html)
        parts[::2] = [_TAG.sub(_link_tag, part) for part in parts[::2]]
        html = "".join(parts)
    if find_title is not None and "</a>" in html:
        html = _BARE_LINK.sub(lambda match: _name_link(match, find_title), html)
    return html


def _prepare(text: str, *, is_old: bool) -> str:
    """Change lines outside of code that CommonMark would read otherwise."""
    lines: list[str] = []
    fence, starts, is_paragraph, was_quote = "", True, False, False
    for typed in text.split("\n"):
        line = typed
        match = _FENCE.match(line)
        if match and (not fence or match[1].startswith(fence)):
            fence = "" if fence else match[1]
        elif not fence and not _INDENTED.match(line):
            if starts:
                is_paragraph = not _ITEM.match(line)
            line = _SPOILER.sub(rf"\1 {_SPOILED}" if not was_quote else r"\1 ", line)
            line = _INLINE_TAG.sub(_HERE, line)
            if is_old:
                line = _read_as_before(line, is_paragraph=is_paragraph and not starts)
                if _QUOTE.match(line) and was_quote and not lines[-1].strip():
                    lines[-1] = ">"
                if _DEFINITION.match(line) and not starts and not _DEFINITION.match(lines[-1]):
                    lines.append("")
        is_blank = not line.strip()
        starts = is_blank or _TITLE_LINE.match(line) is not None
        was_quote = bool(_QUOTE.match(line)) or (was_quote and is_blank)
        lines.append(line)
    return "\n".join(lines)


def _read_as_before(line: str, *, is_paragraph: bool) -> str:
    """Change a line of a text from before CommonMark; `is_paragraph` if it continues a paragraph.

    Headings needed no space, `1)` was no list, and a list could not interrupt a paragraph.
    """
    line = _HEADING.sub(r"\1 ", line)
    line = _PARENTHESIS.sub(r"\1\\)", line)
    if is_paragraph and _ITEM.match(line):
        line = _MARKER.sub(r"\\\1", line, count=1)
    return line


def _link_tag(match: re.Match[str]) -> str:
    host = "https://meta.stackexchange.com" if match[1] else ""
    return (
        f'<a href="{host}/questions/tagged/{match[2]}" class="post-tag" '
        f'title="show questions tagged &#39;{match[2]}&#39;" rel="tag">{match[2]}</a>'
    )


def _name_link(match: re.Match[str], find_title: FindTitle) -> str:
    title = find_title(match[1], int(match[2]))
    return match[0] if title is None else match[0].replace(f">{match[4]}<", f">{title}<")
