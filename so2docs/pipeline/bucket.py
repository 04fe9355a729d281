"""Merge buckets in workers of the second pass: from blocks to segments of documents.

`second_pass.divide` bounds the memory: a task contains at most `PART_BYTES` of JSON, unless one
document is larger. The compiled core sorts and joins the records; the reference is `merge.gather`,
`merge.DocumentBuilder` and `nest.Nest`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from itertools import chain
from struct import Struct
from typing import NamedTuple

import orjson

from so2docs import merge
from so2docs.counts import RowCounts
from so2docs.merge import Document, DocumentBuilder, Records, gather, merge_votes
from so2docs.nest import Nest, NestedRow, Post
from so2docs.output import formats
from so2docs.output.compression import compress_lines
from so2docs.output.formats import OpenSegment
from so2docs.output.recording import count_and_prepare
from so2docs.output.segments import Segment, store
from so2docs.parse.core import compiled
from so2docs.parse.keys import BUCKET_BITS, integers
from so2docs.parse.opt_outs import unpack_ids
from so2docs.pipeline.selection import Selection
from so2docs.pipeline.tasks import BucketResult, BucketTask, find_step
from so2docs.schema import BOUNTY, COMMENT, MEMBERS, OF_KIND, VOTE_TYPES
from so2docs.store.blocks import BlockReader, check_blocks_match
from so2docs.store.objects import Objects

_KINDS = 16
"""Number of possible kinds of records; a kind takes four bits of a key."""

_VOTE_NAMES = tuple(orjson.dumps(VOTE_TYPES.get(kind, str(kind))) + b":" for kind in range(64))
"""Names of vote types as JSON keys, by type; higher types are left to the reference."""

_NAMING = 1 << BOUNTY | sum(
    1 << kind for kind, table in OF_KIND.items() if table.users == {"UserId": "User"}
)


_NO_IDS = array("q")

JoinedGroup = tuple[int, int, int, int, bytes | None, bytes, int]
"""The result of the compiled core for the records of a question id, or of a run.

