"""`hub`: a question with its answers and comments, in the form of a Hugging Face dataset.

The columns are those of HuggingFaceTB/stackexchange_2025_md on the Hugging Face Hub, as listed in
the front matter of its card: attributes in alphabetical order with the names of the dump, answers
with `IsAccepted`, comments inside their posts, and ids as integers. Tags are one text, as in dumps
since 2024 (`|tag|other|`). As in that dataset, each site is a folder and a configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, NotRequired, TypedDict

from so2docs.extensions.json_schema import Schema, describe_record
from so2docs.extensions.recipes import posts
from so2docs.extensions.recipes.recipe import BEST, Document, Recipe, Record
from so2docs.plugin import POSTS
from so2docs.schema import ANSWER_ATTRIBUTES, QUESTION_ATTRIBUTES, TABLES, Attributes

ALWAYS = ("Id", "PostTypeId", "Comments", "Answers", "IsAccepted")
"""Columns that are never null."""


def _declare(name: str, attributes: Attributes, **more: Any) -> Any:
    """Make the `TypedDict` of attributes and other columns, in alphabetical order."""
    columns = {key: int if kind == "integer" else str for key, kind in attributes.items()} | more
    return TypedDict(  # type: ignore[operator]
        name,
        {
            key: columns[key] if key in ALWAYS else NotRequired[columns[key]]
            for key in sorted(columns)
        },
    )


def _of_posts(names: Iterable[str]) -> Attributes:
    return {name: POSTS.attributes[name] for name in names}


Comment = _declare("Comment", TABLES["comments"].documented)
Comments = list[Comment]  # type: ignore[valid-type]
Accepted = Annotated[bool, "whether the asker accepted the answer"]
Answer = _declare("Answer", _of_posts(ANSWER_ATTRIBUTES), Comments=Comments, IsAccepted=Accepted)
Question = _declare(
    "Question",
    _of_posts(QUESTION_ATTRIBUTES),
    Answers=list[Answer],  # type: ignore[valid-type]
    Comments=Comments,
    Tags=Annotated[str, "tags of the question, such as `|taste|bottling|`"],
)


def hub(question: Document) -> Iterator[Record]:
    """Make one record from a question, with its answers and any nested comments."""
    for answer in question["Answers"]:
        answer["IsAccepted"] = posts.is_accepted(answer, question)
    if "Tags" in question:
        question["Tags"] = f"|{'|'.join(question['Tags'])}|"
    yield _row(question, _SCHEMA)


_SCHEMA = describe_record(Question)
_TYPES = {"string": str, "integer": int, "boolean": bool}


def _row(record: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """Select the attributes of a post or comment that have a column and fit its type."""
    row: dict[str, Any] = {}
    for name, kind in schema["properties"].items():
        if kind["type"] == "array":
            row[name] = [_row(part, kind["items"]) for part in record.get(name, ())]
        elif name in record and type(value := record[name]) is _TYPES[kind["type"]]:
            row[name] = value
    return row


HUB = Recipe(
    "hub",
    hub,
    Question,
    optional_tables=("comments",),
    fields=("Id", "PostTypeId", "AcceptedAnswerId", "Answers.Id", "Answers.PostTypeId"),
    body="markdown",
    is_by_site=True,
    settings=(BEST,),
    summary="a question with its answers and comments, for the Hugging Face Hub",
    tasks=("question-answering", "text-generation"),
)
