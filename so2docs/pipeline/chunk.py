"""What a worker of the first pass does: a range of a table -> blocks by bucket of question ids.

One plain object in, one out, so that any engine can run it. Memory is bounded by a slice and by
what is filed before it is written.

Posts are filed under their question, which they name themselves; what belongs to a post, under the
question that the map of the posts knows; users are in lines of their own.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import orjson
from isal.isal_zlib import crc32

from so2docs.counts import ChunkTally
from so2docs.dump.dump import Chunk, Dump, closes_within, slices
from so2docs.errors import Location, MalformedDumpError, flag
from so2docs.history import forget_users
from so2docs.options.table import Options
from so2docs.parse import core, posts, repeats, rows, table_rows
from so2docs.parse.core import Added
from so2docs.parse.keys import KEY
from so2docs.parse.posts import Posts
from so2docs.parse.row_filter import RowFilter, ids_to_drop, make_projection, projection_of_table
from so2docs.parse.rows import Malformed, parse
from so2docs.parse.table_rows import MOST_USERS, Row
from so2docs.pipeline import strict
from so2docs.schema import (
    BADGE_CLASSES,
    COMMENT,
    LINK,
    POSTS,
    TABLES,
    TYPE_NAMES,
    USER_ATTRIBUTES,
    VOTE,
    Table,
)
from so2docs.spill import REJECTED
from so2docs.store.blocks import Block, BlockReader, BlockWriter, check_blocks_match
from so2docs.store.id_map import IdMap
from so2docs.store.users import CLASS_BITS

_FULL_BLOCK = 512 * 1024
_MOST_BUFFERED = 48 * 1024 * 1024
_MOST_KEYS = 16 * 1024 * 1024
_MOST_COUNTS = 1 << 17
_BADGE_COLUMNS = (b"Id", b"UserId", b"Class", b"Other"), bytes([1, 1, 1, 5])


class RowSink:
    """The destination of the rows of a chunk; one subclass for each kind of table.

    Attributes:
        posts: The posts or records made of the rows, until they are written.
        malformed: Why a row that is not XML is a stray.
    """

    malformed = "malformed_row"

    def __init__(self, options: Options, posts: Posts, writer: BlockWriter) -> None:
        self.posts = posts
        self._writer = writer
        self._is_compiled = options.core == "compiled"

    def add(self, rows: list[Row]) -> None:
        """File rows; they are changed in place."""
        raise NotImplementedError

    def add_compiled(self, data: bytes) -> Added | None:
        """File a slice by the compiled core; None, with nothing changed, if that cannot be."""
        raise NotImplementedError

    def add_records(self, keys: bytes, json: bytes) -> None:
        """File rows that were made into records before.

        Args:
            keys: Their keys; the questions in them are not known yet.
            json: Their JSON.
        """
        raise NotImplementedError

    def flush(self) -> None:
        """Write what was gathered, if it is much."""
        self._write(_FULL_BLOCK)

    def finish(self) -> None:
        """Write the rest."""
        self._write(0)

    def _write(self, least: int) -> None:
        """Write the buckets of at least `least` bytes; all, if too much is held in all."""
        posts, buckets = self.posts, self.posts.buckets
        if sum(len(bucket.json) for bucket in buckets.values()) > _MOST_BUFFERED:
            least = 0
        self._write_buckets(posts, least)
        if posts.rejected and len(posts.rejected) >= least:
            self._writer.write(REJECTED, posts.rejected, bytearray())
            posts.rejected = bytearray()
        if posts.strays and len(posts.strays) >= least:
            self._writer.write(None, bytearray(), posts.strays)
            posts.strays = bytearray()

    def _write_buckets(self, posts: Posts, least: int) -> None:
        buckets = posts.buckets
        for number in sorted(n for n, bucket in buckets.items() if len(bucket.json) >= least):
            bucket = buckets.pop(number)
            self._writer.write(number, bucket.keys, bucket.json)


class _PostFiling(RowSink):
    def __init__(self, options: Options, writer: BlockWriter) -> None:
        super().__init__(options, Posts(reserved=options.reserved), writer)
        self._is_compiled = self._is_compiled and not options.needs_rows
        self._projection = make_projection(options)
        self._filter = None
        if options.filters.select:
            keys = options.needs_all_keys
            self._filter = RowFilter(options.filters, self._projection, all_keys=keys)

    def add(self, rows: list[Row]) -> None:
        if self._filter is None:
            posts.add(self.posts, rows, self._projection)
        else:
            self._filter.add(self.posts, rows)

    def add_compiled(self, data: bytes) -> Added | None:
        return core.add_fast(data, self.posts) if self._is_compiled else None


class _UserFiling(RowSink):
    """Users become lines of JSON, each with its checksum; keys after them say where each is."""

    malformed = "malformed_user"

    def __init__(self, options: Options, writer: BlockWriter) -> None:
        super().__init__(options, Posts(), writer)
        self._projection = projection_of_table(options)
        self._is_compiled &= self._projection is None
        self._lines, self._keys, self._written = bytearray(), bytearray(), 0

    def add(self, rows: list[Row]) -> None:
        project = self._projection
        for row in table_rows.reject(self.posts, TABLES["users"], rows):
            attributes = {name: value for name, value in row.items() if name in USER_ATTRIBUTES}
            json = orjson.dumps(attributes if project is None else project(attributes))
            self._add(row["Id"], json)

    def add_compiled(self, data: bytes) -> Added | None:
        compiled = core.read_users(data) if self._is_compiled else None
        if compiled is None:
            return None
        added, keys, jsons = compiled
        at = 0
        for user_id, _, _, size_and_kind in KEY.iter_unpack(keys):
            end = at + (size_and_kind >> 4)
            self._add(user_id, jsons[at:end])
            at = end
        return added

    def _add(self, user_id: int, json: bytes) -> None:
        self._keys += KEY.pack(user_id, self._written + len(self._lines), 0, 0)
        self._lines += b"%08x%b\n" % (crc32(json), json)

    def flush(self) -> None:
        self._writer.append(self._lines)
        self._written += len(self._lines)
        self._lines = bytearray()

    def finish(self) -> None:
        self.flush()
        self._writer.write(None, self._keys, bytearray())
        super().finish()


class _BadgeFiling(RowSink):
    """Badges are counted by user and class, as keys."""

    malformed = "malformed_badge"

    def __init__(self, options: Options, writer: BlockWriter) -> None:
        super().__init__(options, Posts(), writer)
        self._counts: Counter[tuple[int, int]] = Counter()

    def add(self, rows: list[Row]) -> None:
        usable = table_rows.reject(self.posts, TABLES["badges"], rows)
        self._count((row["UserId"], row["Class"]) for row in usable)

    def add_compiled(self, data: bytes) -> Added | None:
        columns = core.read_columns(data, *_BADGE_COLUMNS) if self._is_compiled else None
        if columns is None:
            return None
        rows, last_id, (_, of_users, of_classes, _) = columns
        users, classes = array("q", of_users[2]), array("q", of_classes[2])
        is_whole = not of_users[0] and not of_classes[0] and BADGE_CLASSES.keys() >= set(classes)
        if not is_whole or any(abs(user_id) >= MOST_USERS for user_id in users):
            return None
        self._count(zip(users, classes, strict=True))
        return rows, last_id

    def _count(self, badges: Iterable[tuple[int, int]]) -> None:
        self._counts.update(badges)
        if len(self._counts) >= _MOST_COUNTS:
            self._write_counts()

    def _write_counts(self) -> None:
        keys = bytearray()
        for (user_id, of_class), count in self._counts.items():
            keys += KEY.pack(user_id << CLASS_BITS | of_class, count, 0, 0)
        self._counts.clear()
        if keys:
            self._writer.write(None, keys, bytearray())

    def finish(self) -> None:
        self._write_counts()
        super().finish()


class _RowFiling(RowSink):
    """Rows that are nested in posts.

    The questions of those that the compiled core read are looked up for many slices at once: in
    order, each block of the map is read once for all of them.
    """

    def __init__(
        self, table: Table, options: Options, writer: BlockWriter, posts_map: IdMap | Unknown
    ) -> None:
        super().__init__(options, Posts(), writer)
        self._table, self._known = table, posts_map
        self._counts = table.kind == VOTE
        self._bounties = Posts()
        self._projection = projection_of_table(options)
        names_users = table.kind != LINK
        self._dropped_users = ids_to_drop(options.filters.drop_users if names_users else None)
        self._has_core = self._is_compiled
        if not self._counts:
            self._is_compiled &= self._projection is None and not self._dropped_users
        self.malformed = f"malformed_{table.row}"
        self._read: list[tuple[bytes, bytes]] = []

    def add(self, rows: list[Row]) -> None:
        self.look_up()
        if self._dropped_users:
            rows = self._drop(rows)
        if self._counts:
            self._add_bounties(table_rows.with_bounty(rows))
            table_rows.add_votes(self.posts, rows, self._known.find)
        else:
            table_rows.add_rows(self.posts, self._table, rows, self._known.find, self._projection)

    def _drop(self, rows: list[Row]) -> list[Row]:
        """Leave out comments of the listed users; forget who voted, offered a bounty or edited."""
        remaining: list[Row] = []
        for row in rows:
            if "PostHistoryTypeId" in row:
                forget_users(row, self._dropped_users)
            if posts.number(row.get("UserId", "")) in self._dropped_users:
                if self._table.kind == COMMENT:
                    continue
                del row["UserId"]
                row.pop("UserDisplayName", None)
            remaining.append(row)
        self.posts.filtered += len(rows) - len(remaining)
        self.posts.dropped += len(rows) - len(remaining)
        return remaining

    def add_compiled(self, data: bytes) -> Added | None:
        compiled = core.read_records(data, self._table) if self._is_compiled else None
        if compiled is None:
            return None
        added, keys, json = compiled
        if self._counts:
            for part in parse(json) if json else ():
                if not isinstance(part, Malformed):
                    self._add_bounties(self._drop(part.rows))
            json = b""
        else:  # A record each, but for rows that were not asked for.
            self.posts.filtered += added[0] - len(keys) // KEY.size
        self._read.append((keys, json))
        return added

    def _add_bounties(self, rows: list[Row]) -> None:
        table_rows.add_bounties(self._bounties, rows, self._known.find, self._projection)

    def add_records(self, keys: bytes, json: bytes) -> None:
        if self._counts and json:
            table_rows.add_records(self._bounties, keys, json, self._known.find)
        elif self._has_core:
            self._read.append((keys, json))
        else:
            table_rows.add_records(self.posts, keys, json, self._known.find)

    def look_up(self) -> None:
        """File what was read so far."""
        if self._read:
            core.file_records(self._read, self.posts, self._known.replace)
            self._read.clear()

    def flush(self) -> None:
        self.look_up()
        if not self._counts:
            super().flush()
        # Votes have no JSON; their bounties are in blocks of their own.
        elif sum(len(bucket.keys) for bucket in self.posts.buckets.values()) >= _MOST_KEYS:
            self._write(0)
            self._write_buckets(self._bounties, 0)

    def finish(self) -> None:
        super().finish()
        self._write_buckets(self._bounties, 0)


class Unknown:
    """In place of a map, while the questions of posts are not known: all are 0.

    So the rows of a chunk stay together, in the order of their table.
    """

    def find(self, ids: Iterable[int]) -> dict[int, int]:
        """0 for each id."""
        return dict.fromkeys(ids, 0)

    def replace(self, ids: array[int], values: array[int]) -> None:
        """Put 0 in the place of each id."""
        values[:] = array("q", bytes(8 * len(values)))


@contextmanager
def open_sink(
    table: Table, options: Options, posts_map: str, writer: BlockWriter
) -> Iterator[RowSink]:
    """How the rows of a table are filed; at the end, all are written.

    Args:
        table: Which.
        options: How to convert.
        posts_map: The map from post ids to question ids; empty while they are not known, and for a
            table that needs none.
        writer: Where they go.

    Raises:
        SpillError: The map of the posts is missing.
    """
    steps: RowSink
    if table == POSTS:
        yield (steps := _PostFiling(options, writer))
    elif table.name == "badges":
        yield (steps := _BadgeFiling(options, writer))
    elif not table.kind:
        yield (steps := _UserFiling(options, writer))
    else:
        with IdMap(posts_map) if posts_map else nullcontext(Unknown()) as id_map:
            yield (steps := _RowFiling(table, options, writer, id_map))
            steps.look_up()
    steps.finish()


_FLUSH_EVERY = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ChunkTask:
    """A range of a table to spill.

    Attributes:
        chunk: The range.
        path: File for its blocks.
        options: How to convert.
        table: What it is a range of.
        posts_map: The map from post ids to question ids; empty while they are not known, and for a
            table that needs none.
        room: Bytes that its blocks may take uncompressed.
    """

    chunk: Chunk
    path: str
    options: Options
    table: Table = POSTS
    posts_map: str = ""
    room: int = 0


@dataclass(slots=True)
class ChunkResult:
    """A chunk that has been spilled, ready to be committed.

    Attributes:
        task: What was asked for.
        blocks: The blocks.
        tally: What was counted in it.
        pages: The ids of its posts.
    """

    task: ChunkTask
    blocks: list[Block]
    tally: ChunkTally
    pages: repeats.Pages


def spill_chunk(task: ChunkTask) -> ChunkResult:
    """Parse a chunk once and write its rows as blocks.

    Raises:
        MalformedDumpError: A row is not XML; lines in it count from the start of the chunk.
        StrictError: Something is to be repaired or left out, and `strict` forbids it.
        ChangedDumpError: The dump is not what it was.
        SpillError: The map of the posts is missing.
    """
    _, dump, start, end = task.chunk
    tally, held_bytes, options = ChunkTally(), 0, task.options
    with (
        BlockWriter(task.path, task.room) as writer,
        open_sink(task.table, options, task.posts_map, writer) as steps,
    ):
        posts = steps.posts
        for offset, data in slices(dump, start, end):
            last_id = tally.last_id
            _file_slice(task, steps, tally, offset, data)
            if options.strict and (tally.repaired_characters or posts.stray_reasons):
                location = Location(offset, tally.lines, last_id)
                raise strict.in_slice(dump, data, location, task.table, options.reserved)
            tally.lines += core.count_lines(data)
            held_bytes += len(data)
            if held_bytes >= _FLUSH_EVERY:
                held_bytes = 0
                steps.flush()
    tally.filtered, tally.dropped = posts.filtered, posts.dropped
    tally.strays.update(posts.stray_reasons)
    for kind, count in posts.other_types.items():
        tally.other_types[TYPE_NAMES.get(kind, f"PostTypeId {kind}")] += count
    pages, tally.first_questions = repeats.of_chunk(posts.pairs)
    return ChunkResult(task, writer.blocks, tally, pages)


@dataclass(frozen=True, slots=True)
class FilingTask:
    """A chunk whose rows were kept in the order of their table, to be filed.

    Attributes:
        number: Its number in the spill, once it is filed.
        blocks: The blocks that it was kept in, each with its file.
        path: File for the blocks to write.
        options: How to convert.
        table: What it is a range of.
        posts_map: The map from post ids to question ids.
        room: Bytes that its blocks may take uncompressed.
    """

    number: int
    blocks: list[tuple[str, Block]]
    path: str
    options: Options
    table: Table
    posts_map: str
    room: int


def file_kept_chunk(task: FilingTask) -> tuple[FilingTask, list[Block]]:
    """File the rows of a chunk under the questions of their posts.

    Returns:
        The task, and the blocks that were written.

    Raises:
        SpillError: A block is damaged, or the map of the posts is missing.
    """
    with (
        BlockWriter(task.path, task.room) as writer,
        open_sink(task.table, task.options, task.posts_map, writer) as steps,
        BlockReader() as reader,
        check_blocks_match(task.blocks),
    ):
        for path, block in task.blocks:
            keys, json = reader.read(path, block)
            if block.bucket is None:
                writer.write(None, bytearray(keys), bytearray(json))
            else:
                steps.add_records(keys, json)
                steps.flush()
    return task, writer.blocks


def _file_slice(
    task: ChunkTask, steps: RowSink, tally: ChunkTally, offset: int, data: bytes
) -> None:
    """File a slice by the compiled core if it can be, and by the reference otherwise."""
    added = steps.add_compiled(data)
    if added is not None:
        tally.count_rows(*added)
        return

    def reject(at: int, raw: bytes) -> None:
        steps.posts.strays += posts.malformed_line(at, raw, steps.malformed)
        steps.posts.stray_reasons[steps.malformed] += 1

    groups = parse_slice(
        task.chunk.dump, tally, offset, data, reject, skip_malformed=task.options.skip_malformed
    )
    for group in groups:
        tally.count_rows(len(group), rows.row_id(group[-1]))
        steps.add(group)


def parse_slice(
    dump: Dump,
    tally: ChunkTally,
    offset: int,
    data: bytes,
    reject: Callable[[int, bytes], None],
    *,
    skip_malformed: bool,
) -> Iterator[list[Row]]:
    """Parse a slice of a chunk by the reference, and count what is not in the rows.

    Args:
        dump: The dump.
        tally: Counts of the chunk; the caller adds the rows that are yielded.
        offset: Offset of the slice.
        data: The slice.
        reject: Called with the offset and the bytes of each row that is not XML.
        skip_malformed: Leave out such rows, where that is possible.

    Yields:
        Groups of rows, none of them empty.

    Raises:
        MalformedDumpError: A row is not XML; lines in it count from the start of the chunk.
    """
    for part in rows.parse(data):
        if isinstance(part, rows.Malformed):
            at = offset + part.position
            if not (skip_malformed and part.can_be_skipped):
                raise malformed_error(dump, at, tally, data, part)
            tally.count_rows(1)
            reject(at, part.raw)
            continue
        tally.repaired_characters += part.repaired
        if part.rows:
            yield part.rows


def malformed_error(
    dump: Dump, at: int, tally: ChunkTally, data: bytes, part: rows.Malformed
) -> MalformedDumpError:
    """The error for a row of a chunk that is not XML; its line counts from the chunk's start."""
    opening, closing = dump.frame
    problem, advice = part.problem, "download the dump again"
    if closes_within(part.raw, dump.frame):
        problem = f"content after its closing {closing.decode(errors='replace')}"
        advice = "if two dumps were joined, split them and convert each"
    problem = f"is not well-formed XML ({problem}) in the row"
    advice += f", or leave such rows out with {flag('skip_malformed', True)}"
    if not part.can_be_skipped:
        problem, advice = f"has {part.problem}", "remove it from the dump"
    return MalformedDumpError(
        dump.path,
        problem,
        Location(at, tally.lines + data.count(b"\n", 0, part.position), tally.last_id),
        advice=advice,
        excerpt=opening + b"\n" + part.raw + closing,
    )
