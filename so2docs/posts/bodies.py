"""The HTML of a body as plain text or as Markdown."""

from __future__ import annotations

from collections.abc import Callable


def converter(body: str) -> Callable[[str], str] | None:
    """The function for one body; None if it stays as it is."""
    return {"text": _text, "markdown": _markdown_converter()}.get(body) if body != "html" else None


def _text(body: str) -> str:
    """What a reader sees, without links and emphasis; the dump's own line breaks make the layout.

    Bodies have a line feed between any two blocks, which the text keeps.
    """
    from lxml import html

    if not body.strip():
        return ""
    parser = html.HTMLParser(encoding="utf-8", huge_tree=True)
    root = html.fragment_fromstring(body.encode(), create_parent="div", parser=parser)
    for element in root.iter("br"):
        element.tail = "\n" + (element.tail or "").removeprefix("\n")
    for element in root.iter("img"):
        element.tail = element.get("alt", "") + (element.tail or "")
    return str(root.text_content()).strip()


def _markdown_converter() -> Callable[[str], str]:
    def convert(body: str) -> str:
        from html_to_markdown import ConversionOptions, convert

        made = convert(body, ConversionOptions(extract_metadata=False)).content
        return (made or "").strip()

    return convert
