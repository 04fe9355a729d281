"""Statistics of an output: counts that can be added up, and views of them as text and JSON.

Memory is bounded: a task reads a few segments, large scores are counted together, and rare tags are
dropped if there are too many. `n` posts have fewer than `2 * sqrt(n)` different numbers of answers.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter
from typing import Any

import orjson

from so2docs.counts import LEAST, MOST, Counts, added_by, group_by_size
from so2docs.domain import SCORE_BINS
from so2docs.dump.storage import FileIdentity
from so2docs.errors import OutputError
from so2docs.escape import for_terminal, on_one_line
from so2docs.output.product import read_recipe
from so2docs.output.segments import Segment
from so2docs.processes.pool import Workers, choose_jobs
from so2docs.progress import bar
from so2docs.reader.reading import SegmentReader, parse_document, read_lines
from so2docs.report import as_size

LONGEST = 10
LARGEST_SCORE = 100_000
"""Scores beyond this limit, positive or negative, count as the limit, except in `Scores.min`, `max`
and `sum`."""
MOST_TAGS = 1_000_000
"""Above this number of different tags, the rarer half is dropped; Stack Overflow has 65,000."""

_TASK_BYTES = 16 * 1024 * 1024
_MOST_FREQUENT = 100
_RECORDS = 4096


@dataclass(slots=True)
class Scores(Counts):
    """The scores of questions or answers.

    Attributes:
        min: The lowest score; None, like `max`, if there are no scores.
        max: The highest score.
        sum: The sum of all scores.
        posts: Number of posts by score.
    """

    min: int | None = field(default=None, metadata=LEAST)
    max: int | None = field(default=None, metadata=MOST)
    sum: int = 0
    posts: Counter[int] = field(default_factory=Counter)

    @property
    def median(self) -> int | None:
        """The median score, the lower one of two middle scores; None if there are no scores."""
        remaining = (self.posts.total() + 1) // 2
        for score in sorted(self.posts):
            remaining -= self.posts[score]
            if remaining <= 0:
                return score
        return None

    @property
    def mean(self) -> float | None:
        """The mean score, rounded to three decimal places; None if there are no scores."""
        return round(self.sum / self.posts.total(), 3) if self.posts else None

    @property
    def histogram(self) -> dict[str, int]:
        """Number of posts in each range of scores, such as `5-9`."""
        return {
            label: sum(
                count
                for score, count in self.posts.items()
                if (low is None or score >= low) and (high is None or score <= high)
            )
            for label, low, high in SCORE_BINS
        }

    def as_dict(self) -> dict[str, Any]:
        """Return minimum, median, mean, maximum and histogram as JSON-compatible values."""
        return {name: getattr(self, name) for name in ("min", "median", "mean", "max", "histogram")}


def _keep_longest(
    current: list[dict[str, int]], added: list[dict[str, int]]
) -> list[dict[str, int]]:
    posts = sorted(current + added, key=lambda p: (-p["characters"], p["id"], p["question_id"]))
    return posts[:LONGEST]


def _add_tags(current: dict[str, int], added: Mapping[str, int]) -> dict[str, int]:
    current = Counter(current)
    current.update(added)
    return current if len(current) <= MOST_TAGS else Counter(_take_largest(current, MOST_TAGS // 2))


def _take_largest(counts: Mapping[str, int], limit: int | None = None) -> dict[str, int]:
    """Select the largest counts, in descending order."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:limit])


_OF_RECORDS = ("recipe", "records", "lengths")


