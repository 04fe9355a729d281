"""One session of a conversion: the two passes, one after the other."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping
from shutil import disk_usage

from so2docs.dump.dump import Dump
from so2docs.dump.source import End
from so2docs.dump.stream import SMALLEST_PIECE
from so2docs.dump.tables import TableFile, in_reading_order
from so2docs.options.table import Options, RunOptions
from so2docs.output import retrieval_set
from so2docs.output.existing import refuse_existing
from so2docs.output.part_files import LostFileError
from so2docs.output.paths import OutputPaths
from so2docs.output.provenance import Provenance
from so2docs.parse import repeats
from so2docs.pipeline import maps, resume, totals
from so2docs.pipeline.checkpoint import FinalizedOutput
from so2docs.pipeline.copying import copy_and_remove
from so2docs.pipeline.first_pass import FirstPass
from so2docs.pipeline.second_pass import SecondPass
from so2docs.pipeline.worker import peak_memory
from so2docs.pipeline.workers import Workers
from so2docs.progress import Progress, log
from so2docs.report import Report
from so2docs.spill import Spill
from so2docs.store.blocks import default_budget
from so2docs.store.disk import check_room

_WORTH_A_PROCESS = 32 * 1024 * 1024

_WRITING_WORK: Mapping[str, float] = {"parquet": 8.0}
"""What a byte costs that is written, about, where one read from a plain file costs 1."""


class Session:
    """The tables of a dump, the spill between the passes, and where the documents go."""

    def __init__(
        self,
        posts: TableFile,
        spill: Spill,
        options: Options,
        names: OutputPaths,
        run: RunOptions,
        *,
        tables: Mapping[str, TableFile] | None = None,
    ) -> None:
        self.spill = spill
        self.options = options
        self.run_options = run
        self.names = names
        self.progress = Progress(shown=run.progress)
        self.made = Provenance.of(posts, (tables or {}).values(), options)
        self.dump_bytes = posts.size
        files = list((tables or {}).values())
        wanted = run.chunk_bytes or posts.chunk_bytes
        chunk_bytes = resume.claim(spill, posts, wanted, options)
        self.posts = self._step(posts, chunk_bytes)
        self.tables: list[FirstPass] = []
        for file in files:
            wanted = run.chunk_bytes or file.chunk_bytes
            claimed = resume.claim_table(spill, file, wanted)
            self.tables.append(self._step(file, claimed, is_early=file.precedes(posts)))
        self.steps = [
            next(step for step in (self.posts, *self.tables) if step.table == file.table)
            for file in in_reading_order(posts, files)
        ]
        spill.merge_only(step.table.sequence for step in self.tables)
        self.table_bytes = sum(file.size for file in files)
        is_small = self.dump_bytes > 0 and self.dump_bytes + self.table_bytes < _WORTH_A_PROCESS
        self.jobs = run.jobs or (1 if is_small else os.cpu_count() or 1)
        if self.dump_bytes and chunk_bytes:
            sizes = [self.dump_bytes, *(file.size for file in files)]
            tasks = [
                -(-size // (step.chunk_bytes or SMALLEST_PIECE))
                for size, step in zip(sizes, [self.posts, *self.tables], strict=True)
            ]
            self.jobs = min(self.jobs, max(*tasks, 1))
        self.report = Report(
            posts.name, names.output, dump_bytes=posts.size, jobs=self.jobs, core=options.core
        )
        self.report.recipe = None if options.recipe is None else options.recipe.spec

    def _step(self, file: TableFile, chunk_bytes: int, *, is_early: bool = False) -> FirstPass:
        return FirstPass(
            file,
            spill=self.spill,
            options=self.options,
            chunk_bytes=chunk_bytes,
            progress=self.progress,
            work_dir=self.names.work_folder,
            threads=self.run_options.threads,
            is_early=is_early and bool(file.table.kind),
        )

    def run(self, *, force: bool) -> Report:
        """Both passes, into files.

        Args:
            force: Overwrite an existing output.
        """
        if sealed := self.spill.get("sealed"):
            done = FinalizedOutput.from_json(sealed)
            try:
                self.publish(done)
            except LostFileError as lost:
                log.info(f"{lost.path} was changed in the meantime; it is not used")
            else:
                log.info("resuming: all documents are written")
                done.report.resumed = True
                return done.report
        refuse_existing(self.names, self.made, force=force)
        if not self.spill.get("checkpoint"):
            self.names.remove_temporaries()
        report = self.report
        report.resumed = any(step.tallies() for step in self.steps)
        spare = self.check_room(self.run_options.spill_budget or 0)
        self.spill.put("sealed", None)
        self.spill.start_run()
        self.set_uncompressed_limit(spare)
        writing = _WRITING_WORK.get(self.options.form.format, 1.0)
        with Workers(self.jobs) as workers, self.progress:
            begun = time.perf_counter()
            second = self.read(workers, writing)
            report.spill_bytes = self.spill.size()
            _, report.spill_compressed_bytes = self.spill.block_sizes()
            between = time.perf_counter()
            done = second.run(workers, report)
            report.first_pass_seconds = between - begun
            report.second_pass_seconds = time.perf_counter() - between
            report.peak_memory_bytes = peak_memory() + sum(workers.peaks.values())
            self.spill.put("sealed", done.to_json())
            self.spill.remove_temporary()
            self.publish(done)
            if not self.run_options.keep_spill:
                # To free the memory that a gigabyte of them takes keeps a core busy for 0.2 s.
                for _ in workers.run(
                    copy_and_remove, (((), (path,)) for path in self.spill.block_files())
                ):
                    pass
        return report

    def publish(self, done: FinalizedOutput) -> None:
        """Give finished files their names, after those of the recipe are made."""
        if self.names.made_of_it and not done.files[0].label:
            done.files = retrieval_set.finish(self.names, done.files[0], done.report)
            self.spill.put("sealed", done.to_json())
        done.publish(self.names)

    def check_room(self, budget: int) -> int:
        """Free bytes that are left on the disk of the spill if it takes what it will.

        Raises:
            DiskFullError: There will not be enough.
        """
        size = int((self.dump_bytes + self.table_bytes) * self.options.filters.expected_share)
        uncompressed, _ = self.spill.block_sizes()
        return check_room(
            size,
            self.spill.folder,
            self.names.output,
            self.options.form.packing,
            uncompressed=uncompressed,
            budget=budget,
        )

    def set_uncompressed_limit(self, spare: int) -> None:
        """Tell the spill how much it may keep uncompressed, given the bytes to spare."""
        asked = self.run_options.spill_budget
        before, _ = self.spill.block_sizes()
        self.spill.budget.allow(default_budget(spare) if asked is None else asked - before)

    def documents(self) -> Iterator[Iterator[tuple[int, bytes]]]:
        """Both passes, the second in this process: one range of question ids a time.

        Yields:
            Question id and JSON of each document.
        """
        self.spill.start_run()
        self.set_uncompressed_limit(disk_usage(self.spill.folder).free)
        with Workers(self.jobs) as workers, self.progress:
            second = self.read(workers)
        yield from second.documents(self.report)

    def read_posts(self, workers: Workers) -> dict[int, int]:
        """The first pass over the posts.

        Returns:
            For post ids that occur under several questions, the question id of the first in the
            dump.
        """
        seen, done = repeats.SeenIds(), self.posts.tallies()
        if done:
            for _, keys in self.spill.all_keys():
                pages, _ = repeats.of_chunk(repeats.pairs(keys))
                seen.add(pages)
            log.info(f"resuming: {self.spilled_share(done)} of the dump is already spilled")
        end = self.posts.run(workers, seen=seen)
        self.report.dump_bytes, self.report.repaired_characters = end.size, end.repaired
        tallies = self.posts.tallies()
        totals.add_posts(tallies, self.report)
        within = totals.within_chunks(tallies)
        return repeats.first_questions(self.spill.all_keys, seen.repeated, within)

    def spilled_share(self, done: Collection[int]) -> str:
        """How much of the posts is in the chunks of `done`."""
        dump = self.posts.file.dump
        if self.posts.end is not None or not isinstance(dump, Dump):
            return "all" if self.posts.end else "0 %"
        whole = dump.end - dump.start
        _, before = dump.progress_total(self.posts.chunk_bytes, done)
        return f"{100 * before // whole} %" if before < whole else "all"

    def read(self, workers: Workers, writing: float = 0) -> SecondPass:
        """The first pass over the posts and the tables; what is left to do then.

        Args:
            workers: Where it happens.
            writing: What writing a byte of these costs, if they are to be written.
        """
        after_posts = sum(step.work for step in self.tables) + writing * self.table_bytes
        if self.posts.work:
            self.progress.plan(self.posts.work + after_posts + writing * self.dump_bytes)
        first_question_of: dict[int, int] = {}
        users, posts_map = None, ""
        ends: dict[str, End] = {}
        for number, step in enumerate(self.steps):
            if step is self.posts:
                first_question_of = self.read_posts(workers)
                left = sum(step.work for step in self.steps[number + 1 :])
                # No guess any more.
                written = self.report.dump_bytes + self.table_bytes
                self.progress.plan(left + writing * written)
                if self.tables:
                    posts_map = maps.map_posts(self.spill, first_question_of)
                for early in self.tables:
                    early.file_kept(workers, posts_map)
                continue
            ends[step.table.name] = end = step.run(workers, posts_map)
            if not step.table.kind:
                about = step.name if self.options.strict else None
                users = maps.map_users(self.spill, end.chunks, about)
        for step in self.tables:
            totals.add_table(step, ends[step.table.name], self.report)
        self.spill.index()
        return SecondPass(
            self.spill,
            self.options,
            self.names,
            first_question_of,
            users=users,
            progress=self.progress,
            made=self.made.having_read(self.report.dump_bytes),
        )
