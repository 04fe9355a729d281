"""The second pass, seen from the main process: buckets of the spill -> documents in the output.

Says where what each bucket became belongs, and notes how far it has come, so that an interrupted
pass resumes there. Workers copy the data of segments into the output while the main process goes
on; a checkpoint counts when all that comes before it has been copied.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate, count, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from so2docs import merge
from so2docs.counts import RowCounts, TableCounts
from so2docs.domain import FIRST_FABRICATED_ID
from so2docs.options.choices import Core
from so2docs.options.table import Options
from so2docs.output import segments
from so2docs.output.file import Output, matches_checkpoint
from so2docs.output.part_files import FileState
from so2docs.output.paths import OutputPaths
from so2docs.output.provenance import Provenance
from so2docs.output.recording import count_and_prepare
from so2docs.output.segments import Copy, copy_all
from so2docs.output.writer import Writer
from so2docs.parse.core import compiled
from so2docs.parse.keys import ANSWER, BUCKET_BITS, KEY, QUESTION
from so2docs.parse.table_rows import unpack_votes
from so2docs.pipeline import bucket, strict
from so2docs.pipeline.bucket import BucketResult, BucketTask
from so2docs.pipeline.workers import Workers
from so2docs.progress import Progress, log
from so2docs.report import Report
from so2docs.schema import OF_KIND, VOTE
from so2docs.spill import Spill
from so2docs.store.blocks import Block, BlockReader, check_blocks_match
from so2docs.store.users import UserTable

_MOST_WAITING = 4
"""Tasks that wait besides one for each worker, whose temporary files are still there."""


class Copies:
    """Pending copies, and the checkpoints that wait for them.

    Args:
        workers: Where it is copied.
        save: Called with each checkpoint that counts, in order.
    """

    def __init__(self, workers: Workers, save: Callable[[Any], None]) -> None:
        self._workers = workers
        self._save = save
        self._gathered: list[Copy] = []
        self._waiting: deque[tuple[Future[None], Any]] = deque()

    def add(self, copies: Iterable[Copy]) -> None:
        """Copy this before the next checkpoint counts."""
        for copy in copies:
            joined = self._gathered[-1].join(copy) if self._gathered else None
            self._gathered[-1 if joined else len(self._gathered) :] = [joined or copy]

    def send(self, temporary: Collection[str], checkpoint: Any) -> None:
        """Have all that was added copied, and then these files removed, for a checkpoint.

        Raises:
            OutputError: Something could not be copied.
            DiskFullError: The disk is full.
            WorkerDiedError: A worker was killed.
        """
        task = self._gathered, temporary
        self._gathered = []
        self._waiting.append((self._workers.submit(copy_and_remove, task), checkpoint))
        most = self._workers.jobs + _MOST_WAITING
        while self._waiting and (len(self._waiting) > most or self._waiting[0][0].done()):
            self._save_first()

    def settle(self) -> None:
        """Wait until all is copied that was added; raises as `send` does."""
        while self._waiting:
            self._save_first()
        copy_all(self._gathered)
        self._gathered = []

    def _save_first(self) -> None:
        copied, checkpoint = self._waiting.popleft()
        copied.result()
        self._save(checkpoint)


def copy_and_remove(task: tuple[Iterable[Copy], Iterable[str | Path]]) -> None:
    """In a worker: copy, and remove the files that were copied from."""
    copies, temporary = task
    copy_all(copies)
    for path in temporary:
        Path(path).unlink(missing_ok=True)


PART_BYTES = 32 * 1024 * 1024
"""A bucket with more JSON than this is merged in parts, by ranges of question ids."""

PART_BYTES_NESTED = 11 * 1024 * 1024
"""The same where tables are nested: short rows take more memory besides their JSON than posts do.

