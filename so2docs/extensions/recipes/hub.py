"""`hub`: a question with its answers and comments, in the form of a Hugging Face dataset.

The columns are those of HuggingFaceTB/stackexchange_2025_md on the Hugging Face Hub, as listed in
the front matter of its card: attributes in alphabetical order with the names of the dump, answers
with `IsAccepted`, comments inside their posts, and ids as integers. Tags are one text, as in dumps
since 2024 (`|tag|other|`). As in that dataset, each site is a folder and a configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from so2docs.extensions.recipes import posts
from so2docs.extensions.recipes.recipe import (
    BEST,
    BOOLEAN,
    INTEGER,
    TEXT,
    Description,
    Document,
    Recipe,
    Record,
    Schema,
    array,
)
from so2docs.schema import ANSWER_ATTRIBUTES, QUESTION_ATTRIBUTES, TABLES, TYPES

ALWAYS = ("Id", "PostTypeId", "Comments", "Answers", "IsAccepted")
"""Columns that are never null."""


def _columns(names: Iterable[str], **more: Schema) -> Schema:
    kinds = {name: INTEGER if TYPES[name] == "integer" else TEXT for name in names} | more
    return {
        "type": "object",
        "properties": {name: kinds[name] for name in sorted(kinds)},
        "required": [name for name in ALWAYS if name in kinds],
        "additionalProperties": False,
    }


_COMMENT = _columns(TABLES["comments"].documented)
_ANSWER = _columns(ANSWER_ATTRIBUTES, Comments=array(_COMMENT), IsAccepted=BOOLEAN)
SCHEMA = _columns(QUESTION_ATTRIBUTES, Answers=array(_ANSWER), Comments=array(_COMMENT))


def hub(question: Document) -> Iterator[Record]:
    """Make one record from a question, with its answers and any nested comments."""
    for answer in question["Answers"]:
        answer["IsAccepted"] = posts.is_accepted(answer, question)
    if "Tags" in question:
        question["Tags"] = f"|{'|'.join(question['Tags'])}|"
    yield _row(question, _COLUMNS)


_TYPES = {"string": str, "integer": int, "boolean": bool}
_Columns = tuple[tuple[str, type | None, Any], ...]
"""Name and type of each column; None and the columns of the elements for an array."""


def _typed(schema: Schema) -> _Columns:
    return tuple(
        (name, _TYPES.get(kind["type"]), _typed(kind["items"]) if "items" in kind else None)
        for name, kind in schema["properties"].items()
    )


_COLUMNS = _typed(SCHEMA)


def _row(record: dict[str, Any], columns: _Columns) -> dict[str, Any]:
    """Select the attributes of a post or comment that have a column and fit its type."""
    row: dict[str, Any] = {}
    for name, type_, inner in columns:
        if type_ is None:
            row[name] = [_row(part, inner) for part in record.get(name, ())]
        elif name in record and type(value := record[name]) is type_:
            row[name] = value
    return row


HUB = Recipe(
    "hub",
    hub,
    SCHEMA,
    optional_tables=("comments",),
    fields=("Id", "PostTypeId", "AcceptedAnswerId", "Answers.Id", "Answers.PostTypeId"),
    body="markdown",
    is_by_site=True,
    settings=(BEST,),
    description=Description(
        summary="a question with its answers and comments, for the Hugging Face Hub",
        tasks=("question-answering", "text-generation"),
        meanings={"Tags": "tags of the question, such as `|taste|bottling|`"},
    ),
)
