"""Convert the HTML of bodies to CommonMark that renders as the same text and emphasis.

Tables and `~~` follow GitHub (https://github.github.com/gfm/); everything else follows CommonMark
(https://spec.commonmark.org/0.31.2/). Elements without Markdown syntax, such as `<sup>`, stay HTML,
as do tables with blocks in their cells, and emphasis where a parser would not recognize `*`. TeX
formulas and their delimiters stay unchanged, because programs that render them expect this.

Bodies come from the sanitizer of the site: balanced tags of a short list, without `<` and `>` in
attributes. The text of other HTML is not lost either, and conversion takes time proportional to the
length of a body.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

from so2docs.escape import remove_comments, unescape
from so2docs.extensions.formulas import pieces

_TOKEN = re.compile(r"<(/?[a-zA-Z][a-zA-Z0-9-]*+)([^<>]*+)>")
_ATTRIBUTE = re.compile(
    r"""(?<![\w-])([a-zA-Z-]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++))"""
)
_LANGUAGE = re.compile(r"(?:^|\s)lang(?:uage)?-([^\s]+)")
_BACKTICKS = re.compile("`+")

_SPACE = " \t\n\r\f\v"
_SPACES = re.compile(r"[ \t\n\r\f\v]{2,}|[\t\r\f\v]")
_SPECIAL = re.compile(r"[\\`*_<&~\]]")
_SPECIAL_IN_LINK = re.compile(r"[\\`*_<&~\[\]]")
_REFERENCE = re.compile(r"&(?:#?\w++;|$)")
_LINE = re.compile(
    r"(?:#{1,6}(?=[ \t]|$)|>|[-+*](?=[ \t]|$)|=+[ \t]*$|_[ _]*$|-[-: |]*$|[|:][-: |]*$)"
)
_NUMBERED = re.compile(r"(\d{1,9})([.)](?:[ \t]|$))")
_LINE_STARTS = frozenset("#>-+*=_|:0123456789")
_CLOSING_HASHES = re.compile(r"(?<=[ \t])(#+)$|^(#+)$")
_BREAK = "\0"
"""Placeholder for a line break until its block is complete; it cannot occur in XML."""
_FEED = "\1"
"""Placeholder for a line feed in a formula until its block is complete."""
_EMPTY_LINES = re.compile(r"\n[ \t\n\f\v]*\n")
_BLANK = _SPACE + _BREAK
_FEEDS = re.compile(r"(?<! ) ++\n[ \n]*+|\n[ \n]++")
"""Matches line feeds and the spaces around them; code and formulas have no line feeds by then."""
_BREAKS = re.compile(r"[ \t\n]*\0[ \t\n\0]*")

_EMPHASIS = {"em": "*", "i": "*", "strong": "**", "b": "**", "s": "~~", "strike": "~~", "del": "~~"}
_NAMES = {"*": "em", "**": "strong", "~~": "del"}
_RAW = frozenset(("sup", "sub", "kbd", "ins", "u", "small", "big", "mark"))
_BLOCKS = frozenset(
    (
        *("p", "div", "dl", "dt", "dd", "details", "summary", "center", "section", "article"),
        *("header", "footer", "figure", "figcaption", "main", "nav", "aside", "address", "form"),
        *("html", "body", "head", "thead", "tbody", "tr", "td", "th", "caption", "tfoot"),
    )
)
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_NOT_LEFT = {
    "/ul": ("blockquote",),
    "/ol": ("blockquote",),
    "/li": ("ul", "ol", "blockquote"),
    "/blockquote": (),
}
"""Containers that keep a closing tag from ending its element, if they are inside the element."""

_DEEPEST = 32
"""Maximum depth of nested lists, quotations and emphasis; deeper levels become plain text."""

_TABLE = frozenset(("table", "thead", "tbody", "tr", "td", "th"))
_ALIGNED = {"left": ":--", "center": ":-:", "right": "--:"}


class _Container(NamedTuple):
    """The state to restore at the end of a list item, a list or a quotation."""

    tag: str
    prefix: str
    lead: str | None
    blocks: int


class _Format(NamedTuple):
    """Open emphasis, an open link or open raw HTML.

    Attributes:
        start: Index of the opening delimiter in the line.
    """

    tag: str
    sign: str
    start: int
    closing: str


def to_markdown(body: str, sign: str = "") -> str:
    r"""Convert a body to Markdown.

    Args:
        body: The HTML.
        sign: The delimiter of formulas, `$` or `\$`; empty if the body has no formulas.
    """
    return _Writer(_TOKEN.split(remove_comments(body)), sign).markdown()


class _Writer:
    """Writes the Markdown of one body."""

    def __init__(self, parts: list[str], sign: str) -> None:
        self._parts = parts
        self._sign = sign
        self._at = 1
        self._out: list[str] = []  # Lines, including line feeds.
        self._line: list[str] = []  # Pieces of the current block.
        self._formats: list[_Format] = []
        # Indexes of the opening and closing delimiters in the line.
        self._emphasized: list[tuple[int, int, str]] = []
        self._containers: list[_Container] = []
        self._lists: list[tuple[str, int]] = []  # Marker and next number of each open list.
        self._prefix = ""  # Start of each line.
        self._lead: str | None = None  # Start of the next line, if it differs from the prefix.
        self._low = ""  # The shortest prefix since the last block.
        self._count = 0  # Blocks written so far.
        self._is_tight = False  # Whether the last block was text of a list item.
        self._in_paragraph = False
        self._heading = ""
        # At the end of the last list: the number of blocks, the number of open lists, and the
        # marker.
        self._last_list = (-1, -1, "")

    def markdown(self) -> str:
        """Convert the whole body."""
        self._read()
        self._flush()
        while self._containers:
            self._leave()
        return "".join(self._out).strip("\n")

    def line(self) -> str:
        """Convert a body without blocks to one line, for a table cell."""
        self._read()
        for format_ in reversed(self._formats):
            self._close(format_)
        self._check_emphasis()
        text = _BREAKS.sub("<br>", "".join(self._line).strip(_BLANK))
        return text.replace("\n", " ").replace(_FEED, " ").replace("|", "\\|")

    def _read(self) -> None:
        parts, count = self._parts, len(self._parts)
        handlers, line = _HANDLERS, self._line
        self._text(parts[0])
        at = 1
        while at < count:
            self._at = at + 3
            tag = parts[at]
            handle = handlers.get(tag)
            if handle is None:
                tag = tag.lower()
                handle = handlers.get(tag)
            if handle is not None:
                handle(self, tag, parts[at + 1])
            at = self._at  # A handler may have skipped some tags.
            text = parts[at - 1] if at <= count else ""
            if text and (line or text != "\n\n"):
                self._text(text)

    # Text

    def _text(self, text: str) -> None:
        if not text.strip(_SPACE):
            if text and self._line:
                self._line.append("\n" if "\n" in text else " ")
            return
        if "&" in text:
            text = unescape(text)
        special = _SPECIAL_IN_LINK if self._is_in("a") else _SPECIAL
        if self._sign and ("$" in text or "\\" in text) and not self._is_in("code", "kbd"):
            text = "".join(
                _escaped(piece.text, special) if piece.tex is None else _verbatim(piece.text)
                for piece in pieces(text, self._sign)
            )
        else:
            text = _escaped(text, special)
        self._line.append(text)

    def _is_in(self, *tags: str) -> bool:
        return any(format_.tag in tags for format_ in self._formats)

    def _find(self, closing: str) -> int:
        """Return the index of the next `closing` tag in the parts, or `len(parts)` without one."""
        parts, at = self._parts, self._at
        while at < len(parts) and parts[at].lower() != closing:
            at += 3
        return at

    def _pass(self, end: int) -> None:
        """Continue after the tag at index `end`, or at the end of the body if there is no tag."""
        self._at = end + 3 if end < len(self._parts) else end + 1

    # Blocks

    def _flush(self) -> None:
        """Write the current block, and reopen its formats for the next block."""
        if not self._line:
            return
        reopened = self._formats[:]
        for format_ in reversed(reopened):
            self._close(format_)
        line = self._line
        if self._emphasized:
            self._check_emphasis()
        text = "".join(line).strip(_BLANK)
        if "\n" in text:
            text = _FEEDS.sub("\n", text)
        line.clear()
        if text:
            is_item = bool(self._containers) and self._containers[-1].tag == "li"
            is_text = not self._in_paragraph and not self._heading
            self._write(self._lines_in(text), is_item and is_text)
        for format_ in reopened:
            self._open(format_.tag, format_.sign, format_.closing)

    def _lines_in(self, text: str) -> list[str]:
        if self._heading:
            text = _BREAKS.sub("<br>", text).replace("\n", " ").replace(_FEED, " ")
            return [self._heading + _CLOSING_HASHES.sub(r"\\\g<0>", text)]
        if _BREAK in text:
            text = _BREAKS.sub(_line_breaks, text)
        lines = text.split("\n") if "\n" in text else [text]
        lines = [
            _safe_start(line, is_first=not number) if line[:1] in _LINE_STARTS else line
            for number, line in enumerate(lines)
        ]
        return "\n".join(lines).replace(_FEED, "\n").split("\n") if _FEED in text else lines

    def _write(self, lines: list[str], is_tight: bool = False) -> None:
        """Write the lines of a block with their prefixes, after a blank line if it needs one."""
        out, prefix = self._out, self._prefix
        start = prefix if self._lead is None else self._lead
        if self._count and not (is_tight and self._is_tight and self._begins_item()):
            out.append(self._low.rstrip() + "\n")
        for line in lines:
            out.append(f"{start}{line}\n" if line else f"{start.rstrip()}\n")
            start = prefix
        self._lead, self._low = None, prefix
        self._count += 1
        self._is_tight = is_tight

    def _begins_item(self) -> bool:
        """Whether the next line starts a list item that needs no blank line before it."""
        if self._lead is None:
            return False
        marker, following = self._lists[-1]
        return (
            marker in "-+" or following == 2 or len(self._low) <= len(self._containers[-1].prefix)
        )

    def _enter(self, tag: str, first: str, following: str) -> None:
        self._containers.append(_Container(tag, self._prefix, self._lead, self._count))
        self._lead = (self._prefix if self._lead is None else self._lead) + first
        self._prefix += following

    def _leave(self) -> None:
        container = self._containers.pop()
        if container.blocks == self._count:
            if container.tag == "li":
                self._write([""])
            else:
                self._lead = container.lead
        self._prefix = container.prefix
        if len(self._prefix) < len(self._low):
            self._low = self._prefix

    def _leave_to(self, tag: str, stop: tuple[str, ...]) -> None:
        """End the innermost container with this tag, unless one of `stop` is inside it."""
        for depth in range(len(self._containers) - 1, -1, -1):
            open_tag = self._containers[depth].tag
            if open_tag == tag:
                while len(self._containers) > depth:
                    if self._containers[-1].tag in ("ul", "ol"):
                        self._end_list()
                    else:
                        self._leave()
                return
            if open_tag in stop:
                return

    def _end_list(self) -> None:
        marker, _ = self._lists.pop()
        self._leave()
        self._last_list = (self._count, len(self._containers), marker)
        if not self._lists:
            self._is_tight = False

    def _block(self, tag: str, attributes: str) -> None:
        if self._line:
            self._flush()
        self._in_paragraph = tag == "p"

    def _set_heading(self, tag: str, attributes: str) -> None:
        self._flush()
        self._heading = _HEADINGS.get(tag, "")

    def _start_list(self, tag: str, attributes: str) -> None:
        self._flush()
        if len(self._containers) >= _DEEPEST:
            return
        markers, start = "-+", 1
        if tag == "ol":
            markers = ".)"
            text = _attributes(attributes).get("start", "1") if attributes else "1"
            start = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 1
        is_next = self._last_list[:2] == (self._count, len(self._containers))
        second = is_next and self._last_list[2] == markers[0]
        self._containers.append(_Container(tag, self._prefix, self._lead, -1))
        self._lists.append((markers[second], start))

    def _start_item(self, tag: str, attributes: str) -> None:
        self._flush()
        self._leave_to("li", _NOT_LEFT["/li"])
        self._in_paragraph = False
        if not self._lists or self._containers[-1].tag not in ("ul", "ol"):
            return
        marker, number = self._lists[-1]
        self._lists[-1] = marker, number + 1
        first = f"{marker} " if marker in "-+" else f"{number}{marker} "
        self._enter("li", first, " " * len(first))

    def _start_quotation(self, tag: str, attributes: str) -> None:
        self._flush()
        self._in_paragraph = False
        if len(self._containers) < _DEEPEST:
            self._enter("blockquote", "> ", "> ")

    def _finish(self, tag: str, attributes: str) -> None:
        self._flush()
        self._leave_to(tag[1:], _NOT_LEFT[tag])

    def _rule(self, tag: str, attributes: str) -> None:
        self._flush()
        self._write(["***" if self._lists else "---"])

    def _code_block(self, tag: str, attributes: str) -> None:
        self._flush()
        parts, end = self._parts, self._find("/pre")
        tags = [parts[at].lower() for at in range(self._at, end, 3)]
        texts = [parts[self._at - 1]]
        for at in range(self._at, end, 3):
            texts += ["\n" if parts[at] == "br" else "", parts[at + 2]]
        code = unescape("".join(texts)).replace("\r\n", "\n").replace("\r", "\n")
        inside = parts[self._at + 1] if tags and tags[0] == "code" else ""
        language = _LANGUAGE.search(f" {_attributes(attributes + inside).get('class', '')}")
        self._pass(end)
        if parts[end - 1 - 3 * len(tags)].startswith("\n") or not tags:
            code = code.removeprefix("\n")  # HTML ignores this line feed.
        code = code.removesuffix("\n")
        if not code.strip(_SPACE):
            return
        fence = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(code)), default=0))
        name = language[1] if language and language[1] != "none" else ""
        self._write([fence + name, *code.split("\n"), fence])

    # Inline

    def _start_emphasis(self, tag: str, attributes: str) -> None:
        sign = _EMPHASIS[tag]
        if len(self._formats) < _DEEPEST:
            # Nested emphasis of the same kind has no effect.
            is_new = all(format_.sign != sign for format_ in self._formats)
            self._open(tag, sign if is_new else "", sign)

    def _start_raw(self, tag: str, attributes: str) -> None:
        if len(self._formats) < _DEEPEST:
            self._open(tag, f"<{tag}>", f"</{tag}>")

    def _open(self, tag: str, sign: str, closing: str) -> None:
        self._formats.append(_Format(tag, sign, len(self._line), closing))
        self._line += ("", "")

    def _end_format(self, tag: str, attributes: str) -> None:
        name = tag[1:]
        formats = self._formats
        for depth in range(len(formats) - 1, -1, -1):
            if formats[depth].tag == name:
                for format_ in reversed(formats[depth:]):
                    self._close(format_)
                return

    def _close(self, format_: _Format) -> None:
        """End the innermost format; move white space from inside its delimiters to outside."""
        self._formats.pop()
        if not format_.sign:
            return
        line, index = self._line, format_.start
        first, last = index + 2, len(line) - 1
        while first <= last and not line[first].strip(_BLANK):
            line[index] += line[first]
            line[first] = ""
            first += 1
        if first > last:
            return
        text = line[first].lstrip(_BLANK)
        line[index] += line[first][: len(line[first]) - len(text)]
        line[first] = text
        after = ""
        while not line[last].strip(_BLANK):
            after = line[last] + after
            line[last] = ""
            last -= 1
        text = line[last].rstrip(_BLANK)
        after = line[last][len(text) :] + after
        line[last] = text
        line[index + 1] = format_.sign
        line.append(format_.closing)
        if format_.sign in _NAMES:
            self._emphasized.append((index + 1, len(line) - 1, format_.sign))
        if after:
            line.append(after)

    def _check_emphasis(self) -> None:
        """Write emphasis as tags where the rules for delimiter runs would not recognize it."""
        line = self._line
        openings = {opening for opening, _, _ in self._emphasized}
        closings = {closing for _, closing, _ in self._emphasized}
        for opening, closing, sign in self._emphasized:
            before = _neighbour(line, opening, -1, openings, closings)
            after = _neighbour(line, closing, 1, closings, openings)
            inside = _neighbour(line, opening, 1, openings, closings)
            last = _neighbour(line, closing, -1, closings, openings)
            is_read = not before or before.isspace() or inside.isalnum()
            is_read = is_read and not inside.isspace() and not last.isspace()
            if "~" not in (inside, last) and (
                (is_read and _is_apart(before) and _is_apart(after))
                or (sign != "~~" and _is_flanking(before, inside) and _is_flanking(after, last))
            ):
                continue
            line[opening], line[closing] = f"<{_NAMES[sign]}>", f"</{_NAMES[sign]}>"
        self._emphasized.clear()

    def _link(self, tag: str, attributes: str) -> None:
        values = _attributes(attributes)
        href = values.get("href")
        if href is None or self._is_in("a") or len(self._formats) >= _DEEPEST:
            return
        parts, at, line = self._parts, self._at, self._line
        is_text = at < len(parts) and parts[at] == "/a" and unescape(parts[at - 1]) == href
        if is_text and "title" not in values and _AUTOLINK.fullmatch(href):
            line.append(f"<{href}>")
            self._pass(at)
            return
        if line and line[-1].endswith("!"):
            line[-1] = line[-1][:-1] + "\\!"
        self._open("a", "[", f"]({_destination(href)}{_title(values)})")

    def _image(self, tag: str, attributes: str) -> None:
        values = _attributes(attributes)
        alt = _SPECIAL_IN_LINK.sub(_escape, " ".join(values.get("alt", "").split()))
        self._line.append(f"![{alt}]({_destination(values.get('src', ''))}{_title(values)})")

    def _break(self, tag: str, attributes: str) -> None:
        self._line.append(_BREAK)

    def _code(self, tag: str, attributes: str) -> None:
        parts, at = self._parts, self._at
        if at >= len(parts) or parts[at].lower() != "/code":
            self._start_raw(tag, attributes)
            return
        code = unescape(parts[at - 1]).replace("\r", "\n").replace("\n", " ")
        self._pass(at)
        if code.strip(_SPACE):
            # Markdown would read two adjacent code spans as one.
            is_next = next((piece for piece in reversed(self._line) if piece), "").endswith("`")
            span = f"<code>{_SPECIAL.sub(_escape, code)}</code>" if is_next else _code_span(code)
            self._line.append(span)
        elif code and self._line:
            self._line.append(" ")

    # Tables

    def _table(self, tag: str, attributes: str) -> None:
        self._flush()
        end = self._find("/table")
        lines = self._rows(end)
        if lines is None:
            parts = self._parts
            source = [f"<{tag}{attributes}>", parts[self._at - 1]]
            for at in range(self._at, end, 3):
                source += (f"<{parts[at]}{parts[at + 1]}>", parts[at + 2])
            html = "".join((*source, f"</{tag}>"))
            lines = [line for line in html.split("\n") if line.strip(_SPACE)]
        self._pass(end)
        self._write(lines)

    def _rows(self, end: int) -> list[str] | None:
        """Convert a table to lines of Markdown; None if Markdown has no syntax for the table.

        Markdown tables have one heading row, the same number of cells in each row, and only inline
        content in cells.
        """
        parts, at = self._parts, self._at
        rows: list[list[str]] = []
        aligned: list[str] = []
        while at < end:
            tag, attributes = parts[at].lower(), parts[at + 1]
            at += 3
            if tag == "tr":
                rows.append([])
            elif tag in ("td", "th"):
                start = at
                while at < end and parts[at].lower().removeprefix("/") in _INLINE:
                    at += 3
                is_heading = tag == "th"
                if not rows or is_heading != (len(rows) == 1) or "span" in attributes:
                    return None
                if at >= end or parts[at].lower() != f"/{tag}":
                    return None
                rows[-1].append(_Writer(parts[start - 1 : at], self._sign).line())
                if is_heading:
                    aligned.append(
                        next((_ALIGNED[way] for way in _ALIGNED if way in attributes), "---")
                    )
            elif tag.removeprefix("/") not in _TABLE:
                return None
        if not aligned or any(len(row) != len(aligned) for row in rows):
            return None
        return [f"| {' | '.join(row)} |" for row in (rows[0], aligned, *rows[1:])]


_AUTOLINK = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{1,31}:[^\s<>]*")
_MOST_PARENTHESES = 8
"""Maximum depth of parentheses in a URL; CommonMark requires parsers to support at least three."""
_PLAIN_ADDRESS = re.compile(r"[^\s<>()\\&]+")


def _escaped(text: str, special: re.Pattern[str]) -> str:
    """Escape a text: collapse white space, and put a backslash before markup characters."""
    if "  " in text or "\n" in text or "\t" in text or "\r" in text:
        text = _SPACES.sub(_one_space, text)
    return special.sub(_escape, text)


def _verbatim(formula: str) -> str:
    """Remove the blank lines of a formula, which would end the paragraph; mark its line feeds."""
    formula = formula.replace("\r\n", "\n").replace("\r", "\n")
    return _EMPTY_LINES.sub("\n", formula).replace("\n", _FEED)


def _one_space(match: re.Match[str]) -> str:
    return "\n" if "\n" in match[0] else " "


def _escape(match: re.Match[str]) -> str:
    """Put a backslash before a character that may be markup here."""
    char, text, at = match[0], match.string, match.end()
    before, after = text[at - 2 : at - 1], text[at : at + 1]
    if char in "*~":
        is_plain = before.isspace() and after.isspace()
    elif char == "_":
        is_plain = before.isalnum() or after.isspace()
    elif char == "<":
        is_plain = bool(after) and not (after.isalpha() or after in "/!?")
    elif char == "\\":
        is_plain = after.isalnum() or after == " "
    elif char == "]":
        is_plain = after not in ("(", ":", "[") and match.re is _SPECIAL
    elif char == "&":
        is_plain = not _REFERENCE.match(text, at - 1)
    else:
        is_plain = False
    return char if is_plain else "\\" + char


def _safe_start(line: str, *, is_first: bool) -> str:
    """Escape the start of a line that would begin a heading, list, quotation, rule or table.

    In an open paragraph, only the number 1 starts a list.
    """
    if _LINE.match(line):
        return "\\" + line
    number = _NUMBERED.match(line)
    if number and not is_first and int(number[1]) != 1:
        return line
    return f"{number[1]}\\{line[number.end(1) :]}" if number else line


def _line_breaks(match: re.Match[str]) -> str:
    """Convert one or more line breaks to Markdown, without a blank line between them."""
    return "  \n" + "<br>\n" * (match[0].count(_BREAK) - 1)


def _neighbour(line: list[str], index: int, step: int, same: set[int], other: set[int]) -> str:
    """Return the character next to a run of delimiters of one kind, opening or closing.

    A delimiter of the other kind counts as `*`. At an end of the line, the result is empty.
    """
    at = index + step
    while 0 <= at < len(line):
        if at in other:
            return "*"
        if line[at] and at not in same:
            return line[at][-1 if step < 0 else 0]
        at += step
    return ""


def _is_apart(char: str) -> bool:
    """Whether any emphasis can start after this character or end before it."""
    return not char or char.isspace() or (char != "*" and unicodedata.category(char)[0] == "P")


def _is_flanking(outside: str, inside: str) -> bool:
    """Whether `*` between these characters can delimit emphasis, by CommonMark's rules."""
    if "*" in (outside, inside):
        return False
    kind = _kind(inside)
    return kind == "word" or (kind == "sign" and _kind(outside) in ("space", "sign"))