@dataclass(slots=True, repr=False)
class Stats(Counts):
    """Statistics of an output, which can be printed, or displayed by a notebook.

    Attributes:
        path: Name of the output.
        file_bytes: Size of the output.
        json_bytes: Size of its documents before compression.
        questions: Number of documents.
        answers: Number of answers; None if the output was made without answers.
        accepted: Questions with an accepted answer; None if no question has `AcceptedAnswerId`.
        first_date: Date of the earliest question or answer; empty if no post has a date.
        last_date: Date of the latest question or answer.
        questions_by_year: Questions by year of `CreationDate`.
        answers_by_year: Answers by year.
        answers_per_question: Questions by number of answers; empty if `answers` is None.
        question_scores: Scores of the questions.
        answer_scores: Scores of the answers.
        distinct_tags: Number of different tags; if there are more than a million, a lower bound.
            None if no question has tags.
        tags: Questions by tag, for the 100 most frequent tags.
        longest: The ten posts with the longest bodies: id, question id, characters of HTML.
        comments: Number of comments; this and the next three are None if the output lacks the rows.
        comments_per_post: Questions and answers by number of comments.
        links: Links by type.
        votes: Votes by type, the most frequent type first.
        recipe: The recipe that made the records of the output; this and the next two are None for
            documents.
        records: Number of records.
        lengths: Statistics of the number of characters in a record, by field.
    """

    path: str
    file_bytes: int = 0
    json_bytes: int = 0
    questions: int = 0
    answers: int | None = None
    accepted: int | None = None
    first_date: str = field(default="", metadata=LEAST)
    last_date: str = field(default="", metadata=MOST)
    questions_by_year: dict[str, int] = field(default_factory=Counter)
    answers_by_year: dict[str, int] = field(default_factory=Counter)
    answers_per_question: dict[int, int] = field(default_factory=Counter)
    question_scores: Scores = field(default_factory=Scores)
    answer_scores: Scores = field(default_factory=Scores)
    distinct_tags: int | None = None
    tags: dict[str, int] = field(default_factory=Counter, metadata=added_by(_add_tags))
    longest: list[dict[str, int]] = field(default_factory=list, metadata=added_by(_keep_longest))
    comments: int | None = None
    comments_per_post: dict[int, int] | None = None
    links: dict[str, int] | None = None
    votes: dict[str, int] | None = None
    recipe: str | None = None
    records: int | None = None
    lengths: dict[str, Scores] | None = None

    @property
    def unanswered(self) -> int | None:
        """Number of questions without any answer in the output; None if `answers` is None."""
        return None if self.answers is None else self.answers_per_question.get(0, 0)

    @property
    def accepted_share(self) -> float | None:
        """Share of the questions that have an accepted answer; None if unknown."""
        return self._share(self.accepted)

    @property
    def unanswered_share(self) -> float | None:
        """Share of the questions that have no answer; None if unknown."""
        return self._share(self.unanswered)

    def _share(self, count: int | None) -> float | None:
        return None if count is None or not self.questions else count / self.questions

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-compatible values.

        Fields of missing tables are left out. For records, only the path, the sizes and the fields
        about records remain.
        """
        if self.lengths is not None:
            names = ("path", "file_bytes", "json_bytes", "recipe", "records")
            lengths = {
                name: {key: getattr(length, key) for key in ("min", "median", "mean", "max")}
                for name, length in self.lengths.items()
            }
            return {name: getattr(self, name) for name in names} | {"lengths": lengths}
        values = {**Counts.as_dict(self), "unanswered": self.unanswered}
        for name in ("comments", "comments_per_post", "links", "votes", *_OF_RECORDS):
            if values[name] is None:
                del values[name]
        for name in ("accepted_share", "unanswered_share"):
            share: float | None = getattr(self, name)
            values[name] = None if share is None else round(share, 6)
        return values

    def columns(self) -> dict[str, int | float]:
        """Return this site's row of a table of sites: numbers by column."""
        answers, accepted = self.answers or 0, self.accepted or 0
        numbers = {"questions": self.questions, "answers": answers, "accepted": accepted}
        return {**numbers, "bytes": self.file_bytes}

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def __repr__(self) -> str:
        return f"<Stats\n{self}>"


