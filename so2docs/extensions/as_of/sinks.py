"""Sinks of the first pass for the state of a date: they leave later rows out of the spill.

Of the history, the rows from which posts are restored are stored whole. Of its later rows, the keys
are stored, because they show which texts were changed later.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator

import orjson

from so2docs.dump.dump import Dump
from so2docs.errors import Location
from so2docs.extensions.as_of.existence import Existence
from so2docs.options.table import Options
from so2docs.parse import core, table_rows
from so2docs.parse.core import Added
from so2docs.parse.keys import (
    ANSWER,
    BUCKET_BITS,
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
from so2docs.parse.table_rows import FindQuestions
from so2docs.pipeline.filing import BadgeSink, NestedSink, PostSink, RowSink, Unknown, UserSink
from so2docs.schema import (
    LATER,
    LATER_VOTE,
    POSTS,
    RESTORING,
    REVEALING,
    REVISION,
    TABLES,
    Row,
    Table,
)
from so2docs.store.blocks import BlockWriter
from so2docs.store.id_map import IdMap

_MARKED_FORMULA = re.compile(rb"math-container&quot;&gt;(\\?\$)")
_REJECTED = {QUESTION: REJECTED_QUESTION, ANSWER: REJECTED_ANSWER}
_WHOLE_HISTORY = TABLES["history-text"]


class _OfDate(RowSink):
    """Leaves out the rows that did not exist on the date of `as_of`, and counts them as filtered.

    This class precedes the sink of a table among the bases of a class.
    """

    # Small, since the reference parses slices of which only some rows existed.
    slice_bytes = 64 * 1024

    def __init__(
        self, table: Table, options: Options, writer: BlockWriter, posts_map: IdMap | Unknown
    ) -> None:
        super().__init__(table, options, writer, posts_map)
        self._date, self._existence = Existence.of_dates(options)

    def add_compiled(self, data: bytes) -> Added | None:
        """Process a slice with the compiled core, unless only some of its rows existed."""
        if not self._is_compiled:
            return None
        existed = self._existence.judge(data, self._table.dated_by)
        if existed is None:
            return None
        return super().add_compiled(data) if existed else self._add_later(data)

    def _add_later(self, data: bytes) -> Added | None:
        """Process a slice whose rows were all created after the date."""
        return None

    def add(self, rows: list[Row]) -> None:
        """Add the rows that existed."""
        existing = self._existence.select(rows, self._table.dated_by)
        self.buffer.filtered += len(rows) - len(existing)
        super().add(existing)


class _PostsOfDate(_OfDate, PostSink):
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
        self._keep_lists.look_at(self._existence.select(rows, POSTS.dated_by))
        # The filter keeps the keys of later posts.
        assert self._filter is not None
        self._filter.add(self.buffer, rows)

    def end_slice(self, dump: Dump, start: Location, data: bytes) -> None:
        """End a slice; whether any body of the dump marks formulas does not depend on filters."""
        if not self.tally.formula_sign and (match := _MARKED_FORMULA.search(data)):
            self.tally.formula_sign = match[1].decode()
        super().end_slice(dump, start, data)


class _FilterOfDate(RowFilter):
    def __init__(self, options: Options, projection: Projection | None) -> None:
        super().__init__(options.filters.of_rows, projection, all_keys=options.needs_all_keys)
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
    def __init__(
        self, table: Table, options: Options, writer: BlockWriter, posts_map: IdMap | Unknown
    ) -> None:
        super().__init__(table, options, writer, posts_map)
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

    def _add_compiled(self, data: bytes) -> Added | None:
        if self._date != self._existence and not self._date.judge(data, self._table.dated_by):
            return None
        return super()._add_compiled(data)

    def add(self, rows: list[Row]) -> None:
        name = self._table.dated_by
        later = [row for row in rows if not self._date.includes(row.get(name))]
        super().add(self._date.select(rows, name))
        counted = self._existence.select(later, name)
        self.buffer.filtered += len(later) - len(counted)
        counted = self.opt_outs.filter(counted, self.buffer)
        table_rows.add_votes(self.buffer, counted, self._known.find, LATER_VOTE)


class _CommentsOfDate(_RowsOfDate):
    def __init__(
        self, table: Table, options: Options, writer: BlockWriter, posts_map: IdMap | Unknown
    ) -> None:
        super().__init__(table, options, writer, posts_map)
        self._existence = self._date  # The records of comments that are not nested have no date.

    def add(self, rows: list[Row]) -> None:
        for row in rows:
            row.pop("Score", None)
        super().add(rows)

    def _read_records(self, data: bytes) -> tuple[Added, bytes, bytes] | None:
        compiled = super()._read_records(data)
        if compiled is None:
            return None
        added, keys, json = compiled
        return added, *(_without_scores(keys, json) if self._is_nested else _without_json(keys))


class _HistoryOfDate(_RowsOfDate):
    """Files the history rows that posts are restored from, and those that are nested."""

    def add(self, rows: list[Row]) -> None:
        self.look_up()
        name = self._table.dated_by
        later = [row for row in rows if not self._existence.includes(row.get(name))]
        existing = self._existence.select(rows, name)
        self.buffer.filtered += len(later)
        _add_later_keys(self.buffer, later, self._known.find)
        existing = self.opt_outs.filter(existing, self.buffer)
        usable = table_rows.reject(self.buffer, self._table, existing)
        _add_revisions(self.buffer, usable, self._known.find)
        for row in usable:
            self.named.update(_find_named_posts(row.get("Text", "").encode()))
        if self._is_nested:
            table_rows.add_usable(
                self.buffer, self._table, usable, self._known.find, self._projection
            )
        else:
            self.buffer.filtered += len(usable)

    def _add_compiled(self, data: bytes) -> Added | None:
        revisions = core.read_records(data, _WHOLE_HISTORY)
        nested = core.read_records(data, self._table) if self._is_nested else None
        if revisions is None or (self._is_nested and nested is None):
            return None
        added, keys, json = revisions
        self._read.append(_select_revisions(keys, json))
        self.named.update(_find_named_posts(json))
        self.buffer.filtered += added[0]
        if nested is not None:
            _, keys, json = nested
            self.buffer.filtered -= len(keys) // KEY.size
            self._read.append((keys, json))
        return added

    def _add_later(self, data: bytes) -> Added | None:
        compiled = core.read_records(data, _WHOLE_HISTORY)
        if compiled is None:
            return None
        added, keys, json = compiled
        self._read.append((_select_later(keys, json), b""))
        self.buffer.filtered += added[0]
        return added


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


def _add_revisions(buffer: RecordBuffer, rows: list[Row], questions: FindQuestions) -> None:
    """Turn typed history rows before a date into the records that posts are restored from."""
    places = questions({row["PostId"] for row in rows})
    for row in rows:
        post_id: int = row["PostId"]
        kind: int = row["PostHistoryTypeId"]
        if kind in RESTORING:
            json = orjson.dumps(row)
            question_id = places.get(post_id, post_id)
            bucket = buffer.buckets[question_id >> BUCKET_BITS]
            bucket.keys.extend(KEY.pack(question_id, post_id, kind, len(json) << 4 | REVISION))
            bucket.json.extend(json)


_ADDRESS = re.compile(rb"://[\w.-]+/(?:questions|q|a)/(\d{1,18})")


def _find_named_posts(texts: bytes) -> Iterator[int]:
    """Yield the ids of posts, on any site, whose addresses occur in texts."""
    return map(int, _ADDRESS.findall(texts))


def _add_later_keys(buffer: RecordBuffer, rows: list[Row], questions: FindQuestions) -> None:
    """Turn history rows after a date into keys; the rows may be typed, and may be unusable."""
    pairs = []
    for row in rows:
        post_id, kind = (number(str(row.get(n, ""))) for n in ("PostId", "PostHistoryTypeId"))
        if isinstance(post_id, int) and isinstance(kind, int) and kind in REVEALING:
            pairs.append((post_id, kind))
    places = questions({post_id for post_id, _ in pairs})
    for post_id, kind in pairs:
        question_id = places.get(post_id, post_id)
        key = KEY.pack(question_id, post_id, kind, LATER)
        buffer.buckets[question_id >> BUCKET_BITS].keys.extend(key)


_TYPE = re.compile(rb'\{"Id":-?\d+,"PostHistoryTypeId":(\d+),')


def _select_revisions(keys: bytes, json: bytes) -> tuple[bytes, bytes]:
    """Select the records that posts are restored from, as `_add_revisions` makes them.

    Args:
        keys: Keys of history rows before a date.
        json: The JSON of these rows, with all attributes.
    """
    new_keys, new_json = bytearray(), bytearray()
    for question_id, post_id, _, _, start, end in walk(keys):
        kind = _event_type(json, start, end)
        if kind in RESTORING:
            new_keys += KEY.pack(question_id, post_id, kind, (end - start) << 4 | REVISION)
            new_json += json[start:end]
    return bytes(new_keys), bytes(new_json)


def _select_later(keys: bytes, json: bytes) -> bytes:
    """Select the keys of history rows after a date, as `_add_later_keys` makes them."""
    new_keys = bytearray()
    for question_id, post_id, _, _, start, end in walk(keys):
        kind = _event_type(json, start, end)
        if kind in REVEALING:
            new_keys += KEY.pack(question_id, post_id, kind, LATER)
    return bytes(new_keys)


def _event_type(json: bytes, start: int, end: int) -> int:
    match = _TYPE.match(json, start, end)
    return int(match[1] if match else orjson.loads(json[start:end])["PostHistoryTypeId"])


_SCORE = re.compile(rb',"Score":(?:-?\d+|"(?:[^"\\]|\\.)*")(?=[,}])')


def _without_scores(keys: bytes, json: bytes) -> tuple[bytes, bytes]:
    """Remove the scores from records of comments, where they follow the ids.

    In JSON strings, each quote has a backslash before it, so the pattern cannot match in them.
    """
    new_keys, new_json = bytearray(), bytearray()
    for question_id, post_id, rank, kind, start, end in walk(keys):
        row = _SCORE.sub(b"", json[start:end])
        new_keys += KEY.pack(question_id, post_id, rank, len(row) << 4 | kind)
        new_json += row
    return bytes(new_keys), bytes(new_json)


def _without_json(keys: bytes) -> tuple[bytes, bytes]:
    """Replace the JSON of records by empty objects, for rows that are only counted."""
    fields = integers(keys)
    count = len(fields) // 4
    fields[3::4] = array("q", (len(b"{}") << 4 | kind for kind in kinds_in(keys)))
    return as_bytes(fields), b"{}" * count