Question id (the first one of a run), number of records, number of posts, their size in bytes, the
document without its closing brace (None if the reference has to decide; for a run, the documents,
each with its closing bytes), counts of nested rows and votes by kind as 64-bit integers, and the
number of documents.
"""


def join_records(
    blocks: list[merge.BlockData],
    records: bytearray,
    first: int,
    enough: int,
    *,
    nesting: DocumentBuilder,
    closing: bytes = b"",
    user_ids: array[int] = _NO_IDS,
    users: list[bytes | None] | None = None,
) -> list[JoinedGroup]:
    """Join sorted records as `nesting` does, with the compiled core; see `_core.join_records`."""
    nest = nesting.nest
    kinds, made = ([], {}) if nest is None else (nest.kinds, nest.made)
    members = (
        made.get(kind, b'"%b":' % MEMBERS[kind][1].encode() if kind in kinds else b"")
        for kind in range(_KINDS)
    )
    return compiled.join_records(
        blocks,
        records,
        first,
        enough,
        opening=nesting.opening,
        closing=closing,
        with_answers=nesting.with_answers,
        by_votes=nesting.by_votes,
        tables=_as_bits(kinds),
        naming=_NAMING,
        made=_as_bits(made),
        members=tuple(members),
        vote_names=_VOTE_NAMES,
        user_ids=user_ids,
        users=users,
    )


def _as_bits(kinds: Iterable[int]) -> int:
    return sum(1 << kind for kind in kinds)


ENOUGH_BYTES = 1 << 20
"""Size of the records and documents that are joined in one step, in bytes."""

_RECORD = Struct("=6q")
"""Question id, post id, rank, size << 4 | kind, number of the block << 40 | offset, order."""
_OFFSET = (1 << 40) - 1


class RunForm(NamedTuple):
    """The form of runs, which are documents joined in one step if no option needs single documents.

    Attributes:
        closing: Bytes after each document in the file.
        size: Size of documents, in bytes, at which a new segment starts; runs stay below it.
    """

    closing: bytes
    size: int


def select_part(blocks: Iterable[merge.BlockData], ids: range) -> Iterable[merge.BlockData]:
    """Select the records of a part of a bucket with the compiled core."""
    if len(ids) == 1 << BUCKET_BITS:
        return blocks
    return (compiled.select_records(block, ids.start, ids.stop) for block in blocks)


class JoinedRecords:
    """The records of one bucket, nested by the compiled core as `merge.GatheredRecords` does.

    Records that the compiled core rejects are left to the reference, one question at a time.

    Raises:
        ValueError: The keys and the JSON of a block do not match.
    """

    def __init__(
        self,
        blocks: Iterable[merge.BlockData],
        ids: range,
        *,
        users: Objects | None = None,
        run: RunForm | None = None,
    ) -> None:
        self._blocks = list(merge_votes(select_part(blocks, ids), compiled.count_votes))
        self._sorted = compiled.sort_records(self._blocks)
        self._users = users
        self._run = run

    def documents(self, nesting: DocumentBuilder) -> Iterator[Document]:
        """Nest all records; the reference nests groups that the compiled core rejects."""
        user_ids, users = array("q"), None
        if self._users is not None:
            user_ids = array("q", compiled.user_ids(self._blocks, self._sorted, _NAMING))
            users = self._users.get_all(user_ids)
        join = partial(
            join_records,
            self._blocks,
            self._sorted,
            nesting=nesting,
            closing=b"" if self._run is None else self._run.closing,
            user_ids=user_ids,
            users=users,
        )
        at, end, enough = 0, len(self._sorted) // _RECORD.size, ENOUGH_BYTES
        remaining = 0  # Bytes left in the segment.
        while at < end:
            if self._run is not None:
                enough = remaining = remaining if remaining > 0 else self._run.size
            for question_id, records, posts, size, json, rows, documents in join(at, enough):
                document: Document | None
                if json is None:
                    document = self._by_reference(nesting, range(at, at + records))
                else:
                    nesting.count(documents, posts - documents, array("q", rows))
                    run = 0 if self._run is None else documents
                    document = Document(question_id, [json], size, run=run)
                at += records
                if document is not None:
                    remaining -= document.size
                    yield document

    def _by_reference(self, nesting: DocumentBuilder, numbers: range) -> Document | None:
        posts: list[Post] = []
        rows: list[NestedRow] = []
        question_id = 0
        for number in numbers:
            question_id, post_id, rank, size_and_kind, position, order = _RECORD.unpack_from(
                self._sorted, number * _RECORD.size
            )
            start, kind = position & _OFFSET, size_and_kind & 15
            json = self._blocks[position >> 40][1][start : start + (size_and_kind >> 4)]
            if kind >= COMMENT:
                rows.append((kind, post_id, rank, order, json))
            else:
                posts.append((post_id, order, rank, kind, json))
        return nesting.nest_group(question_id, posts, rows)


@contextmanager
def load_bucket(task: BucketTask, run: RunForm | None = None) -> Iterator[DocumentBuilder]:
    """Read the blocks of a task, and yield the builder that nests their records."""
    options = task.options
    fields, site = options.filters.selected, options.site_field
    with Objects(task.users) if task.users else nullcontext() as users:
        dropped = unpack_ids(options.filters.drop_posts)
        find_user = None if users is None else users.get
        nest = Nest(options.nest, find_user, fields, dropped) if options.nest else None
        records: Records
        counts, strays = RowCounts(), list[bytes]()
        with ExitStack() as stack, BlockReader() as reader, check_blocks_match(task.blocks):
            blocks: Iterable[merge.BlockData]
            blocks = (reader.read(path, block) for path, block in task.blocks)
            if task.selection is not None:
                blocks = _read_selected(task, task.selection, reader, counts)
            if step := find_step(options):
                blocks = stack.enter_context(step.apply(task, blocks, counts, strays))
            # To remove fields after nesting, posts must be parsed, which only the reference does.
            if options.core == "compiled" and not (nest and nest.leaves_out):
                records = JoinedRecords(blocks, task.ids, users=users, run=run)
            else:
                records = gather(blocks, task.ids)
        builder = DocumentBuilder(
            records,
            options.answers_by,
            extra=b"" if site is None else orjson.dumps(dict([site]))[1:-1],
            with_answers=fields.has_answers,
            nest=nest,
        )
        builder.counts += counts
        builder.strays += strays
        yield builder


def _read_selected(
    task: BucketTask, selection: Selection, reader: BlockReader, counts: RowCounts
) -> Iterator[merge.BlockData]:
    """Read the blocks with selected questions, and count all other records as filtered."""
    question_ids = selection.choose(reader.read_keys(path, block) for path, block in task.blocks)
    is_whole = len(task.ids) == 1 << BUCKET_BITS
    for path, block in task.blocks:
        keys = reader.read_keys(path, block)
        if is_whole and question_ids.isdisjoint(integers(keys)[::4]):
            merge.count_filtered(keys, counts)
        else:
            json = reader.read(path, block)[1]
            yield merge.select_questions(keys, json, task.ids, question_ids, counts)


def merge_bucket(task: BucketTask, result: BucketResult) -> None:
    """Nest a range of question ids, compress documents and strays, and add them to the result."""
    options = task.options
    gathered, lines = _Segments(task, result.segments), list[bytes]()
    for part in (task, *task.following):
        with load_bucket(part, gathered.run) as nested:
            for document in count_and_prepare(nested, options):
                gathered.add(document)
        result.counts += nested.counts
        lines += nested.strays
    gathered.close()
    result.size += task.size
    result.strays += compress_lines(lines, task.strays, options.level)
    result.first_stray += lines[:1]


def merge_buckets(group: tuple[list[BucketTask], str | None]) -> BucketResult:
    """Run tasks one after another, and write their segments to a temporary file, if it is given."""
    (tasks, temporary), result = group, BucketResult()
    for task in tasks:
        merge_bucket(task, result)
    if temporary and (result.segments or result.strays):
        result.segments, result.strays = store(temporary, result.segments, result.strays)
    return result


class _Segments:
    """Collects documents until there are enough for a segment of the output, and adds it."""

    def __init__(self, task: BucketTask, segments: list[Segment]) -> None:
        self._segments = segments
        self._format = formats.of(task.options)
        self._enough = task.segment_bytes or self._format.segment_bytes
        cuts = chain(task.cuts, *(part.cuts for part in task.following))
        self._cuts = sorted(cuts, reverse=True)
        # The documents of the current segment, by file label.
        self._held: dict[str, OpenSegment] = {}
        options, closing = task.options, self._format.closing
        is_looked_at = options.changes_documents or options.form.split.is_by_question
        has_runs = closing and not is_looked_at and not self._cuts
        self.run = RunForm(closing, self._enough) if has_runs else None

    def add(self, document: Document) -> None:
        if self._cuts and document.question_id >= self._cuts[-1]:
            self.close()
            while self._cuts and document.question_id >= self._cuts[-1]:
                self._cuts.pop()
        pending = self._held.get(document.label)
        if pending is None:
            pending = self._held[document.label] = self._format.open_segment(document.question_id)
        pending.add(document)
        if pending.size >= self._enough * (1 if self._format.ends_segment(document) else 2):
            self._end(document.label)

    def close(self) -> None:
        """End the unfinished segments."""
        for label in sorted(self._held):
            self._end(label)

    def _end(self, label: str) -> None:
        segment = self._held.pop(label).end()
        self._segments.append(segment._replace(label=label) if label else segment)
