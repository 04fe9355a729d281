"""Visitors of the first pass, which turn the rows of a chunk into blocks, one for each bucket.

Memory is bounded by the size of a slice plus the records that are not yet written.

Posts are filed under the question named in the row. Rows of other tables are filed under the
question of their post, which is looked up in the map of posts. Users and their badges are filed
under ranges of user ids.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial

import orjson

from so2docs.dump.dump import Dump
from so2docs.errors import Location
from so2docs.options.table import Filters, Options
from so2docs.parse import core, posts, table_rows
from so2docs.parse.core import Added
from so2docs.parse.id_set import Pages, count_pages
from so2docs.parse.keys import KEY, as_bytes, integers, kinds_in, walk
from so2docs.parse.opt_outs import OptOuts
from so2docs.parse.posts import RecordBuffer
from so2docs.parse.row_filter import RowFilter, make_projection
from so2docs.parse.rows import Malformed, parse
from so2docs.parse.table_rows import pack_votes
from so2docs.pipeline import strict
from so2docs.pipeline.selection import KeepLists
from so2docs.pipeline.tasks import find_step
from so2docs.scan.chunk import Visitor
from so2docs.schema import (
    BADGE_CLASSES,
    POSTS,
    RESERVED,
    TYPE_NAMES,
    USER_ATTRIBUTES,
    VOTE,
    Row,
    Table,
)
from so2docs.store.blocks import Block, BlockReader, BlockWriter, check_blocks_match
from so2docs.store.id_map import IdMap

_FULL_BLOCK = 512 * 1024
_FLUSH_EVERY = 4 * 1024 * 1024
_MOST_BUFFERED = 48 * 1024 * 1024
_MOST_KEYS = 8 * 1024 * 1024
_MOST_COUNTS = 1 << 17
OF_BADGES = 1
"""Kind of the records that count the badges of a user, among those of users."""

_BADGE_COLUMNS = (b"Id", b"UserId", b"Class", b"Other"), bytes([1, 1, 1, 5])


class RowSink(Visitor):
    """The destination of the rows of a chunk; one subclass for each kind of table.

    Attributes:
        buffer: The posts, or the records made from the rows, until written.
        malformed: The reason recorded for strays that are not XML.
        opt_outs: Decides which rows concern listed users or posts.
    """

    malformed = "malformed_row"

    def __init__(self, filing: Filing, writer: BlockWriter, known: IdMap | Unknown) -> None:
        super().__init__()
        options, table = filing.options, filing.table
        self.buffer = RecordBuffer()
        self.opt_outs = OptOuts(options.filters, table)
        self._options, self._table, self._filing = options, table, filing
        self._writer, self._known = writer, known
        self._is_compiled = options.core == "compiled"
        self._unwritten_bytes = 0

    def add_compiled(self, data: bytes) -> Added | None:
        """Process a slice with the compiled core, unless options need parsed rows."""
        return self._add_compiled(data) if self._is_compiled else None

    def _add_compiled(self, data: bytes) -> Added | None:
        """Process a slice with the compiled core; if impossible, change nothing, return None."""
        return None

    def add_records(self, keys: bytes, json: bytes) -> None:
        """File records that an earlier step made from rows, under the questions of their posts."""
        raise NotImplementedError

    def copy(self, keys: bytes, json: bytes) -> None:
        """Write a block without a bucket, such as strays, unchanged."""
        self._writer.write(None, keys, json)

    def reject(self, offset: int, row: Malformed) -> bool:
        """Store a row that is not well-formed XML as a stray; return False if options forbid it."""
        if self._options.errors != "skip" or not row.can_be_skipped:
            return False
        if not self.opt_outs.drops_malformed(row.raw, self.buffer):
            self.buffer.strays += posts.malformed_line(offset, row.raw, self.malformed)
            self.buffer.stray_reasons[self.malformed] += 1
        return True

    def end_slice(self, dump: Dump, start: Location, data: bytes) -> None:
        """Check the slice for `strict`, and write the collected records if there are enough."""
        has_fault = self.tally.repaired_characters or self.buffer.stray_reasons
        if has_fault and self._options.errors == "strict":
            again = partial(type(self), self._filing, self._writer, self._known)
            raise strict.locate_fault(dump, start, data, again)
        self._unwritten_bytes += len(data)
        if self._unwritten_bytes >= _FLUSH_EVERY:
            self._unwritten_bytes = 0
            self.flush()

    def flush(self) -> None:
        """Write the buckets with enough records for a block."""
        self._write(_FULL_BLOCK)

    def result(self) -> tuple[list[Block], list[Pages]]:
        """Add the counts to the tally; return the written blocks and the post ids."""
        tally, buffer = self.tally, self.buffer
        tally.filtered, tally.dropped = buffer.filtered, buffer.dropped
        tally.first_day, tally.last_day = buffer.first_day, buffer.last_day
        tally.strays.update(buffer.stray_reasons)
        for kind, count in buffer.other_types.items():
            tally.other_types[TYPE_NAMES.get(kind, f"PostTypeId {kind}")] += count
        return self._writer.blocks, count_pages(integers(buffer.pairs)[1::2])

    def finish(self) -> None:
        """Write the remaining records."""
        self._write(0)

    def _write(self, least: int) -> None:
        """Write the buckets of at least `least` bytes, or all buckets if the total is too large."""
        buffer, buckets = self.buffer, self.buffer.buckets
        if sum(len(bucket.json) for bucket in buckets.values()) > _MOST_BUFFERED:
            least = 0
        self._write_buckets(buffer, least)
        if buffer.strays and len(buffer.strays) >= least:
            self._writer.write(None, b"", buffer.strays)
            buffer.strays = bytearray()

    def _write_buckets(self, buffer: RecordBuffer, least: int) -> None:
        buckets = buffer.buckets
        for number in sorted(n for n, bucket in buckets.items() if len(bucket.json) >= least):
            bucket = buckets.pop(number)
            self._writer.write(number, bucket.keys, bucket.json)


def needs_rows(options: Options) -> bool:
    """Whether the first pass needs more of a row than its keys and its type."""
    filters = options.filters
    if filters.as_of is not None:
        return _selects_rows(replace(filters.of_rows, as_of=None))
    return _selects_rows(filters) or not filters.selected.has_whole_posts


def _selects_rows(filters: Filters) -> bool:
    """Whether rows are left out while they are parsed.

    This is the case with filters other than keep lists and `sample_size`, and with fields that
    exclude answers.
    """
    neutral = Filters(
        limit=filters.limit,
        fields=filters.fields,
        drop_fields=filters.drop_fields,
        sample_size=filters.sample_size,
        keep_users=filters.keep_users,
        keep_posts=filters.keep_posts,
    )
    return filters != neutral or not filters.selected.has_answers


class PostSink(RowSink):
    """Turns posts into records, and filters them."""

    def __init__(self, filing: Filing, writer: BlockWriter, known: IdMap | Unknown) -> None:
        super().__init__(filing, writer, known)
        options = filing.options
        # Names that post attributes must not have, because they are keys of documents.
        reserved = RESERVED | {options.site_field[0]} if options.site_field else RESERVED
        self.buffer = RecordBuffer(reserved=reserved)
        self._is_compiled = self._is_compiled and not needs_rows(options)
        # A step changes whole posts, before fields are selected.
        self._projection = None if find_step(options) else make_projection(options)
        self._keep_lists = KeepLists(options.filters, self.buffer)
        self._filter = None
        if _selects_rows(options.filters.of_rows):
            self._filter = self._make_filter()

    def _make_filter(self) -> RowFilter:
        return RowFilter(self._options.filters.of_rows, self._projection)

    def add(self, rows: list[Row]) -> None:
        """File parsed rows."""
        self._keep_lists.mark(rows)
        if self._filter is None:
            posts.add(self.buffer, rows, self._projection)
        else:
            self._filter.add(self.buffer, rows)

    def _add_compiled(self, data: bytes) -> Added | None:
        added = core.add_fast(data, self.buffer)
        if added is not None:
            self._keep_lists.mark_slice(data)
        return added

    def finish(self) -> None:
        """Write the remaining records."""
        self._keep_lists.mark_posts()
        super().finish()
        self._writer.write(None, self.buffer.pairs, b"")


class UserSink(RowSink):
    """Files users under ranges of their ids."""

    malformed = "malformed_user"

    def __init__(self, filing: Filing, writer: BlockWriter, known: IdMap | Unknown) -> None:
        super().__init__(filing, writer, known)
        self._names = {*USER_ATTRIBUTES}

    def add(self, rows: list[Row]) -> None:
        """File parsed rows."""
        rows = self.opt_outs.filter(rows, self.buffer)
        for row in table_rows.reject(self.buffer, self._table, rows):
            attributes = {name: value for name, value in row.items() if name in self._names}
            self.buffer.add(row["Id"], 0, 0, 0, orjson.dumps(attributes))

    def _add_compiled(self, data: bytes) -> Added | None:
        compiled = core.read_records(data, self._table)
        if compiled is None:
            return None
        added, keys, jsons = compiled
        for user_id, _, _, _, start, end in walk(keys):
            if self.opt_outs.lists_user(user_id):
                self.buffer.filtered += 1
            else:
                self.buffer.add(user_id, 0, 0, 0, jsons[start:end])
        return added


class BadgeSink(RowSink):
    """Counts badges by user and class, and files the counts with the users."""

    malformed = "malformed_badge"

    def __init__(self, filing: Filing, writer: BlockWriter, known: IdMap | Unknown) -> None:
        super().__init__(filing, writer, known)
        self._is_compiled &= not self.opt_outs.needs_rows
        self._counts: Counter[tuple[int, int]] = Counter()

    def add(self, rows: list[Row]) -> None:
        """File parsed rows."""
        rows = self.opt_outs.filter(rows, self.buffer)
        usable = table_rows.reject(self.buffer, self._table, rows)
        self._count((row["UserId"], row["Class"]) for row in usable)

    def _add_compiled(self, data: bytes) -> Added | None:
        columns = core.compiled.read_columns(data, *_BADGE_COLUMNS)
        if columns is None:
            return None
        rows, last_id, (_, of_users, of_classes, _) = columns
        users, classes = array("q", of_users[2]), array("q", of_classes[2])
        is_whole = not of_users[0] and not of_classes[0] and BADGE_CLASSES.keys() >= set(classes)
        if not is_whole:
            return None
        self._count(zip(users, classes, strict=True))
        return rows, last_id

    def _count(self, badges: Iterable[tuple[int, int]]) -> None:
        self._counts.update(badges)
        if len(self._counts) >= _MOST_COUNTS:
            self._write_counts()

    def _write_counts(self) -> None:
        for (user_id, of_class), count in self._counts.items():
            self.buffer.add(user_id, 0, pack_votes(of_class, count), OF_BADGES, b"")
        self._counts.clear()
        self._write(0)

    def finish(self) -> None:
        """Write the remaining records."""
        self._write_counts()
        super().finish()


class NestedSink(RowSink):
    """Files rows that are nested in posts.

    The questions of rows read by the compiled core are looked up for many slices at once, in order,
    so that each block of the map is read only once.
    """

    def __init__(self, filing: Filing, writer: BlockWriter, known: IdMap | Unknown) -> None:
        super().__init__(filing, writer, known)
        table = filing.table
        self._counts = table.kind == VOTE
        self._bounties = RecordBuffer()
        self._is_nested = table.name in filing.options.nest
        self._projection = None if self._is_nested else _leave_all_out
        self._has_core = self._is_compiled
        if not self._counts:
            self._is_compiled &= not self.opt_outs.needs_rows
        self.malformed = f"malformed_{table.row}"
        self._read: list[tuple[bytes, bytes]] = []

    def add(self, rows: list[Row]) -> None:
        """File parsed rows."""
        self.look_up()
        rows = self.opt_outs.filter(rows, self.buffer)
        if self._counts:
            self._add_bounties(rows)
            table_rows.add_votes(self.buffer, rows, self._known.find)
        else:
            usable = table_rows.reject(self.buffer, self._table, rows)
            find = self._known.find
            table_rows.add_rows(self.buffer, self._table, usable, find, self._projection)

    def _add_compiled(self, data: bytes) -> Added | None:
        compiled = core.read_records(data, self._table)
        if compiled is None:
            return None
        added, keys, json = compiled
        if not self._is_nested:  # Leave the JSON out of rows that are only counted.
            fields = integers(keys)
            fields[3::4] = array("q", kinds_in(keys))
            keys, json = as_bytes(fields), b""
        if self._counts:
            for part in parse(json) if json else ():
                if not isinstance(part, Malformed):
                    # Do not count dropped votes here: the merge counts the votes of listed posts.
                    rows = [row for row in part.rows if not self.opt_outs.drops(row, self.buffer)]
                    self._add_bounties(rows)
            json = b""
        else:  # Rows that were not requested have no record; count them as filtered.
            self.buffer.filtered += added[0] - len(keys) // KEY.size
        self._read.append((keys, json))
        return added

    def _add_bounties(self, rows: list[Row]) -> None:
        if not self._is_nested:
            return
        table_rows.add_bounties(self._bounties, rows, self._known.find, self._projection)

    def add_records(self, keys: bytes, json: bytes) -> None:
        """File records that an earlier step made from rows."""
        if self._counts and json:
            table_rows.add_records(self._bounties, keys, json, self._known.find)
        elif self._has_core:
            self._read.append((keys, json))
        else:
            table_rows.add_records(self.buffer, keys, json, self._known.find)

    def look_up(self) -> None:
        """Look up the questions of all rows read so far, and file these rows."""
        if self._read:
            core.file_records(self._read, self.buffer, self._known.replace)
            self._read.clear()

    def flush(self) -> None:
        """Write the records if there are enough."""
        if not self._counts:
            self.look_up()
            super().flush()
            return
        # Count the bytes of keys: votes have no JSON, and bounties are in separate blocks.
        sizes = [len(keys) for keys, _ in self._read]
        sizes += [len(bucket.keys) for bucket in self.buffer.buckets.values()]
        if sum(sizes) >= _MOST_KEYS:
            self.look_up()
            self._write(0)
            self._write_buckets(self._bounties, 0)

    def finish(self) -> None:
        """Write the remaining records."""
        self.look_up()
        super().finish()
        self._write_buckets(self._bounties, 0)


def _leave_all_out(row: Row) -> Row:
    """Return no attributes, for rows that are only counted."""
    return {}


class Unknown:
    """Stands in for the map while the questions of posts are unknown: every question id is 0.

    Thus the rows of a chunk stay together, in the order of the table.
    """

    def find(self, ids: Iterable[int]) -> dict[int, int]:
        """Return 0 for each id."""
        return dict.fromkeys(ids, 0)

    def replace(self, ids: array[int], values: array[int]) -> None:
        """Set each value to 0."""
        values[:] = array("q", bytes(8 * len(values)))


def _choose_sink(table: Table) -> type[RowSink]:
    if table == POSTS:
        return PostSink
    if table.name == "badges":
        return BadgeSink
    return NestedSink if table.kind else UserSink


@dataclass(frozen=True, slots=True)
class Filing:
    """How a worker files the rows of a chunk.

    Attributes:
        path: File of the spill for the blocks.
        room: Bytes that may be written uncompressed.
        table: The table.
        options: Options of the conversion.
        posts_map: Path of the map of posts to their questions; empty while it is unknown.
    """

    path: str
    room: int
    table: Table
    options: Options
    posts_map: str

    @contextmanager
    def open(self) -> Iterator[RowSink]:
        """Open the sink of the rows; at the end, write the remaining rows."""
        step = find_step(self.options)
        sink_class = (_choose_sink if step is None else step.choose_sink)(self.table)
        with ExitStack() as stack:
            writer = stack.enter_context(BlockWriter(self.path, self.room))
            is_mapped = bool(self.table.kind and self.posts_map)
            known = stack.enter_context(IdMap(self.posts_map)) if is_mapped else Unknown()
            yield (sink := sink_class(self, writer, known))
            sink.finish()


def file_kept_chunk(task: tuple[Filing, list[tuple[str, Block]]]) -> list[Block]:
    """File rows that were kept in the order of the table; return the new blocks."""
    filing, blocks = task
    with filing.open() as sink, BlockReader() as reader, check_blocks_match(blocks):
        for path, block in blocks:
            keys, json = reader.read(path, block)
            if block.bucket is None:
                sink.copy(keys, json)
            else:
                sink.add_records(keys, json)
                sink.flush()
    written, _ = sink.result()
    return written
