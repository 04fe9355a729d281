"""One session of a conversion: the two passes wired together, checkpointed all the way."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from so2docs import passes, repeats, resume
from so2docs.disk import check_room
from so2docs.dump import Dump
from so2docs.errors import DumpError, OptionError
from so2docs.merge import AnswersBy, Tally
from so2docs.output import PIECE_BYTES, Output, Piece, compress
from so2docs.passes import BucketTask, ChunkResult, ChunkTally, ChunkTask
from so2docs.paths import Names
from so2docs.posts import TYPE_NAMES
from so2docs.progress import bar
from so2docs.report import Report
from so2docs.spill import BlockReader, Spill
from so2docs.workers import Workers, peak_memory

_SMALLEST_CHUNK = 8 * 1024 * 1024
_MOST_CHUNKS = 400
_WORTH_A_PROCESS = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Options:
    """How a dump is converted; `convert` says what each means."""

    jobs: int | None = None
    answers_by: AnswersBy = "id"
    level: int = 2
    skip_malformed: bool = False
    chunk_bytes: int | None = None
    progress: bool = False

    def __post_init__(self) -> None:
        if self.jobs is not None and self.jobs < 1:
            raise OptionError(f"jobs is {self.jobs}; it must be 1 or more")
        if self.answers_by not in ("id", "votes"):
            raise OptionError(f"answers_by is {self.answers_by!r}; it must be 'id' or 'votes'")
        if not 0 <= self.level <= 9:
            raise OptionError(f"level is {self.level}; it must be 0 to 9")
        if self.chunk_bytes is not None and self.chunk_bytes < 1:
            raise OptionError(f"chunk_bytes is {self.chunk_bytes}; it must be 1 or more")

    def that_change_the_output(self) -> dict[str, Any]:
        """Options under the names of the command line, for the spill to remember."""
        return {
            "--answers-by": self.answers_by,
            "--level": self.level,
            "--skip-malformed": self.skip_malformed,
        }


class Session:
    """One session of a conversion."""

    def __init__(self, dump: Dump, spill: Spill, options: Options, names: Names) -> None:
        self.dump = dump
        self.spill = spill
        self.options = options
        self.names = names
        self.report = Report(dump.path, names.output, dump_bytes=dump.size)
        wanted = options.chunk_bytes or max(_SMALLEST_CHUNK, -(-dump.size // _MOST_CHUNKS))
        chunk_bytes = resume.claim(spill, dump, wanted, options.that_change_the_output())
        self.ranges = dump.ranges(chunk_bytes)
        jobs = options.jobs or (os.cpu_count() or 1 if dump.size >= _WORTH_A_PROCESS else 1)
        self.jobs = min(jobs, max(1, len(self.ranges)))
        self.owners: dict[int, int] = {}

    def run(self) -> Report:
        """Both passes."""
        self.report.jobs = self.jobs
        self.report.resumed = bool(self.spill.tallies())
        check_room(self.dump.size, self.spill.folder, self.names.output, self.names.compression)
        self.spill.start_run()
        with Workers(self.jobs) as workers:
            begun = time.perf_counter()
            self.first_pass(workers)
            self.report.first_pass_seconds = time.perf_counter() - begun
            begun = time.perf_counter()
            self.second_pass(workers)
            self.report.second_pass_seconds = time.perf_counter() - begun
            self.report.peak_memory_bytes = peak_memory() + sum(workers.peaks.values())
        return self.report

    def documents(self) -> Iterator[Iterator[bytes]]:
        """Both passes, the second in this process: lines of one range of question ids a time."""
        self.spill.start_run()
        with Workers(self.jobs) as workers:
            self.first_pass(workers)
        state = _Checkpoint()
        for task in self.bucket_tasks(self.spill.buckets(), None):
            nested = passes.nesting(task)
            yield (b"".join(document.parts) for document in nested)
            state.add(nested.tally)
        self.account(state)

    # First pass: chunks of the dump -> blocks in the spill.

    def first_pass(self, workers: Workers) -> None:
        """Spill every chunk that is not yet committed, then take stock."""
        done = self.spill.tallies()
        seen = repeats.SeenIds()
        repeated: set[int] = set()
        if done:
            for _, keys in self.spill.all_keys():
                pages, _ = repeats.of_chunk(repeats.pairs(keys))
                repeated |= seen.add(pages)
        size = sum(end - start for chunk, (start, end) in enumerate(self.ranges) if chunk in done)
        with bar("reading", self.dump.size, size, shown=self.options.progress) as shown:
            try:
                for result in workers.run(passes.spill_chunk, self.chunk_tasks(done)):
                    self.commit(result)
                    repeated |= seen.add(result.pages)
                    shown.update(result.task.end - result.task.start)
            except DumpError as error:
                self.complete_place(error)
                raise
        self.dump.check_unchanged()
        self.spill.index()
        self.take_stock(repeated)

    def chunk_tasks(self, done: dict[int, dict[str, Any]]) -> Iterator[ChunkTask]:
        """The chunks that are left to do."""
        for chunk, (start, end) in enumerate(self.ranges):
            if chunk not in done:
                path = self.spill.new_file(chunk)
                yield ChunkTask(self.dump, chunk, start, end, path, self.options.skip_malformed)

    def commit(self, result: ChunkResult) -> None:
        """Make a chunk part of the spill."""
        task = result.task
        self.spill.commit(task.chunk, task.path, result.blocks, asdict(result.tally))

    def complete_place(self, error: DumpError) -> None:
        """Turn a place within a chunk into one within the dump."""
        place = error.place
        if place is None or place.line is None:
            return
        before = [ChunkTally(**tally) for tally in self.spill.tallies().values()]
        place.line += self.dump.first_line + sum(tally.lines for tally in before)
        if place.last_id is None:
            ids = [tally.last_id for tally in before if tally.last_id is not None]
            place.last_id = ids[-1] if ids else None

    def take_stock(self, repeated: set[int]) -> None:
        """Add the chunks' tallies up, and find out which of several posts with one id stays."""
        strays: Counter[str] = Counter()
        types: Counter[str] = Counter()
        within: dict[int, dict[int, int]] = {}
        for chunk, values in self.spill.tallies().items():
            tally = ChunkTally(**values)
            self.report.rows += tally.rows
            self.report.repaired_characters += tally.repaired
            strays.update(tally.strays)
            types.update(tally.other_types)
            if tally.owners:
                within[chunk] = {int(post_id): first for post_id, first in tally.owners.items()}
        self.report.strays = dict(strays)
        self.report.other_types = {
            TYPE_NAMES.get(int(kind), f"PostTypeId {kind}"): count
            for kind, count in sorted(types.items())
        }
        if repeated or within:
            keys = self.spill.all_keys() if repeated else iter(())
            self.owners = repeats.owners(keys, repeated, within)

    # Second pass: buckets of the spill -> documents in the output.

    def second_pass(self, workers: Workers) -> None:
        """Nest every bucket after the last checkpoint, in ascending order."""
        names = self.names
        saved = None if names.output == "-" else self.spill.get("checkpoint")
        state = _Checkpoint(**saved) if saved else _Checkpoint()
        buckets = self.spill.buckets()
        self.report.spill_bytes = self.spill.size()
        scale = self.dump.size / (sum(size for _, size in buckets) or 1)
        with (
            Output(names.output, names.compression, state.output) as output,
            Output(names.strays, names.strays_compression, state.strays) as strays,
            bar("writing", self.dump.size, shown=self.options.progress) as shown,
        ):
            if saved is None:
                for piece in self.pieces_of_lines(self.keyless_strays()):
                    strays.append(piece)
            for result in workers.run(
                passes.merge_bucket, self.bucket_tasks(buckets, state.next_id)
            ):
                for piece in result.pieces:
                    output.append(piece)
                    shown.update(int(piece.raw_size * scale))
                for piece in self.pieces_of_lines(result.strays):
                    strays.append(piece)
                state.add(result.tally)
                state.next_id = result.ids.stop
                state.output, state.strays = output.checkpoint(), strays.checkpoint()
                self.spill.put("checkpoint", asdict(state))
            self.finish(state, output, strays)

    def finish(self, state: _Checkpoint, output: Output, strays: Output) -> None:
        """Check that every row went somewhere, and give the files their names."""
        self.account(state)
        if self.report.strays:
            strays.finish()
            self.report.strays_path = strays.path
        else:
            strays.discard()
            Path(strays.path).unlink(missing_ok=True)
        self.report.output_bytes = output.finish()

    def account(self, state: _Checkpoint) -> None:
        """Complete the report, and check that every row went somewhere."""
        report = self.report
        report.questions, report.answers = state.questions, state.answers
        report.strays = dict(
            sorted((Counter(report.strays) + Counter(state.stray_reasons)).items())
        )
        report.check()

    def bucket_tasks(
        self, buckets: list[tuple[int, int]], next_id: int | None
    ) -> Iterator[BucketTask]:
        """The ranges of question ids that are left to do."""
        names, options = self.names, self.options
        for bucket, json_bytes in buckets:
            for ids in passes.parts(bucket, json_bytes):
                if next_id is None or ids.start >= next_id:
                    blocks = self.spill.blocks(bucket)
                    yield BucketTask(
                        ids,
                        blocks,
                        options.answers_by,
                        self.owners,
                        names.compression,
                        options.level,
                    )

    def keyless_strays(self) -> Iterator[bytes]:
        """Lines of the strays that belong to no bucket, in the order of the dump."""
        with BlockReader() as reader:
            for path, block in self.spill.blocks(None):
                yield from reader.read(path, block)[1].splitlines(keepends=True)

    def pieces_of_lines(self, lines: Iterable[bytes]) -> Iterator[Piece]:
        """Compress lines in pieces of the usual size."""
        held: list[bytes] = []
        size = 0
        for line in lines:
            held.append(line)
            size += len(line)
            if size >= PIECE_BYTES:
                yield compress(b"".join(held), self.names.strays_compression, self.options.level)
                held, size = [], 0
        if held:
            yield compress(b"".join(held), self.names.strays_compression, self.options.level)


@dataclass(slots=True)
class _Checkpoint:
    """How far the second pass has come; in JSON types only.

    Attributes:
        next_id: Question id that comes next; None at the start.
        output: State of the output.
        strays: State of the side file.
        questions: Documents written.
        answers: Answers nested in them.
        stray_reasons: Strays written, of the second pass only, by reason.
    """

    next_id: int | None = None
    output: dict[str, int] | None = None
    strays: dict[str, int] | None = None
    questions: int = 0
    answers: int = 0
    stray_reasons: dict[str, int] = field(default_factory=dict)

    def add(self, tally: Tally) -> None:
        """Add what a range of question ids became."""
        self.questions += tally.questions
        self.answers += tally.answers
        self.stray_reasons = dict(Counter(self.stray_reasons) + tally.strays)
