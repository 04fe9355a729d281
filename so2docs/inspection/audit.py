"""Equalities that hold inside every dump, and the rows of this one for which they do not.

What is known of an id is kept in files that are mapped into memory, so that the system can take the
memory back: 110 bytes a post for all of it.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from so2docs.domain import FIRST_FABRICATED_ID
from so2docs.inspection.rows import RowFacts

_QUESTION, _ANSWER = 1, 2
_EXAMPLES = 5
_FIRST_IDS = 1 << 16
_AT_ONCE = 1 << 12
_TEXTS = ("title", "tags", "body")

_Form = Literal["b", "i", "I", "q"]


@dataclass(frozen=True, slots=True)
class Check:
    """An equality that was held against the rows.

    Attributes:
        name: What should hold.
        checked: Rows that it is about.
        differ: Those for which it does not hold.
        examples: The first ids of those, or the names of tags.
    """

    name: str
    checked: int
    differ: int
    examples: tuple[int | str, ...]


class ById:
    """A number for each id, 0 at first."""

    def __init__(self, folder: str, form: _Form) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self._form, self._width = form, {"b": 1, "i": 4, "I": 4, "q": 8}[form]
        self._map: mmap.mmap | None = None
        self._grow(_FIRST_IDS)

    def _grow(self, ids: int) -> None:
        self._close_view()
        os.ftruncate(self._file.fileno(), ids * self._width)
        self._map = mmap.mmap(self._file.fileno(), ids * self._width)
        self.values = memoryview(self._map).cast("B").cast(self._form)

    def _close_view(self) -> None:
        if self._map is not None:
            self.values.release()
            self._map.close()
            self._map = None

    def close(self) -> None:
        """Remove the file."""
        self._close_view()
        self._file.close()

    def reserve(self, keys: Iterable[int]) -> None:
        """Make room for some ids."""
        highest = max((key for key in keys if key < FIRST_FABRICATED_ID), default=0)
        if highest >= len(self.values):
            self._grow(max(highest + 1, 2 * len(self.values)))

    def update(
        self, facts: RowFacts, name: str, change: Callable[[int, int], int], sign: int = 1
    ) -> None:
        """Change the numbers of the ids of a chunk.

        Args:
            facts: What was found in it.
            name: Which of its pairs.
            change: The number that was there, and the value of the pair -> the number.
            sign: What values are multiplied by.
        """
        keys, values = facts.pairs.get(name, ((), ()))
        self.reserve(keys)
        there = self.values
        for key, value in zip(keys, values, strict=True):
            if key < FIRST_FABRICATED_ID:
                there[key] = change(there[key], sign * value)

    def __getitem__(self, key: int) -> int:
        return self.values[key] if key < len(self.values) else 0

    def nonzero_ids(self) -> Iterator[int]:
        """Ids whose number is not 0, in ascending order."""
        size = _AT_ONCE * self._width
        blank = bytes(size)
        raw = self.values.cast("B")
        for start in range(0, len(self.values), _AT_ONCE):
            at = start * self._width
            if raw[at : at + size] != blank[: len(raw) - at]:
                end = min(start + _AT_ONCE, len(self.values))
                yield from (key for key in range(start, end) if self.values[key])
        raw.release()


def _add(before: int, value: int) -> int:
    return before + value


def _set(before: int, value: int) -> int:
    return value


_FORMS: dict[str, _Form] = {
    "kind": "b",
    "closed": "b",
    "answers": "i",
    "comments": "i",
    "parent": "q",
    "accepted": "q",
    "created": "q",
    "edited": "q",
    "last revision": "q",
    "closing": "q",
    "owner": "I",
    **dict.fromkeys(("title", "tags", "body", "last title", "last tags", "last body"), "I"),
    **dict.fromkeys(("date of title", "date of tags", "date of body"), "q"),
}


class Audit:
    """Compares what rows declare with the rows that there are."""

    def __init__(self, folder: str) -> None:
        self._by_id = {name: ById(folder, form) for name, form in _FORMS.items()}
        self._tags: Counter[str] = Counter()
        self._declared_tags: Counter[str] = Counter()
        self._tables: set[str] = set()

    def close(self) -> None:
        """Remove the files."""
        for numbers in self._by_id.values():
            numbers.close()

    def add(self, table: str, facts: RowFacts) -> None:
        """Add a chunk of a table; the chunks of a table come in their order."""
        self._tables.add(table)
        values = self._by_id
        if table == "posts":
            for name in ("kind", "closed", "parent", "accepted", "edited", *_TEXTS):
                values[name].update(facts, name, _set)
            # Both dates are the same: what is left is 0.
            values["created"].update(facts, "created", int.__xor__)
            values["owner"].update(facts, "owner", int.__xor__)
            values["answers"].update(facts, "answers declared", _add)
            values["comments"].update(facts, "comments declared", _add)
            keys, parents = facts.pairs.get("parent", ((), ()))
            swapped = RowFacts(pairs={"answer": (parents, [1] * len(keys))})  # type: ignore[dict-item]
            values["answers"].update(swapped, "answer", _add, -1)
            self._tags.update(facts.counts)
        elif table == "comments":
            values["comments"].update(facts, "comment", _add, -1)
        elif table == "posthistory":
            values["created"].update(facts, "first revision", int.__xor__)
            values["owner"].update(facts, "first owner", int.__xor__)
            for text in _TEXTS:
                self._update_last(facts, text)
            values["last revision"].update(facts, "last revision", max)
            # Ids are not in the order of dates after a migration.
            values["closing"].update(facts, "closing", max)
        elif table == "tags":
            self._declared_tags.update(facts.counts)

    def _update_last(self, facts: RowFacts, text: str) -> None:
        """Keep the newest text of each post; of those with one date, that of the last row."""
        keys, dates = facts.pairs.get(f"date of {text}", ((), ()))
        _, hashes = facts.pairs.get(f"last {text}", ((), ()))
        newest, last = self._by_id[f"date of {text}"], self._by_id[f"last {text}"]
        newest.reserve(keys)
        last.reserve(keys)
        for key, date, value in zip(keys, dates, hashes, strict=True):
            if key < FIRST_FABRICATED_ID and date >= newest.values[key]:
                newest.values[key], last.values[key] = date, value

    def checks(self) -> list[Check]:
        """What holds, as far as the tables that were read tell."""
        if "posts" not in self._tables:
            return []
        values = self._by_id
        kind, parent, accepted = values["kind"], values["parent"], values["accepted"]
        checks = [
            self._check("AnswerCount is the number of answers", values["answers"], {_QUESTION}),
            self._check_ids(
                "AcceptedAnswerId is an answer to the question",
                _count(accepted),
                (key for key in accepted.nonzero_ids() if parent[accepted[key]] != key),
            ),
        ]
        if "comments" in self._tables:
            every = {_QUESTION, _ANSWER, 3}
            checks.append(
                self._check("CommentCount is the number of comments", values["comments"], every)
            )
        if "tags" in self._tables:
            names = self._tags.keys() | self._declared_tags.keys()
            differ = sorted(n for n in names if self._tags[n] != self._declared_tags[n])
            checks.append(
                Check(
                    "Count of a tag is the number of questions with it",
                    len(names),
                    len(differ),
                    tuple(differ[:_EXAMPLES]),
                )
            )
        if "posthistory" in self._tables:
            edited, last, closing = values["edited"], values["last revision"], values["closing"]
            closed_posts = values["closed"]
            questions = [key for key in closing.nonzero_ids() if kind[key] == _QUESTION]
            both = {_QUESTION, _ANSWER}
            either = sorted({*questions, *closed_posts.nonzero_ids()})
            checks += [
                self._check(
                    "a first revision has the date of its post",
                    values["created"],
                    both,
                ),
                self._check("a first revision has the owner of its post", values["owner"], both),
                self._check_text("Title is that of the last revision", "title", {_QUESTION}),
                self._check_text("Tags are those of the last revision", "tags", {_QUESTION}),
                self._check_text("the words of Body are those of the last revision", "body", both),
                self._check_ids(
                    "LastEditDate is not after the last revision",
                    _count(edited),
                    (key for key in edited.nonzero_ids() if edited[key] > last[key]),
                ),
                self._check_ids(
                    "ClosedDate is there where the history ends closed",
                    len(either),
                    (key for key in either if closing[key] & 1 != closed_posts[key]),
                ),
            ]
        return checks

    def _check(self, name: str, numbers: ById, kinds: set[int]) -> Check:
        """That the numbers of some kinds of posts are 0."""
        kind = self._by_id["kind"]
        differ = (key for key in numbers.nonzero_ids() if kind[key] in kinds)
        count = sum(1 for key in kind.nonzero_ids() if kind[key] in kinds)
        return self._check_ids(name, count, differ)

    def _check_text(self, name: str, text: str, kinds: set[int]) -> Check:
        """That posts of some kinds have the text that is the newest in their history."""
        own, last, kind = self._by_id[text], self._by_id[f"last {text}"], self._by_id["kind"]
        count = sum(1 for key in kind.nonzero_ids() if kind[key] in kinds)
        differ = (key for key in kind.nonzero_ids() if kind[key] in kinds and own[key] != last[key])
        return self._check_ids(name, count, differ)

    @staticmethod
    def _check_ids(name: str, count_checked: int, differ: Iterator[int]) -> Check:
        examples: list[int] = []
        count = 0
        for key in differ:
            count += 1
            if len(examples) < _EXAMPLES:
                examples.append(key)
        return Check(name, count_checked, count, tuple(examples))


def _count(numbers: ById) -> int:
    """How many ids have a number."""
    return sum(1 for _ in numbers.nonzero_ids())
