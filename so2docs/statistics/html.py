"""Statistics as HTML: one page that needs nothing else, and the same as part of a notebook.

The plots are inline SVG, drawn for 340 pixels and shown side by side where there is room, so that
their text has the same size on a phone and on a desktop. Colours follow the reader's scheme.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from so2docs.escape import for_html
from so2docs.report import as_size
from so2docs.statistics import svg
from so2docs.statistics.survey import Figures, Scores
from so2docs.statistics.text import (
    answers,
    answers_per_question,
    comments_per_post,
    nested_counts,
)

_TAGS = 30
_YEARS = 24
_KINDS = 20

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


def as_page(stats: Figures) -> str:
    """A whole page."""
    title = for_html(os.path.basename(stats.path))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8" />\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1" />\n'
        '<meta name="color-scheme" content="light dark" />\n'
        f"<title>{title}</title>\n"
        "<style>body { margin: 0; } .so2docs-stats { min-height: 100vh; }</style>\n"
        f"</head>\n<body>\n{as_fragment(stats)}\n</body>\n</html>\n"
    )


def as_fragment(stats: Figures) -> str:
    """The body of the page, with its style: for a notebook."""
    dates = f"{stats.first_date[:10]} to {stats.last_date[:10]}" if stats.first_date else "no dates"
    size = f"{as_size(stats.file_bytes)}, {as_size(stats.json_bytes)} of JSON"
    return (
        f'<div class="so2docs-stats"><style>{_STYLE}</style><main>\n'
        f"<h1>{for_html(os.path.basename(stats.path))}</h1>\n<p>{for_html(dates)} · {size}</p>\n"
        f"{_tiles(stats)}\n"
        f'<div class="plots">\n{"".join(_plots(stats))}</div>\n</main></div>'
    )


def _tiles(stats: Figures) -> str:
    tiles = [
        ("questions", f"{stats.questions:,}", "documents"),
        ("answers", *_parts(answers(stats))),
        ("accepted answer", *_share(stats.accepted, stats.accepted_share, stats.questions)),
        ("no answer", *_share(stats.unanswered, stats.unanswered_share, stats.questions)),
        ("mean question score", *_score_texts(stats.question_scores)),
        ("mean answer score", *_score_texts(stats.answer_scores)),
        ("most answers", _most(stats.answers_per_question), "to one question"),
        ("tags", "" if stats.distinct_tags is None else f"{stats.distinct_tags:,}", "different"),
        *((label, *_parts(text)) for label, text in nested_counts(stats)),
    ]
    inside = "".join(
        f'<div class="tile"><span>{for_html(label)}</span><strong>{for_html(value)}</strong>'
        f"<span>{for_html(more)}</span></div>"
        for label, value, more in tiles
        if value
    )
    return f'<div class="tiles">{inside}</div>'


def _parts(text: str) -> tuple[str, str]:
    """Both parts of a fact, such as of `1,052, 2.10 a question`."""
    value, _, more = text.rpartition(", ")
    return value, more


def _share(count: int | None, share: float | None, questions: int) -> tuple[str, str]:
    if share is None:
        return "", ""
    return f"{share:.1%}", f"{count:,} of {questions:,}"


def _most(answers_per_question: Mapping[int, int]) -> str:
    return f"{max(answers_per_question):,}" if answers_per_question else ""


def _score_texts(scores: Scores) -> tuple[str, str]:
    if scores.min is None:
        return "", ""
    return f"{scores.mean:.2f}", f"median {scores.median:,}, {scores.min:,} to {scores.max:,}"


def _plots(stats: Figures) -> Iterable[str]:
    both = ("questions", "answers")
    years = sorted({*stats.questions_by_year, *stats.answers_by_year})[-_YEARS:]
    if years:
        by_year = [stats.questions_by_year, stats.answers_by_year]
        labels = [f"'{year[2:]}" for year in years]
        plot = svg.columns(labels, [_values(counts, years) for counts in by_year], both)
        yield _card("Questions and answers by year", plot, both)
    if stats.answers_per_question:
        yield _card("Questions by number of answers", _numbers(answers_per_question(stats)))
    histograms = [stats.question_scores.histogram, stats.answer_scores.histogram]
    if any(count for histogram in histograms for count in histogram.values()):
        bins = list(histograms[0])
        labels = [label.replace("below 0", "<0") for label in bins]
        plot = svg.columns(labels, [_values(counts, bins) for counts in histograms], both)
        yield _card("Scores", plot, both)
    if stats.tags:
        yield _card("Most frequent tags, in questions", _tags(stats.tags), kind="wide")
    if stats.longest:
        yield _card("Longest bodies", _longest(stats))
    if stats.comments is not None:
        plot = _numbers(comments_per_post(stats), "posts")
        yield _card("Posts by number of comments", plot)
    for title, kinds in (("Links by type", stats.links), ("Votes by type", stats.votes)):
        if kinds:
            yield _card(title, _bars(list(kinds.items())[:_KINDS]))


def _numbers(rows: list[tuple[str, int]], name: str = "questions") -> str:
    return svg.columns([label for label, _ in rows], [[count for _, count in rows]], (name,))


def _tags(tags: Mapping[str, int]) -> str:
    rows = list(tags.items())[:_TAGS]
    width = svg.widest(tag for tag, _ in rows)
    half = -(-len(rows) // 2)
    halves = [svg.rows(part, rows[0][1], width) for part in (rows[:half], rows[half:]) if part]
    return f'<div class="beside">{"".join(halves)}</div>'


def _bars(rows: list[tuple[str, int]]) -> str:
    return svg.rows(rows, max(1, *(n for _, n in rows)), svg.widest(label for label, _ in rows))


def _longest(stats: Figures) -> str:
    rows = "".join(
        f"<tr><td>{'question' if post['id'] == post['question_id'] else 'answer'}</td>"
        f"<td>{for_html(post['id'])}</td><td>{for_html(post['question_id'])}</td>"
        f"<td>{post['characters']:,}</td></tr>"
        for post in stats.longest
    )
    names = "".join(f"<th>{name}</th>" for name in ("post", "id", "of question", "characters"))
    return f"<table><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table>"


def _values(counts: Mapping[str, int], names: Iterable[str]) -> list[int]:
    return [counts.get(name, 0) for name in names]


def _card(title: str, plot: str, series: tuple[str, ...] = (), kind: str = "") -> str:
    legend = "".join(
        f'<span><svg viewBox="0 0 10 10"><rect width="10" height="10" rx="2" class="{colour}" />'
        f"</svg>{name}</span>"
        for name, colour in zip(series, svg.COLOURS, strict=False)
    )
    legend = f'<div class="legend">{legend}</div>' if legend else ""
    return f'<section class="{kind}"><h2>{title}</h2>{legend}{plot}</section>\n'
