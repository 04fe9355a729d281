"""What changed, in numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from so2docs.changes.compare import ANSWERS, Change

_TEXT = {"Title", "Body"}


@dataclass(slots=True)
class PostCounts:
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
class Summary:
    """What a comparison of two outputs found; complete when the changes were all read.

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
        return asdict(self) | {"fields": dict(self.fields.most_common())}

    def __str__(self) -> str:
        lines = [f"{'':22}{'questions':>12}{'answers':>12}"]
        for name in PostCounts.__dataclass_fields__:
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
