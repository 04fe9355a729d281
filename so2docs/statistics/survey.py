"""The counts of an output, and how a worker of `stats` makes those of some segments, which add up.

Memory is bounded whatever the output holds: a task is some segments, histograms have a limited
number of values, and of tags the rare ones are given up where there are very many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from so2docs.dump.storage import FileIdentity
from so2docs.errors import OutputError
from so2docs.output.segments import Entry
from so2docs.reader.reading import SegmentReader


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

    min: int | None = None
    median: int | None = None
    mean: float | None = None
    max: int | None = None
    histogram: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Figures:
    """An output at a glance.

    Attributes:
        path: Name of the output.
        file_bytes: Its size.
        json_bytes: Size of its documents before compression.
        questions: Documents.
        answers: Answers in them; None if the output was made without answers.
        accepted: Questions with an accepted answer; None if no question says that it has one, as
            where `AcceptedAnswerId` was left out.
        unanswered: Questions without any answer in the output; None as for `answers`.
        first_date: Date of the earliest question or answer; empty if no post has a date.
        last_date: Date of the latest one.
        questions_by_year: Questions by year of `CreationDate`.
        answers_by_year: Answers by year.
        answers_per_question: Questions by number of answers.
        question_scores: Scores of the questions.
        answer_scores: Scores of the answers.
        distinct_tags: Number of different tags, a lower bound above a million; None if no
            question has tags.
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
    answers: int | None = None
    accepted: int | None = None
    unanswered: int | None = None
    first_date: str = ""
    last_date: str = ""
    questions_by_year: dict[str, int] = field(default_factory=dict)
    answers_by_year: dict[str, int] = field(default_factory=dict)
    answers_per_question: dict[int, int] = field(default_factory=dict)
    question_scores: Scores = field(default_factory=Scores)
    answer_scores: Scores = field(default_factory=Scores)
    distinct_tags: int | None = None
    tags: dict[str, int] = field(default_factory=dict)
    longest: list[dict[str, int]] = field(default_factory=list)
    comments: int | None = None
    comments_per_post: dict[int, int] | None = None
    links: dict[str, int] | None = None
    votes: dict[str, int] | None = None

    @property
    def accepted_share(self) -> float | None:
        """Share of the questions that have an accepted answer."""
        return self._share(self.accepted)

    @property
    def unanswered_share(self) -> float | None:
        """Share of the questions that have no answer."""
        return self._share(self.unanswered)

    def _share(self, count: int | None) -> float | None:
        return None if count is None or not self.questions else count / self.questions

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
        shares = {"accepted_share": self.accepted_share, "unanswered_share": self.unanswered_share}
        for name, share in shares.items():
            fields[name] = None if share is None else round(share, 6)
        return fields


LONGEST = 10
MOST_ANSWERS = 1000
"""Questions with more answers than this are counted as having this number."""
LARGEST_SCORE = 100_000
"""Scores beyond this, either way, are counted as this, except in their sum and extremes."""
MOST_TAGS = 1_000_000
"""Of more different tags than this, the rarer half is given up; Stack Overflow has 65,000."""
MOST_COMMENTS = 1000
"""Posts with more comments than this are counted as having this number."""
_TELLING = ("Answers", "AcceptedAnswerId", "Tags")  # What none has may have been left out.
MOST_KINDS = 1000
"""Types of links or votes after this number are counted together, as `others`."""


@dataclass(frozen=True, slots=True)
class SurveyTask:
    """Segments of an output to count."""

    path: str
    identity: FileIdentity
    entries: list[Entry]


