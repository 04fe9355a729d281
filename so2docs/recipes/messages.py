"""`messages`: one question and one answer as a conversation.

TRL's conversational form (https://huggingface.co/docs/trl/dataset_formats), which chat templates
take: a message of the user, who asks, and one of the assistant, after one of the system if there is
to be one. Otherwise as `qa`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from so2docs.recipes import qa
from so2docs.recipes.recipe import TEXT, Document, Record, array, record

MESSAGES = array(record(role=TEXT, content=TEXT))
SCHEMA = record(
    messages=MESSAGES,
    metadata=qa.SCHEMA["properties"]["metadata"],
)


def messages(question: Document, *, system: str | None = None) -> Iterator[Record]:
    """A record for each answer, by votes.

    Args:
        question: The document.
        system: Message of the system, before each conversation.
    """
    return _converse(qa.qa(question), system)


def accepted(question: Document, *, system: str | None = None) -> Iterator[Record]:
    """A record of the accepted answer, if it is there."""
    return _converse(qa.accepted(question), system)


def _converse(records: Iterable[Record], system: str | None) -> Iterator[Record]:
    first = [] if system is None else [message("system", system)]
    for pair in records:
        sides = [message("user", pair["prompt"]), message("assistant", pair["completion"])]
        yield {"messages": first + sides, "metadata": pair["metadata"]}


def message(role: str, content: str) -> dict[str, str]:
    """Make a message of one side of a conversation."""
    return {"role": role, "content": content}


RECIPE = replace(qa.RECIPE, name="messages", function=messages, schema=SCHEMA, settings=("system",))
