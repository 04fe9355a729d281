"""Render Markdown as MarkdownSharp did, the converter of the sites until June 2020.

Like Markdown.pl, it replaces one kind of block after another in the whole text, so that a later
step sees the HTML of the earlier ones. The time is linear in the length of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable

from so2docs.extensions.as_of.addresses import link_addresses
from so2docs.extensions.as_of.emphasis import render_emphasis
from so2docs.extensions.elements import MADE

_MOST_DEPTH = 16
"""Maximum nesting depth of lists and quotations; deeper ones are text."""

_PRIVATE = 0x10F000
"""First of the private code points that stand for escaped characters."""
_ADDRESS_SIGN = "\U0010f801"
"""Stands for `://` where it starts no address."""
_BLOCK, _BLOCK_END = "\U0010f802", "\U0010f803"
_ADDRESSES_ENCODED_UNTIL = "2014-03-01"
"""Until then, special characters in addresses of links were encoded."""
_STRICT_UNTIL = "2015-01-01"
"""Until then, there was no emphasis inside of words."""
_FENCES_SINCE = "2019-01-01"
_FENCE = re.compile(r"(`{3,}|~{3,})[^`\n]*$")
_MOST_FENCED = 5_000

_ESCAPED = re.compile("[\U0010f000-\U0010f0ff]")
_BLOCK_KEY = re.compile(f"{_BLOCK}(\\d+){_BLOCK_END}")

_BLOCK_TAGS = (
    "p|div|h[1-6]|blockquote|pre|table|dl|ol|ul|address|script|noscript|form|fieldset|iframe|math"
)
_ATTRIBUTES = r"(?:\s[^<>]{0,1000}+)?"
_HTML_LINE = re.compile(
    rf"^(?:<(?P<tag>{_BLOCK_TAGS})(?=[\s>]){_ATTRIBUTES}>"
    rf"|<(?P<either>ins|del)(?=[\s>]){_ATTRIBUTES}> *\n"
    rf"| {{0,3}}<(?P<hr>hr)\b{_ATTRIBUTES}/?> *(?=\n\n|\n?\Z)"
    r"| {0,3}(?P<comment><!--))",
    re.MULTILINE,
)
_HTML_TAG = re.compile(rf"<(?:(/)({_BLOCK_TAGS}|ins|del)\s*|({_BLOCK_TAGS}|ins|del){_ATTRIBUTES})>")
_AFTER_COMMENT = re.compile(r" *(?=\n\n|\n?\Z)")
_AFTER_TAG = re.compile(r" *(?=\n|\Z)")

_DEFINITION = re.compile(
    r"^ {0,3}\[([^\[\]]+)\]: *+\n? *+<?(\S+?)>? *\n? *(?:(?<=\s)[\"(](.+?)[\")] *)?(?:\n+|\Z)",
    re.MULTILINE,
)
_SETEXT = re.compile(r"^(.*[^ \n]) *\n(=++|-++) *\n+", re.MULTILINE)
_ATX = re.compile(r"^(#.*)\n+", re.MULTILINE)
_RULE = re.compile(r"^ {0,3}([-*_])(?: {0,2}\1){2,}+ *$", re.MULTILINE)
_ITEM = re.compile(r"( {0,3})([*+-]|\d+[.]) ")
_MARKERS = {"ul": r"[*+-] ", "ol": r"\d+[.] "}
_QUOTE = re.compile(r" *>.")
_QUOTE_SIGN = re.compile(r"^ *> ?", re.MULTILINE)
_BLANK_LINE = re.compile(r"^ +$", re.MULTILINE)
_SPOILER_SIGN = re.compile(r"^! ?", re.MULTILINE)
_PRE = re.compile(r"(\s*<pre>.+?</pre>)", re.DOTALL)
_OUTDENT = re.compile(r"^ {1,4}", re.MULTILINE)
_LINE_START = re.compile("^", re.MULTILINE)
_PARAGRAPHS = re.compile(r"\n{2,}")

_TICKS = re.compile("`+")
_TAG = re.compile(r"<[A-Za-z/!$][^<>]*+>")
_CODE_TAG = re.compile(r"(?<=.)</?code>(?=.)")
_BACKSLASH = re.compile(r"\\([\\`*_{}\[\]()>#+.!/:-])")
_IN_CODE = re.compile(r"[&<>\\*_{}\[\]]")
_PROBLEMATIC = re.compile(r"[\"'*()[\]$]|:(?![0-9/]|$)")
_AMPERSAND = re.compile(r"&(?!(?:#[0-9]+|#[xX][a-fA-F0-9]+|[a-zA-Z][a-zA-Z0-9]*);)")
_ANGLE = re.compile(r"<(?![A-Za-z/?$!])")
_BREAK = re.compile(r" {2,}\n")


def _nested(start: str, end: str, text: str) -> str:
    """Return a pattern of text with balanced brackets, at most six levels deep."""
    pattern = f"{text}*+"
    for _ in range(6):
        pattern = rf"{text}*+(?:{start}{pattern}{end}{text}*+)*+"
    return pattern


_BRACKETS = _nested(r"\[", r"\]", r"[^\[\]]")
_PARENTHESES = _nested(r"\(", r"\)", r"[^()\s]")
_TITLE = r" *+((['\"])(.{0,1000}?)\5 *)?"
_TO_REFERENCE = r" ?(?:\n *+)?\[([^\]\n]*+)\]"
_IMAGE_REFERENCE = re.compile(rf"!\[([^\n]{{0,300}}?)\]{_TO_REFERENCE}")
_IMAGE = re.compile(rf"(!)\[([^\n]{{0,300}}?)\]\s?\( *+({_PARENTHESES}){_TITLE}\)")
_LINK_REFERENCE = re.compile(rf"\[({_BRACKETS})\]{_TO_REFERENCE}")
_LINK = re.compile(rf"()\[({_BRACKETS})\]\( *+({_PARENTHESES}){_TITLE}\)")
_SHORTCUT = re.compile(r"\[([^\[\]]+)\]")


def render(markdown: str, date: str) -> str:
    """Render a text to HTML, which is not yet sanitized.

    Args:
        markdown: Text without private code points of plane 16.
        date: Date of the text, on which some rules depend.
    """
    document = _Document(date)
    # Expand tabs, and empty blank lines.
    lines = re.split(r"\r\n?|\n", markdown)
    text = "\n".join(line.expandtabs(4) if line.strip(" \t") else "" for line in lines) + "\n\n\n"
    if date >= _FENCES_SINCE and ("```" in text or "~~~" in text):
        text = document.hide_fences(text)
    text = document.hide_html_blocks(text)
    text = _DEFINITION.sub(document.define, text)
    text = document.render_blocks(text)
    return _ESCAPED.sub(lambda match: chr(ord(match[0]) - _PRIVATE), text) + "\n"


class _Document:
    """A text that is rendered: its definitions of links, and its finished blocks."""

    def __init__(self, date: str) -> None:
        self._encodes_addresses = date < _ADDRESSES_ENCODED_UNTIL
        self._is_strict = date < _STRICT_UNTIL
        self._addresses: dict[str, str] = {}
        self._titles: dict[str, str] = {}
        self._blocks: list[str] = []
        self._depth = self._list_depth = 0

    def define(self, match: re.Match[str]) -> str:
        """Note the definition of a link, and return the empty text that replaces it."""
        name = match[1].lower()
        self._addresses[name] = _escape_text(match[2])
        if match[3]:
            self._titles[name] = match[3].replace('"', "&quot;")
        return ""

    def _hide(self, html: str) -> str:
        self._blocks.append(html)
        return f"\n\n{_BLOCK}{len(self._blocks) - 1}{_BLOCK_END}\n\n"

    def _show(self, text: str) -> str:
        """Put hidden blocks back, which may contain others."""
        while _BLOCK in text:
            text = _BLOCK_KEY.sub(lambda match: self._blocks[int(match[1])], text)
        return text

    def hide_fences(self, text: str) -> str:
        """Replace fenced code, which is never inside of lists or quotations, by keys."""

        def hide(lines: list[str]) -> str:
            code = _encode_code("\n".join(lines[1:-1]))
            return self._hide(f"<pre><code>{code}\n</code></pre>")

        return _replace_lines(text, _find_fence_end, hide)

    def hide_html_blocks(self, text: str) -> str:
        """Replace HTML blocks, which start and end at a line, by keys."""
        if "<" not in text:
            return text
        ends = _match_tags(text)
        parts, at, start = list[str](), 0, 0
        while match := _HTML_LINE.search(text, start):
            start, end = match.end(), -1
            if match["hr"]:
                end = match.end()
            elif match["comment"]:
                if not match.start() or text[match.start() - 2 : match.start()] == "\n\n":
                    end = _find_comment_end(text, match.end())
            elif (end := ends.get(match.start(), -1)) >= 0:
                after = _AFTER_TAG.match(text, end)
                end = after.end() if after else -1
            if end >= 0:
                parts += text[at : match.start()], self._hide(text[match.start() : end])
                at = start = end
        return "".join((*parts, text[at:]))

    def render_blocks(self, text: str, *, shows: bool = True, has_paragraphs: bool = True) -> str:
        """Render blocks.

        Args:
            text: The text, which ends with a line break.
            shows: Whether finished blocks are put back.
            has_paragraphs: Whether paragraphs become elements; False in a list without blank lines.
        """
        self._depth += 1
        text = _SETEXT.sub(self._render_setext, text)
        text = _ATX.sub(self._render_atx, text)
        text = _RULE.sub("<hr>\n", text)
        if self._depth <= _MOST_DEPTH:
            text = _replace_lines(text, self._find_list_end, self._render_list)
        if "    " in text:
            text = _replace_lines(text, _find_code_end, _render_code)
        if self._depth <= _MOST_DEPTH and ">" in text:
            text = _replace_lines(text, _find_quotation_end, self._render_quotation)
        text = self.hide_html_blocks(text)
        paragraphs = _PARAGRAPHS.split(text.strip("\n"))
        for number, paragraph in enumerate(paragraphs):
            if _BLOCK in paragraph:
                paragraphs[number] = self._show(paragraph) if shows else paragraph
            else:
                html = self.render_inline(paragraph)
                paragraphs[number] = f"<p>{html.lstrip(' ')}</p>" if has_paragraphs else html
        self._depth -= 1
        return "\n\n".join(paragraphs)

    def _render_setext(self, match: re.Match[str]) -> str:
        level = 1 if match[2][0] == "=" else 2
        return f"<h{level}>{self.render_inline(match[1])}</h{level}>\n\n"

    def _render_atx(self, match: re.Match[str]) -> str:
        line = match[1]
        level = min(len(line) - len(line.lstrip("#")), 6)
        if level == len(line):
            level -= 1
        if not level:
            return match[0]
        rest = line[level:].lstrip(" ") or " "
        heading = rest.rstrip("#").rstrip(" ") or rest[0]
        return f"<h{level}>{self.render_inline(heading)}</h{level}>\n\n"

    def _find_list_end(self, lines: list[str], number: int) -> int:
        """Find the first line after a list: one at the margin after a blank line, and no item."""
        # A list that starts the text may follow one line break.
        can_start = self._list_depth > 0 or not number or not lines[number - 1]
        if not can_start or not _ITEM.match(lines[number]):
            return 0
        is_empty = not lines[number].lstrip(" ").lstrip("*+-.0123456789").strip(" ")
        # A blank line after an empty item does not end the list.
        for end in range(number + (3 if is_empty else 1), len(lines)):
            line = lines[end]
            if line and not lines[end - 1] and line[0] != " " and not _ITEM.match(line):
                return end
        return len(lines)

    def _render_list(self, lines: list[str]) -> str:
        match = _ITEM.match(lines[0])
        assert match
        kind = "ul" if match[2] in "*+-" else "ol"
        typed = match[2][:-1]
        has_start = kind == "ol" and len(typed) < 10 and int(typed) > 1
        start = f' start="{int(typed)}"' if has_start else ""
        return f"<{kind}{start}>\n{self._render_items(lines, kind)}</{kind}>\n"

    def _render_items(self, lines: list[str], kind: str) -> str:
        """Render the items of a list, given its lines."""
        self._list_depth += 1
        while lines and not lines[-1]:
            lines.pop()
        items, number, is_after_blank = list[str](), 0, False
        marker = re.compile(_MARKERS[kind])
        while number < len(lines):
            indent = len(lines[number]) - len(lines[number].lstrip(" "))
            match = marker.match(lines[number], indent)
            assert match
            first = lines[number][match.end() :].lstrip(" ")
            end = number + 1
            while end < len(lines) and not (
                _starts_item(lines[end], indent, marker) and (first or end > number + 1)
            ):
                end += 1
            is_last = end == len(lines) == number + 1
            if is_last and not first and match.end() == len(lines[number]):
                items.append(lines[number] + "\n")  # The sites showed such a marker as text.
                break
            item = "\n".join((first, *lines[number + 1 : end])) + "\n"
            ends_blank = item.endswith("\n\n")
            is_loose = "\n\n" in item or is_after_blank
            is_after_blank = ends_blank
            html = self.render_blocks(
                _OUTDENT.sub("", item) + "\n", shows=False, has_paragraphs=is_loose
            )
            items.append(f"<li>{html}</li>\n")
            number = end
        self._list_depth -= 1
        return "".join(items)

    def _render_quotation(self, lines: list[str]) -> str:
        text = "\n".join((*lines, ""))
        text = _BLANK_LINE.sub("", _QUOTE_SIGN.sub("", text))
        spoiler = ""
        if text.startswith("!") and not text.startswith("!["):
            text, spoiler = _SPOILER_SIGN.sub("", text), f'{MADE} class="spoiler"'
        html = _LINE_START.sub("  ", self.render_blocks(text))
        html = _PRE.sub(lambda match: re.sub("^  ", "", match[1], flags=re.MULTILINE), html)
        return self._hide(f"<blockquote{spoiler}>\n{html}\n</blockquote>")

    def render_inline(self, text: str) -> str:
        """Render the text of a paragraph or heading."""
        text = _render_code_spans(text)
        if "<" in text:
            text = _TAG.sub(_escape_tag, text)
        text = _BACKSLASH.sub(lambda match: _escape(match[1]), text)
        if "[" in text:
            if "![" in text:
                text = _IMAGE_REFERENCE.sub(lambda m: self._refer(m, m[2] or m[1], _image), text)
                text = _IMAGE.sub(lambda match: _image(match[3], match[2], match[6]), text)
            text = _LINK_REFERENCE.sub(lambda m: self._refer(m, m[2] or m[1], self._link), text)
            text = _LINK.sub(lambda match: self._link(match[3], match[2], match[6]), text)
            text = _SHORTCUT.sub(
                lambda m: self._refer(m, re.sub(r" *\n *", " ", m[1]), self._link), text
            )
        text = link_addresses(text, _link_bare)
        text = _escape_text(text.replace(_ADDRESS_SIGN, "://"))
        if "*" in text or "_" in text:
            text = render_emphasis(text, is_strict=self._is_strict)
        return _BREAK.sub("<br>\n", text)

    def _link(self, address: str, text: str, title: str | None) -> str:
        text = text.replace("://", _ADDRESS_SIGN)
        address = _unwrap(address)
        if self._encodes_addresses:
            address = _PROBLEMATIC.sub(lambda match: f"%{ord(match[0]):x}", address)
        return f'<a href="{_encode_address(address)}"{_title(title)}>{text}</a>'

    def _refer(
        self, match: re.Match[str], name: str, make: Callable[[str, str, str | None], str]
    ) -> str:
        """Make a link or picture with the address that is defined for a name, if there is one."""
        name = name.lower()
        if name not in self._addresses:
            return match[0]
        return make(self._addresses[name], match[1], self._titles.get(name))


def _replace_lines(
    text: str, find_end: Callable[[list[str], int], int], render: Callable[[list[str]], str]
) -> str:
    """Replace runs of lines.

    Args:
        text: The text.
        find_end: Returns the line after a run that starts at a line; 0 if none starts there.
        render: Returns the text in place of a run.
    """
    lines, done, number = text.split("\n"), list[str](), 0
    while number < len(lines):
        end = find_end(lines, number)
        done.append(render(lines[number:end]) if end else lines[number])
        number = end or number + 1
    return "\n".join(done)


def _find_comment_end(text: str, start: int) -> int:
    """Find the end of a comment, which contains no `--` and ends before a blank line; else -1.

    Args:
        text: The text.
        start: Index after `<!--`.
    """
    if text.startswith(">", start):
        return -1
    if text.startswith("-", start) and not text.startswith(("->", "-->"), start):
        start += 2
    end = text.find("--", start)
    if end < 0 or not text.startswith("-->", end):
        return -1
    after = _AFTER_COMMENT.match(text, end + 3)
    return after.end() if after else -1


def _find_fence_end(lines: list[str], start: int) -> int:
    """Find the line after fenced code of at most `_MOST_FENCED` lines."""
    if match := _FENCE.match(lines[start]):
        fence = match[1]
        for number in range(start + 1, min(len(lines), start + _MOST_FENCED)):
            if lines[number].startswith(fence) and not lines[number].strip(f"{fence[0]} "):
                return number + 1
    return 0


def _find_code_end(lines: list[str], number: int) -> int:
    """Find the line after indented code, which follows a blank line."""
    if not lines[number].startswith("    ") or (number and lines[number - 1]):
        return 0
    while number < len(lines) and (lines[number].startswith("    ") or not lines[number]):
        number += 1
    return number


def _render_code(lines: list[str]) -> str:
    code = _OUTDENT.sub("", "\n".join(lines)).strip("\n")
    return f"\n<pre><code>{_encode_code(code)}\n</code></pre>\n\n"


def _find_quotation_end(lines: list[str], start: int) -> int:
    """Find the line after the paragraphs of a quotation."""
    end = start
    while end < len(lines) and _QUOTE.match(lines[end]):
        while end < len(lines) and lines[end]:
            end += 1
        while end < len(lines) and not lines[end]:
            end += 1
    return end if end > start else 0


def _match_tags(text: str) -> dict[int, int]:
    """Find the end of each element of block tags, by its start."""
    ends: dict[int, int] = {}
    starts: defaultdict[str, list[int]] = defaultdict(list)
    for match in _HTML_TAG.finditer(text):
        if not match[1]:
            starts[match[3]].append(match.start())
        elif starts[match[2]]:
            ends[starts[match[2]].pop()] = match.end()
    return ends


def _starts_item(line: str, indent: int, marker: re.Pattern[str]) -> bool:
    """Whether a line has a marker at an indent."""
    is_indented = len(line) > indent and not line[:indent].strip(" ")
    return is_indented and marker.match(line, indent) is not None


def _escape(text: str) -> str:
    return "".join(chr(_PRIVATE + ord(sign)) for sign in text)


def _encode_code(code: str) -> str:
    names = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
    return _IN_CODE.sub(lambda match: names.get(match[0]) or _escape(match[0]), code)


def _render_code_spans(text: str) -> str:
    runs = list(_TICKS.finditer(text))
    places: defaultdict[int, list[int]] = defaultdict(list)
    for run in runs:
        places[len(run[0])].append(run.start())
    parts, at = list[str](), 0
    for run in runs:
        start = run.start()
        if start < at or text[start - 1 : start] == "\\":
            continue
        same = places[len(run[0])]
        after = bisect_left(same, run.end())
        if after < len(same):
            code = _encode_code(text[run.end() : same[after]].strip(" "))
            parts += text[at:start], f"<code>{code.replace('://', _ADDRESS_SIGN)}</code>"
            at = same[after] + len(run[0])
    return "".join((*parts, text[at:]))


def _escape_tag(match: re.Match[str]) -> str:
    tag = match[0].replace("\\", _escape("\\"))
    if tag.startswith("<!"):
        tag = tag.replace("/", _escape("/"))
    tag = _CODE_TAG.sub(_escape("`"), tag)
    return _escape_emphasis(tag)


def _escape_emphasis(text: str) -> str:
    return text.replace("*", _escape("*")).replace("_", _escape("_"))


def _escape_text(text: str) -> str:
    if "&" in text:
        text = _AMPERSAND.sub("&amp;", text)
    return _ANGLE.sub("&lt;", text)


def _encode_attribute(text: str) -> str:
    for sign, name in (">", "&gt;"), ("<", "&lt;"), ('"', "&quot;"), ("'", "&#39;"):
        text = text.replace(sign, name)
    return text


def _encode_address(address: str) -> str:
    return re.sub(r"[*_:()\[\]]", lambda match: _escape(match[0]), _encode_attribute(address))


def _link_bare(address: str) -> str:
    return f'<a href="{_encode_address(address)}">{address}</a>'


def _title(title: str | None) -> str:
    return f' title="{_escape_emphasis(_encode_attribute(title))}"' if title else ""


def _unwrap(address: str) -> str:
    return address[1:-1] if address.startswith("<") and address.endswith(">") else address


def _image(address: str, text: str, title: str | None) -> str:
    text = re.sub(r"[*_\[\]()]", lambda match: _escape(match[0]), _encode_attribute(text))
    return f'<img src="{_encode_address(_unwrap(address))}" alt="{text}"{_title(title)}>'