@dataclass(slots=True)
class ScoreCounts:
    """The scores of some posts.

    Attributes:
        histogram: Number of posts by score.
        total: Sum of all scores.
        least: The lowest one; None if there are no scores.
        most: The highest one.
    """

    histogram: Counter[int] = field(default_factory=Counter)
    total: int = 0
    least: int | None = None
    most: int | None = None

    def add(self, scores: list[Any]) -> None:
        """Add scores; those that are no numbers are left out."""
        numbers = [score for score in scores if type(score) is int]
        if numbers:
            self.merge(ScoreCounts(Counter(numbers), sum(numbers), min(numbers), max(numbers)))

    def merge(self, other: ScoreCounts) -> None:
        """Add the counts of other posts."""
        if other.least is None or other.most is None:
            return
        for score, count in other.histogram.items():
            self.histogram[max(-LARGEST_SCORE, min(LARGEST_SCORE, score))] += count
        self.total += other.total
        self.least = other.least if self.least is None else min(self.least, other.least)
        self.most = other.most if self.most is None else max(self.most, other.most)


@dataclass(slots=True)
class NestedCounts:
    """Counts of rows of other tables that are nested in posts.

    Attributes:
        keys_present: Keys that any post has, even if they are empty.
        comments: Comments in all.
        comments_per_post: Posts by number of comments, of those that can have some.
        links: Links by type.
        votes: Votes by type.
    """

    keys_present: set[str] = field(default_factory=set)
    comments: int = 0
    comments_per_post: Counter[int] = field(default_factory=Counter)
    links: Counter[str] = field(default_factory=Counter)
    votes: Counter[str] = field(default_factory=Counter)

    def add(self, posts: list[dict[str, Any]]) -> None:
        """Add what some posts hold."""
        comments, links, votes = (
            _nested_objects(posts, key) for key in ("Comments", "Links", "Votes")
        )
        for key, total in (("Comments", comments), ("Links", links), ("Votes", votes)):
            if total:
                self.keys_present.add(key)
        for count, number in Counter(map(len, comments)).items():
            self.comments += count * number
            self.comments_per_post[min(count, MOST_COMMENTS)] += number
        _count(
            self.links, Counter(str(link.get("LinkType", "")) for some in links for link in some)
        )
        for some in votes:
            _count(self.votes, {kind: n for kind, n in some.items() if type(n) is int})

    def merge(self, other: NestedCounts) -> None:
        """Add what other posts hold."""
        self.keys_present |= other.keys_present
        self.comments += other.comments
        self.comments_per_post.update(other.comments_per_post)
        _count(self.links, other.links)
        _count(self.votes, other.votes)


def _nested_objects(posts: list[dict[str, Any]], key: str) -> list[Any]:
    """Values of posts under a key that are arrays of objects, or an object for votes."""
    kind = dict if key == "Votes" else list
    return [post[key] for post in posts if key in post and isinstance(post[key], kind)]


def _count(counts: Counter[str], more: Mapping[str, int]) -> None:
    for kind, number in more.items():
        counts[kind if kind in counts or len(counts) < MOST_KINDS else "others"] += number