def stats(
    path: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    progress: bool = False,
) -> Stats:
    """Compute the statistics of an output; for records of a recipe, their number and lengths.

    Args:
        path: An output of `convert`, or anything else that `open` takes.
        jobs: Worker processes; all cores if None, but one for a small output.
        progress: Show a progress bar.

    Returns:
        The statistics, which are the same for any number of jobs.

    Raises:
        OutputError: The file cannot be read, is damaged, or cannot be indexed.
        WorkerDiedError: A worker process was killed.
    """
    # Imported here, because workers do not need it.
    from so2docs.reader.collection import open as open_output

    total = Stats(os.fspath(path))
    total.recipe = read_recipe(total.path)
    if total.recipe is not None:
        _count_file(total, progress=progress)
        return total
    with open_output(total.path, progress=progress) as docs:
        total.file_bytes = docs.reader.identity.size
        json_bytes = sum(segment.raw_size for segment in docs.index)
        with (
            Workers(choose_jobs(jobs, total.file_bytes)) as workers,
            bar("counting", json_bytes, shown=progress) as progress_bar,
        ):
            groups = group_by_size(docs.index, attrgetter("raw_size"), _TASK_BYTES)
            tasks = (SegmentsTask(docs.path, docs.reader.identity, group) for group in groups)
            for part in workers.run(count_segments, tasks):
                total += part
                progress_bar.update(part.json_bytes)
    _put_in_order(total)
    return total


def _count_file(total: Stats, *, progress: bool) -> None:
    """Add the number, sizes and lengths of the records in a recipe's output to `total`."""
    with open(total.path, "rb") as file:
        total.file_bytes = os.fstat(file.fileno()).st_size
        lines, position = enumerate(read_lines(file), 1), 0
        with bar("counting", total.file_bytes, shown=progress) as progress_bar:
            while batch := list(islice(lines, _RECORDS)):
                total += count_records([parse_document(line, total.path, n) for n, line in batch])
                total.json_bytes += sum(len(line) for _, line in batch)
                progress_bar.update(file.tell() - position)
                position = file.tell()
    if total.lengths is None:
        total.records, total.lengths = 0, {}


def count_records(records: list[Any]) -> Stats:
    """Return the number of some records of a recipe, and the lengths of their fields."""
    numbers: dict[str, Counter[int]] = {}
    for record in records:
        for name, value in record.items() if isinstance(record, dict) else ():
            numbers.setdefault(name, Counter())[_characters(value)] += 1
    lengths = {name: _scores_of(counts) for name, counts in numbers.items() if any(counts)}
    return Stats("", records=len(records), lengths=lengths)


def _characters(value: Any) -> int:
    """Count the characters of all strings in a JSON value."""
    if isinstance(value, str):
        return len(value)
    values = value.values() if isinstance(value, dict) else value
    return sum(map(_characters, values)) if isinstance(value, dict | list) else 0


@dataclass(frozen=True, slots=True)
class SegmentsTask:
    """A task for a worker: segments of an output to count."""

    path: str
    identity: FileIdentity
    segments: list[Segment]


def count_segments(task: SegmentsTask) -> Stats:
    """Return the statistics of the documents in the segments of a task."""
    total = Stats(task.path)
    with closing(SegmentReader(task.path, task.identity)) as reader:
        for segment in task.segments:
            try:
                total += count([orjson.loads(line) for line in reader.read(segment).splitlines()])
            except (orjson.JSONDecodeError, AttributeError, TypeError):
                raise OutputError(
                    f"{task.path}: after byte {segment.offset:,}, a line is not a document; "
                    "convert the dump again"
                ) from None
            total.json_bytes += segment.raw_size
    return total


