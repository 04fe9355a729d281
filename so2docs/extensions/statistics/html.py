"""Statistics as HTML: a self-contained page, or a part of a notebook. Pure functions.

Bar charts are tables with a bar in each row, so that their numbers can be read without seeing the
bars. Colours follow the reader's light or dark colour scheme.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from so2docs.escape import for_html

_STYLE = """
.so2docs-stats { --page: #f4f6f9; --card: #fff; --line: #dde2e9; --text: #1b2027; --muted: #5c6672;
  --bar: #2f6fde; color-scheme: light dark; background: var(--page);
  color: var(--text); font: 15px/1.45 system-ui, sans-serif; padding: 16px; }
@media (prefers-color-scheme: dark) { .so2docs-stats { --page: #0e1217; --card: #171d25;
  --line: #2b333e; --text: #e5e9ef; --muted: #9aa5b2; --bar: #6ea2ff; } }
.so2docs-stats * { box-sizing: border-box; }
.so2docs-stats main { max-width: 1180px; margin: 0 auto; }
.so2docs-stats h1 { font-size: 22px; font-weight: 700; line-height: 1.25; margin: 8px 0 2px;
  color: var(--text); overflow-wrap: anywhere; }
.so2docs-stats p { margin: 0 0 16px; color: var(--muted); }
.so2docs-stats .tiles { display: grid; gap: 12px; margin: 0 0 12px; padding: 0;
  grid-template-columns: repeat(4, 1fr); }
.so2docs-stats .plots { display: grid; gap: 12px;
  grid-template-columns: repeat(auto-fit, minmax(min(340px, 100%), 1fr)); }
.so2docs-stats .tile, .so2docs-stats section { background: var(--card); min-width: 0;
  border: 1px solid var(--line); border-radius: 10px; padding: 12px 14px; }
.so2docs-stats .tile span { display: block; color: var(--muted); font-size: 13px; }
.so2docs-stats .tile strong { display: block; font-size: 22px; font-weight: 600; }
.so2docs-stats h2 { font-size: 15px; font-weight: 700; margin: 0 0 8px; color: var(--text); }
.so2docs-stats table { width: 100%; border-collapse: collapse; font-size: 13px;
  font-variant-numeric: tabular-nums; background: none; color: inherit; }
.so2docs-stats th { color: var(--muted); font-weight: 400; }
.so2docs-stats th, .so2docs-stats td { padding: 4px 2px; text-align: right;
  border-bottom: 1px solid var(--line); background: none; }
.so2docs-stats main tbody tr:nth-child(n) { background: none; }
.so2docs-stats th:first-child, .so2docs-stats td:first-child { text-align: left; }
@media (max-width: 640px) { .so2docs-stats .tiles { grid-template-columns: repeat(2, 1fr); } }
.so2docs-stats .bars svg { display: block; width: 100%; height: 13px; fill: var(--bar); }
.so2docs-stats .bars td:nth-child(2) { width: 60%; }
"""


def as_page(title: str, fragment: str) -> str:
    """Make a self-contained HTML page from a title and a fragment."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8" />\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1" />\n'
        '<meta name="color-scheme" content="light dark" />\n'
        f"<title>{for_html(title)}</title>\n"
        "<style>body { margin: 0; } .so2docs-stats { min-height: 100vh; }</style>\n"
        f"</head>\n<body>\n{fragment}\n</body>\n</html>\n"
    )


def as_fragment(
    title: str, about: str, tiles: Iterable[tuple[str, str, str]], cards: Iterable[str]
) -> str:
    """Make the content of the page with its style sheet, which a notebook can display.

    Args:
        title: Heading.
        about: Text below the heading.
        tiles: Label, value and detail of each number at the top.
        cards: Plots and tables, as HTML.
    """
    top = "".join(
        f'<div class="tile"><span>{for_html(label)}</span><strong>{for_html(value)}</strong>'
        f"<span>{for_html(detail)}</span></div>"
        for label, value, detail in tiles
    )
    return (
        f'<div class="so2docs-stats"><style>{_STYLE}</style><main>\n'
        f"<h1>{for_html(title)}</h1>\n<p>{for_html(about)}</p>\n"
        f'<div class="tiles">{top}</div>\n'
        f'<div class="plots">\n{"".join(cards)}</div>\n</main></div>'
    )


def card(title: str, content: str) -> str:
    """Make a section of the page from a title and a chart or table."""
    return f"<section><h2>{for_html(title)}</h2>{content}</section>\n"


def table(names: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Make an HTML table from the names of its columns and the texts of its rows."""
    cells = ["".join(f"<td>{for_html(cell)}</td>" for cell in row) for row in rows]
    head = "".join(f"<th>{name}</th>" for name in names)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


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
