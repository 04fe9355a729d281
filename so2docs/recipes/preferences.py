"""`preferences`: a question with its answers, each with how much it was liked.

The form of HuggingFaceH4/stack-exchange-preferences on the Hugging Face hub, as its card describes
it and its script `make_stack_exchange.py` makes it: questions with two answers or more and two
scores or more, bodies as HTML; whoever has no user id is user -1, which every dump calls
"Community", and whoever is not in Users.xml "(user-not-found)".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from so2docs.recipes.posts import is_accepted, preference_score, score, site_url, text
from so2docs.recipes.recipe import BOOLEAN, INTEGER, TEXT, Document, Recipe, Record, array, record

_NOBODY = -1
_NAME_OF_NOBODY, _NOT_FOUND = "Community", "(user-not-found)"

SCHEMA = record(
    qid=INTEGER,
    question=TEXT,
    answers=array(
        record(
            answer_id=INTEGER,
            text=TEXT,
            pm_score=INTEGER,
            selected=BOOLEAN,
            author=TEXT,
            author_id=INTEGER,
            author_profile=TEXT,
        )
    ),
    date=TEXT,
    metadata=array(TEXT),
)


def preferences(question: Document) -> Iterator[Record]:
    """One record of a question, if its answers differ in score."""
    answers = question["Answers"]
    if len({score(answer) for answer in answers}) < 2:
        return
    host = site_url(question)
    yield {
        "qid": question["Id"],
        "question": text(question),
        "answers": [_answer(answer, question, host) for answer in answers],
        "date": str(question.get("CreationDate", ""))[:10].replace("-", "/"),
        "metadata": [question["Url"], host, f"{host}/users/{_user_id(question)}/"],
    }


def _answer(answer: Document, question: Document, host: str) -> dict[str, Any]:
    return {
        "answer_id": answer["Id"],
        "text": text(answer),
        "pm_score": preference_score(answer, question),
        "selected": is_accepted(answer, question),
        "author": _author(answer),
        "author_id": _user_id(answer),
        "author_profile": f"{host}/users/{_user_id(answer)}",
    }


def _user_id(post: Document) -> int:
    user_id = post.get("OwnerUserId")
    return user_id if isinstance(user_id, int) else _NOBODY


def _author(post: Document) -> str:
    usual = _NAME_OF_NOBODY if _user_id(post) == _NOBODY else _NOT_FOUND
    return str(post.get("Owner", {}).get("DisplayName", usual))


RECIPE = Recipe(
    "preferences",
    preferences,
    SCHEMA,
    optional_tables=("users",),
    fields=(
        "Id",
        "Body",
        "AcceptedAnswerId",
        "CreationDate",
        "OwnerUserId",
        "Answers.Id",
        "Answers.Body",
        "Answers.Score",
        "Answers.OwnerUserId",
    ),
    attributed=True,
)
