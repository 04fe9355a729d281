"""Inspect an output: numbers, dates and scores of its posts, and its most frequent tags.

Memory is bounded by the numbers of different tags, scores and years.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from so2docs.plugin import (
    ANSWERS,
    OutputError,
    for_terminal,
    on_one_line,
    parse_document,
    plural,
    read_lines,
    read_recipe,
    unreadable_output,
)
from so2docs.progress import bar
from so2docs.report import as_size

_LINES = 256
"""Number of lines between two updates of the progress bar."""

_MOST_TAGS = 30


@dataclass(slots=True)
class InspectedOutput:
    """The content of an output.

    Attributes:
        path: Name of the output.
        recipe: Recipe that made the records; None for documents.
        bytes: Size of the output.
        json_bytes: Size of its lines before compression.
        lines: Number of documents or records.
        answers: Number of answers.
        accepted: Number of questions with `AcceptedAnswerId`.
        unanswered: Number of questions without answers in the output.
        first_date: Earliest `CreationDate` of a post; empty if no post has one.
        last_date: Latest `CreationDate`.
        questions_by_year: Questions by year of `CreationDate`.
        answers_by_year: Answers by year.
        question_scores: Questions by score.
        answer_scores: Answers by score.
        tags: Questions by tag.
    """

    path: str
    recipe: str | None = None
    bytes: int = 0
    json_bytes: int = 0
    lines: int = 0
    answers: int = 0
    accepted: int = 0
    unanswered: int = 0
    first_date: str = ""
    last_date: str = ""
    questions_by_year: Counter[str] = field(default_factory=Counter)
    answers_by_year: Counter[str] = field(default_factory=Counter)
    question_scores: Counter[int] = field(default_factory=Counter)
    answer_scores: Counter[int] = field(default_factory=Counter)
    tags: Counter[str] = field(default_factory=Counter)

    def add(self, question: dict[str, Any]) -> None:
        """Count a document."""
        answers = question.get(ANSWERS, ())
        self.answers += len(answers)
        self.accepted += "AcceptedAnswerId" in question
        self.unanswered += not answers
        self.tags.update(question.get("Tags", ()))
        self._add_posts([question], self.questions_by_year, self.question_scores)
        self._add_posts(answers, self.answers_by_year, self.answer_scores)

    def _add_posts(
        self, posts: Iterable[dict[str, Any]], years: Counter[str], scores: Counter[int]
    ) -> None:
        for post in posts:
            if isinstance(score := post.get("Score"), int):
                scores[score] += 1
            if date := post.get("CreationDate"):
                years[date[:4]] += 1
                self.first_date = min(self.first_date or date, date)
                self.last_date = max(self.last_date, date)

    def columns(self) -> dict[str, int | float]:
        """Return this site's row of a table of sites: numbers by column."""
        if self.recipe is not None:
            return {"records": self.lines, "bytes": self.bytes}
        return {"questions": self.lines, "answers": self.answers, "bytes": self.bytes}

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON-compatible values; of records, only number and sizes."""
        sizes = {"path": self.path, "bytes": self.bytes, "json_bytes": self.json_bytes}
        if self.recipe is not None:
            return {**sizes, "recipe": self.recipe, "records": self.lines}
        return {
            **sizes,
            "questions": self.lines,
            "answers": self.answers,
            "accepted": self.accepted,
            "unanswered": self.unanswered,
            "first_date": self.first_date or None,
            "last_date": self.last_date or None,
            "questions_by_year": dict(sorted(self.questions_by_year.items())),
            "answers_by_year": dict(sorted(self.answers_by_year.items())),
            "question_scores": summarize(self.question_scores),
            "answer_scores": summarize(self.answer_scores),
            "tags": _rank(self.tags),
        }

    def __str__(self) -> str:
        return "\n".join(self._text())

    def _text(self) -> Iterator[str]:
        yield on_one_line(f"{self.path}: {as_size(self.bytes)}, {as_size(self.json_bytes)} of JSON")
        if self.recipe is not None:
            yield on_one_line(f"  {self.lines:,} records of the recipe {self.recipe}")
            return
        yield f"  {plural(self.lines, 'question')}, {plural(self.answers, 'answer')}"
        yield f"  {plural(self.accepted, 'accepted answer')}"
        yield f"  {plural(self.unanswered, 'question')} without answers"
        if self.first_date:
            yield on_one_line(f"  {self.first_date[:10]} to {self.last_date[:10]}")
        for name, scores in (("question", self.question_scores), ("answer", self.answer_scores)):
            if scores:
                values = ", ".join(f"{key} {value:,}" for key, value in summarize(scores).items())
                yield f"  {name} scores: {values}"
        years = sorted({*self.questions_by_year, *self.answers_by_year})
        if years:
            yield f"  {'year':10}{'questions':>12}{'answers':>12}"
        for year in years:
            numbers = self.questions_by_year[year], self.answers_by_year[year]
            yield f"  {for_terminal(year):10}{numbers[0]:>12,}{numbers[1]:>12,}"
        if self.tags:
            ranked = ", ".join(f"{tag} {count:,}" for tag, count in _rank(self.tags).items())
            yield on_one_line(f"  {len(self.tags):,} tags: {ranked}")


def summarize(scores: Counter[int]) -> dict[str, int | float]:
    """Return the lowest, median, mean and highest score; empty without scores."""
    if not scores:
        return {}
    values, total = sorted(scores), scores.total()
    remaining, median = (total + 1) // 2, values[0]
    for median in values:
        remaining -= scores[median]
        if remaining <= 0:
            break
    mean = sum(score * count for score, count in scores.items()) / total
    return {"min": values[0], "median": median, "mean": round(mean, 3), "max": values[-1]}


def _rank(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MOST_TAGS])


def inspect_output(path: str | os.PathLike[str], *, progress: bool = False) -> InspectedOutput:
    """Count the posts of an output: by year, their scores and tags; or the records of a recipe.

    Examples:
        >>> print(so2docs.inspect_output("questions.jsonl.gz"))

    Args:
        path: An output of `convert` in JSON lines, compressed or not.
        progress: Show a progress bar.

    Raises:
        OutputError: The file cannot be read or is damaged, or is not JSON lines of documents.
    """
    name = os.fspath(path)
    result = InspectedOutput(name, read_recipe(name))
    try:
        file = open(name, "rb")  # noqa: SIM115
    except OSError as error:
        raise unreadable_output(name, error) from error
    with file:
        result.bytes, position = os.fstat(file.fileno()).st_size, 0
        with bar("counting", result.bytes, shown=progress) as progress_bar:
            for line in read_lines(file):
                result.lines += 1
                result.json_bytes += len(line)
                if result.recipe is None:
                    _add_line(result, line)
                if result.lines % _LINES == 0:
                    progress_bar.update(file.tell() - position)
                    position = file.tell()
            progress_bar.update(file.tell() - position)
    return result


def _add_line(result: InspectedOutput, line: bytes) -> None:
    document = parse_document(line, result.path, result.lines)
    try:
        result.add(document)
    except (AttributeError, TypeError):
        raise OutputError(
            f"{result.path}: line {result.lines:,} is not a document; convert the dump again"
        ) from None
