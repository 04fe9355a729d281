"""Compare two states of a document, and count the changes. This module does no I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from so2docs.plugin import ANSWERS, Counts

Post = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs between two states of a document.

    Attributes:
        fields: Names of the question's fields that were added, changed or removed.
        answers: Ids of answers under the keys `added`, `edited` and `deleted`.
        answer_fields: Names of the changed fields of all edited answers, such as `Answers.Score`;
            a name occurs once for each answer.
    """

    fields: list[str]
    answers: dict[str, list[int]]
    answer_fields: list[str]

    def is_only_in(self, ignored: frozenset[str]) -> bool:
        """Whether nothing differs but ignored fields."""
        names = {*self.fields, *self.answer_fields}
        return names <= ignored and not self.answers["added"] and not self.answers["deleted"]


def find_difference(old: Post, new: Post) -> Difference:
    """Compare two states of a document; an added or deleted one has an empty state."""
    before, after = ({a["Id"]: a for a in document.get(ANSWERS, ())} for document in (old, new))
    edited = {
        answer_id: names
        for answer_id, answer in after.items()
        if answer_id in before and (names := _different_fields(before[answer_id], answer))
    }
    answers = {
        "added": [answer_id for answer_id in after if answer_id not in before],
        "edited": list(edited),
        "deleted": [answer_id for answer_id in before if answer_id not in after],
    }
    fields = [f"{ANSWERS}.{name}" for names in edited.values() for name in names]
    return Difference(_different_fields(old, new), answers, fields)


def _different_fields(before: Post, after: Post) -> list[str]:
    """List the fields that differ, in the order of the new state; removed fields come last."""
    missing = object()
    return [
        name
        for name in {**after, **before}
        if name != ANSWERS and before.get(name, missing) != after.get(name, missing)
    ]


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
        old_path: Path of the old output; empty for a new site.
        new_path: Path of the new output.
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

    def count(self, op: str, difference: Difference) -> None:
        """Count a document that was `added`, `changed` or `deleted`."""
        self.questions += PostCounts(**{op: 1})
        self.answers += PostCounts(*map(len, difference.answers.values()))
        if op == "changed":
            self.fields.update((*difference.fields, *difference.answer_fields))

    def as_dict(self) -> dict[str, Any]:
        """Return all counts by attribute."""
        return Counts.as_dict(self) | {"fields": dict(self.fields.most_common())}

    def columns(self) -> dict[str, int | float]:
        """Return this comparison's row of a table of several sites."""
        return {**self.questions.as_dict(), "unchanged": self.unchanged}

    def __str__(self) -> str:
        rows: dict[str, Iterable[int]] = {
            name: (getattr(self.questions, name), getattr(self.answers, name))
            for name in self.questions.as_dict()
        }
        rows["unchanged"] = (self.unchanged,)
        if self.fields:
            rows["by field"] = ()
        for name, _ in self.fields.most_common():
            plain = name.removeprefix(f"{ANSWERS}.")
            rows[f"  {plain}"] = self.fields[plain], self.fields[f"{ANSWERS}.{plain}"]
        lines = [f"{'':22}{'questions':>12}{'answers':>12}"]
        for name, numbers in rows.items():
            lines.append(f"{name:22}" + "".join(f"{number:>12,}" for number in numbers))
        return "\n".join(line.rstrip() for line in lines)
