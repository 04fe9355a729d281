"""`texts`: texts of a question and its best answer, for training embeddings.

The forms are those of four sets by flax-sentence-embeddings on the Hugging Face Hub, named
`stackexchange_FORM_jsonl`, as described in their cards and made by `transforms.py` in
https://github.com/nreimers/flax-sentence-embeddings: title and body; title and best answer; title
with body and best answer; the same with the worst answer, for questions whose best answer has at
least 100 votes more than the worst. All of them leave out questions whose title or body is shorter
than 20 characters, whose body is longer than 4,096, or whose score is negative. The column
`metadata`, which these sets lack, has the licences and authors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from so2docs.domain import score
from so2docs.extensions.recipes import posts
from so2docs.extensions.recipes.answers import QA
from so2docs.options.recipe import (
    TEXT,
    Adjustments,
    Description,
    Document,
    Record,
    Schema,
    Setting,
    array,
    record,
)

_SHORTEST, _LONGEST = 20, 4096
"""Limits of the lengths of a title and a body, in characters."""

_TITLE_BODY = "title_body"
_TITLE, _TITLE_AND_BODY = "title_best_voted_answer", "titlebody_best_voted_answer"
_BEST_AND_WORST = "titlebody_best_and_down_voted_answer"
_ANSWERS = {
    _TITLE_BODY: (),
    _TITLE: ("upvoted_answer",),
    _TITLE_AND_BODY: ("upvoted_answer",),
    _BEST_AND_WORST: ("upvoted_answer", "downvoted_answer"),
}
"""Columns of answers in each form."""


def texts(
    question: Document, *, form: str = _TITLE_AND_BODY, min_gap: int = 100
) -> Iterator[Record]:
    """Make one record from a question, if its texts and votes qualify.

    Args:
        question: The document.
        form: One of the forms in `_ANSWERS`.
        min_gap: Minimum difference between the votes of the best and the worst answer.
    """
    title, body = question.get("Title", ""), posts.text(question)
    columns, answers = _ANSWERS[form], question["Answers"]
    is_long = min(len(title), len(body)) >= _SHORTEST and len(body) <= _LONGEST
    if not is_long or score(question) < 0 or (columns and not answers):
        return
    chosen = [max(answers, key=score), min(answers, key=score)][: len(columns)] if columns else []
    if len(chosen) == 2 and score(chosen[0]) - score(chosen[1]) < min_gap:
        return
    if columns:
        values = {"title_body": title if form == _TITLE else f"{title} {body}"}
        values |= {name: posts.text(answer) for name, answer in zip(columns, chosen, strict=True)}
    base = posts.site_url(question)
    sides = (posts.side(answer, question, base) for answer in chosen)
    yield {
        **(values if columns else {"texts": [title, body]}),
        "tags": question.get("Tags", []),
        "metadata": {**posts.metadata(question), **dict(zip(columns, sides, strict=True))},
    }


def _schema(form: str) -> Schema:
    columns = _ANSWERS[form]
    texts = dict.fromkeys(("title_body", *columns), TEXT) if columns else {"texts": array(TEXT)}
    sides = dict.fromkeys(columns, record(**posts.SIDE))
    return record(**texts, tags=array(TEXT), metadata=record(**posts.METADATA, **sides))


TEXTS = replace(
    QA,
    name="texts",
    function=texts,
    schema=_schema(_TITLE_AND_BODY),
    body="text",
    best_only=True,
    adjustments=Adjustments(
        settings=(
            Setting(
                "form",
                "Write the form of the set stackexchange_FORM_jsonl by flax-sentence-embeddings.",
                str,
                _TITLE_AND_BODY,
                choices=tuple(_ANSWERS),
            ),
            Setting(
                "min_gap",
                f"Minimum difference between the votes of both answers, in {_BEST_AND_WORST}.",
                int,
                100,
                least=0,
            ),
        ),
        variants={
            f"form={form}": {
                "function": partial(texts, form=form),
                "schema": _schema(form),
                "questions_only": not columns,
                "best_only": len(columns) < 2,
                "min_answers": len(columns),
            }
            for form, columns in _ANSWERS.items()
        },
    ),
    description=Description(
        summary="a question and its best answer, for embeddings",
        tasks=("sentence-similarity", "question-answering"),
        meanings={
            **posts.MEANINGS,
            "texts": "title and body of the question",
            "title_body": "title of the question, or its title and body",
            "upvoted_answer": "answer with the most votes",
            "downvoted_answer": "answer with the fewest votes",
            "metadata.upvoted_answer": "id, URL, score, licence and authors of the best answer",
            "metadata.downvoted_answer": "id, URL, score, licence and authors of the worst answer",
        },
    ),
)