def count(questions: list[dict[str, Any]]) -> Stats:
    """Return the statistics of some documents."""
    answers = [answer for question in questions for answer in question.get("Answers", ())]
    posts = [*questions, *answers]
    keys = set().union(*questions)
    dates = [_dates(questions), _dates(answers)]
    tags = _select(questions, "Tags", list)
    comments, links = (_select(posts, key, list) for key in ("Comments", "Links"))
    votes = _select(posts, "Votes", dict)
    types = [str(link.get("LinkType", "")) for post_links in links for link in post_links]
    return Stats(
        "",
        questions=len(questions),
        answers=len(answers) if "Answers" in keys else None,
        accepted=sum("AcceptedAnswerId" in question for question in questions) or None,
        first_date=min((date for kind_dates in dates for date in kind_dates), default=""),
        last_date=max((date for kind_dates in dates for date in kind_dates), default=""),
        questions_by_year=Counter(date[:4] for date in dates[0]),
        answers_by_year=Counter(date[:4] for date in dates[1]),
        answers_per_question=Counter(len(question.get("Answers", ())) for question in questions),
        question_scores=_scores_of(Counter(_select(questions, "Score", int))),
        answer_scores=_scores_of(Counter(_select(answers, "Score", int))),
        distinct_tags=0 if "Tags" in keys else None,
        tags=Counter(tag for post_tags in tags for tag in post_tags),
        longest=_find_longest(questions),
        comments=sum(map(len, comments)) if comments else None,
        comments_per_post=Counter(map(len, comments)) or None,
        links=Counter(types) if links else None,
        votes=_count_votes(votes) if votes else None,
    )


def _select(posts: list[dict[str, Any]], key: str, kind: type) -> list[Any]:
    return [post[key] for post in posts if type(post.get(key)) is kind]


def _dates(posts: list[dict[str, Any]]) -> list[str]:
    dates = [str(post["CreationDate"]) for post in posts if post.get("CreationDate")]
    return [date for date in dates if date[:4].isdecimal() and date[:4].isascii()]


def _find_longest(questions: list[dict[str, Any]]) -> list[dict[str, int]]:
    lengths = [
        (-len(post["Body"]), post.get("Id", 0), question.get("Id", 0))
        for question in questions
        for post in (question, *question.get("Answers", ()))
        if "Body" in post
    ]
    return [
        {"id": post_id, "question_id": question_id, "characters": -length}
        for length, post_id, question_id in sorted(lengths)[:LONGEST]
    ]


def _scores_of(counts: Counter[int]) -> Scores:
    if not counts:
        return Scores()
    total = sum(number * count for number, count in counts.items())
    capped: Counter[int] = Counter()
    for number, count in counts.items():
        capped[max(-LARGEST_SCORE, min(LARGEST_SCORE, number))] += count
    return Scores(min(counts), max(counts), total, capped)


