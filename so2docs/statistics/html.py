"""Statistics as HTML: a self-contained page, or a part of a notebook.

Column and bar charts are inline SVG, 340 pixels wide, and are shown side by side if there is room,
so their text has the same size on phones and desktops. Colours follow the reader's light or
dark colour scheme.
Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from so2docs.escape import for_html

_STYLE = """
.so2docs-stats { --page: #f4f6f9; --card: #fff; --line: #dde2e9; --text: #1b2027; --muted: #5c6672;
  --first: #2f6fde; --second: #d9731a; color-scheme: light dark; background: var(--page);
  color: var(--text); font: 15px/1.45 system-ui, sans-serif; padding: 16px; }
@media (prefers-color-scheme: dark) { .so2docs-stats { --page: #0e1217; --card: #171d25;
  --line: #2b333e; --text: #e5e9ef; --muted: #9aa5b2; --first: #6ea2ff; --second: #f0a45c; } }
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
.so2docs-stats svg { display: block; width: 100%; max-width: 460px; height: auto; margin: 0 auto; }
.so2docs-stats svg text { font: 11.5px system-ui, sans-serif; fill: var(--text); }
.so2docs-stats svg .muted { fill: var(--muted); }
.so2docs-stats svg .grid { stroke: var(--line); }
.so2docs-stats .first { fill: var(--first); }
.so2docs-stats .second { fill: var(--second); }
.so2docs-stats svg .tick { font-size: 10px; }
.so2docs-stats .beside { display: grid; gap: 0 16px;
  grid-template-columns: repeat(auto-fit, minmax(min(300px, 100%), 1fr)); }
.so2docs-stats table { width: 100%; border-collapse: collapse; font-size: 13px;
  font-variant-numeric: tabular-nums; background: none; color: inherit; }
.so2docs-stats th { color: var(--muted); font-weight: 400; }
.so2docs-stats th, .so2docs-stats td { padding: 4px 2px; text-align: right;
  border-bottom: 1px solid var(--line); background: none; }
.so2docs-stats main tbody tr:nth-child(n) { background: none; }
.so2docs-stats th:first-child, .so2docs-stats td:first-child { text-align: left; }
@media (min-width: 1120px) { .so2docs-stats .wide { grid-column: span 2; } }
@media (max-width: 640px) { .so2docs-stats .tiles { grid-template-columns: repeat(2, 1fr); } }
.so2docs-stats .legend { color: var(--muted); font-size: 13px; margin: 0 0 6px; }
.so2docs-stats .legend svg { display: inline; width: 10px; margin: 0 4px 0 0; }
.so2docs-stats .legend span { margin-right: 14px; white-space: nowrap; }
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


def card(title: str, plot: str, series: tuple[str, ...] = (), kind: str = "") -> str:
    """Make a plot or table with its title, and a legend if it has several series."""
    legend = "".join(
        f'<span><svg viewBox="0 0 10 10"><rect width="10" height="10" rx="2" class="{colour}" />'
        f"</svg>{name}</span>"
        for name, colour in zip(series, COLOURS, strict=False)
    )
    legend = f'<div class="legend">{legend}</div>' if legend else ""
    return f'<section class="{kind}"><h2>{title}</h2>{legend}{plot}</section>\n'


def table(names: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Make an HTML table from the names of its columns and the texts of its rows."""
    cells = ["".join(f"<td>{for_html(cell)}</td>" for cell in row) for row in rows]
    head = "".join(f"<th>{name}</th>" for name in names)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


COLOURS = ("first", "second")
BOTH = ("questions", "answers")
_YEARS = 24

_WIDTH = 340
_HEIGHT = 190
_LEFT, _TOP, _BOTTOM = 38, 8, 20
_ROW = 21
_LABEL_CHARACTERS = 20
_CHARACTER = 7.0
_WIDE = frozenset("mwMW@%")
_TICK_CHARACTER = 5.8


def columns(labels: Sequence[str], series: Sequence[Sequence[int]], names: Sequence[str]) -> str:
    """Draw a column chart with a group of columns for each label.

    Args:
        labels: Label of each group of columns.
        series: Values of each series, one for each label.
        names: Name of each series, for tooltips.
    """
    largest = max((value for values in series for value in values), default=0)
    step = _step(largest)
    highest = step * max(1, -(-largest // step))
    height = _HEIGHT - _TOP - _BOTTOM
    parts = []
    for value in range(0, highest + 1, step):
        y = _TOP + height * (1 - value / highest)
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}" />'
            f'<text class="muted" x="{_LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">'
            f"{_short(value)}</text>"
        )
    group = (_WIDTH - _LEFT) / max(1, len(labels))
    width = group * 0.8 / len(series)
    widest = max((len(label) for label in labels), default=1) * _TICK_CHARACTER + 1
    every = max(1, -(-int(widest) // max(1, int(group))))
    for index, label in enumerate(labels):
        x = _LEFT + group * index
        for number, values in enumerate(series):
            bar = height * values[index] / highest
            left = x + group * 0.1 + width * number
            parts.append(
                f'<rect class="{COLOURS[number]}" x="{left:.1f}" y="{_TOP + height - bar:.1f}" '
                f'width="{max(width - 0.5, 0.5):.1f}" height="{bar:.1f}">'
                f"<title>{for_html(label)}: {values[index]:,} {names[number]}</title></rect>"
            )
        if index % every == 0:
            parts.append(
                f'<text class="muted tick" x="{x + group / 2:.1f}" y="{_HEIGHT - 5}" '
                f'text-anchor="middle">{for_html(label)}</text>'
            )
    return _svg(_HEIGHT, " and ".join(names), parts)


def years(*by_year: Mapping[str, int]) -> str:
    """Draw a column chart of questions and answers for each of the latest years."""
    names = sorted(set().union(*by_year))[-_YEARS:]
    return _both([f"'{year[2:]}" for year in names], by_year, names)


def scores(*histograms: Mapping[str, int]) -> str:
    """Draw a column chart of questions and answers for each bin of scores."""
    labels = [label.replace("below ", "<") for label in histograms[0]]
    return _both(labels, histograms, histograms[0])


def _both(labels: list[str], counts: Iterable[Mapping[str, int]], names: Iterable[str]) -> str:
    return columns(labels, [[series.get(name, 0) for name in names] for series in counts], BOTH)


def bars(values: Sequence[tuple[str, int]]) -> str:
    """Draw a bar chart from pairs of a label and a value."""
    return _rows(values, max(1, *(value for _, value in values)), _widest(values))


def two_bars(values: Sequence[tuple[str, int]]) -> str:
    """Draw a bar chart in two parts side by side; the first value must be the largest."""
    half = -(-len(values) // 2)
    halves = [
        _rows(part, values[0][1], _widest(values))
        for part in (values[:half], values[half:])
        if part
    ]
    return f'<div class="beside">{"".join(halves)}</div>'


def _widest(values: Iterable[tuple[str, int]]) -> float:
    """Estimate the width of the widest label; capitals and letters such as m count as wider."""
    return max((_width(_shorten(label)) for label, _ in values), default=0.0)


def _width(label: str) -> float:
    return _CHARACTER * sum(
        1.5 if letter in _WIDE else 1.25 if letter.isupper() else 1.0 for letter in label
    )


def _shorten(label: str) -> str:
    return label if len(label) <= _LABEL_CHARACTERS else label[: _LABEL_CHARACTERS - 1] + "…"


def _rows(values: Sequence[tuple[str, int]], largest: int, label_width: float) -> str:
    """Draw bars to the right of their labels; the value `largest` gets the full length."""
    left = label_width + 8
    right = len(f"{largest:,}") * _CHARACTER + 10
    parts = []
    for index, (label, value) in enumerate(values):
        y = _ROW * index
        width = (_WIDTH - left - right) * value / largest
        parts.append(
            f'<text x="{left - 6:.1f}" y="{y + 14}" text-anchor="end">'
            f"{for_html(_shorten(label))}</text>"
            f'<rect class="first" x="{left:.1f}" y="{y + 3}" width="{max(width, 1):.1f}" '
            f'height="{_ROW - 7}" rx="2"><title>{for_html(label)}: {value:,}</title></rect>'
            f'<text class="muted" x="{left + width + 5:.1f}" y="{y + 14}">{value:,}</text>'
        )
    return _svg(max(_ROW, _ROW * len(values)), "bars", parts)


def _short(value: int) -> str:
    """Format an axis label: 0, 500, 20k, 1.5M."""
    for factor, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if value >= factor:
            return f"{value / factor:g}{unit}"
    return str(value)


def _step(largest: int) -> int:
    """Choose the smallest round step such that four steps reach the largest value."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if step * factor * 4 >= largest:
                return step * factor
        step *= 10


def _svg(height: int, name: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{for_html(name)}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )
