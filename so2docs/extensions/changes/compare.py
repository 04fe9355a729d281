"""Compare two states of a document, and count the changes. This module does no I/O."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import orjson

from so2docs.counts import Counts
from so2docs.options.choices import Operation
from so2docs.schema import ANSWERS


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one document.

    Attributes:
        operation: `added`, `changed` or `deleted`.
        question_id: Id of the question.
        document: New document as a line of JSON; for a deletion, the old one.
        fields: Names of the question's fields that were added, changed or removed.
        answers: Ids of answers under the keys `added`, `edited` and `deleted`.
        answer_fields: Names of the changed fields of each edited answer, by answer id.
    """

    operation: Operation
    question_id: int
    document: bytes
    fields: tuple[str, ...] = ()
    answers: dict[str, list[int]] = field(default_factory=dict)
    answer_fields: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def record(self) -> bytes:
        """Return the change as a line of JSON, without a line feed."""
        head: dict[str, Any] = {"op": self.operation, "Id": self.question_id}
        if self.operation == "deleted":
            return orjson.dumps(head)
        if self.operation == "changed":
            head |= {"fields": self.fields, "answers": self.answers}
        return b'%b,"document":%b}' % (orjson.dumps(head)[:-1], self.document)


def compare(
    question_id: int, old: bytes | None, new: bytes | None, ignored: frozenset[str]
) -> Change | None:
    """Return the change between two states of a document; None if only ignored fields differ.

    The states are lines of JSON, or None for an output without the document.
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
    """List the fields that differ, in the order of the new state; removed fields come last."""
    missing = object()
    return tuple(
        name
        for name in {**after, **before}
        if name != ANSWERS and before.get(name, missing) != after.get(name, missing)
    )


@dataclass(slots=True)
class PostCounts(Counts):
    """Numbers of changed questions or answers.

    Attributes:
        added: Posts only in the new output.
        changed: Posts in both outputs with any change.
        deleted: Posts only in the old output.
    """

    added: int = 0
    changed: int = 0
    deleted: int = 0


@dataclass(slots=True)
class Summary(Counts):
    """The counts of a comparison of two outputs; complete after the last change.

    Attributes:
        old_path: Path of the old output or dump.
        new_path: Path of the new output or dump.
        unchanged: Number of documents that are equal in both outputs, except for ignored fields.
        questions: Numbers of changed questions.
        answers: Numbers of changed answers, including answers to added and deleted questions.
        fields: Number of posts in which a field was added, changed or removed, by field name.
            Fields of answers have names such as `Answers.Score`.
    """

    old_path: str
    new_path: str
    unchanged: int = 0
    questions: PostCounts = field(default_factory=PostCounts)
    answers: PostCounts = field(default_factory=PostCounts)
    fields: Counter[str] = field(default_factory=Counter)

    def add(self, change: Change) -> None:
        """Count a change."""
        if change.operation != "changed":
            answers = len(orjson.loads(change.document).get(ANSWERS, ()))
            for counts, number in ((self.questions, 1), (self.answers, answers)):
                setattr(counts, change.operation, getattr(counts, change.operation) + number)
            return
        self.questions.changed += 1
        self.fields.update(change.fields)
        self.answers.added += len(change.answers["added"])
        self.answers.changed += len(change.answers["edited"])
        self.answers.deleted += len(change.answers["deleted"])
        for names in change.answer_fields.values():
            self.fields.update(f"{ANSWERS}.{name}" for name in names)

    def as_dict(self) -> dict[str, Any]:
        """Return all counts by attribute."""
        return Counts.as_dict(self) | {"fields": dict(self.fields.most_common())}

    def columns(self) -> dict[str, int | float]:
        """Return this comparison's row of a table of several sites."""
        return {**self.questions.as_dict(), "unchanged": self.unchanged}

    def __str__(self) -> str:
        lines = [f"{'':22}{'questions':>12}{'answers':>12}"]
        for name in self.questions.as_dict():
            numbers = getattr(self.questions, name), getattr(self.answers, name)
            lines.append(f"{name:22}{numbers[0]:>12,}{numbers[1]:>12,}")
        lines.append(f"{'unchanged':22}{self.unchanged:>12,}")
        by_field: dict[str, list[int]] = {}
        for name, count in self.fields.most_common():
            plain = name.removeprefix(f"{ANSWERS}.")
            by_field.setdefault(plain, [0, 0])[plain != name] = count
        if by_field:
            lines.append("by field")
        lines += [f"  {name:20}{of[0]:>12,}{of[1]:>12,}" for name, of in by_field.items()]
        return "\n".join(lines)
