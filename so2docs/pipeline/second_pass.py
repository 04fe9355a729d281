"""The main process of the second pass: from buckets of the spill to documents in the output.

Workers compress the documents of each bucket, and the main process copies them into the output, in
order. An interrupted pass starts over from the spill.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice, pairwise
from typing import Any

from so2docs import merge
from so2docs.counts import RowCounts
from so2docs.domain import FIRST_FABRICATED_ID
from so2docs.options.choices import Core
from so2docs.options.table import Options
from so2docs.output import formats, segments
from so2docs.output.compression import compress_lines
from so2docs.output.file import Output
from so2docs.output.new_files import NewFiles
from so2docs.output.paths import OutputPaths
from so2docs.output.provenance import Provenance
from so2docs.output.recording import count_and_prepare
from so2docs.output.writer import Writer
from so2docs.parse.core import compiled
from so2docs.parse.keys import ANSWER, BUCKET_BITS, QUESTION, integers, kinds_in
from so2docs.pipeline import bucket, strict
from so2docs.pipeline.selection import Selection
from so2docs.pipeline.tasks import BucketTask
from so2docs.processes.pool import Workers
from so2docs.progress import Progress, log
from so2docs.report import Report
from so2docs.spill import Spill
from so2docs.store.blocks import Block, BlockReader, check_blocks_match

PART_BYTES = 32 * 1024 * 1024
"""Size of the JSON above which a bucket is merged in parts, by ranges of question ids."""

PART_BYTES_NESTED = 11 * 1024 * 1024
"""`PART_BYTES` with nested tables: lower, because short rows need more memory besides their JSON.

