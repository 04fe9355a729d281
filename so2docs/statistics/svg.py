"""Two plots as inline SVG: columns, and rows with their labels next to them. Pure functions.

Colours and fonts come from the classes `first`, `second`, `muted` and `grid` of the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from so2docs.escape import for_html

COLOURS = ("first", "second")

_WIDTH = 340
_HEIGHT = 190
_LEFT, _TOP, _BOTTOM = 38, 8, 20
_ROW = 21
_LABEL_CHARACTERS = 20
_CHARACTER = 7.0
_WIDE = frozenset("mwMW@%")
_TICK_CHARACTER = 5.8


def columns(labels: Sequence[str], series: Sequence[Sequence[int]], names: Sequence[str]) -> str:
    """Columns side by side for each label, above a scale.

    Args:
        labels: One for each group of columns.
        series: The values of each kind of column, one for each label.
        names: What each kind is, for the tooltip.
    """
    largest = max((value for values in series for value in values), default=0)
    step = _step(largest)
    most = step * max(1, -(-largest // step))
    height = _HEIGHT - _TOP - _BOTTOM
    parts = []
    for value in range(0, most + 1, step):
        y = _TOP + height * (1 - value / most)
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}" />'
            f'<text class="muted" x="{_LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">'
            f"{short(value)}</text>"
        )
    group = (_WIDTH - _LEFT) / max(1, len(labels))
    width = group * 0.8 / len(series)
    widest = max((len(label) for label in labels), default=1) * _TICK_CHARACTER + 1
    every = max(1, -(-int(widest) // max(1, int(group))))
    for place, label in enumerate(labels):
        x = _LEFT + group * place
        for number, values in enumerate(series):
            bar = height * values[place] / most
            left = x + group * 0.1 + width * number
            parts.append(
                f'<rect class="{COLOURS[number]}" x="{left:.1f}" y="{_TOP + height - bar:.1f}" '
                f'width="{max(width - 0.5, 0.5):.1f}" height="{bar:.1f}">'
                f"<title>{for_html(label)}: {values[place]:,} {names[number]}</title></rect>"
            )
        if place % every == 0:
            parts.append(
                f'<text class="muted tick" x="{x + group / 2:.1f}" y="{_HEIGHT - 5}" '
                f'text-anchor="middle">{for_html(label)}</text>'
            )
    return _svg(_HEIGHT, " and ".join(names), parts)


def widest(labels: Iterable[str]) -> float:
    """Width of the widest label, as far as letters tell: capitals and m are wider than others."""
    return max(map(_width, map(_shorten, labels)), default=0.0)


def _width(label: str) -> float:
    return _CHARACTER * sum(
        1.5 if letter in _WIDE else 1.25 if letter.isupper() else 1.0 for letter in label
    )


def _shorten(label: str) -> str:
    return label if len(label) <= _LABEL_CHARACTERS else label[: _LABEL_CHARACTERS - 1] + "…"


def rows(values: Sequence[tuple[str, int]], most: int, label_width: float) -> str:
    """A bar for each value, its label before it and its number after it.

    Args:
        values: Labels and values.
        most: Value of a bar of full length.
        label_width: Of the `widest` label; both are given so that plots can be alike.
    """
    left = label_width + 8
    right = len(f"{most:,}") * _CHARACTER + 10
    parts = []
    for place, (label, value) in enumerate(values):
        y = _ROW * place
        width = (_WIDTH - left - right) * value / most
        parts.append(
            f'<text x="{left - 6:.1f}" y="{y + 14}" text-anchor="end">'
            f"{for_html(_shorten(label))}</text>"
            f'<rect class="first" x="{left:.1f}" y="{y + 3}" width="{max(width, 1):.1f}" '
            f'height="{_ROW - 7}" rx="2"><title>{for_html(label)}: {value:,}</title></rect>'
            f'<text class="muted" x="{left + width + 5:.1f}" y="{y + 14}">{value:,}</text>'
        )
    return _svg(max(_ROW, _ROW * len(values)), "bars", parts)


def short(value: int) -> str:
    """A number of a scale: 0, 500, 20k, 1.5M."""
    for factor, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if value >= factor:
            return f"{value / factor:g}{unit}"
    return str(value)


def _step(most: int) -> int:
    """A round number that fits into the largest value four times, or a little less."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if step * factor * 4 >= most:
                return step * factor
        step *= 10


def _svg(height: int, name: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{for_html(name)}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )
