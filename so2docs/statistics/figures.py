"""The counts of an output: plain values, which the views show as text and as HTML."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


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
        first_date: Date of the earliest question or answer; empty if there is none.
        last_date: Date of the latest one.
        questions_by_year: Questions by year of `CreationDate`.
        answers_by_year: Answers by year.
        answers_per_question: Questions by number of answers.
        question_scores: Scores of the questions.
        answer_scores: Scores of the answers.
        distinct_tags: Number of different tags, at least so many if above a million; None if no
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
