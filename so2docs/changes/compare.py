"""Two states of one document -> what changed in it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

Operation = Literal["added", "changed", "deleted"]

OPERATIONS: tuple[Operation, ...] = ("added", "changed", "deleted")

ANSWERS = "Answers"

DOCUMENT_KEY = b',"document":'
"""The start of a record; the document is its last key, byte for byte."""


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one document.

    Attributes:
        operation: `added`, `changed` or `deleted`.
        question_id: Of the document.
        document: The new document as a line of JSON without its end; the old one if it is deleted.
        fields: Names of the question's fields that were added, changed or removed.
        answers: By `added`, `edited` and `deleted`, the ids of those answers.
        answer_fields: By answer id, names of the fields that changed in an edited answer.
    """

    operation: Operation
    question_id: int
    document: bytes
    fields: tuple[str, ...] = ()
    answers: dict[str, list[int]] = field(default_factory=dict)
    answer_fields: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def record(self) -> bytes:
        """The change as a line of JSON, without its end."""
        head: dict[str, Any] = {"op": self.operation, "Id": self.question_id}
        if self.operation == "deleted":
            return orjson.dumps(head)
        if self.operation == "changed":
            head |= {"fields": self.fields, "answers": self.answers}
        return b"%b%b%b}" % (orjson.dumps(head)[:-1], DOCUMENT_KEY, self.document)


def compare(
    question_id: int, old: bytes | None, new: bytes | None, ignored: frozenset[str]
) -> Change | None:
    """Say what became of a document.

    Args:
        question_id: Of both states.
        old: The old state, a line of JSON; None if there is none.
        new: The new state in the same form.
        ignored: Names of fields, such as `ViewCount` or `Answers.Score`, whose change alone does
            not count.

    Returns:
        The change; None if nothing that counts changed.
    """
    if old is None or new is None:
        document = new or old or b""
        return Change("added" if old is None else "deleted", question_id, document)
    before, after = orjson.loads(old), orjson.loads(new)
    answers_before, answers_after = _answers(before), _answers(after)
    fields = _different(before, after)
    edited = {
        answer_id: names
        for answer_id, answer in answers_after.items()
        if answer_id in answers_before and (names := _different(answers_before[answer_id], answer))
    }
    answers = {
        "added": [id_ for id_ in answers_after if id_ not in answers_before],
        "edited": list(edited),
        "deleted": [id_ for id_ in answers_before if id_ not in answers_after],
    }
    touched = {*fields, *(f"{ANSWERS}.{name}" for names in edited.values() for name in names)}
    if touched and touched <= ignored and not answers["added"] and not answers["deleted"]:
        return None
    return Change("changed", question_id, new, fields, answers, edited)


def _answers(document: dict[str, Any]) -> dict[int, dict[str, Any]]:
    return {answer["Id"]: answer for answer in document.get(ANSWERS, ())}


def _different(before: dict[str, Any], after: dict[str, Any]) -> tuple[str, ...]:
    """Names of the fields that differ, those of the new state first, in its order."""
    missing = object()
    return tuple(
        name
        for name in {**after, **before}
        if name != ANSWERS and before.get(name, missing) != after.get(name, missing)
    )
