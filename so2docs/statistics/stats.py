"""What an output holds as a whole: one object, and its views as text, JSON and HTML."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

from so2docs.domain import SCORE_BINS
from so2docs.output.segments import Entry
from so2docs.pipeline.workers import Workers
from so2docs.progress import bar
from so2docs.reader.collection import Collection
from so2docs.reader.collection import open as open_output
from so2docs.statistics.html import as_fragment
from so2docs.statistics.survey import (
    Figures,
    NestedCounts,
    ScoreCounts,
    Scores,
    Survey,
    SurveyTask,
    survey,
)
from so2docs.statistics.text import as_text

_TASK_BYTES = 16 * 1024 * 1024
_WORTH_A_PROCESS = 64 * 1024 * 1024
_MOST_FREQUENT = 100


class Stats(Figures):
    """An output at a glance; `print` it, or let a notebook show it."""

    __slots__ = ()

    def __str__(self) -> str:
        return as_text(self)

    def __repr__(self) -> str:
        return f"<Stats\n{self}>"

    def _repr_html_(self) -> str:
        return as_fragment(self)


def stats(
    path: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    progress: bool = False,
) -> Stats:
    """Count what an output holds.

    Args:
        path: An output of `convert`, or what else `open` takes.
        jobs: Worker processes; all cores if None, and one where the output is small.
        progress: Show a progress bar.

    Returns:
        The counts; the same for any number of jobs.

    Raises:
        OutputError: The file cannot be read, is damaged, or cannot be indexed.
        WorkerDiedError: A worker process was killed.
    """
    name = os.fspath(path)
    total = Survey()
    with open_output(name, progress=progress) as docs:
        size = docs.identity.size
        processes = jobs or (os.cpu_count() or 1 if size >= _WORTH_A_PROCESS else 1)
        json_bytes = sum(entry.raw_size for entry in docs.entries())
        with (
            Workers(processes) as workers,
            bar("counting", json_bytes, shown=progress) as progress_bar,
        ):
            for task, part in zip(_tasks(docs), workers.run(survey, _tasks(docs)), strict=True):
                total.merge(part)
                progress_bar.update(sum(entry.raw_size for entry in task.entries))
    return _stats(name, size, json_bytes, total)


def _tasks(docs: Collection) -> Iterator[SurveyTask]:
    entries: list[Entry] = []
    size = 0
    for entry in docs.entries():
        entries.append(entry)
        size += entry.raw_size
        if size >= _TASK_BYTES:
            yield SurveyTask(docs.path, docs.identity, entries)
            entries, size = [], 0
    if entries:
        yield SurveyTask(docs.path, docs.identity, entries)


def _largest_first(counts: Counter[str]) -> dict[str, int]:
    """The largest count first."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _in_order(counts: Counter[int]) -> dict[int, int]:
    return dict(sorted(counts.items()))


def _stats(path: str, size: int, json_bytes: int, total: Survey) -> Stats:
    ranked = _largest_first(total.tags)
    has_answers = "Answers" in total.keys_present
    return Stats(
        path=path,
        file_bytes=size,
        json_bytes=json_bytes,
        questions=total.documents,
        answers=total.answers if has_answers else None,
        accepted=total.accepted if "AcceptedAnswerId" in total.keys_present else None,
        unanswered=total.unanswered if has_answers else None,
        first_date=total.first_date,
        last_date=total.last_date,
        questions_by_year=dict(sorted(total.question_years.items())),
        answers_by_year=dict(sorted(total.answer_years.items())),
        answers_per_question=dict(sorted(total.answers_per_question.items()))
        if has_answers
        else {},
        question_scores=_scores(total.question_scores),
        answer_scores=_scores(total.answer_scores),
        distinct_tags=len(ranked) if "Tags" in total.keys_present else None,
        tags=dict(islice(ranked.items(), _MOST_FREQUENT)),
        longest=[
            {"id": post_id, "question_id": question_id, "characters": -length}
            for length, post_id, question_id in total.longest
        ],
        **_count_nested(total.nested),
    )


def _count_nested(nested: NestedCounts) -> dict[str, Any]:
    """The counts of what was nested, None where nothing was."""
    counts: dict[str, Any] = {}
    if "Comments" in nested.keys_present:
        counts["comments"] = nested.comments
        counts["comments_per_post"] = _in_order(nested.comments_per_post)
    if "Links" in nested.keys_present:
        counts["links"] = _largest_first(nested.links)
    if "Votes" in nested.keys_present:
        counts["votes"] = _largest_first(nested.votes)
    return counts


def _scores(counts: ScoreCounts) -> Scores:
    number = counts.histogram.total()
    return Scores(
        min=counts.least,
        median=_median(counts.histogram),
        mean=round(counts.total / number, 3) if number else None,
        max=counts.most,
        histogram=_bin_scores(counts.histogram),
    )


def _median(histogram: Counter[int]) -> int | None:
    remaining = (histogram.total() + 1) // 2
    for score in sorted(histogram):
        remaining -= histogram[score]
        if remaining <= 0:
            return score
    return None


def _bin_scores(histogram: Counter[int]) -> dict[str, int]:
    """Posts by range of scores."""
    return {
        label: sum(
            count
            for score, count in histogram.items()
            if (low is None or score >= low) and (high is None or score <= high)
        )
        for label, low, high in SCORE_BINS
    }
