"""`qa`: one question and one answer.

TRL's prompt-completion form (https://huggingface.co/docs/trl/dataset_formats), standard. Every
answer is a record of its own, the best first; on request only the accepted one, or only the best.
"""

from __future__ import annotations

from collections.abc import Iterator

from so2docs.recipes import posts
from so2docs.recipes.recipe import BOOLEAN, INTEGER, TEXT, Document, Recipe, Record, record

SCHEMA = record(
    prompt=TEXT,
    completion=TEXT,
    metadata=record(
        qid=INTEGER,
        **posts.METADATA,
        created=TEXT,
        answer_id=INTEGER,
        answer_url=TEXT,
        answer_score=INTEGER,
        accepted=BOOLEAN,
    ),
)


def qa(question: Document, *, best: bool = False) -> Iterator[Record]:
    """A record for each answer, by votes.

    Args:
        question: The document.
        best: Only of the answer with the highest score; of several, of the accepted or first one.
    """
    answers = posts.rank(question)
    if best and answers:
        answers = [max(answers, key=posts.score)]
    metadata = {"qid": question["Id"], **posts.metadata(question)}
    metadata["created"] = question.get("CreationDate", "")
    for answer in answers:
        yield {
            "prompt": posts.prompt(question),
            "completion": posts.text(answer),
            "metadata": {
                **metadata,
                "answer_id": answer["Id"],
                "answer_url": answer["Url"],
                "answer_score": posts.score(answer),
                "accepted": posts.is_accepted(answer, question),
            },
        }


def accepted(question: Document) -> Iterator[Record]:
    """A record of the accepted answer, if it is there."""
    return (record for record in qa(question) if record["metadata"]["accepted"])


RECIPE = Recipe(
    "qa",
    qa,
    SCHEMA,
    optional_tables=("users",),
    fields=posts.FIELDS,
    body="markdown",
    attributed=True,
    settings=("best",),
)
