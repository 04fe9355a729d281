"""`pairs`: a question, an answer that was liked better, and one that was liked less.

TRL's preference form (https://huggingface.co/docs/trl/dataset_formats), standard, with an explicit
prompt; on request conversational, with messages in place of texts. Better and worse is by the score
of `preferences`; a question gives at most ten pairs, as in lvwerra/stack-exchange-paired on the
Hugging Face hub. Which ten is drawn with the question's id as the seed, so that every run draws the
same.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from typing import Any

from so2docs.recipes import posts
from so2docs.recipes.messages import MESSAGES, message
from so2docs.recipes.posts import preference_score, text
from so2docs.recipes.recipe import BOOLEAN, INTEGER, TEXT, Document, Recipe, Record, record

MOST_PAIRS = 10

_SIDE = record(id=INTEGER, url=TEXT, score=INTEGER, accepted=BOOLEAN, license=TEXT, created=TEXT)
SCHEMA = record(
    prompt=TEXT,
    chosen=TEXT,
    rejected=TEXT,
    score_chosen=INTEGER,
    score_rejected=INTEGER,
    metadata=record(qid=INTEGER, **posts.METADATA, chosen=_SIDE, rejected=_SIDE),
)


def pairs(question: Document) -> Iterator[Record]:
    """Up to ten records of a question, the better answers first."""
    answers = posts.rank(question)
    scores = {answer["Id"]: preference_score(answer, question) for answer in answers}
    answers.sort(key=lambda answer: -scores[answer["Id"]])
    metadata = {"qid": question["Id"], **posts.metadata(question)}
    for better, worse in _drawn([scores[answer["Id"]] for answer in answers], question["Id"]):
        chosen, rejected = answers[better], answers[worse]
        yield {
            "prompt": posts.prompt(question),
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
        sides = {name: [message("assistant", pair[name])] for name in ("chosen", "rejected")}
        yield {**pair, "prompt": [message("user", pair["prompt"])], **sides}


def _drawn(scores: list[int], seed: int) -> list[tuple[int, int]]:
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
        "score": posts.score(answer),
        "accepted": posts.is_accepted(answer, question),
        "license": answer.get("ContentLicense", ""),
        "created": answer.get("CreationDate", ""),
    }


RECIPE = Recipe(
    "pairs",
    pairs,
    SCHEMA,
    optional_tables=("users",),
    fields=posts.FIELDS,
    body="markdown",
    attributed=True,
    settings=("conversational",),
)
CONVERSATIONAL = replace(
    RECIPE,
    function=conversational,
    schema=record(
        **SCHEMA["properties"] | dict.fromkeys(("prompt", "chosen", "rejected"), MESSAGES)
    ),
)
"""The recipe that was asked for."""
