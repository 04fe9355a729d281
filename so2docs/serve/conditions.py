"""The filters of a search in SQL. Pure."""

from __future__ import annotations

from typing import Any

from so2docs.serve.query import Query

_IS = {
    "question": "q.Id IS NOT NULL",
    "answer": "a.Id IS NOT NULL",
    "answered": "EXISTS (SELECT 1 FROM answers x WHERE x.ParentId = p.Id)",
    "unanswered": "NOT EXISTS (SELECT 1 FROM answers x WHERE x.ParentId = p.Id)",
    "accepted": "p.AcceptedAnswerId IS NOT NULL",
}


def posts_of(alias: str) -> str:
    """The post of a row: `q` if it is a question, `a` if an answer; `p` is its question."""
    return (
        f"LEFT JOIN questions q ON q.Row = {alias}.Row LEFT JOIN answers a ON a.Row = {alias}.Row "
        "LEFT JOIN questions p ON p.Id = coalesce(q.Id, a.ParentId)"
    )


def conditions_of(query: Query) -> tuple[list[str], dict[str, Any]]:
    """Conditions of a query, and their values."""
    conditions = [_IS[kind] for kind in query.kinds]
    values: dict[str, Any] = {}
    for names, word in ((query.tags, ""), (query.without_tags, "NOT ")):
        for name in names:
            key = f"tag{len(values)}"
            values[key] = name
            conditions.append(
                f"{word}EXISTS (SELECT 1 FROM question_tags t WHERE t.Tag = :{key} "
                "AND t.QuestionId = p.Id)"
            )
    if query.score is not None:
        values["score"] = query.score
        conditions.append("coalesce(q.Score, a.Score) >= :score")
    if query.answers is not None:
        values["answers"] = query.answers
        conditions.append("(SELECT count(*) FROM answers x WHERE x.ParentId = p.Id) >= :answers")
    if query.user is not None:
        values["user"] = query.user
        conditions.append("coalesce(q.OwnerUserId, a.OwnerUserId) = :user")
    return conditions, values
