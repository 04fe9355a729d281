"""Extract the visible content of HTML, or of Markdown converted by GitHub's parser.

The result is a stream of characters with emphasis and blocks; comparing two streams shows whether
Markdown lost something. No code is shared with the package.
"""

import re
from urllib.parse import unquote

import cmarkgfm
from cmarkgfm.cmark import Options
from lxml import etree, html

SPACE = " \t\n\r\f\v"
SAME = {"i": "em", "b": "strong", "strike": "s", "del": "s", "th": "td"}
INLINE = {"em", "strong", "code", "a", "sup", "sub", "s", "kbd"}
HEADINGS = {f"h{level}" for level in range(1, 7)}
INSIDE = HEADINGS | {"blockquote", "li", "ul", "ol", "td"}
BLOCKS = INSIDE | {"p", "pre", "hr", "table", "tr", "div", "br", "dl", "dt", "dd", "thead", "tbody"}
VOID = {"br", "hr", "img"}

Seen = tuple[str, frozenset[str], tuple[str, ...]]


def rendered(markdown: str) -> str:
    """Convert a Markdown text to HTML."""
    return str(
        cmarkgfm.markdown_to_html_with_extensions(
            markdown, options=Options.CMARK_OPT_UNSAFE, extensions=["table", "strikethrough"]
        )
    )


def seen(page: str) -> list[Seen]:
    """Return the characters, images, rules and lines of code, with their emphasis and their blocks.

    White space between two characters of a block is one space, without emphasis.
    """
    root = html.document_fromstring(
        f"<html><body><div>{page}</div>", parser=html.HTMLParser(huge_tree=True)
    )
    characters: list[Seen] = []
    _see(root, frozenset(), (), characters)
    kept: list[Seen] = []
    has_gap = False
    for one in characters:
        if one[0] == " ":
            has_gap = True
            continue
        if has_gap and kept and kept[-1][2] == one[2] and len(kept[-1][0]) == len(one[0]) == 1:
            kept.append((" ", frozenset(), ()))
        kept.append(one)
        has_gap = False
    return kept


def _see(
    element: etree._Element, inline: frozenset[str], blocks: tuple[str, ...], characters: list[Seen]
) -> None:
    if not isinstance(element.tag, str):
        return
    tag = SAME.get(element.tag, element.tag)
    gap: Seen = (" ", frozenset(), ())
    if tag in BLOCKS:
        characters.append(gap)
    if tag == "pre":
        code = "".join(element.itertext()).strip("\n").rstrip()
        characters += [(f"code: {line.rstrip()}", frozenset(), blocks) for line in code.split("\n")]
    elif tag == "hr":
        characters.append(("rule", frozenset(), blocks))
    elif tag == "img":
        words = " ".join(element.get("alt", "").split())
        address = unquote(element.get("src", "").strip())
        characters.append((f"image: {address} {words}", frozenset(), blocks))
    elif tag == "a" and element.get("href") is not None:
        inline |= {f"link: {unquote(element.get('href').strip())}"}
    elif tag in INLINE:
        inline |= {tag}
    elif tag in INSIDE:
        blocks = (*blocks, tag)
    if tag == "li":
        characters.append(("item", frozenset(), blocks))
    if tag != "pre":
        characters += _characters(element.text, inline, blocks)
        for child in element:
            _see(child, inline, blocks, characters)
            characters += _characters(child.tail, inline, blocks)
    if tag in BLOCKS:
        characters.append(gap)


def _characters(text: str | None, inline: frozenset[str], blocks: tuple[str, ...]) -> list[Seen]:
    return [
        (" ", frozenset(), ()) if char in SPACE else (char, inline, blocks) for char in text or ""
    ]


def words(page: str) -> list[str]:
    """Return the text without formatting."""
    return "".join(one[0] if len(one[0]) == 1 else " " for one in seen(page)).split()


def is_sound(body: str) -> bool:
    """Whether all parsers agree on a body: its tags are balanced and correctly nested."""
    opened: list[str] = []
    for end, name in re.findall(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)", body):
        tag = SAME.get(name.lower(), name.lower())
        if tag in VOID:
            continue
        if end:
            if not opened or opened.pop() != tag:
                return False
            continue
        in_text = {"p", *HEADINGS, *INLINE}.intersection(opened)
        if tag in BLOCKS - {"br"} and in_text:
            return False
        if tag == "li" and (not opened or opened[-1] not in ("ul", "ol")):
            return False
        if tag == "a" and "a" in opened:
            return False
        opened.append(tag)
    return not opened and re.search(r"<[uo]l[^>]*>[^<]*[^<\s]", body) is None
