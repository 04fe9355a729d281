"""Sinks of the first pass for the state of a date: they leave later rows out of the spill.

Of the history, the rows from which posts are restored are stored whole. Of its later rows, the keys
are stored, because they show which texts were changed later.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import orjson

from so2docs.extensions.as_of.existence import existed, find_moments, read_dates
from so2docs.extensions.as_of.first_formula import note_first_formula
from so2docs.extensions.as_of.records import (
    LATER,
    LATER_VOTE,
    LINKED,
    MERGE,
    MOVED,
    REJECTED,
    RESTORING,
    REVEALING,
    REVISION,
)
from so2docs.options.table import Options
from so2docs.parse import core, table_rows
from so2docs.parse.core import Added
from so2docs.parse.keys import KEY, PAIR, QUESTION, as_bytes, integers, kinds_in, walk
from so2docs.parse.posts import Projection, RecordBuffer, type_numbers
from so2docs.parse.row_filter import RowFilter
from so2docs.pipeline.filing import (
    BadgeSink,
    Filing,
    NestedSink,
    PostSink,
    RowSink,
    Unknown,
    UserSink,
)
from so2docs.plugin import POSTS
from so2docs.schema import OTHER, TABLES, Row, Table
from so2docs.store.blocks import BlockReader, BlockWriter
from so2docs.store.id_map import IdMap

if TYPE_CHECKING:
    from so2docs.spill import Spill

_WHOLE_HISTORY = TABLES["history-text"]

# In JSON, the quotes inside of a text have backslashes, so these match only members of a row.
_TYPE = re.compile(rb'"PostHistoryTypeId":(-?\d+)')
_DATE = re.compile(rb'"CreationDate":"([^"]*)"')
_ORIGIN = re.compile(rb'"Comment":"from [^\s"]*/questions/(\d{1,18})\b')
"""Comment of a merge: the question that its answers belonged to until then."""
_ADDRESS = re.compile(rb"://[\w.-]+/(?:questions|q|a)/(\d{1,18})")
"""Address of a post, on any site."""


class _OfDate(RowSink):
    """Leaves out the rows that did not exist on the date of `as_of`, and counts them as filtered.

    This class precedes the sink of a table among the bases of a class. If later questions are
    restored as on another date, rows between the dates are filed as well, but comments are left
    out, and votes are counted apart.
    """

    # Small, since the reference parses slices of which only some rows existed.
    slice_bytes = 64 * 1024

    def __init__(self, filing: Filing, writer: BlockWriter, known: IdMap | Unknown) -> None:
        super().__init__(filing, writer, known)
        name = self._table.name
        date, later = find_moments(filing.options)
        self._last = date if name == "comments" else later
        self._last_usual = date if name == "votes" else self._last

    def add_compiled(self, data: bytes) -> Added | None:
        """Process a slice with the compiled core, unless only some of its rows existed."""
        dates = read_dates(data, self._table.dated_by) if self._is_compiled else None
        if not dates:
            return None
        added, last = None, max(dates).decode()
        if existed(last, self._last_usual):
            added = self._add_compiled(data)
        elif not existed(min(dates).decode(), self._last):
            added = self._leave_out(data)
        if added is not None:
            self._note_last(last)
        return added

    def _leave_out(self, data: bytes) -> Added | None:
        """Process a slice whose rows were all created after the date."""
        names = (*self._table.attributes, OTHER)
        kinds = bytes({"Id": 1, OTHER: 5}.get(name, 0) for name in names)
        columns = core.compiled.read_columns(data, tuple(map(str.encode, names)), kinds)
        if columns is None:
            return None
        self.buffer.filtered += columns[0]
        return columns[0], columns[1]

    def _note_last(self, date: str) -> None:
        """Note the latest date of all rows."""
        self.tally.last_row = max(self.tally.last_row or "", date) or None

    def _select(self, rows: list[Row]) -> list[Row]:
        """Return the rows that existed."""
        return [row for row in rows if existed(row.get(self._table.dated_by), self._last)]

    def add(self, rows: list[Row]) -> None:
        """Add the rows that existed."""
        name = self._table.dated_by
        self._note_last(max(row.get(name, "") for row in rows))
        existing = self._select(rows)
        usual = [row for row in existing if existed(row[name], self._last_usual)]
        self.buffer.filtered += len(rows) - len(existing)
        super().add(usual)
        if len(usual) < len(existing):
            between = [row for row in existing if not existed(row[name], self._last_usual)]
            counted = self.opt_outs.filter(between, self.buffer)
            table_rows.add_votes(self.buffer, counted, self._known.find, LATER_VOTE)


class _PostsOfDate(_OfDate, PostSink):
    def _make_filter(self) -> RowFilter:
        return _FilterOfDate(self._options, self._projection)

    def add_compiled(self, data: bytes) -> Added | None:
        """Process a slice; look for the first formula, which does not depend on filters."""
        note_first_formula(self.tally.notes, data)
        return super().add_compiled(data)

    def _leave_out(self, data: bytes) -> Added | None:
        later = RecordBuffer(reserved=self.buffer.reserved)
        added = core.add_fast(data, later)
        if added is None:
            return None
        for at, bucket in later.buckets.items():
            keys = bytes(bucket.keys)
            fields = integers(keys)
            fields[2::4] = array("q", bytes(len(fields) * 2))
            fields[3::4] = array("q", (REJECTED[kind] for kind in kinds_in(keys)))
            self.buffer.buckets[at].keys.extend(as_bytes(fields))
        self.buffer.pairs += later.pairs
        self.buffer.filtered += len(later.pairs) // PAIR.size
        self.buffer.other_types.update(later.other_types)
        return added

    def add(self, rows: list[Row]) -> None:
        name = self._table.dated_by
        self._note_last(max(row.get(name, "") for row in rows))
        self._keep_lists.mark(self._select(rows))
        # The filter keeps the keys of later posts.
        assert self._filter is not None
        self._filter.add(self.buffer, rows)


class _FilterOfDate(RowFilter):
    def __init__(self, options: Options, projection: Projection | None) -> None:
        super().__init__(options.filters.of_rows, projection)
        self._date, self._last = find_moments(options)

    def passes(self, kind: int, row: Row) -> bool:
        return existed(row.get(POSTS.dated_by), self._last) and super().passes(kind, row)

    def keep_of_rejected(self, kind: int, row: Row) -> bytes:
        """Keep the title of a question, because restored bodies may contain it."""
        if kind != QUESTION or not existed(row.get(POSTS.dated_by), self._date):
            return b""
        return orjson.dumps({name: row[name] for name in ("Title",) if name in row})


class _UsersOfDate(_OfDate, UserSink):
    def __init__(self, filing: Filing, writer: BlockWriter, known: IdMap | Unknown) -> None:
        super().__init__(filing, writer, known)
        self._is_compiled = False
        self._names.remove("Reputation")


class _BadgesOfDate(_OfDate, BadgeSink):
    pass


class _RowsOfDate(_OfDate, NestedSink):
    pass


class _HistoryOfDate(_OfDate, NestedSink):
    """Files the history rows that posts are restored from, and those that are nested.

    The ids of other posts that matter are in keys at the end of the file; see `LINKED`.
    """

    def __init__(self, filing: Filing, writer: BlockWriter, known: IdMap | Unknown) -> None:
        super().__init__(filing, writer, known)
        self._noted: dict[int, set[int]] = {LINKED: set(), MOVED: set()}

    def add_compiled(self, data: bytes) -> Added | None:
        """Process a slice with the compiled core."""
        compiled = core.read_records(data, _WHOLE_HISTORY) if self._is_compiled else None
        if compiled is None:
            return None
        added, keys, json = compiled
        self._add_events((row[1], json[row[4] : row[5]]) for row in walk(keys))
        return added

    def add(self, rows: list[Row]) -> None:
        """Add parsed rows; of later rows, those that cannot be used are only counted."""
        name, names = self._table.dated_by, ("PostId", "PostHistoryTypeId")
        later = [row for row in rows if not existed(row.get(name), self._last)]
        for row in later:
            type_numbers(row, self._table.numbers)
        usable = [row for row in later if all(type(row.get(name)) is int for name in names)]
        self.buffer.filtered += len(later) - len(usable)
        existing = self.opt_outs.filter(self._select(rows), self.buffer)
        usable += table_rows.reject(self.buffer, self._table, existing)
        self._add_events((row["PostId"], orjson.dumps(row)) for row in usable)

    def _add_events(self, rows: Iterable[tuple[int, bytes]]) -> None:
        """File rows, given by post id and JSON; only those to nest are parsed."""
        keys, jsons = bytearray(), bytearray()
        dates, existing = [""], list[bytes]()
        for post_id, json in rows:
            event_type, date = int(_read(_TYPE, json)), _read(_DATE, json)
            dates.append(date)
            if existed(date, self._last):
                kind, record = REVISION, json if event_type in RESTORING else None
                existing.append(json)
            else:
                kind, record = LATER, self._describe_later(post_id, event_type, date, json)
            if record is not None:
                keys += KEY.pack(0, post_id, event_type, len(record) << 4 | kind)
                jsons += record
        self.add_records(bytes(keys), bytes(jsons))
        self._note_last(max(dates))
        self._noted[LINKED].update(map(int, _ADDRESS.findall(b" ".join(existing))))
        self.buffer.filtered += len(dates) - 1
        if self._is_nested:
            made, nested = RecordBuffer(), list(map(orjson.loads, existing))
            table_rows.add_rows(made, self._table, nested, Unknown().find, self._projection)
            self.buffer.filtered += made.filtered - len(nested)
            for records in made.buckets.values():
                self.add_records(bytes(records.keys), bytes(records.json))

    def _describe_later(
        self, post_id: int, event_type: int, date: str, json: bytes
    ) -> bytes | None:
        """Return the JSON to file of an event after the date; None if it tells nothing.

        Only a merge has JSON: its date, and the question that its answers belonged to until then.
        """
        if event_type != MERGE:
            return b"" if event_type in REVEALING else None
        origin = _ORIGIN.search(json)
        if origin is None:
            return None
        self._noted[MOVED].add(post_id)
        return orjson.dumps({"CreationDate": date, "Origin": int(origin[1])})

    def finish(self) -> None:
        """Write the remaining records, and the noted posts."""
        super().finish()
        keys = b"".join(
            KEY.pack(post_id, note, 0, 0)
            for note, post_ids in self._noted.items()
            for post_id in sorted(post_ids)
        )
        if keys:
            self._writer.write(None, keys, b"")


def _read(member: re.Pattern[bytes], json: bytes) -> str:
    """Read a member of a row; empty if the row lacks it."""
    match = member.search(json)
    return match[1].decode() if match else ""


def choose_sink(table: Table) -> type[RowSink]:
    """Return the class of the sink that files the rows of a table that existed on the date."""
    if table.file == _WHOLE_HISTORY.file:
        return _HistoryOfDate
    sinks = {"posts": _PostsOfDate, "users": _UsersOfDate, "badges": _BadgesOfDate}
    return sinks.get(table.name, _RowsOfDate)


def read_noted_posts(spill: Spill, note: int) -> Iterator[array[int]]:
    """Yield the ids of posts that the chunks of the history noted, a chunk at a time.

    Args:
        spill: The spill.
        note: The kind of posts, `LINKED` or `MOVED`.
    """
    sequences = {table.sequence for table in TABLES.values() if table.file == _WHOLE_HISTORY.file}
    with BlockReader() as reader:
        for chunk in (chunk for sequence in sequences for chunk in spill.files(sequence)):
            for path, block in spill.read_blocks(chunk):
                if block.bucket is None and block.keys_size:
                    fields = integers(reader.read_keys(path, block))
                    pairs = zip(fields[::4], fields[1::4], strict=True)
                    yield array("q", (post_id for post_id, kind in pairs if kind == note))
