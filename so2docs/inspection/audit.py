"""Collect facts about the chunks of a dump, and find lost rows by the counts that posts declare.

These counts are kept in memory-mapped files, 9 bytes per post, so that the system can reclaim the
memory. Workers return the numbers as arrays.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from array import array
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain
from operator import add
from typing import Literal

from so2docs.counts import KEEP, LEAST, MOST, Counts, added_by
from so2docs.domain import FIRST_FABRICATED_ID
from so2docs.parse.rows import Malformed, Row
from so2docs.scan.chunk import Visitor

Pairs = dict[str, tuple["array[int]", "array[int]"]]

_DATES = ("CreationDate", "LastEditDate", "LastActivityDate", "ClosedDate", "Date")
_QUESTION, _ANSWER, _OTHER = 1, 2, 3
_KINDS = {"1": _QUESTION, "2": _ANSWER}


def _keep_first(current: object, added: object) -> object:
    return added if current is None else current


def _keep_last(current: object, added: object) -> object:
    return current if added is None else added


@dataclass(slots=True, kw_only=True)
class RowFacts(Counts):
    """Facts about some rows of a table.

    Attributes:
        rows: Number of rows.
        first_date: Earliest date of any row not made up by the publisher.
        last_date: Latest date of any such row.
        descents: Number of rows whose `Id` is not greater than that of the previous row.
        first_descent: `Id` of the first such row.
        made_up: Number of rows made up by the publisher, judging by their ids.
        columns: Number of rows with each attribute, and of answers with `ViewCount`.
        malformed: Number of rows that are not well-formed XML.
        repaired: Number of repaired characters, which XML or the encoding forbids.
    """

    rows: int = 0
    first_date: str = field(default="", metadata=LEAST)
    last_date: str = field(default="", metadata=MOST)
    descents: int = 0
    first_descent: int | None = field(default=None, metadata=added_by(_keep_first))
    made_up: int = 0
    columns: Counter[str] = field(default_factory=Counter)
    malformed: int = 0
    repaired: int = 0


@dataclass(slots=True, kw_only=True)
class ChunkFacts(RowFacts):
    """Facts about the rows of a chunk, or of all chunks so far.

    Attributes:
        first_id: `Id` of the first row with an `Id`.
        last_id: `Id` of the last row with an `Id`.
        pairs: Numbers from one chunk for the audit, by name: ids, and a value for each id.
    """

    first_id: int | None = field(default=None, metadata=added_by(_keep_first))
    last_id: int | None = field(default=None, metadata=added_by(_keep_last))
    pairs: Pairs = field(default_factory=dict, metadata=KEEP)

    def check_order(self, row_id: int | None) -> None:
        """Count a descent if the `Id` of the next row is not greater than `last_id`."""
        if row_id is not None and self.last_id is not None and row_id <= self.last_id:
            self.descents += 1
            self.first_descent = row_id if self.first_descent is None else self.first_descent

    def add_rows(self, rows: list[Row]) -> None:
        """Count rows, and collect their ids, dates and columns."""
        self.rows += len(rows)
        self.columns.update(chain.from_iterable(rows))
        for row in rows:
            row_id = _number(row.get("Id"))
            is_made_up = row_id is not None and row_id >= FIRST_FABRICATED_ID
            if row_id is not None:
                self.check_order(row_id)
                self.first_id = row_id if self.first_id is None else self.first_id
                self.last_id = row_id
                self.made_up += is_made_up
            dates = () if is_made_up else [row[name] for name in _DATES if name in row]
            if dates:
                self.first_date = min(self.first_date or dates[0], *dates)
                self.last_date = max(self.last_date, *dates)

    def pair(self, name: str, key: int, value: int) -> None:
        """Append an id and a value to the pairs with this name."""
        if name not in self.pairs:
            self.pairs[name] = array("q"), array("q")
        keys, values = self.pairs[name]
        keys.append(key)
        values.append(value)


class FactsVisitor(Visitor):
    """Collects the facts of a chunk."""

    def __init__(self, table: str) -> None:
        super().__init__()
        self._facts = ChunkFacts()
        self._collect = _COLLECTORS.get(table)

    def add(self, rows: list[Row]) -> None:
        """Add the facts about rows of the chunk."""
        self._facts.add_rows(rows)
        if self._collect is not None:
            for row in rows:
                self._collect(self._facts, row)

    def reject(self, offset: int, row: Malformed) -> bool:
        """Count a malformed row."""
        self._facts.malformed += 1
        return True

    def result(self) -> ChunkFacts:
        """Return the facts of the chunk."""
        self._facts.repaired = self.tally.repaired_characters
        return self._facts


def _number(text: str | None) -> int | None:
    """Parse a number that can be an id; None for any other text."""
    is_number = text is not None and text.isascii() and text.isdigit() and len(text) < 12
    return int(text) if is_number and text else None


def _collect_post(facts: ChunkFacts, row: Row) -> None:
    post_id, kind = _number(row.get("Id")), _KINDS.get(row.get("PostTypeId", ""), _OTHER)
    if post_id is None:
        return
    facts.pair("kind", post_id, kind)
    facts.pair("comments", post_id, _number(row.get("CommentCount")) or 0)
    if kind == _QUESTION:
        facts.pair("answers", post_id, _number(row.get("AnswerCount")) or 0)
    if kind == _ANSWER and "ViewCount" in row:
        facts.columns[ANSWER_VIEWS] += 1
    if kind == _ANSWER and (parent := _number(row.get("ParentId"))) is not None:
        facts.pair("answers", parent, -1)


def _collect_comment(facts: ChunkFacts, row: Row) -> None:
    if (post_id := _number(row.get("PostId"))) is not None:
        facts.pair("comments", post_id, -1)


_COLLECTORS = {"posts": _collect_post, "comments": _collect_comment}


ANSWER_VIEWS = "ViewCount of answers"
_EXAMPLES = 5
_FIRST_IDS = 1 << 16

_Form = Literal["b", "i"]
_Change = Callable[[int, int], int]

_COLLECTED: dict[str, tuple[_Form, _Change]] = {
    "kind": ("b", lambda _, value: value),
    # The declared count minus the number of rows; 0 in a consistent dump.
    "answers": ("i", add),
    "comments": ("i", add),
}
"""Numbers collected for each post: type of the array, and function that updates a number."""


@dataclass(frozen=True, slots=True)
class Check:
    """The result of checking that two counts are equal for every post.

    Attributes:
        name: Description of the two counts.
        checked: Number of checked posts.
        differ: Number of posts for which the counts differ.
        examples: The lowest ids of these posts, at most five.
    """

    name: str
    checked: int
    differ: int
    examples: tuple[int, ...]


class ById:
    """A number for each id, initially 0, in a memory-mapped file."""

    def __init__(self, folder: str, form: _Form) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self._form, self._width = form, array(form).itemsize
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
        """Remove the temporary file."""
        self._close_view()
        self._file.close()

    def reserve(self, keys: Iterable[int]) -> None:
        """Grow the file if it has no room for these ids."""
        highest = max((key for key in keys if key < FIRST_FABRICATED_ID), default=0)
        if highest >= len(self.values):
            self._grow(max(highest + 1, 2 * len(self.values)))

    def update(self, keys: Iterable[int], values: Iterable[int], change: _Change) -> None:
        """Update the number of each id with a value; ignore ids that the publisher made up."""
        self.reserve(keys)
        numbers = self.values
        for key, value in zip(keys, values, strict=True):
            if key < FIRST_FABRICATED_ID:
                numbers[key] = change(numbers[key], value)

    def __getitem__(self, key: int) -> int:
        return self.values[key] if key < len(self.values) else 0


class Audit:
    """Compares the counts that posts declare with the actual rows."""

    def __init__(self, folder: str) -> None:
        self._by_id = {name: ById(folder, form) for name, (form, _) in _COLLECTED.items()}
        self._tables: set[str] = set()

    def close(self) -> None:
        """Remove the temporary files."""
        for numbers in self._by_id.values():
            numbers.close()

    def add(self, table: str, facts: ChunkFacts) -> None:
        """Add the facts about the next chunk of a table."""
        self._tables.add(table)
        for name, pairs in facts.pairs.items():
            self._by_id[name].update(*pairs, _COLLECTED[name][1])

    def checks(self) -> list[Check]:
        """Return the results of all checks possible with the tables added so far."""
        checks = []
        if "posts" in self._tables:
            checks.append(self._check("AnswerCount is the number of answers", "answers"))
        if self._tables >= {"posts", "comments"}:
            checks.append(self._check("CommentCount is the number of comments", "comments"))
        return checks

    def _check(self, name: str, number: str) -> Check:
        """Check that a number is 0 for all questions or, for comments, for all posts."""
        numbers = self._by_id[number]
        checked, differ, examples = 0, 0, list[int]()
        kinds = (_QUESTION,) if number == "answers" else (_QUESTION, _ANSWER, _OTHER)
        for key, kind in enumerate(self._by_id["kind"].values):
            if kind not in kinds:
                continue
            checked += 1
            if numbers[key]:
                differ += 1
                examples = [*examples, key][:_EXAMPLES]
        return Check(name, checked, differ, tuple(examples))
