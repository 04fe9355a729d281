"""Two states of one document -> what changed in it, and the numbers of such changes. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from so2docs.counts import Counts

Operation = Literal["added", "changed", "deleted"]

OPERATIONS: tuple[Operation, ...] = ("added", "changed", "deleted")

ANSWERS = "Answers"

DOCUMENT_KEY = b',"document":'
"""The start of a record; the document is its last key, byte for byte."""


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one document.

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
        old: The old state, a line of JSON, or None.
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


_TEXT = {"Title", "Body"}


@dataclass(slots=True)
class PostCounts(Counts):
    """How many posts of one kind changed, and how; a post may count in several of these.

    Attributes:
        added: Only in the new output.
        edited: Title or body changed.
        rescored: `Score` changed.
        retagged: `Tags` changed.
        deleted: Only in the old output.
        changed: Anything changed, counted once a post.
    """

    added: int = 0
    edited: int = 0
    rescored: int = 0
    retagged: int = 0
    deleted: int = 0
    changed: int = 0

    def add(self, names: tuple[str, ...]) -> None:
        """Count a post of which these fields changed."""
        self.changed += 1
        self.edited += not _TEXT.isdisjoint(names)
        self.rescored += "Score" in names
        self.retagged += "Tags" in names


@dataclass(slots=True)
class Summary(Counts):
    """The counts of a comparison of two outputs; complete after the last change.

    Attributes:
        old_path: The old output, or the dump that it was made from.
        new_path: The new one.
        unchanged: Documents that are the same in both, or differ only in what is ignored.
        questions: How many questions changed.
        answers: How many answers changed; those of added and deleted questions are among them.
        fields: By name, the posts in which a field was added, changed or removed; those of answers
            have names such as `Answers.Score`.
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
                if change.operation == "added":
                    counts.added += number
                else:
                    counts.deleted += number
            return
        self.questions.add(change.fields)
        self.fields.update(change.fields)
        self.answers.added += len(change.answers["added"])
        self.answers.deleted += len(change.answers["deleted"])
        for names in change.answer_fields.values():
            self.answers.add(names)
            self.fields.update(f"{ANSWERS}.{name}" for name in names)

    def as_dict(self) -> dict[str, Any]:
        """The numbers under the names of the attributes."""
        return Counts.as_dict(self) | {"fields": dict(self.fields.most_common())}

    def __str__(self) -> str:
        lines = [f"{'':22}{'questions':>12}{'answers':>12}"]
        for name in self.questions.as_dict():
            numbers = getattr(self.questions, name), getattr(self.answers, name)
            label = {"rescored": "score changed", "retagged": "tags changed"}.get(name, name)
            lines.append(f"{label:22}{numbers[0]:>12,}{numbers[1]:>12,}")
        lines.append(f"{'unchanged':22}{self.unchanged:>12,}")
        by_field: dict[str, list[int]] = {}
        for name, count in self.fields.most_common():
            plain = name.removeprefix(f"{ANSWERS}.")
            by_field.setdefault(plain, [0, 0])[plain != name] = count
        if by_field:
            lines.append("by field")
        lines += [f"  {name:20}{of[0]:>12,}{of[1]:>12,}" for name, of in by_field.items()]
        return "\n".join(lines)
