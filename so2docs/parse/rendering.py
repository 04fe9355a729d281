"""Render the Markdown of revisions to HTML, as the sites do."""

from __future__ import annotations


def render(markdown: str) -> str:
    """Render Markdown to HTML."""
    import cmarkgfm
    from cmarkgfm.cmark import Options

    html: str = cmarkgfm.markdown_to_html(markdown.replace("\r\n", "\n"), Options.CMARK_OPT_UNSAFE)
    return html
