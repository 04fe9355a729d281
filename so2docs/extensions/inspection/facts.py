"""Collect facts about the rows of a dump, chunk by chunk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from operator import lt

from so2docs.counts import LEAST, MOST, added_by
from so2docs.domain import FIRST_FABRICATED_ID
from so2docs.options.choices import Core
from so2docs.parse import core
from so2docs.parse.core import Added
from so2docs.parse.posts import milliseconds
from so2docs.parse.rows import Malformed, TextRow
from so2docs.plugin import Counts
from so2docs.scan.chunk import Visitor
from so2docs.schema import OTHER, Table

_DATES = ("CreationDate", "LastEditDate", "LastActivityDate", "ClosedDate", "Date")
_DATE_LENGTH = len("2016-12-10T00:00:00.000")


def _keep_first(current: object, added: object) -> object:
    return added if current is None else current


def _keep_last(current: object, added: object) -> object:
    return current if added is None else added


@dataclass(slots=True, kw_only=True)
class RowFacts(Counts):
    """Facts about some rows of a table: of a chunk, or of all chunks so far.

    Attributes:
        rows: Number of rows.
        first_date: Earliest date of any row not made up by the publisher.
        last_date: Latest date of any such row.
        misfit_dates: Number of values that are not dates, but belong to an attribute for dates.
        descents: Number of rows whose `Id` is not greater than that of the previous row.
        first_descent: `Id` of the first such row.
        made_up: Number of rows made up by the publisher, judging by their ids.
        first_id: `Id` of the first row with an `Id`.
        last_id: `Id` of the last row with an `Id`.
        columns: Number of rows with each attribute.
        malformed: Number of rows that are not well-formed XML.
        repaired: Number of repaired characters, which XML or the encoding forbids.
    """

    rows: int = 0
    first_date: str = field(default="", metadata=LEAST)
    last_date: str = field(default="", metadata=MOST)
    misfit_dates: int = 0
    descents: int = 0
    first_descent: int | None = field(default=None, metadata=added_by(_keep_first))
    made_up: int = 0
    first_id: int | None = field(default=None, metadata=added_by(_keep_first))
    last_id: int | None = field(default=None, metadata=added_by(_keep_last))
    columns: Counter[str] = field(default_factory=Counter)
    malformed: int = 0
    repaired: int = 0

    def check_order(self, row_id: int | None) -> None:
        """Count a descent if the `Id` of the next row is not greater than `last_id`."""
        if row_id is not None and self.last_id is not None and row_id <= self.last_id:
            self.descents += 1
            self.first_descent = row_id if self.first_descent is None else self.first_descent

    def add_rows(self, rows: list[TextRow]) -> None:
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
            values = () if is_made_up else [row[name] for name in _DATES if name in row]
            dates = [value for value in values if milliseconds(value) is not None]
            self.misfit_dates += len(values) - len(dates)
            self._add_dates([f"{date[:19]}.{date[20:]:0<3}" for date in dates])

    def _add_dates(self, dates: list[str]) -> None:
        if dates:
            self.first_date = min(self.first_date or dates[0], *dates)
            self.last_date = max(self.last_date, *dates)

    def add_columns(
        self, count: int, columns: Mapping[str, tuple[int, bytes, bytes, bytes, bytes]]
    ) -> bool:
        """Do the same with columns; return False, and do nothing, if their values are unusual.

        Args:
            count: Number of rows.
            columns: Number of nulls, validity and values of each column: see `read_columns`.
        """
        others, *_ = columns[OTHER]
        ids = memoryview(columns["Id"][2]).cast("q").tolist()
        is_ascending = (self.last_id or 0) < ids[0] and all(map(lt, ids, ids[1:]))
        if others < count or not is_ascending or ids[-1] >= FIRST_FABRICATED_ID:
            return False
        self.rows += count
        self.first_id = ids[0] if self.first_id is None else self.first_id
        self.last_id = ids[-1]
        for name, (nulls, _, values, *_) in columns.items():
            if nulls < count and name != OTHER:
                self.columns[name] += count - nulls
            if name in _DATES:
                text = values.decode()
                starts = range(0, len(text), _DATE_LENGTH)
                self._add_dates([text[at : at + _DATE_LENGTH] for at in starts])
        return True


class FactsVisitor(Visitor):
    """Collects the facts of a chunk.

    Args:
        table: Table of the chunk.
        core_name: The core to use.
    """

    slice_bytes = 1024 * 1024  # Making the columns takes 0.3 ms per slice.

    def __init__(self, table: Table, core_name: Core) -> None:
        super().__init__()
        self._facts = RowFacts()
        self._is_compiled = core_name == "compiled"
        self._names = (*table.attributes, OTHER)
        kinds = {"Id": 1, OTHER: 5, **dict.fromkeys(_DATES, 2)}
        self._kinds = bytes(kinds.get(name, 0) for name in self._names)

    def add_compiled(self, data: bytes) -> Added | None:
        """Add the facts about a slice whose rows the compiled core can read."""
        if not self._is_compiled:
            return None
        names = tuple(name.encode() for name in self._names)
        parsed = core.compiled.read_columns(data, names, self._kinds)
        if parsed is None:
            return None
        count, last_id, columns = parsed
        is_added = self._facts.add_columns(count, dict(zip(self._names, columns, strict=True)))
        return (count, last_id) if is_added else None

    def add(self, rows: list[TextRow]) -> None:
        """Add the facts about rows of the chunk."""
        self._facts.add_rows(rows)

    def reject(self, offset: int, row: Malformed) -> bool:
        """Count a malformed row."""
        self._facts.malformed += 1
        return True

    def result(self) -> RowFacts:
        """Return the facts of the chunk."""
        self._facts.repaired = self.tally.repaired_characters
        return self._facts


def _number(text: str | None) -> int | None:
    """Parse a number that can be an id; None for any other text."""
    is_number = text and text.isascii() and text.isdigit() and len(text) < 12
    return int(text) if text and is_number else None
