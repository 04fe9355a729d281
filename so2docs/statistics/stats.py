"""What an output holds as a whole: one object, and its views as text, JSON and HTML."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any

from so2docs.lookup.collection import Collection, Notify
from so2docs.lookup.collection import open as open_output
from so2docs.output.index import Entry
from so2docs.passes.workers import Workers
from so2docs.progress import bar
from so2docs.statistics.survey import NestedCounts, ScoreCounts, Survey, SurveyTask, survey

_TASK_BYTES = 16 * 1024 * 1024
_WORTH_A_PROCESS = 64 * 1024 * 1024
_MOST_FREQUENT = 100
_SCORE_STEPS = (0, 1, 2, 3, 5, 10, 25, 100)


@dataclass(slots=True, frozen=True)
class Scores:
    """The scores of questions or answers.

    Attributes:
        min: The lowest score; None, as the others, if there are no scores.
        median: The middle one; the lower of two.
        mean: Their mean.
        max: The highest score.
        histogram: Number of posts by range of scores, such as `5-9`.
    """

    min: int | None
    median: int | None
    mean: float | None
    max: int | None
    histogram: dict[str, int]


@dataclass(slots=True)
class Stats:
    """An output at a glance; `print` it, or let a notebook show it.

    Attributes:
        path: Name of the output.
        file_bytes: Its size.
        json_bytes: Size of its documents before compression.
        questions: Documents.
        answers: Answers in them.
        accepted: Questions with an accepted answer.
        unanswered: Questions without any answer.
        first_date: Date of the earliest question or answer; empty if there is none.
        last_date: Date of the latest one.
        questions_by_year: Questions by year of `CreationDate`.
        answers_by_year: Answers by year.
        answers_per_question: Questions by number of answers.
        question_scores: Scores of the questions.
        answer_scores: Scores of the answers.
        distinct_tags: Number of different tags; at least so many if above a million.
        tags: Questions by tag, of the 100 most frequent ones.
        longest: The ten posts with the longest bodies: id, question id, characters of HTML.
        comments: Comments; None, as the three below, if the output was made without them.
        comments_per_post: Questions and answers by number of comments.
        links: Links by type.
        votes: Votes by type, the most frequent one first.
    """

    path: str
    file_bytes: int = 0
    json_bytes: int = 0
    questions: int = 0
    answers: int = 0
    accepted: int = 0
    unanswered: int = 0
    first_date: str = ""
    last_date: str = ""
    questions_by_year: dict[str, int] = field(default_factory=dict)
    answers_by_year: dict[str, int] = field(default_factory=dict)
    answers_per_question: dict[int, int] = field(default_factory=dict)
    question_scores: Scores = field(default_factory=lambda: _scores(ScoreCounts()))
    answer_scores: Scores = field(default_factory=lambda: _scores(ScoreCounts()))
    distinct_tags: int = 0
    tags: dict[str, int] = field(default_factory=dict)
    longest: list[dict[str, int]] = field(default_factory=list)
    comments: int | None = None
    comments_per_post: dict[int, int] | None = None
    links: dict[str, int] | None = None
    votes: dict[str, int] | None = None

    @property
    def accepted_share(self) -> float:
        """Share of the questions that have an accepted answer."""
        return self.accepted / self.questions if self.questions else 0.0

    @property
    def unanswered_share(self) -> float:
        """Share of the questions that have no answer."""
        return self.unanswered / self.questions if self.questions else 0.0

    def as_dict(self) -> dict[str, Any]:
        """All fields in JSON types; of comments, links and votes, those that there are."""
        fields = asdict(self)
        for name in ("answers_per_question", "comments_per_post"):
            counts = fields[name] or {}
            fields[name] = {str(number): count for number, count in counts.items()}
        for name in ("comments", "links", "votes"):
            if fields[name] is None:
                del fields[name]
        if self.comments is None:
            del fields["comments_per_post"]
        shares = {
            "accepted_share": round(self.accepted_share, 6),
            "unanswered_share": round(self.unanswered_share, 6),
        }
        return fields | shares

    def __str__(self) -> str:
        from so2docs.statistics.text import as_text

        return as_text(self)

    def __repr__(self) -> str:
        return f"<Stats\n{self}>"

    def _repr_html_(self) -> str:
        from so2docs.statistics.html import as_fragment

        return as_fragment(self)


def stats(
    path: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    notify: Notify | None = None,
    progress: bool = False,
) -> Stats:
    """Count what an output holds.

    Args:
        path: An output of `convert`, or what else `open` takes.
        jobs: Worker processes; all cores if None, and one where the output is small.
        notify: As in `open`.
        progress: Show a progress bar.

    Returns:
        The counts; the same for any number of jobs.

    Raises:
        OutputError: The file cannot be read, is damaged, or cannot be indexed.
        WorkerDiedError: A worker process was killed.
    """
    name = os.fspath(path)
    total = Survey()
    with open_output(name, notify=notify, progress=progress) as docs:
        size = os.path.getsize(name)
        wanted = jobs or (os.cpu_count() or 1 if size >= _WORTH_A_PROCESS else 1)
        json_bytes = sum(entry.raw_size for entry in docs.entries())
        with Workers(wanted) as workers, bar("counting", json_bytes, shown=progress) as shown:
            for task, found in zip(_tasks(docs), workers.run(survey, _tasks(docs)), strict=True):
                total.merge(found)
                shown.update(sum(entry.raw_size for entry in task.entries))
    return _stats(name, size, json_bytes, total)


def _tasks(docs: Collection) -> Iterator[SurveyTask]:
    entries: list[Entry] = []
    size = 0
    for entry in docs.entries():
        entries.append(entry)
        size += entry.raw_size
        if size >= _TASK_BYTES:
            yield SurveyTask(docs.path, entries)
            entries, size = [], 0
    if entries:
        yield SurveyTask(docs.path, entries)


def _ranked(counts: Counter[str]) -> dict[str, int]:
    """The largest count first."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _stats(path: str, size: int, json_bytes: int, total: Survey) -> Stats:
    ranked = _ranked(total.tags)
    return Stats(
        path=path,
        file_bytes=size,
        json_bytes=json_bytes,
        questions=total.documents,
        answers=total.answers,
        accepted=total.accepted,
        unanswered=total.unanswered,
        first_date=total.first_date,
        last_date=total.last_date,
        questions_by_year=dict(sorted(total.question_years.items())),
        answers_by_year=dict(sorted(total.answer_years.items())),
        answers_per_question=dict(sorted(total.answers_per_question.items())),
        question_scores=_scores(total.question_scores),
        answer_scores=_scores(total.answer_scores),
        distinct_tags=len(ranked),
        tags=dict(islice(ranked.items(), _MOST_FREQUENT)),
        longest=[
            {"id": post_id, "question_id": question_id, "characters": -length}
            for length, post_id, question_id in total.longest
        ],
        **_of_nested(total.nested),
    )


