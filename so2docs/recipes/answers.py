"""Recipes for training on answers: `qa`, `messages`, `pairs`, `preferences`.

`qa` has TRL's prompt-completion form (https://huggingface.co/docs/trl/dataset_formats), standard: a
record for each answer, the best first; on request only the accepted one, or only the best.
`messages` is the same in TRL's conversational form, which chat templates take: a message of the
user, who asks, and one of the assistant, after one of the system if there is to be one.

`pairs` has TRL's preference form, standard, with an explicit prompt; on request conversational,
with messages in place of texts. Better and worse is by the score of `preferences`; a question gives
at most ten pairs, as in lvwerra/stack-exchange-paired on the Hugging Face hub. Which ten is drawn
with the question's id as the seed, so that every run draws the same.

`preferences` has the form of HuggingFaceH4/stack-exchange-preferences on the Hugging Face hub, as
its card describes it and its script `make_stack_exchange.py` makes it: questions with two answers
or more and two scores or more, bodies as HTML; whoever has no user id is user -1, which every dump
calls "Community", and whoever is not in Users.xml "(user-not-found)".
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from typing import Any

from so2docs.recipes import posts
from so2docs.recipes.posts import is_accepted, preference_score, prompt, score, site_url, text
from so2docs.recipes.recipe import BOOLEAN, INTEGER, TEXT, Document, Recipe, Record, array, record


def qa(question: Document, *, best: bool = False, accepted: bool = False) -> Iterator[Record]:
    """A record for each answer, by votes.

    Args:
        question: The document.
        best: Only of the answer with the highest score; of several, of the accepted or first one.
        accepted: Only of the accepted answer, if it is there.
    """
    answers = posts.rank(question)
    if best and answers:
        answers = [max(answers, key=score)]
    metadata = {"qid": question["Id"], **posts.metadata(question)}
    metadata["created"] = question.get("CreationDate", "")
    for answer in answers:
        if accepted and not is_accepted(answer, question):
            continue
        yield {
            "prompt": prompt(question),
            "completion": text(answer),
            "metadata": {
                **metadata,
                "answer_id": answer["Id"],
                "answer_url": answer["Url"],
                "answer_score": score(answer),
                "accepted": is_accepted(answer, question),
            },
        }


_QA_METADATA = record(
    qid=INTEGER,
    **posts.METADATA,
    created=TEXT,
    answer_id=INTEGER,
    answer_url=TEXT,
    answer_score=INTEGER,
    accepted=BOOLEAN,
)
QA = Recipe(
    "qa",
    qa,
    record(prompt=TEXT, completion=TEXT, metadata=_QA_METADATA),
    optional_tables=("users",),
    fields=posts.FIELDS,
    body="markdown",
    attributed=True,
    settings=("best", "accepted"),
)


def messages(
    question: Document, *, system: str | None = None, accepted: bool = False
) -> Iterator[Record]:
    """A conversation for each answer, by votes.

    Args:
        question: The document.
        system: Message of the system, before each conversation.
        accepted: Only of the accepted answer, if it is there.
    """
    first = [] if system is None else [_message("system", system)]
    for pair in qa(question, accepted=accepted):
        sides = [_message("user", pair["prompt"]), _message("assistant", pair["completion"])]
        yield {"messages": first + sides, "metadata": pair["metadata"]}


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


_MESSAGES = array(record(role=TEXT, content=TEXT))
MESSAGES = replace(
    QA,
    name="messages",
    function=messages,
    schema=record(messages=_MESSAGES, metadata=_QA_METADATA),
    settings=("system", "accepted"),
)

MOST_PAIRS = 10


def pairs(question: Document) -> Iterator[Record]:
    """Up to ten records of a question, the better answers first."""
    answers = posts.rank(question)
    scores = {answer["Id"]: preference_score(answer, question) for answer in answers}
    answers.sort(key=lambda answer: -scores[answer["Id"]])
    metadata = {"qid": question["Id"], **posts.metadata(question)}
    for better, worse in draw_pairs([scores[answer["Id"]] for answer in answers], question["Id"]):
        chosen, rejected = answers[better], answers[worse]
        yield {
            "prompt": prompt(question),
            "chosen": text(chosen),
            "rejected": text(rejected),
            "score_chosen": scores[chosen["Id"]],
            "score_rejected": scores[rejected["Id"]],
            "metadata": {
                **metadata,
                "chosen": _side(chosen, question),
                "rejected": _side(rejected, question),
            },
        }


def conversational(question: Document) -> Iterator[Record]:
    """Make preference pairs in the form of messages."""
    for pair in pairs(question):
        sides = {name: [_message("assistant", pair[name])] for name in ("chosen", "rejected")}
        yield {**pair, "prompt": [_message("user", pair["prompt"])], **sides}


def draw_pairs(scores: list[int], seed: int) -> list[tuple[int, int]]:
    """Places of the better and the worse answer of each pair, out of falling scores.

    All pairs are numbered without being made: a question may have a million answers.
    """
    rising = [-score for score in scores]
    worse_answers = [len(scores) - bisect_right(rising, score) for score in rising]
    ends = list(accumulate(worse_answers))
    total = ends[-1] if ends else 0
    numbers = set(range(total)) if total <= MOST_PAIRS else set[int]()
    # Of this module, only what random() returns is the same in every version of Python.
    draw = random.Random(seed).random
    while len(numbers) < min(total, MOST_PAIRS):
        numbers.add(int(draw() * total))
    drawn = []
    for number in sorted(numbers):
        better = bisect_right(ends, number)
        drawn.append((better, len(scores) - ends[better] + number))
    return drawn


def _side(answer: Document, question: Document) -> dict[str, Any]:
    return {
        "id": answer["Id"],
        "url": answer["Url"],
        "score": score(answer),
        "accepted": is_accepted(answer, question),
        "license": answer.get("ContentLicense", ""),
        "created": answer.get("CreationDate", ""),
    }


_SIDE = record(id=INTEGER, url=TEXT, score=INTEGER, accepted=BOOLEAN, license=TEXT, created=TEXT)
_SCORES_AND_SOURCE = {
    "score_chosen": INTEGER,
    "score_rejected": INTEGER,
    "metadata": record(qid=INTEGER, **posts.METADATA, chosen=_SIDE, rejected=_SIDE),
}
_TEXTS = ("prompt", "chosen", "rejected")
PAIRS = replace(
    QA,
    name="pairs",
    function=pairs,
    schema=record(**dict.fromkeys(_TEXTS, TEXT), **_SCORES_AND_SOURCE),
    settings=("conversational",),
)
PAIRS = replace(
    PAIRS,
    variants={
        "conversational": replace(
            PAIRS,
            function=conversational,
            schema=record(**dict.fromkeys(_TEXTS, _MESSAGES), **_SCORES_AND_SOURCE),
        )
    },
)

_NOBODY = -1
_NAME_OF_NOBODY, _NOT_FOUND = "Community", "(user-not-found)"


def preferences(question: Document) -> Iterator[Record]:
    """One record of a question, if its answers differ in score."""
    answers = question["Answers"]
    if len({score(answer) for answer in answers}) < 2:
        return
    host = site_url(question)
    yield {
        "qid": question["Id"],
        "question": text(question),
        "answers": [_preference(answer, question, host) for answer in answers],
        "date": str(question.get("CreationDate", ""))[:10].replace("-", "/"),
        "metadata": [question["Url"], host, f"{host}/users/{_user_id(question)}/"],
    }


def _preference(answer: Document, question: Document, host: str) -> dict[str, Any]:
    user_id = _user_id(answer)
    usual = _NAME_OF_NOBODY if user_id == _NOBODY else _NOT_FOUND
    return {
        "answer_id": answer["Id"],
        "text": text(answer),
        "pm_score": preference_score(answer, question),
        "selected": is_accepted(answer, question),
        "author": str(answer.get("Owner", {}).get("DisplayName", usual)),
        "author_id": user_id,
        "author_profile": f"{host}/users/{user_id}",
    }


def _user_id(post: Document) -> int:
    user_id = post.get("OwnerUserId")
    return user_id if isinstance(user_id, int) else _NOBODY


_PREFERENCE = record(
    answer_id=INTEGER,
    text=TEXT,
    pm_score=INTEGER,
    selected=BOOLEAN,
    author=TEXT,
    author_id=INTEGER,
    author_profile=TEXT,
)
_OF_ANSWERS = ("Id", "Body", "Score", "OwnerUserId")
PREFERENCES = Recipe(
    "preferences",
    preferences,
    record(qid=INTEGER, question=TEXT, answers=array(_PREFERENCE), date=TEXT, metadata=array(TEXT)),
    optional_tables=("users",),
    fields=(
        *("Id", "Body", "AcceptedAnswerId", "CreationDate", "OwnerUserId"),
        *(f"Answers.{name}" for name in _OF_ANSWERS),
    ),
    attributed=True,
)