A bucket of 36 MB, with 49,000 posts and comments, takes 213 MiB at once and 123 MiB in four parts,
in the same time."""

Blocks = list[tuple[str, Block]]
"""Blocks in the order of the dump, each with its file."""


class Part(NamedTuple):
    """A range of question ids that one task nests.

    Attributes:
        ids: The question ids.
        size: Bytes of their JSON.
        blocks: The blocks that hold them.
    """

    ids: range
    size: int
    blocks: Blocks


def divide(number: int, json_bytes: int, blocks: Blocks, options: Options) -> list[Part]:
    """Divide a bucket into parts that are small enough for memory.

    Ids may cluster, so the keys of a large bucket are read. The parts depend on nothing but the
    rows: neither on chunks nor on blocks.

    Args:
        number: The bucket.
        json_bytes: Bytes of its JSON.
        blocks: Its blocks.
        options: How to convert.

    Raises:
        SpillError: A block is damaged.
    """
    start, stop = number << BUCKET_BITS, (number + 1) << BUCKET_BITS
    limit = PART_BYTES_NESTED if options.nest else PART_BYTES
    if json_bytes <= limit:
        return [Part(range(start, stop), json_bytes, blocks)]
    ids, ends, spans = _question_sizes(number, blocks, options.core)
    parts: list[Part] = []
    for low, high in pairwise((start, *_halves(range(start, stop), ids, ends, limit), stop)):
        blocks_of_part = [
            block
            for block, (first, last) in zip(blocks, spans, strict=True)
            if first < high and last >= low
        ]
        size = ends[bisect_left(ids, high)] - ends[bisect_left(ids, low)]
        parts.append(Part(range(low, high), size, blocks_of_part))
    return parts


def _halves(part: range, ids: Sequence[int], ends: Sequence[int], limit: int) -> Iterator[int]:
    """Cut a range of ids into parts within the limit, unless one id exceeds it.

    A range is cut in the middle while it is too large. A half without ids stays with the other.

    Args:
        part: The range.
        ids: The ids that occur, in ascending order.
        ends: 0, and the size of the ids up to each.
        limit: Largest size of a part.
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
    """The ids and sizes of the questions of a bucket.

    Returns:
        The question ids in ascending order; 0, and the bytes of JSON up to each; the lowest and the
        highest of those in each block.
    """
    add_sizes = compiled.add_sizes if core == "compiled" else merge.add_sizes
    sizes = array("q", [-1]) * (1 << BUCKET_BITS)
    with BlockReader() as reader, check_blocks_match(blocks):
        spans = [add_sizes(reader.read_keys(path, block), sizes) for path, block in blocks]
    ids = [at for at, size in enumerate(sizes, number << BUCKET_BITS) if size >= 0]
    return ids, [0, *accumulate(size for size in sizes if size >= 0)], spans


def cuts(spill: Spill, buckets: list[tuple[int, int]], options: Options) -> tuple[int, ...]:
    """Question ids that start the second file and those after it, in ascending order.

    The posts of all questions, in the order of their ids, are divided into parts of as many bytes
    of JSON: a question is in the part that its first byte is in. So the division depends on nothing
    but the posts. Only buckets with a border in them are looked into.

    Args:
        spill: The spill, after the first pass.
        buckets: All buckets in ascending order, each with the bytes of its JSON.
        options: How to convert.
    """
    files = options.form.split_files or 1
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


def left_out(spill: Spill, buckets: list[tuple[int, int]], next_id: int | None) -> RowCounts:
    """Count what no task read, except for posts that the first pass rejected.

    Args:
        spill: The spill.
        buckets: All buckets, each with the bytes of its JSON.
        next_id: The first question id that was not looked at; None if none was.

    Returns:
        Posts and rows of tables, as filtered.
    """
    counts = RowCounts()
    with BlockReader() as reader:
        for number, _ in buckets:
            if next_id is not None and (number + 1) << BUCKET_BITS <= next_id:
                continue
            for path, block in spill.blocks(number):
                for question_id, _, rank, kind in KEY.iter_unpack(reader.read_keys(path, block)):
                    if next_id is not None and question_id < next_id:
                        continue
                    if kind & 15 in (QUESTION, ANSWER):
                        counts.filtered += 1
                    elif kind & 15 in OF_KIND:
                        rows = unpack_votes(rank)[1] if kind & 15 == VOTE else 1
                        name = OF_KIND[kind & 15].name
                        counts.tables.setdefault(name, TableCounts()).filtered += rows
    return counts