def _of_nested(nested: NestedCounts) -> dict[str, Any]:
    """The counts of what was nested, None where nothing was."""
    found: dict[str, Any] = {}
    if "Comments" in nested.found:
        found["comments"] = nested.comments
        found["comments_per_post"] = dict(sorted(nested.comments_per_post.items()))
    if "Links" in nested.found:
        found["links"] = _ranked(nested.links)
    if "Votes" in nested.found:
        found["votes"] = _ranked(nested.votes)
    return found


def _scores(counts: ScoreCounts) -> Scores:
    number = counts.histogram.total()
    return Scores(
        min=counts.least,
        median=_median(counts.histogram),
        mean=round(counts.total / number, 3) if number else None,
        max=counts.most,
        histogram=_binned(counts.histogram),
    )


def _median(histogram: Counter[int]) -> int | None:
    left = (histogram.total() + 1) // 2
    for score in sorted(histogram):
        left -= histogram[score]
        if left <= 0:
            return score
    return None


def _binned(histogram: Counter[int]) -> dict[str, int]:
    """Posts by range of scores, finer where most scores are."""
    bins = {"below 0": sum(count for score, count in histogram.items() if score < 0)}
    for start, end in zip(_SCORE_STEPS, [*_SCORE_STEPS[1:], None], strict=True):
        last = "+" if end is None else "" if end == start + 1 else f"-{end - 1}"
        label = f"{start}{last}"
        bins[label] = sum(
            count
            for score, count in histogram.items()
            if score >= start and (end is None or score < end)
        )
    return bins
