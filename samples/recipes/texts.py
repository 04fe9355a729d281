"""Texts of a question and its best answer, for training embeddings.

    so2docs convert DUMP texts.jsonl.gz --recipe texts:titlebody_best_voted_answer

The recipes have the names and forms of four sets by flax-sentence-embeddings on the Hugging Face
Hub, `stackexchange_NAME_jsonl`, as described in their cards and made by `transforms.py` in
https://github.com/nreimers/flax-sentence-embeddings: title and body; title and best answer; title
with body and best answer; the same with the worst answer, for questions whose best answer has at
least 100 votes more than the worst. All of them leave out questions whose title or body is shorter
than 20 characters, whose body is longer than 4,096, or whose score is negative. Of answers with
equal votes, the first one is taken, as there. The column `metadata`, which these sets lack, has the
licences and authors. Default texts of pictures, such as "enter image description here", are left
out: the sets have no text of pictures at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Annotated, TypedDict

from so2docs import Recipe
from so2docs.domain import score
from so2docs.extensions.recipes import posts
from so2docs.extensions.recipes.recipe import Document, Record

SHORTEST, LONGEST = 20, 4096
"""Limits of the lengths of a title and a body, in characters."""

MIN_GAP = 100
"""Minimum difference between the votes of the best and the worst answer."""


def texts(
    question: Document, *, answers: tuple[str, ...] = (), has_body: bool = True
) -> Iterator[Record]:
    """Make one record from a question, if its texts and votes qualify.

    Args:
        question: The document.
        answers: Columns of answers: none, the best, or the best and the worst.
        has_body: Whether the text of the question includes its body.
    """
    title, body = question.get("Title", ""), posts.text(question)
    is_long = min(len(title), len(body)) >= SHORTEST and len(body) <= LONGEST
    if not is_long or score(question) < 0 or len(question["Answers"]) < len(answers):
        return
    by_votes = (
        [max(question["Answers"], key=score), min(question["Answers"], key=score)]
        if answers
        else []
    )
    chosen = by_votes[: len(answers)]
    if len(chosen) == 2 and score(chosen[0]) - score(chosen[1]) < MIN_GAP:
        return
    base = posts.site_url(question)
    columns = {name: posts.text(answer) for name, answer in zip(answers, chosen, strict=True)}
    asked = f"{title} {body}" if has_body else title
    sides = [posts.side(answer, question, base) for answer in chosen]
    yield {
        **({"title_body": asked, **columns} if answers else {"texts": [title, body]}),
        "tags": question.get("Tags", []),
        "metadata": {**posts.metadata(question), **dict(zip(answers, sides, strict=True))},
    }


class _BestMetadata(posts.Metadata):
    upvoted_answer: Annotated[posts.Side, "id, URL, score, licence and authors of the best answer"]


class _BothMetadata(_BestMetadata):
    downvoted_answer: Annotated[posts.Side, "the same of the worst answer"]


class TitleAndBody(TypedDict):
    """A record without answers."""

    texts: Annotated[list[str], "title and body of the question"]
    tags: Annotated[list[str], "tags of the question"]
    metadata: posts.Metadata


class BestAnswer(TypedDict):
    """A record with the best answer."""

    title_body: Annotated[str, "title of the question, or its title and body"]
    upvoted_answer: Annotated[str, "answer with the most votes"]
    tags: Annotated[list[str], "tags of the question"]
    metadata: _BestMetadata


class BestAndWorst(TypedDict):
    """A record with the best and the worst answer."""

    title_body: Annotated[str, "title and body of the question"]
    upvoted_answer: Annotated[str, "answer with the most votes"]
    downvoted_answer: Annotated[str, "answer with the fewest votes"]
    tags: Annotated[list[str], "tags of the question"]
    metadata: _BothMetadata


def _recipe(name: str, record: type, *answers: str, has_body: bool = True) -> Recipe:
    return Recipe(
        name,
        partial(texts, answers=answers, has_body=has_body),
        record,
        optional_tables=("users",),
        fields=posts.FIELDS,
        body="text",
        attributed="posts",
        without_banner=True,
        answers="all" if answers else "none",
        min_answers=len(answers),
        summary="a question and its best answer, for embeddings",
        tasks=("sentence-similarity", "question-answering"),
    )


_BEST, _WORST = "upvoted_answer", "downvoted_answer"
title_body = _recipe("title_body", TitleAndBody)
title_best_voted_answer = _recipe("title_best_voted_answer", BestAnswer, _BEST, has_body=False)
titlebody_best_voted_answer = _recipe("titlebody_best_voted_answer", BestAnswer, _BEST)
titlebody_best_and_down_voted_answer = _recipe(
    "titlebody_best_and_down_voted_answer", BestAndWorst, _BEST, _WORST
)
