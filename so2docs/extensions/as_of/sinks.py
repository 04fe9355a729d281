"""Sinks of the first pass for the state of a date: they leave later rows out of the spill.

Of the history, the rows from which posts are restored are stored whole. Of its later rows, the keys
are stored, because they show which texts were changed later.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import orjson

from so2docs.dump.dump import Dump
from so2docs.errors import Location
from so2docs.extensions.as_of.existence import Existence, read_dates
from so2docs.extensions.as_of.first_formula import FirstFormula
from so2docs.extensions.as_of.records import (
    LATER,
    LATER_VOTE,
    LINKED,
    MERGE,
    MOVED,
    RESTORING,
    REVEALING,
    REVISION,
)
from so2docs.options.table import Options
from so2docs.parse import core, table_rows
from so2docs.parse.core import Added
from so2docs.parse.keys import (
    ANSWER,
    KEY,
    PAIR_BYTES,
    QUESTION,
    REJECTED_ANSWER,
    REJECTED_QUESTION,
    as_bytes,
    integers,
    kinds_in,
    walk,
)
from so2docs.parse.posts import Projection, RecordBuffer, number
from so2docs.parse.row_filter import RowFilter
from so2docs.parse.rows import Rows, parse
from so2docs.pipeline.filing import (
    BadgeSink,
    Filing,
    NestedSink,
    PostSink,
    RowSink,
    Unknown,
    UserSink,
)
from so2docs.schema import POSTS, TABLES, Row, Table
from so2docs.store.blocks import BlockReader, BlockWriter
from so2docs.store.id_map import IdMap

if TYPE_CHECKING:
    from so2docs.spill import Spill

_ORIGIN = re.compile(r"from \S*/questions/(\d{1,18})\b")
"""Comment of a merge: the question that its answers belonged to until then."""
_REJECTED = {QUESTION: REJECTED_QUESTION, ANSWER: REJECTED_ANSWER}
_WHOLE_HISTORY = TABLES["history-text"]


class _OfDate(RowSink):
    """Leaves out the rows that did not exist on the date of `as_of`, and counts them as filtered.

    This class precedes the sink of a table among the bases of a class.
    """

    # Small, since the reference parses slices of which only some rows existed.
    slice_bytes = 64 * 1024

    def __init__(self, filing: Filing, writer: BlockWriter, known: IdMap | Unknown) -> None:
        super().__init__(filing, writer, known)
        self._date, self._existence = Existence.of_dates(filing.options)
        self._dates: list[bytes] | None = None

    def add_compiled(self, data: bytes) -> Added | None:
        """Process a slice with the compiled core, unless only some of its rows existed."""
        self._dates = read_dates(data, self._table.dated_by)
        if not self._is_compiled or not self._dates:
            return None
        return self._add_dated(data, existed=self._existence.judge(self._dates))

    def _add_dated(self, data: bytes, *, existed: bool | None) -> Added | None:
        """Process a slice of which all rows existed, none, or some (None)."""
        if existed is None:
            return None
        return self._add_compiled(data) if existed else self._add_later(data)

    def _add_later(self, data: bytes) -> Added | None:
        """Process a slice whose rows were all created after the date."""
        return None

    def end_slice(self, dump: Dump, start: Location, data: bytes) -> None:
        """End a slice; note the latest date of all rows."""
        dates = [max(self._dates).decode()] if self._dates else []
        if self._dates is None:
            rows = (row for part in parse(data) if isinstance(part, Rows) for row in part.rows)
            dates = [row.get(self._table.dated_by, "") for row in rows]
        self.tally.last_row = max((self.tally.last_row or "", *dates)) or None
        super().end_slice(dump, start, data)

    def add(self, rows: list[Row]) -> None:
        """Add the rows that existed."""
        existing = self._existence.select(rows, self._table.dated_by)
        self.buffer.filtered += len(rows) - len(existing)
        super().add(existing)


class _PostsOfDate(_OfDate, PostSink):
    def __init__(self, filing: Filing, writer: BlockWriter, known: IdMap | Unknown) -> None:
        super().__init__(filing, writer, known)
        self._first_formula = FirstFormula()

    def _make_filter(self) -> RowFilter:
        options = self._options
        return _FilterOfDate(options, self._projection)

    def _add_later(self, data: bytes) -> Added | None:
        later = RecordBuffer(reserved=self.buffer.reserved)
        added = core.add_fast(data, later)
        if added is None:
            return None
        for at, bucket in later.buckets.items():
            keys = bytes(bucket.keys)
            fields = integers(keys)
            fields[2::4] = array("q", bytes(len(fields) * 2))
            fields[3::4] = array("q", (_REJECTED[kind] for kind in kinds_in(keys)))
            self.buffer.buckets[at].keys.extend(as_bytes(fields))
        self.buffer.pairs += later.pairs
        self.buffer.filtered += len(later.pairs) // PAIR_BYTES
        self.buffer.other_types.update(later.other_types)
        return added

    def add(self, rows: list[Row]) -> None:
        self._keep_lists.mark(self._existence.select(rows, POSTS.dated_by))
        # The filter keeps the keys of later posts.
        assert self._filter is not None
        self._filter.add(self.buffer, rows)

    def end_slice(self, dump: Dump, start: Location, data: bytes) -> None:
        """End a slice; look for the first formula, which does not depend on filters."""
        self._first_formula.look_at(data)
        super().end_slice(dump, start, data)

    def result(self) -> Any:
        """Add the notes to the tally."""
        self.tally.notes = self._first_formula.notes
        return super().result()


class _FilterOfDate(RowFilter):
    def __init__(self, options: Options, projection: Projection | None) -> None:
        super().__init__(options.filters.of_rows, projection)
        self._date, self._existence = Existence.of_dates(options)

    def passes(self, kind: int, row: Row) -> bool:
        existed = self._existence.includes(row.get(POSTS.dated_by))
        return existed and super().passes(kind, row)

    def keep_of_rejected(self, kind: int, row: Row) -> bytes:
        """Keep the title of a question, because restored bodies may contain it."""
        if kind != QUESTION or not self._date.includes(row.get(POSTS.dated_by)):
            return b""
        return orjson.dumps({name: row[name] for name in ("Title",) if name in row})


class _UsersOfDate(_OfDate, UserSink):
    def __init__(self, filing: Filing, writer: BlockWriter, known: IdMap | Unknown) -> None:
        super().__init__(filing, writer, known)
        self._is_compiled = False
        self._names.remove("Reputation")


class _RowsOfDate(_OfDate, NestedSink):
    def _add_later(self, data: bytes) -> Added | None:
        compiled = core.read_records(data, self._table)
        if compiled is None:
            return None
        self.buffer.filtered += compiled[0][0]
        return compiled[0]


class _VotesOfDate(_RowsOfDate):
    """Counts the votes after the date apart if later questions are restored, too."""

    def _add_dated(self, data: bytes, *, existed: bool | None) -> Added | None:
        if existed and not self._date.judge(self._dates or []):
            existed = None
        return super()._add_dated(data, existed=existed)

    def add(self, rows: list[Row]) -> None:
        name = self._table.dated_by
        later = [row for row in rows if not self._date.includes(row.get(name))]
        super().add(self._date.select(rows, name))
        counted = self._existence.select(later, name)
        self.buffer.filtered += len(later) - len(counted)
        counted = self.opt_outs.filter(counted, self.buffer)
        table_rows.add_votes(self.buffer, counted, self._known.find, LATER_VOTE)


class _CommentsOfDate(_RowsOfDate):
    def __init__(self, filing: Filing, writer: BlockWriter, known: IdMap | Unknown) -> None:
        super().__init__(filing, writer, known)
        self._existence = self._date  # The records of comments that are not nested have no date.

    def _read_records(self, data: bytes) -> tuple[Added, bytes, bytes] | None:
        compiled = super()._read_records(data)
        if compiled is None or self._is_nested:
            return compiled
        added, keys, _ = compiled
        fields = integers(keys)
        fields[3::4] = array("q", kinds_in(keys))  # Without JSON; these rows are only counted.
        return added, as_bytes(fields), b""


class _HistoryOfDate(_RowsOfDate):
    """Files the history rows that posts are restored from, and those that are nested.

    The ids of other posts that matter are in keys at the end of the file; see `NOTED`.
    """

    def __init__(self, filing: Filing, writer: BlockWriter, known: IdMap | Unknown) -> None:
        super().__init__(filing, writer, known)
        self._noted: dict[int, set[int]] = {LINKED: set(), MOVED: set()}

    def add(self, rows: list[Row]) -> None:
        name = self._table.dated_by
        existing = self.opt_outs.filter(self._existence.select(rows, name), self.buffer)
        self._add_later_events(rows)
        self._add_events(table_rows.reject(self.buffer, self._table, existing))

    def _add_dated(self, data: bytes, *, existed: bool | None) -> Added | None:
        compiled = core.read_records(data, _WHOLE_HISTORY)
        if compiled is None:
            return None
        added, keys, json = compiled
        rows = [orjson.loads(json[start:end]) for *_, start, end in walk(keys)]
        self._add_later_events(rows)
        self._add_events(self._existence.select(rows, self._table.dated_by))
        return added

    def _add_later_events(self, rows: list[Row]) -> None:
        """File the keys of the rows after the date."""
        name = self._table.dated_by
        later = [row for row in rows if not self._existence.includes(row.get(name))]
        self.buffer.filtered += len(later)
        self._file(LATER, _list_later(later))

    def _add_events(self, rows: list[Row]) -> None:
        """File usable rows that existed."""
        texts = [(row["PostId"], row["PostHistoryTypeId"], orjson.dumps(row)) for row in rows]
        self._file(REVISION, (text for text in texts if text[1] in RESTORING))
        self._noted[LINKED].update(_find_linked_posts(b" ".join(json for *_, json in texts)))
        if not self._is_nested:
            self.buffer.filtered += len(rows)
            return
        nested = RecordBuffer()
        table_rows.add_usable(nested, self._table, rows, Unknown().find, self._projection)
        self.buffer.filtered += nested.filtered
        for records in nested.buckets.values():
            self.add_records(bytes(records.keys), bytes(records.json))

    def _file(self, kind: int, events: Iterable[tuple[int, int, bytes]]) -> None:
        """File records of events, given by post id, type and JSON."""
        keys, jsons = bytearray(), bytearray()
        for post_id, event_type, json in events:
            keys += KEY.pack(0, post_id, event_type, len(json) << 4 | kind)
            jsons += json
            if event_type == MERGE:
                self._noted[MOVED].add(post_id)
        self.add_records(bytes(keys), bytes(jsons))

    def finish(self) -> None:
        """Write the remaining records, and the noted posts."""
        super().finish()
        keys = b"".join(
            KEY.pack(post_id, note, 0, 0)
            for note, post_ids in self._noted.items()
            for post_id in sorted(post_ids)
        )
        if keys:
            self._writer.write(None, bytearray(keys), bytearray())


class _BadgesOfDate(_OfDate, BadgeSink):
    pass


def choose_sink(table: Table) -> type[RowSink]:
    """Return the class of the sink that files the rows of a table that existed on the date."""
    if table.file == _WHOLE_HISTORY.file:
        return _HistoryOfDate
    sinks = {
        "posts": _PostsOfDate,
        "users": _UsersOfDate,
        "badges": _BadgesOfDate,
        "comments": _CommentsOfDate,
        "votes": _VotesOfDate,
    }
    return sinks.get(table.name, _RowsOfDate)


_ADDRESS = re.compile(rb"://[\w.-]+/(?:questions|q|a)/(\d{1,18})")


def _find_linked_posts(texts: bytes) -> Iterator[int]:
    """Yield the ids of posts, on any site, whose addresses occur in texts."""
    return map(int, _ADDRESS.findall(texts))


def _list_later(rows: Iterable[Row]) -> Iterator[tuple[int, int, bytes]]:
    """Yield post id and type of events after the date; the rows may be typed, and unusable.

    The JSON of a merge has its date, and the question that its answers belonged to until then.
    """
    for row in rows:
        post_id, kind = (number(str(row.get(n, ""))) for n in ("PostId", "PostHistoryTypeId"))
        if not isinstance(post_id, int) or kind not in REVEALING:
            continue
        if kind != MERGE:
            yield post_id, kind, b""
        elif match := _ORIGIN.match(str(row.get("Comment", ""))):
            values = {"CreationDate": row.get("CreationDate", ""), "Origin": int(match[1])}
            yield post_id, kind, orjson.dumps(values)


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
