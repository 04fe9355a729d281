"""Bar charts as HTML: tables with a bar in each row, so that their numbers can also be read."""

from __future__ import annotations

from collections.abc import Sequence

from so2docs.escape import for_html


def section(title: str, content: str) -> str:
    """Make a section of a page from a title and a chart."""
    return f"<section><h2>{for_html(title)}</h2>{content}</section>\n"


def bars(values: Sequence[tuple[str, int]]) -> str:
    """Draw a bar chart, as a table, from pairs of a label and a value."""
    largest = max(1, *(value for _, value in values))
    rows = "".join(
        f'<tr><th scope="row">{for_html(label)}</th><td><svg viewBox="0 0 100 10" '
        'preserveAspectRatio="none" aria-hidden="true"><rect '
        f'width="{max(100 * value / largest, min(value, 1)):.1f}" height="10" /></svg></td>'
        f"<td>{value:,}</td></tr>"
        for label, value in values
    )
    return f'<table class="bars"><tbody>{rows}</tbody></table>'
