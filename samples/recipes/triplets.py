"""Triplets for sentence-transformers: a question, a better and a worse answer.

    so2docs convert DUMP triplets.jsonl.gz --recipe triplets:TRIPLETS

Trainers expect the columns in the order `anchor`, `positive`, `negative`
(https://sbert.net/docs/sentence_transformer/dataset_overview.html). A negative has a score of at
most 0, because an answer that readers liked is relevant too. A question gives at most ten triplets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Annotated, TypedDict

from so2docs.domain import rank
from so2docs.extensions.recipes import posts
from so2docs.extensions.recipes.answers import PAIRS, PairMetadata, draw_numbers
from so2docs.extensions.recipes.recipe import Document, Record

MOST_TRIPLETS = 10


def triplets(question: Document) -> Iterator[Record]:
    """Make records with anchor (the question), positive and negative from up to ten pairs."""
    scored = [(posts.preference_score(answer, question), answer) for answer in rank(question)]
    scored.sort(key=lambda pair: -pair[0])
    pairs = [
        (better, worse) for better, worse in combinations(scored, 2) if worse[0] < min(1, better[0])
    ]
    drawn = draw_numbers(len(pairs), MOST_TRIPLETS, question["Id"])
    asked, metadata, base = (
        posts.prompt(question),
        posts.metadata(question),
        posts.site_url(question),
    )
    for (score_chosen, chosen), (score_rejected, rejected) in map(pairs.__getitem__, drawn):
        yield {
            "anchor": asked,
            "positive": posts.text(chosen),
            "negative": posts.text(rejected),
            "score_chosen": score_chosen,
            "score_rejected": score_rejected,
            "metadata": {
                **metadata,
                "chosen": posts.side(chosen, question, base),
                "rejected": posts.side(rejected, question, base),
            },
        }


class Triplet(TypedDict):
    """A record."""

    anchor: Annotated[str, "question: title and body"]
    positive: Annotated[str, "better answer"]
    negative: Annotated[str, "worse answer"]
    score_chosen: Annotated[int, "score of the better answer"]
    score_rejected: Annotated[int, "score of the worse answer"]
    metadata: Annotated[PairMetadata, "source and attribution of the record"]


TRIPLETS = replace(
    PAIRS,
    function=triplets,
    record=Triplet,
    settings=(),
    variants={},
    summary="a question, a better and a worse answer, for embeddings",
    tasks=("sentence-similarity", "text-ranking"),
)