@dataclass(slots=True)
class Survey:
    """Counts of some documents.

    Attributes:
        keys_present: Of `Answers`, `AcceptedAnswerId`, `Tags`, those that any question has.
        documents: Questions.
        answers: Answers in them.
        accepted: Questions with an accepted answer.
        unanswered: Questions without any answer.
        question_years: Questions by year, four digits.
        answer_years: Answers by year.
        answers_per_question: Questions by number of answers.
        question_scores: Scores of the questions.
        answer_scores: Scores of the answers.
        tags: Questions by tag.
        tags_given_up: Whether rare tags were given up.
        longest: Posts with the longest bodies: negative length in characters, post id, question id.
        first_date: The earliest date of a question or answer; empty if no post has a date.
        last_date: The latest one.
        nested: What the posts hold of other tables.
    """

    keys_present: set[str] = field(default_factory=set)
    documents: int = 0
    answers: int = 0
    accepted: int = 0
    unanswered: int = 0
    question_years: Counter[str] = field(default_factory=Counter)
    answer_years: Counter[str] = field(default_factory=Counter)
    answers_per_question: Counter[int] = field(default_factory=Counter)
    question_scores: ScoreCounts = field(default_factory=ScoreCounts)
    answer_scores: ScoreCounts = field(default_factory=ScoreCounts)
    tags: Counter[str] = field(default_factory=Counter)
    tags_given_up: bool = False
    longest: list[tuple[int, int, int]] = field(default_factory=list)
    first_date: str = ""
    last_date: str = ""
    nested: NestedCounts = field(default_factory=NestedCounts)

    def add(self, questions: list[dict[str, Any]]) -> None:
        """Add documents."""
        answers = [answer for question in questions for answer in question.get("Answers", ())]
        self.keys_present |= {
            key for key in _TELLING if any(key in question for question in questions)
        }
        self.documents += len(questions)
        self.answers += len(answers)
        self.accepted += sum("AcceptedAnswerId" in question for question in questions)
        counts = Counter(len(question.get("Answers", ())) for question in questions)
        self.unanswered += counts[0]
        for count, number in counts.items():
            self.answers_per_question[min(count, MOST_ANSWERS)] += number
        self.question_scores.add([question.get("Score") for question in questions])
        self.answer_scores.add([answer.get("Score") for answer in answers])
        for tags in [question.get("Tags") for question in questions]:
            self.tags.update(tags if isinstance(tags, list) else ())
        self._add_dates(questions, self.question_years)
        self._add_dates(answers, self.answer_years)
        self._add_lengths(questions)
        self.nested.add(questions)
        self.nested.add(answers)

    def _add_dates(self, posts: list[dict[str, Any]], years: Counter[str]) -> None:
        dates = [str(post["CreationDate"]) for post in posts if post.get("CreationDate")]
        dates = [date for date in dates if date[:4].isdecimal() and date[:4].isascii()]
        if dates:
            years.update(date[:4] for date in dates)
            self._extend(min(dates), max(dates))

    def _extend(self, first: str, last: str) -> None:
        self.first_date = min(self.first_date, first) if self.first_date else first
        self.last_date = max(self.last_date, last)

    def _add_lengths(self, questions: list[dict[str, Any]]) -> None:
        lengths = [
            (-len(post["Body"]), post.get("Id", 0), question.get("Id", 0))
            for question in questions
            for post in (question, *question.get("Answers", ()))
            if "Body" in post
        ]
        self.longest = sorted(self.longest + lengths)[:LONGEST]

    def merge(self, other: Survey) -> None:
        """Add the counts of the documents that follow."""
        self.keys_present |= other.keys_present
        self.documents += other.documents
        self.answers += other.answers
        self.accepted += other.accepted
        self.unanswered += other.unanswered
        self.question_years.update(other.question_years)
        self.answer_years.update(other.answer_years)
        self.answers_per_question.update(other.answers_per_question)
        self.question_scores.merge(other.question_scores)
        self.answer_scores.merge(other.answer_scores)
        self.tags.update(other.tags)
        if len(self.tags) > MOST_TAGS:
            ranked = sorted(self.tags.items(), key=lambda item: (-item[1], item[0]))
            self.tags = Counter(dict(ranked[: MOST_TAGS // 2]))
            self.tags_given_up = True
        self.longest = sorted(self.longest + other.longest)[:LONGEST]
        self.nested.merge(other.nested)
        if other.first_date:
            self._extend(other.first_date, other.last_date)


def survey(task: SurveyTask) -> Survey:
    """Count the documents of some segments.

    Raises:
        OutputError: The file is another by now, a segment is damaged, or holds something else.
    """
    result = Survey()
    with closing(SegmentReader(task.path, task.identity)) as reader:
        for entry in task.entries:
            try:
                result.add([orjson.loads(line) for line in reader.read(entry).splitlines()])
            except (orjson.JSONDecodeError, AttributeError, TypeError):
                raise OutputError(
                    f"{task.path}: after byte {entry.offset:,}, a line is not a document; "
                    "convert the dump again"
                ) from None
    return result