@dataclass(slots=True)
class Checkpoint:
    """The state of the second pass.

    Attributes:
        next_id: Question id that comes next; None at the start.
        output: The files of the output.
        strays: The side file.
        counts: What became of the rows so far, as far as the second pass tells.
    """

    next_id: int | None = None
    output: list[FileState] = field(default_factory=list)
    strays: FileState | None = None
    counts: RowCounts = field(default_factory=RowCounts)

    def to_json(self) -> dict[str, Any]:
        """All fields by name, in JSON types."""
        return {
            "next_id": self.next_id,
            "output": [asdict(file) for file in self.output],
            "strays": self.strays and asdict(self.strays),
            "counts": self.counts.as_dict(),
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Checkpoint:
        """Parse the result of `to_json`."""
        return cls(
            values["next_id"],
            [FileState.from_json(file) for file in values["output"]],
            FileState.from_json(values["strays"]),
            RowCounts.from_dict(values["counts"]),
        )

    def changed_files(self, names: OutputPaths) -> Iterator[str]:
        """The files that are not as they were left."""
        for file in self.output:
            if not matches_checkpoint(names.file(file.label), names.form.compression, file):
                yield names.file(file.label)
        if not matches_checkpoint(names.strays, names.strays_compression, self.strays):
            yield names.strays


@dataclass(slots=True)
class FinalizedOutput:
    """A second pass that has written all: what is left to do is to give the files their names.

    Attributes:
        report: Of the conversion.
        files: The output files.
        strays: The side file, or None.
    """

    report: Report
    files: list[FileState]
    strays: FileState | None = None

    def to_json(self) -> dict[str, Any]:
        """All fields by name, in JSON types only."""
        files = [asdict(file) for file in self.files]
        strays = self.strays and asdict(self.strays)
        return {"report": self.report.as_dict(), "files": files, "strays": strays}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> FinalizedOutput:
        """Parse the result of `to_json`."""
        files = [FileState.from_json(file) for file in values["files"]]
        strays = values["strays"] and FileState.from_json(values["strays"])
        return cls(Report.from_dict(values["report"]), files, strays)


_ID = re.compile(rb'"Id":([0-9]{10,})')
"""Of a stray; inside a JSON string each quote has a backslash before it."""


@dataclass
class SecondPass:
    """Writes a spill as documents.

    Attributes:
        spill: The spill, after the first pass.
        options: How to convert.
        names: Where the files go.
        first_question_of: For post ids under several questions, the one that stays.
        users: Where the users are, if they are to be nested.
        progress: Told how far it is.
        provenance: How the output is made.
        cuts: Question ids that start another file of the output.
    """

    spill: Spill
    options: Options
    names: OutputPaths
    first_question_of: dict[int, int]
    users: UserTable | None = None
    progress: Progress = field(default_factory=Progress)
    provenance: Provenance | None = None
    cuts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self.buckets = self.spill.buckets()

    def run(self, workers: Workers, report: Report) -> FinalizedOutput:
        """Nest every bucket after the last checkpoint, in ascending order."""
        names = self.names
        saved = self.checkpoint()
        state = saved or Checkpoint()
        self.cuts = cuts(self.spill, self.buckets, self.options)
        size, before = sum(size for _, size in self.buckets), self.bytes_before(state)
        copies = Copies(workers, lambda checkpoint: self.spill.put("checkpoint", checkpoint))
        provenance, settle = self.provenance, copies.settle
        with (
            Writer(
                names, self.options, self.cuts, state.output, provenance, settle=settle
            ) as output,
            Output(
                names.strays,
                names.strays_compression,
                state.strays,
                level=self.options.level,
            ) as strays,
            self.progress.step("writing", None, size, before) as progress_bar,
        ):
            if saved is None:
                self.write_keyless_strays(strays)
            for result in self.results(workers, state):
                if result.first_stray:
                    strict.check_lines(report.dump, [result.first_stray])
                for segment in result.segments:
                    copies.add(output.append(segment))
                for segment in result.strays:
                    copies.add(strays.place(segment))
                state.counts += result.counts
                state.next_id = result.ids.stop
                if names.output != "-":
                    state.output, state.strays = output.checkpoint(), strays.checkpoint()
                copies.send(
                    segments.temporary_files(result.segments, result.strays), state.to_json()
                )
                progress_bar.update(result.size)
            copies.settle()
            self.leave_out(state)
            return self.seal(state, report, output, strays)

    def results(self, workers: Workers, state: Checkpoint) -> Iterator[BucketResult]:
        """Nest the remaining ranges of question ids, as many as the limit allows.

        Args:
            workers: Where it happens.
            state: Counts each result before the next one is asked for.
        """
        if self.documents_left(state) == 0:
            return
        tasks = self.tasks(state, is_stored=workers.jobs > 1)
        for result in workers.run(bucket.merge_bucket, tasks):
            left = self.documents_left(state)
            if left is None or result.counts.questions <= left:
                yield result
            else:  # The workers do not know how many documents come before theirs.
                segments.remove(result.segments, result.strays)
                yield bucket.merge_bucket(next(self.tasks(state)))
            if self.documents_left(state) == 0:
                return

    def documents_left(self, state: Checkpoint) -> int | None:
        """How many documents may still be written; None if there is no limit."""
        limit = self.options.filters.limit
        return None if limit is None else limit - state.counts.questions

    def checkpoint(self) -> Checkpoint | None:
        """How far an earlier session came, if what it wrote is there."""
        saved = None if self.names.output == "-" else self.spill.get("checkpoint")
        if not saved:
            return None
        state = Checkpoint.from_json(saved)
        for path in state.changed_files(self.names):
            log.info(f"{path}.part was changed in the meantime; writing it again from the spill")
            return None
        size = sum(size for _, size in self.buckets) or 1
        bytes_done = self.bytes_before(state)
        log.info(f"resuming: {100 * bytes_done // size} % of the documents are written")
        return state

    def bytes_before(self, state: Checkpoint) -> int:
        """JSON of the buckets that are written."""
        first_left = (state.next_id or 0) >> BUCKET_BITS
        return sum(size for number, size in self.buckets if number < first_left)

    def documents(self, report: Report) -> Iterator[Iterator[tuple[int, bytes]]]:
        """Nest every bucket in this process: question id and JSON of each document of a range."""
        state = Checkpoint()
        for task in self.tasks(state):
            limit = self.documents_left(state)
            with bucket.load_bucket(replace(task, limit=limit)) as nested:
                prepared = count_and_prepare(nested, self.options)
                yield (
                    (document.question_id, b"".join((*document.parts, b"}")))
                    for document in prepared
                )
                state.counts += nested.counts
                if self.options.strict:
                    strict.check_lines(report.dump, nested.strays)
            state.next_id = task.ids.stop
            if self.documents_left(state) == 0:
                break
        self.leave_out(state)
        self.complete(state, report)

    def complete(self, state: Checkpoint, report: Report) -> None:
        """Complete the report, and check that every row went somewhere."""
        report.fabricated = self.find_fabricated()
        report += state.counts
        report.check()
        for warning in report.warnings():
            log.warning(warning)

    def find_fabricated(self) -> int:
        """Made-up questions and answers, by their ids, but for those that a filter left out.

        In the buckets of such ids, which a dump without has not, and among the strays of no bucket.
        """
        fabricated = 0
        with BlockReader() as reader:
            for number, _ in self.buckets:
                if number < FIRST_FABRICATED_ID >> BUCKET_BITS:
                    continue
                for path, block in self.spill.blocks(number):
                    keys = KEY.iter_unpack(reader.read_keys(path, block))
                    fabricated += sum(
                        post_id >= FIRST_FABRICATED_ID and kind & 15 in (QUESTION, ANSWER)
                        for _, post_id, _, kind in keys
                    )
            for path, block in self.spill.blocks(None):
                ids = _ID.findall(reader.read(path, block)[1])
                fabricated += sum(int(post_id) >= FIRST_FABRICATED_ID for post_id in ids)
        return fabricated

    def leave_out(self, state: Checkpoint) -> None:
        """Count as filtered what comes after the last document that the limit allows."""
        if self.options.filters.limit is not None:
            state.counts += left_out(self.spill, self.buckets, state.next_id)

    def seal(
        self, state: Checkpoint, report: Report, output: Writer, strays: Output
    ) -> FinalizedOutput:
        """Check that every row went somewhere, and end the files.

        The spill remembers it before the files get their names, so that a kill between two names
        leaves nothing that would have to be forced.
        """
        self.complete(state, report)
        of_strays = None
        if report.has_strays():
            of_strays = strays.seal()
            report.strays_path = strays.path
        else:
            strays.discard()
        files = output.seal(report)
        if self.options.form.is_indexed and files[0].index is not None:
            report.index_path = self.names.index
        report.output_bytes, report.files = sum(file.size for file in files), len(files)
        if self.options.form.is_split:
            first, last = (self.names.file(file.label) for file in (files[0], files[-1]))
            report.first_file, report.last_file = first, last
        sealed = FinalizedOutput(report, files, of_strays)
        self.spill.put("sealed", sealed.to_json())
        return sealed

    def tasks(self, state: Checkpoint, *, is_stored: bool = False) -> Iterator[BucketTask]:
        """The ranges of question ids that are left to do.

        Args:
            state: How far the pass has come.
            is_stored: Whether results are handed over in temporary files, not in memory.
        """
        next_id, limit, numbers = state.next_id, self.documents_left(state), count()
        for number, json_bytes in self.buckets:
            if next_id is not None and (number + 1) << BUCKET_BITS <= next_id:
                continue
            for part in divide(number, json_bytes, self.spill.blocks(number), self.options):
                if next_id is None or part.ids.start >= next_id:
                    yield BucketTask(
                        *part,
                        self.first_question_of,
                        self.options,
                        tuple(cut for cut in self.cuts if part.ids.start <= cut < part.ids.stop),
                        limit,
                        self.users,
                        self.spill.temporary(next(numbers)) if is_stored else None,
                        self.names.strays_compression,
                    )

    def write_keyless_strays(self, strays: Output) -> None:
        """Write the strays that belong to no bucket, in the order of the dump."""
        with BlockReader() as reader:
            for path, block in self.spill.blocks(None):
                for line in reader.read(path, block)[1].splitlines(keepends=True):
                    strays.write(line)
        strays.end_segment()