def _kind(char: str) -> str:
    """Return `space`, `word` or `sign`; empty if versions of CommonMark disagree about `char`."""
    if not char or char.isspace():
        return "space"
    if char.isascii():
        return "word" if char.isalnum() else "sign"
    kinds = {"P": "sign", "L": "word", "M": "word", "N": "word"}
    return kinds.get(unicodedata.category(char)[0], "")


def _code_span(code: str) -> str:
    sign = "`"
    if "`" in code:
        sign *= 1 + max(map(len, _BACKTICKS.findall(code)))
    is_padded = code[0] == "`" or code[-1] == "`" or code[0] == code[-1] == " "
    return f"{sign} {code} {sign}" if is_padded else f"{sign}{code}{sign}"


def _attributes(text: str) -> dict[str, str]:
    return {
        name.lower(): unescape(double or single or bare)
        for name, double, single, bare in _ATTRIBUTE.findall(text)
    }


def _destination(address: str) -> str:
    address = address.strip()
    if _PLAIN_ADDRESS.fullmatch(address):
        return address
    for char, code in ((" ", "%20"), ("\n", "%0A"), ("\t", "%09"), ("\r", "%0D")):
        address = address.replace(char, code)
    address = address.replace("<", "%3C").replace(">", "%3E").replace("\\", "\\\\")
    address = _REFERENCE.sub(r"\\\g<0>", address)
    return address if _is_balanced(address) else re.sub(r"[()]", r"\\\g<0>", address)