Merging a bucket of 36 MB with 49,000 posts and comments takes 213 MiB of memory in one task, and
123 MiB in four parts; the time is the same."""

_MOST_GROUPS = 200
"""Number of groups of tasks: small buckets are merged in one call, since each call takes time."""

_BYTES_OF_BLOCK = 2048
"""What a task and a block count in a group: their positions take memory, though they may have no
JSON, as votes and the posts after a date have none."""

Blocks = list[tuple[str, Block]]
"""Blocks in the order of the dump, each with its file."""


def divide(
    number: int, json_bytes: int, blocks: Blocks, options: Options
) -> list[tuple[range, int, Blocks]]:
    """Divide a bucket into parts that fit in memory: question ids, size of the JSON, and blocks.

    Ids may cluster, so the keys of a large bucket are read to find the sizes of its questions. The
    parts depend only on the rows, not on chunks or blocks.
    """
    start, stop = number << BUCKET_BITS, (number + 1) << BUCKET_BITS
    limit = PART_BYTES_NESTED if options.tables else PART_BYTES
    if json_bytes <= limit:
        return [(range(start, stop), json_bytes, blocks)]
    ids, ends, spans = _question_sizes(number, blocks, options.core)
    parts = []
    for low, high in pairwise((start, *_halves(range(start, stop), ids, ends, limit), stop)):
        blocks_of_part = [
            block
            for block, (first, last) in zip(blocks, spans, strict=True)
            if first < high and last >= low
        ]
        size = ends[bisect_left(ids, high)] - ends[bisect_left(ids, low)]
        parts.append((range(low, high), size, blocks_of_part))
    return parts


def _halves(part: range, ids: Sequence[int], ends: Sequence[int], limit: int) -> Iterator[int]:
    """Yield the ids at which to divide a range into parts within the limit; one id may exceed it.

    A range that is too large is cut in the middle, unless one half would have no ids.

    Args:
        part: The range.
        ids: The occurring ids, in ascending order.
        ends: 0, then the cumulative size up to each id.
        limit: Maximum size of a part.
    """
    first, end = bisect_left(ids, part.start), bisect_left(ids, part.stop)
    if end - first < 2 or ends[end] - ends[first] <= limit:
        return
    middle = (part.start + part.stop) // 2
    yield from _halves(range(part.start, middle), ids, ends, limit)
    if first < bisect_left(ids, middle) < end:
        yield middle
    yield from _halves(range(middle, part.stop), ids, ends, limit)


def _question_sizes(
    number: int, blocks: Blocks, core: Core
) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    """Read the ids and sizes of the questions of a bucket from the keys.

    Returns:
        The question ids in ascending order; 0, then the cumulative size of JSON up to each id; the
        lowest and the highest id in each block.
    """
    add_sizes = compiled.add_sizes if core == "compiled" else merge.add_sizes
    sizes = array("q", [-1]) * (1 << BUCKET_BITS)
    with BlockReader() as reader, check_blocks_match(blocks):
        spans = [add_sizes(reader.read_keys(path, block), sizes) for path, block in blocks]
    ids = [at for at, size in enumerate(sizes, number << BUCKET_BITS) if size >= 0]
    return ids, [0, *accumulate(size for size in sizes if size >= 0)], spans


def cuts(spill: Spill, buckets: list[tuple[int, int]], options: Options) -> tuple[int, ...]:
    """Compute the first question ids of the second and later files, in ascending order.

    The posts of all questions, in the order of their ids, are divided into parts of equal size in
    bytes of JSON. A question belongs to the part with its first byte. The division therefore
    depends only on the posts. Only buckets that contain a boundary between parts are read.
    """
    files = options.form.split.files or 1
    boundaries: list[int] = []
    total = sum(size for _, size in buckets)
    before = 0
    for number, size in buckets:
        borders = [
            border - before
            for file in range(1, files)
            if before <= (border := -(-total * file // files)) < before + size
        ]
        if borders:
            ids, ends, _ = _question_sizes(number, spill.blocks(number), options.core)
            ids.append((number + 1) << BUCKET_BITS)
            boundaries += [ids[bisect_left(ends, border)] for border in borders]
        before += size
    last = (buckets[-1][0] + 1) << BUCKET_BITS if buckets else 0
    return tuple(boundaries + [last] * (files - 1 - len(boundaries)))


def _together(
    tasks: Iterator[BucketTask], enough: int, of_block: int = 0
) -> Iterator[list[BucketTask]]:
    """Yield consecutive tasks in groups of at least `enough` bytes, `of_block` for each block."""
    while group := list(islice(tasks, 1)):
        size = group[0].size + of_block * len(group[0].blocks)
        while size < enough and (task := next(tasks, None)):
            group.append(task)
            size += task.size + _BYTES_OF_BLOCK + of_block * len(task.blocks)
        yield group


def read_keyless_strays(spill: Spill) -> Iterator[bytes]:
    """Yield the lines of the strays without a bucket, in the order of the dump."""
    with BlockReader() as reader:
        for path, block in spill.blocks(None):
            yield from reader.read(path, block)[1].splitlines(keepends=True)


_ID = re.compile(rb'"Id":([0-9]{10,})')
"""Matches ids of ten or more digits in strays, but nothing in texts, where quotes are escaped."""


@dataclass
class SecondPass:
    """Writes the documents of a spill to the output.

    Attributes:
        spill: The spill, after the first pass.
        options: Options of the conversion.
        names: Paths of the output files.
        provenance: Provenance of the output, without counts.
        users: Path of the users by id; empty if users are not nested.
        prepared: What `Step.prepare` returned, if the options request a step.
        progress: Progress display to update.
        cuts: First question ids of the second and later files of the output.
        selection: The questions to write; None for all questions.
        counts: Counts of the rows by result so far, without those of the first pass.
    """

    spill: Spill
    options: Options
    names: OutputPaths
    provenance: Provenance
    users: str = ""
    prepared: Any = None
    progress: Progress = field(default_factory=Progress)
    cuts: tuple[int, ...] = ()
    selection: Selection | None = None
    counts: RowCounts = field(default_factory=RowCounts)

    def __post_init__(self) -> None:
        self.buckets = self.spill.buckets()

    def run(self, workers: Workers, report: Report, files: NewFiles) -> None:
        """Write all documents, and finish the files."""
        names = self.names
        self.cuts = cuts(self.spill, self.buckets, self.options)
        output = Writer(files, self.provenance, names, self.options, cuts=self.cuts)
        strays = Output(files, names.strays, names.strays_compression)
        total = sum(size for _, size in self.buckets)
        with self.progress.step("writing", None, total) as bar:
            lines = read_keyless_strays(self.spill)
            for segment in compress_lines(lines, strays.compression, self.options.level):
                strays.append(segment)
            is_stored, enough = workers.jobs > 1, min(PART_BYTES_NESTED, total // _MOST_GROUPS)
            groups = (
                (tasks, self.spill.temporary(number) if is_stored else None)
                for number, tasks in enumerate(_together(self.tasks(), enough, _BYTES_OF_BLOCK))
            )
            for result in workers.run(bucket.merge_buckets, groups):
                if self.options.errors == "strict":
                    strict.check_strays(report.dump, result.first_stray)
                for segment in result.segments:
                    output.append(segment)
                for segment in result.strays:
                    strays.append(segment)
                self.counts += result.counts
                segments.remove(result.segments, result.strays)
                bar.update(result.size)
            self.seal(report, output, strays)

    def documents(self, report: Report) -> Iterator[Iterator[tuple[int, bytes]]]:
        """Nest every bucket in this process; for each range, yield id and JSON of its documents."""
        for task in self._ranges():
            with bucket.load_bucket(task) as nested:
                prepared = count_and_prepare(nested, self.options)
                yield (
                    (document.question_id, b"".join((*document.parts, b"}")))
                    for document in prepared
                )
                self.counts += nested.counts
                if self.options.errors == "strict":
                    strict.check_strays(report.dump, nested.strays)
        self.complete(report)

    def complete(self, report: Report) -> None:
        """Complete the report, and check that all rows are accounted for."""
        report.fabricated = self.find_fabricated()
        report += self.counts
        report.check()
        for warning in report.warnings(self.options.filters.sample_size):
            log.warning(warning)

    def find_fabricated(self) -> int:
        """Count made-up questions and answers by their ids, except filtered ones.

        This reads only the buckets of such ids (most dumps have none) and the strays without a
        bucket.
        """
        fabricated = 0
        with BlockReader() as reader:
            for number, _ in self.buckets:
                if number < FIRST_FABRICATED_ID >> BUCKET_BITS:
                    continue
                for path, block in self.spill.blocks(number):
                    keys = reader.read_keys(path, block)
                    fabricated += sum(
                        post_id >= FIRST_FABRICATED_ID and kind in (QUESTION, ANSWER)
                        for post_id, kind in zip(integers(keys)[1::4], kinds_in(keys), strict=True)
                    )
            for path, block in self.spill.blocks(None):
                ids = _ID.findall(reader.read(path, block)[1])
                fabricated += sum(int(post_id) >= FIRST_FABRICATED_ID for post_id in ids)
        return fabricated

    def seal(self, report: Report, output: Writer, strays: Output) -> None:
        """Check that all rows are accounted for, and finish the files."""
        self.complete(report)
        if report.has_strays():
            strays.seal()
            report.strays_path = strays.path
        files = output.seal(report)
        if self.options.form.is_indexed and self.names.output != "-":
            report.index_path = self.names.index
        report.output_bytes, report.files = sum(size for _, size in files), len(files)
        if self.options.form.split:
            paths = sorted((path for path, _ in files), key=self.names.place)
            report.first_file, report.last_file = paths[0], paths[-1]

    def tasks(self) -> Iterator[BucketTask]:
        """Yield the ranges of question ids, joined if they are smaller than a segment."""
        form = formats.of(self.options)
        enough = form.bytes_of_segments(sum(size for _, size in self.buckets))
        for parts in _together(self._ranges(), enough if enough != form.segment_bytes else 0):
            yield replace(
                parts[0],
                size=sum(part.size for part in parts),
                segment_bytes=enough,
                following=tuple(parts[1:]),
            )

    def _ranges(self) -> Iterator[BucketTask]:
        """Yield the ranges of question ids, each for a task."""
        for number, json_bytes in self.buckets:
            blocks = self.spill.blocks(number)
            for ids, size, of_part in divide(number, json_bytes, blocks, self.options):
                is_whole = self.selection is None or self.selection.includes(ids)
                yield BucketTask(
                    ids,
                    size,
                    of_part,
                    self.options,
                    cuts=tuple(cut for cut in self.cuts if ids.start <= cut < ids.stop),
                    users=self.users,
                    prepared=self.prepared,
                    strays=self.names.strays_compression,
                    selection=None if is_whole else self.selection,
                )
