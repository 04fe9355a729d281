"""`messages`: one question and one answer as a conversation.

TRL's conversational form (https://huggingface.co/docs/trl/dataset_formats), which chat templates
take: a message of the user, who asks, and one of the assistant. Otherwise as `qa`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from so2docs.recipes import qa
from so2docs.recipes.json_schema import TEXT, array, record
from so2docs.recipes.recipe import Document, Record

SCHEMA = record(
    messages=array(record(role=TEXT, content=TEXT)),
    metadata=qa.SCHEMA["properties"]["metadata"],
)


def messages(question: Document) -> Iterator[Record]:
    """A record for each answer, by votes."""
    return _conversations(qa.qa(question))


def accepted(question: Document) -> Iterator[Record]:
    """A record of the accepted answer, if it is there."""
    return _conversations(qa.accepted(question))


def _conversations(records: Iterable[Record]) -> Iterator[Record]:
    for one in records:
        sides = (("user", one["prompt"]), ("assistant", one["completion"]))
        yield {
            "messages": [{"role": role, "content": content} for role, content in sides],
            "metadata": one["metadata"],
        }


RECIPE = replace(qa.RECIPE, name="messages", function=messages, schema=SCHEMA)
