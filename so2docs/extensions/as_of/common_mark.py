"""Render Markdown as the sites do since June 2020: CommonMark, with tables and linked addresses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock, html_block
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from so2docs.extensions.elements import MADE

_SCHEME = re.compile(r"(?:^|[\s*_~(])(https?|ftp)$", re.IGNORECASE)
_ADDRESS = re.compile(r"://(?=[^\s<./?#:]+\.[^\s<])[^\s<]+")
_AFTER_ADDRESS = re.compile(r"&[a-zA-Z0-9]{1,30};$")
_SPOILER_LINE = re.compile(r"^! ?", re.MULTILINE)
_INLINE_TAG = re.compile(r"</?(?:a|b|br|code|del|em|i|img|kbd|s|strike|strong|sub|sup)\b")
_MOST_CHARACTERS = 20_000
"""Maximum length of a paragraph; the sites accept bodies of 30,000 characters."""
_CELLS = ("thead", "tbody", "tr", "td", "th")


@cache
def make_parser(has_tables: bool) -> MarkdownIt:
    """Make the parser, whose `render` returns HTML that is not yet sanitized."""
    parser = MarkdownIt("commonmark", renderer_cls=_Renderer)
    if has_tables:
        parser.enable("table")
    parser.block.ruler.at(
        "html_block", _start_html, {"alt": ["paragraph", "reference", "blockquote"]}
    )
    parser.core.ruler.before("inline", "spoilers", _mark_spoilers)
    parser.core.ruler.before("inline", "long", _keep_long_texts)
    parser.inline.ruler.after("text", "addresses", _link_address)
    # Addresses are checked when the HTML is sanitized, and shown as they were typed.
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    parser.normalizeLinkText = lambda link: link  # type: ignore[method-assign]
    return parser


class _Renderer(RendererHTML):
    """Renders tokens in the form of the dumps."""

    def text(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return escape(tokens[idx].content, quote=False)

    def code_inline(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return f"<code>{escape(tokens[idx].content, quote=False)}</code>"

    def code_block(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return f"<pre><code>{escape(tokens[idx].content, quote=False)}</code></pre>\n"

    def fence(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        names = re.findall(r"[\w+#.-]+", tokens[idx].info)[:1]
        html = self.code_block(tokens, idx, options, env)
        if not names:
            return html
        language = f"lang-{names[0].removeprefix('lang-')}"
        return html.replace("<pre>", f'<pre{MADE} class="{language} prettyprint-override">', 1)

    def table_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return f'<div{MADE} class="s-table-container">\n<table{MADE} class="s-table">\n'

    def table_close(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return f"</table{MADE}>\n</div{MADE}>\n"

    def renderToken(  # noqa: N802
        self, tokens: Sequence[Token], idx: int, options: Any, env: Any
    ) -> str:
        """Render a token, with a mark in tags that users may not type."""
        html = super().renderToken(tokens, idx, options, env)
        tag = tokens[idx].tag
        if tag in _CELLS or tokens[idx].attrGet("class"):
            html = re.sub(r'"text-align:(\w+)"', r'"text-align: \1;"', html)
            html = re.sub(rf"^(\s*</?{tag})", rf"\g<1>{MADE}", html)
        return html


def _start_html(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Start a block of HTML, but not at a tag that can be part of a paragraph."""
    at = state.bMarks[start] + state.tShift[start]
    if _INLINE_TAG.match(state.src, at):
        return False
    return html_block(state, start, end, silent)


def _mark_spoilers(state: StateCore) -> None:
    """Turn quotations whose text starts with `!` to spoilers."""
    tokens = state.tokens
    depths: list[bool] = []
    for number, token in enumerate(tokens):
        if token.type == "blockquote_open":
            first = tokens[number + 2].content if number + 2 < len(tokens) else ""
            is_spoiler = tokens[number + 1].type == "paragraph_open" and bool(
                re.match(r"!(?!\[)", first)
            )
            depths.append(is_spoiler)
            if is_spoiler:
                token.attrSet("class", "spoiler")
        elif token.type == "blockquote_close":
            depths.pop()
        elif token.type == "inline" and depths and depths[-1]:
            token.content = _SPOILER_LINE.sub("", token.content)


def _keep_long_texts(state: StateCore) -> None:
    """Leave paragraphs that no site accepts unchanged, because brackets take quadratic time."""
    for token in state.tokens:
        if token.type == "inline" and len(token.content) > _MOST_CHARACTERS:
            token.type = "text"


def _link_address(state: StateInline, silent: bool) -> bool:
    """Link a bare address, by the rules of Markdig's extension `AutoLinks`.

    The address follows white space or one of `*_~(`, its host has a dot, its parentheses are
    closed, and no bracket is open before it.
    """
    if state.linkLevel > 0 or not state.src.startswith("://", state.pos):
        return False
    scheme = _SCHEME.search(state.src[max(state.pos - 6, 0) : state.pos])
    if not scheme or not state.pending.endswith(scheme[1]):
        return False
    if state.src.count("[", 0, state.pos) > state.src.count("]", 0, state.pos):
        return False
    match = _ADDRESS.match(state.src, state.pos, state.posMax)
    rest = _trim_address(match[0]) if match else ""
    if not rest or rest.count("(") > rest.count(")"):
        return False
    if not silent:
        state.pending = state.pending[: -len(scheme[1])]
        token = state.push("link_open", "a", 1)
        token.attrs = {"href": state.md.normalizeLink(scheme[1] + rest)}
        state.push("text", "", 0).content = scheme[1] + rest
        state.push("link_close", "a", -1)
    state.pos += len(rest)
    return True


def _trim_address(address: str) -> str:
    """Remove punctuation at the end of an address, and parentheses that it does not open."""
    while address:
        is_closing = address[-1] == ")" and address.count(")") > address.count("(")
        if is_closing or address[-1] in "?!.,:*_~'\"":
            address = address[:-1]
        elif address[-1] == ";" and (match := _AFTER_ADDRESS.search(address[-33:])):
            address = address[: -len(match[0])]
        else:
            break
    return address
