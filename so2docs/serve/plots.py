"""The plots of the front page, drawn as those of `so2docs stats`."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from so2docs.statistics import svg

_BOTH = ("questions", "answers")
_TAGS = 12


def plots(overview: dict[str, Any]) -> list[dict[str, Any]]:
    """Title, plot and legend of each plot; of what there is."""
    found = []
    years = sorted({*overview["questions_by_year"], *overview["answers_by_year"]})[-24:]
    if len(years) > 1:
        labels = [f"'{year[2:]}" for year in years]
        found.append(_columns("Questions and answers by year", labels, overview, "by_year", years))
    bins = list(overview["question_scores"])
    labels = [label.replace("below ", "<") for label in bins]
    found.append(_columns("Scores", labels, overview, "scores", bins))
    tags = [(name, count) for name, count in overview["top_tags"][:_TAGS]]
    if tags:
        plot = Markup(svg.rows(tags, tags[0][1], svg.widest(name for name, _ in tags)))
        found.append({"title": "Most frequent tags", "plot": plot, "legend": ()})
    return found


def _columns(
    title: str, labels: list[str], overview: dict[str, Any], what: str, names: list[str]
) -> dict[str, Any]:
    keys = [f"questions_{what}", f"answers_{what}"]
    if what == "scores":
        keys = ["question_scores", "answer_scores"]
    values = [[overview[key].get(name, 0) for name in names] for key in keys]
    plot = Markup(svg.columns(labels, values, _BOTH))
    return {"title": title, "plot": plot, "legend": list(zip(_BOTH, svg.COLOURS, strict=True))}
