"""The filters of a search in SQL. Pure.

All that they ask of posts is in the indexes of questions and answers that start with their ids.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from so2docs.serve.query import Query

_OF_QUESTION = {
    "answered": "{p}.Answers > 0",
    "unanswered": "{p}.Answers = 0",
    "accepted": "{p}.AcceptedAnswerId IS NOT NULL",
}
_NEVER = "0"


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of a query.

    Attributes:
        of_post: What a question or an answer must be itself, in terms of `{score}` and `{owner}`.
        of_question: What its question must be, in terms of `{p}`.
        tag: A tag of the question, to select by first; may be empty.
        values: Their values.
    """

    of_post: list[str]
    of_question: list[str]
    tag: str
    values: dict[str, Any]

    def on(self, score: str, owner: str, question: str) -> str:
        """The conditions in SQL, where these are the columns of the post and its question."""
        parts = ["1", *self.of_post, *self.of_question]
        return " AND ".join(part.format(score=score, owner=owner, p=question) for part in parts)


def parse_conditions(query: Query) -> Conditions:
    """The conditions of a query, apart from its words."""
    of_post: list[str] = []
    of_question = [_OF_QUESTION[kind] for kind in query.kinds if kind in _OF_QUESTION]
    values: dict[str, Any] = {}
    for names, word in ((query.tags, ""), (query.without_tags, "NOT ")):
        for name in names:
            key = f"tag{len(values)}"
            values[key] = name
            of_question.append(
                f"{word}EXISTS (SELECT 1 FROM question_tags t WHERE t.Tag = :{key} "
                "AND t.QuestionId = {p}.Id)"
            )
    if query.score is not None:
        values["score"] = query.score
        of_post.append("{score} >= :score")
    if query.user is not None:
        values["user"] = query.user
        of_post.append("{owner} = :user")
    if query.answers is not None:
        values["answers"] = query.answers
        of_question.append("{p}.Answers >= :answers")
    if {"question", "answer"} <= set(query.kinds):
        of_post.append(_NEVER)
    return Conditions(of_post, of_question, query.tags[0] if query.tags else "", values)


def code_conditions(query: Query) -> tuple[str, dict[str, Any]]:
    """That the text `x` of a post holds the words of code of a query, and their values."""
    values: dict[str, Any] = {}
    parts = ["1"]
    for words, end in ((query.code, "> 0"), (query.without_code, "= 0")):
        for word in words:
            key = f"code{len(values)}"
            values[key] = word
            texts = "coalesce(x.Title, '') || ' ' || coalesce(x.Tags, '') || ' ' || "
            parts.append(f"instr(lower({texts}coalesce(x.Body, '')), :{key}) {end}")
    return " AND ".join(parts), values
