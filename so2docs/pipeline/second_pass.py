"""The second pass, seen from the main process: buckets of the spill -> documents in the output.

Appends what each bucket became and notes how far it has come, so that an interrupted pass resumes
there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from so2docs.domain import FIRST_FABRICATED_ID
from so2docs.options.table import Options
from so2docs.output import segments
from so2docs.output.compression import compress_lines
from so2docs.output.file import Output, matches_checkpoint
from so2docs.output.paths import OutputPaths
from so2docs.output.provenance import Provenance
from so2docs.output.recording import count_and_prepare
from so2docs.output.writer import Writer
from so2docs.parse.keys import ANSWER, BUCKET_BITS, KEY, QUESTION
from so2docs.pipeline import bucket, strict
from so2docs.pipeline.boundaries import Limit, cuts, divide, left_out
from so2docs.pipeline.bucket import BucketTask, WriteTask, WrittenBucket
from so2docs.pipeline.checkpoint import Checkpoint, FinalizedOutput
from so2docs.pipeline.copying import Copies
from so2docs.pipeline.workers import Workers
from so2docs.progress import Progress, log
from so2docs.report import Report
from so2docs.spill import Spill
from so2docs.store.blocks import BlockReader
from so2docs.store.users import UserTable

_ID = re.compile(rb'"Id":([0-9]{10,})')
"""Of a stray; inside a JSON string each quote has a backslash before it."""


class SecondPass:
    """Writes a spill as documents."""

    def __init__(
        self,
        spill: Spill,
        options: Options,
        names: OutputPaths,
        first_question_of: dict[int, int],
        *,
        users: UserTable | None = None,
        progress: Progress | None = None,
        made: Provenance | None = None,
    ) -> None:
        self.spill = spill
        self.made = made
        self.options = options
        self.names = names
        self.first_question_of = first_question_of
        self.users = users
        self.progress = progress or Progress()
        self.buckets = spill.buckets()
        self.cuts: tuple[int, ...] = ()

    def run(self, workers: Workers, report: Report) -> FinalizedOutput:
        """Nest every bucket after the last checkpoint, in ascending order."""
        names = self.names
        saved = self.checkpoint()
        state = saved or Checkpoint()
        limit = Limit(self.options.filters.limit, state.counts.questions)
        self.cuts = cuts(self.spill, self.buckets, self.options.form.split_files or 1)
        size, before = sum(size for _, size in self.buckets), self.bytes_before(state)
        copies = Copies(workers, lambda checkpoint: self.spill.put("checkpoint", checkpoint))
        made, settle = self.made, copies.settle
        with (
            Writer(names, self.options, self.cuts, state.output, made, settle=settle) as output,
            Output(names.strays, names.strays_compression, state.strays) as strays,
            self.progress.step("writing", None, size, before) as shown,
        ):
            if saved is None:
                self.write_keyless_strays(strays)
            for result in self.results(workers, state.next_id, limit):
                if result.first_stray:
                    strict.check_lines(report.dump, [result.first_stray])
                for segment in result.segments:
                    copies.add(output.append(segment))
                for segment in result.strays:
                    copies.add(strays.place(segment))
                state.counts += result.counts
                state.next_id = result.ids.stop
                state.output, state.strays = output.checkpoint(), strays.checkpoint()
                copies.send(
                    segments.temporary_files(result.segments, result.strays), state.to_json()
                )
                shown.update(result.size)
            copies.settle()
            self.leave_out(state)
            return self.seal(state, report, output, strays)

    def results(
        self, workers: Workers, next_id: int | None, limit: Limit
    ) -> Iterator[WrittenBucket]:
        """What the ranges of question ids that are left became, as many as the limit allows."""
        if limit.is_reached:
            return
        tasks = self.write_tasks(self.bucket_tasks(next_id, limit.left), workers.jobs > 1)
        for done in workers.run(bucket.write_bucket, tasks):
            result = done
            if limit.is_exceeded_by(done.counts.questions):
                # The workers do not know how many documents come before theirs.
                segments.remove(done.segments, done.strays)
                again = self.write_tasks(self.bucket_tasks(done.ids.start, limit.left), False)
                result = bucket.write_bucket(next(again))
            limit.take(result.counts.questions)
            yield result
            if limit.is_reached:
                return

    def checkpoint(self) -> Checkpoint | None:
        """How far an earlier session came, if what it wrote is there."""
        saved = None if self.names.output == "-" else self.spill.get("checkpoint")
        if not saved:
            return None
        state = Checkpoint.from_json(saved)
        for path, left in state.files(self.names):
            if not matches_checkpoint(path, left):
                log.info(
                    f"{path}.part was changed in the meantime; writing it again from the spill"
                )
                return None
        size = sum(size for _, size in self.buckets) or 1
        done = self.bytes_before(state)
        log.info(f"resuming: {100 * done // size} % of the documents are written")
        return state

    def bytes_before(self, state: Checkpoint) -> int:
        """JSON of the buckets that are written."""
        first_left = (state.next_id or 0) >> BUCKET_BITS
        return sum(size for number, size in self.buckets if number < first_left)

    def documents(self, report: Report) -> Iterator[Iterator[tuple[int, bytes]]]:
        """Nest every bucket in this process: question id and JSON of each document of a range."""
        state = Checkpoint()
        limit = Limit(self.options.filters.limit)
        for task in self.bucket_tasks(None, limit.left):
            with bucket.load_bucket(replace(task, limit=limit.left)) as nested:
                found = count_and_prepare(nested, self.options)
                yield ((one.question_id, b"".join((*one.parts, b"}"))) for one in found)
                state.counts += nested.counts
                if self.options.strict:
                    strict.check_lines(report.dump, nested.strays)
            state.next_id = task.ids.stop
            limit.take(nested.counts.questions)
            if limit.is_reached:
                break
        self.leave_out(state)
        self.complete(state, report)

    def complete(self, state: Checkpoint, report: Report) -> None:
        """Complete the report, and check that every row went somewhere."""
        report.fabricated = self.find_fabricated()
        report.add(state.counts)
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

    def bucket_tasks(self, next_id: int | None, limit: int | None) -> Iterator[BucketTask]:
        """The ranges of question ids that are left to do."""
        nested = bool(self.options.nest)
        for number, json_bytes in self.buckets:
            if next_id is not None and (number + 1) << BUCKET_BITS <= next_id:
                continue
            for ids, size, blocks in divide(
                number, json_bytes, self.spill.blocks(number), nested=nested
            ):
                if next_id is None or ids.start >= next_id:
                    yield BucketTask(
                        ids,
                        size,
                        blocks,
                        self.first_question_of,
                        self.options,
                        tuple(cut for cut in self.cuts if ids.start <= cut < ids.stop),
                        limit,
                        self.users,
                    )

    def write_tasks(self, tasks: Iterator[BucketTask], in_workers: bool) -> Iterator[WriteTask]:
        """Tasks that also write; in workers, to temporary files."""
        for number, task in enumerate(tasks):
            temporary = self.spill.temporary(number) if in_workers else None
            yield WriteTask(task, temporary, self.names.strays_compression)

    def write_keyless_strays(self, strays: Output) -> None:
        """Write the strays that belong to no bucket, in the order of the dump."""
        with BlockReader() as reader:
            lines = (
                line
                for path, block in self.spill.blocks(None)
                for line in reader.read(path, block)[1].splitlines(keepends=True)
            )
            for segment in compress_lines(lines, self.names.strays_compression, self.options.level):
                strays.append(segment)