def _is_balanced(address: str) -> bool:
    """Whether the parentheses of a URL can stay unescaped."""
    depth = 0
    for char in address:
        depth += (char == "(") - (char == ")")
        if not 0 <= depth <= _MOST_PARENTHESES:
            return False
    return depth == 0


def _title(attributes: dict[str, str]) -> str:
    title = " ".join(attributes.get("title", "").split())
    if not title:
        return ""
    title = _REFERENCE.sub(r"\\\g<0>", title.replace("\\", "\\\\").replace('"', '\\"'))
    return f' "{title}"'


_INLINE = frozenset((*_EMPHASIS, *_RAW, "a", "code", "img", "br", "span"))

_HANDLERS: dict[str, Callable[[_Writer, str, str], None]] = {
    **dict.fromkeys((*_BLOCKS, *(f"/{tag}" for tag in _BLOCKS)), _Writer._block),
    **dict.fromkeys((*_HEADINGS, *(f"/{tag}" for tag in _HEADINGS)), _Writer._set_heading),
    **dict.fromkeys(("ul", "ol"), _Writer._start_list),
    **dict.fromkeys(_NOT_LEFT, _Writer._finish),
    **dict.fromkeys(_EMPHASIS, _Writer._start_emphasis),
    **dict.fromkeys(_RAW, _Writer._start_raw),
    **dict.fromkeys((f"/{tag}" for tag in (*_EMPHASIS, *_RAW, "a", "code")), _Writer._end_format),
    "li": _Writer._start_item,
    "blockquote": _Writer._start_quotation,
    "hr": _Writer._rule,
    "pre": _Writer._code_block,
    "table": _Writer._table,
    "a": _Writer._link,
    "img": _Writer._image,
    "br": _Writer._break,
    "code": _Writer._code,
}
