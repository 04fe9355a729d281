"""What a worker of the second pass does: the blocks of a bucket -> segments of documents.

One plain object in, one out, so that any engine can run it. `second_pass.divide` bounds its memory:
no task holds more JSON than `PART_BYTES`, unless one document does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace

import orjson

from so2docs.counts import RowCounts
from so2docs.merge import Document, DocumentBuilder, Records, gather
from so2docs.nest import Buffer, Nest
from so2docs.options.choices import Compression
from so2docs.options.table import Options
from so2docs.output import formats
from so2docs.output.compression import compress_lines
from so2docs.output.recording import count_and_prepare
from so2docs.output.segments import Segment, store
from so2docs.pipeline.joined import JoinedRecords, Run
from so2docs.store.blocks import Block, BlockReader, check_blocks_match
from so2docs.store.users import Users, UserTable


@dataclass(frozen=True, slots=True)
class BucketTask:
    """A range of question ids to nest.

    Attributes:
        ids: The question ids.
        size: Bytes of their JSON.
        blocks: The blocks that hold them, in the order of the dump, each with its file.
        first_question_of: For post ids under several questions, the one that stays.
        options: How to convert.
        cuts: Question ids that start another file of the output, in ascending order.
        limit: Most documents.
        users: Where the users are, if they are to be nested.
    """

    ids: range
    size: int
    blocks: list[tuple[str, Block]]
    first_question_of: dict[int, int]
    options: Options
    cuts: tuple[int, ...] = ()
    limit: int | None = None
    users: UserTable | None = None


@dataclass(slots=True)
class BucketResult:
    """Documents of a range of question ids, ready to be appended."""

    ids: range
    segments: list[Segment]
    strays: list[bytes]
    counts: RowCounts


@dataclass(frozen=True, slots=True)
class WriteTask:
    """A range of question ids to nest, and to write where the main process finds it.

    Attributes:
        merge: The range.
        temporary: File for the segments; None if they are to stay in memory.
        strays: How the lines of the side file are compressed.
    """

    merge: BucketTask
    temporary: str | None
    strays: Compression


@dataclass(slots=True)
class WrittenBucket:
    """Documents and strays of a range of question ids, ready to be appended.

    Attributes:
        ids: The question ids.
        size: Bytes of their JSON.
        segments: The documents.
        strays: The lines of the side file.
        first_stray: The first of those, where there must be none.
        counts: What became of the rows.
    """

    ids: range
    size: int
    segments: list[Segment]
    strays: list[Segment]
    first_stray: bytes
    counts: RowCounts


@contextmanager
def load_bucket(task: BucketTask, run: Run | None = None) -> Iterator[DocumentBuilder]:
    """Read the blocks of a bucket, ready to be nested.

    Args:
        task: What to nest.
        run: How documents may be joined to runs.

    Raises:
        SpillError: A block is damaged.
    """
    options = task.options
    fields = options.filters.fields
    with nullcontext() if task.users is None else Users(task.users) as users:
        nest = Nest(options.nest, users, fields) if options.nest else None
        records: Records
        with BlockReader() as reader, check_blocks_match(task.blocks):
            blocks = (reader.read(path, block) for path, block in task.blocks)
            # Posts of which something is left out once they are complete are parsed for it.
            if options.core == "compiled" and not (nest and nest.leaves_out):
                records = JoinedRecords(blocks, task.ids, users=users, run=run)
            else:
                records = gather(blocks, task.ids)
        yield DocumentBuilder(
            records,
            options.answers_by,
            task.first_question_of,
            extra=_extra(options),
            limit=task.limit,
            with_answers=fields.has_answers,
            nest=nest,
        )


def _extra(options: Options) -> bytes:
    """The site's field, if it was asked for."""
    return b"" if options.site_field is None else orjson.dumps(dict([options.site_field]))[1:-1]


def merge_bucket(task: BucketTask) -> BucketResult:
    """Nest a range of question ids, and compress the documents.

    Raises:
        SpillError: A block is damaged.
    """
    segments = _Segments(task)
    with load_bucket(task, segments.run) as nested:
        for document in count_and_prepare(nested, task.options):
            segments.add(document)
        segments.close()
        return BucketResult(task.ids, segments.segments, nested.strays, nested.counts)


def write_bucket(task: WriteTask) -> WrittenBucket:
    """Nest a range of question ids, and write documents and strays to the temporary file.

    Raises:
        SpillError: A block is damaged.
        OutputError: The file cannot be written.
        DiskFullError: The disk is full.
    """
    options = task.merge.options
    result = merge_bucket(task.merge)
    segments = result.segments
    strays = list(compress_lines(result.strays, task.strays, options.level))
    if task.temporary and (segments or strays):
        segments, strays = store(task.temporary, segments, strays)
    first_stray = result.strays[0] if options.strict and result.strays else b""
    counts = result.counts
    return WrittenBucket(result.ids, task.merge.size, segments, strays, first_stray, counts)


@dataclass(slots=True)
class _Held:
    """Documents of one file that are no segment yet."""

    first_id: int
    parts: list[Buffer] = field(default_factory=list)
    size: int = 0
    count: int = 0


class _Segments:
    """Gathers documents until they are a segment of the output.

    Attributes:
        run: How documents may come in runs; None where each is looked at.
    """

    def __init__(self, task: BucketTask) -> None:
        self.segments: list[Segment] = []
        self._format = formats.of(task.options)
        self._cuts = list(reversed(task.cuts))
        self._held: dict[str, _Held] = {}  # By period, where files are split by date.
        self.run = self._read_run(task)

    def add(self, document: Document) -> None:
        if self._cuts and document.question_id >= self._cuts[-1]:
            self.close()
            while self._cuts and document.question_id >= self._cuts[-1]:
                self._cuts.pop()
        pending = self._held.get(document.period)
        if pending is None:
            pending = self._held[document.period] = _Held(document.question_id)
        elif self._format.between:
            pending.parts.append(self._format.between)
        pending.parts += document.parts if document.run else self._format.frame(document)
        pending.size += document.size
        pending.count += document.run or 1
        if pending.size >= self._format.segment_bytes:
            self._end(document.period)

    def _read_run(self, task: BucketTask) -> Run | None:
        options, form = task.options, self._format
        is_looked_at = options.changes_documents or options.form.is_by_question
        if is_looked_at or task.cuts or task.limit is not None or not form.closing:
            return None
        return Run(form.closing, form.segment_bytes)

    def close(self) -> None:
        """End the segments that are begun."""
        for period in sorted(self._held):
            self._end(period)

    def _end(self, period: str) -> None:
        pending = self._held.pop(period)
        raw = b"".join(pending.parts)
        pending.parts.clear()  # They would be there a second time while the segment is made.
        segment = self._format.segment(raw, pending.first_id, pending.count)
        self.segments.append(replace(segment, period=period) if period else segment)