def _count_votes(votes: list[dict[str, Any]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for post_votes in votes:
        counts.update({kind: n for kind, n in post_votes.items() if type(n) is int})
    return counts


def _put_in_order(total: Stats) -> None:
    """Sort the totals for display, count the different tags, and keep the most frequent ones."""
    if total.answers is None:
        total.answers_per_question.clear()
    if total.distinct_tags is not None:
        total.distinct_tags = len(total.tags)
    total.tags = _take_largest(total.tags, _MOST_FREQUENT)
    for name in ("questions_by_year", "answers_by_year", "answers_per_question"):
        setattr(total, name, dict(sorted(getattr(total, name).items())))
    if total.comments_per_post is not None:
        total.comments_per_post = dict(sorted(total.comments_per_post.items()))
    total.links = None if total.links is None else _take_largest(total.links)
    total.votes = None if total.votes is None else _take_largest(total.votes)


_LARGE_NUMBER = 10
_ROWS = 30
"""Maximum number of rows in a section: years, tags, types of votes."""


def _lines(stats: Stats) -> Iterator[str]:
    """Yield the lines of the text."""
    facts = [("file", stats.path, ""), ("size", _sizes(stats), ""), ("dates", _period(stats), "")]
    for label, value, detail in (*facts, *_facts(stats)):
        if value:
            yield f"{label:<19} {on_one_line(value)}{', ' * bool(detail)}{for_terminal(detail)}"
    if stats.lengths:
        yield from ("", "characters in a record")
        width = max(map(len, stats.lengths))
        yield from (
            f"  {for_terminal(name):<{width}}  {', '.join(_scores(lengths))}"
            for name, lengths in stats.lengths.items()
        )
    for title, rows, total in _sections(stats):
        yield from ("", title)
        width = max(len(for_terminal(label)) for label, _ in rows)
        digits = max(len(f"{count:,}") for _, count in rows)
        for label, count in rows:
            share = f" {count / total:6.1%}" if total else ""
            yield f"  {for_terminal(label):<{width}}  {count:>{digits},}{share}"


def _sections(stats: Stats) -> Iterator[tuple[str, list[tuple[str, int]], int | None]]:
    """Yield the title and rows of each chart, and the number of which its counts are shares."""
    questions = stats.questions
    sections: list[tuple[str, Iterable[tuple[str, int]], int | None]] = [
        ("questions by year", stats.questions_by_year.items(), questions),
        ("answers by year", stats.answers_by_year.items(), None),
        ("questions by number of answers", _by_number(stats.answers_per_question), questions),
        ("questions by score", stats.question_scores.histogram.items(), questions),
        ("answers by score", stats.answer_scores.histogram.items(), None),
        ("most frequent tags", stats.tags.items(), None),
        ("longest bodies, in characters", _longest(stats), None),
        ("posts by number of comments", _by_number(stats.comments_per_post or {}), None),
        ("links by type", (stats.links or {}).items(), None),
        ("votes by type", (stats.votes or {}).items(), None),
    ]
    for title, rows, total in sections:
        if any(count for _, count in rows):
            yield title, list(rows)[:_ROWS], total


def _period(stats: Stats) -> str:
    return stats.first_date and f"{stats.first_date[:10]} to {stats.last_date[:10]}"


def _sizes(stats: Stats) -> str:
    return f"{as_size(stats.file_bytes)}, {as_size(stats.json_bytes)} of JSON"


def _facts(stats: Stats) -> list[tuple[str, str, str]]:
    """List the known numbers of an output, each with its label and a detail."""
    questions = stats.questions
    posts = questions + (stats.answers or 0) or 1
    links, votes = (
        None if kinds is None else sum(kinds.values()) for kinds in (stats.links, stats.votes)
    )
    numbers = (
        ("records", stats.records, f"recipe {stats.recipe}"),
        ("questions", None if stats.recipe else questions, ""),
        ("answers", stats.answers, f"{(stats.answers or 0) / (questions or 1):.2f} a question"),
        *(
            (label, number, f"{(number or 0) / (questions or 1):.1%} of the questions")
            for label, number in (
                ("accepted answers", stats.accepted),
                ("no answer", stats.unanswered),
            )
        ),
        ("tags", stats.distinct_tags, ""),
        *(
            (label, number, f"{(number or 0) / posts:.2f} a post")
            for label, number in (("comments", stats.comments), ("links", links), ("votes", votes))
        ),
    )
    facts = [(label, f"{number:,}", more) for label, number, more in numbers if number is not None]
    for label, scores in (("question", stats.question_scores), ("answer", stats.answer_scores)):
        if scores.min is not None:
            facts.append((f"mean {label} score", *_scores(scores)))
    return facts


def _by_number(counts: Mapping[int, int]) -> list[tuple[str, int]]:
    """List the counts for 0 to 9 answers or comments, and one count for all larger numbers."""
    rows = [(str(number), counts.get(number, 0)) for number in range(_LARGE_NUMBER)]
    larger = sum(count for number, count in counts.items() if number >= _LARGE_NUMBER)
    return [*rows, (f"{_LARGE_NUMBER}+", larger)]


def _longest(stats: Stats) -> list[tuple[str, int]]:
    """List the longest bodies, with labels for questions and answers."""
    return [
        (
            f"question {post['id']}"
            if post["id"] == post["question_id"]
            else f"answer {post['id']} to {post['question_id']}",
            post["characters"],
        )
        for post in stats.longest
    ]


def _scores(scores: Scores) -> tuple[str, str]:
    """Format the mean of numbers, and their median and limits."""
    return f"{scores.mean:,.2f}", f"median {scores.median:,}, {scores.min:,} to {scores.max:,}"
