"""Run one session of a conversion: both passes, and the maps that are made between them.

A spill is resumed if it belongs to the conversion.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from so2docs.counts import RowCounts, TableCounts
from so2docs.dump.dump import SMALLEST_PIECE
from so2docs.dump.opening import TableFile
from so2docs.dump.source import in_reading_order
from so2docs.errors import SpillError, flag
from so2docs.limits import peak_memory
from so2docs.options.choices import FORMATS
from so2docs.options.option import WHOLE
from so2docs.options.table import Filters, Options, RunOptions
from so2docs.output.new_files import NewFiles
from so2docs.output.paths import OutputPaths
from so2docs.output.provenance import UP_TO_DATE, Provenance, parse_files
from so2docs.parse.id_set import IdSetWriter, count_pages
from so2docs.parse.keys import integers
from so2docs.parse.opt_outs import store_lists
from so2docs.pipeline import strict
from so2docs.pipeline.first_pass import FirstPass
from so2docs.pipeline.maps import count_shared_ids, map_posts, map_users
from so2docs.pipeline.second_pass import SecondPass, read_keyless_strays
from so2docs.pipeline.selection import select
from so2docs.pipeline.tasks import find_step
from so2docs.processes.pool import Workers, choose_jobs
from so2docs.progress import Progress, log
from so2docs.report import Report
from so2docs.scan.table import TableReader
from so2docs.schema import POSTS
from so2docs.spill import FORMAT, Spill
from so2docs.store.blocks import default_budget
from so2docs.store.disk import check_room, free_bytes


def add_table(step: FirstPass, report: Report) -> None:
    """Add the counts in the chunks of a table other than posts to a report."""
    end, total = step.end, RowCounts.total(step.tallies().values())
    report.repaired_characters += total.repaired_characters + end["repaired"]
    report.dropped += total.dropped
    report.last_row = max(report.last_row or "", total.last_row or "") or None
    counts = report.tables[step.table.name] = TableCounts(
        bytes=end["size"], is_nested=step.table.name in step.options.nest
    )
    counts += total
    if not step.table.kind:  # The merge does not count users.
        counts.nested = counts.rows - counts.filtered - counts.strays.total()


def claim(
    spill: Spill, files: Sequence[TableFile], provenance: Provenance, chunk_bytes: list[int]
) -> list[int]:
    """Check that a spill was left by this conversion; label a new spill.

    Returns:
        Size of the chunks of each table, in bytes; in a resumed spill, those of its first session.
    """
    # A recipe may be corrected after a failure: the chunks stay the same.
    now = replace(provenance, options={**provenance.options, "recipe": None})
    times = [file.source.identity.modified for file in files]
    before = spill.get("made from")
    if before is not None:
        spill.check()
        chunk_bytes = before["chunks"]
        check_identity(spill, before, now, times)
    label = {"format": FORMAT, "record": now.as_dict(), "times": times, "chunks": chunk_bytes}
    spill.put("made from", label, commits=False)
    return chunk_bytes


def check_identity(spill: Spill, before: dict[str, Any], now: Provenance, times: list[int]) -> None:
    """Raise `SpillError` if the label of a spill, `before`, is that of another conversion."""
    if now.options["errors"] == "skip":  # No row was skipped so far, so the chunks are the same.
        before["record"]["options"]["errors"] = "skip"
    comparison = Provenance(**parse_files(before["record"])).compare(now)
    reason = comparison.reason
    if comparison.state == UP_TO_DATE:
        reason = ""
        if before["format"] != FORMAT:
            reason = ", made by another version of so2docs"
        elif before["times"] != times:
            reason = ", made from another dump, or from this dump before it changed"
    if reason:
        raise SpillError(
            f"{spill.folder}: was left by another conversion{reason}; run with "
            f"{flag('restart', True)} to start over, or choose another {flag('work_dir')}"
        )


def _expected_share(filters: Filters) -> float:
    """Return the share of the dump expected to pass the filters; 0 if it cannot be predicted."""
    if filters != Filters(sample=filters.sample):
        return 0.0
    return 1.0 if filters.sample is None else filters.sample / WHOLE


class Session:
    """One session of a conversion, with the tables, the spill, and the paths of the output."""

    def __init__(
        self,
        files: Sequence[TableFile],
        spill: Spill,
        options: Options,
        names: OutputPaths,
        run: RunOptions,
    ) -> None:
        """Claim the spill for the tables in `files`, the posts first."""
        posts, *tables = files
        self.spill = spill
        self.run_options = run
        self.names = names
        self.progress = Progress(shown=run.progress)
        self.provenance = Provenance.of(files, options)
        self.options = options = store_lists(options, spill.folder)
        self.dump_bytes = posts.size
        requested = [run.chunk_bytes or file.chunk_bytes for file in files]
        chunk_bytes, *of_tables = claim(spill, files, self.provenance, requested)
        self.posts = self._step(posts, chunk_bytes)
        self.tables = [
            self._step(file, size, is_early=file.precedes(posts))
            for file, size in zip(tables, of_tables, strict=True)
        ]
        self.steps = [
            next(step for step in (self.posts, *self.tables) if step.table == file.table)
            for file in in_reading_order(files)
        ]
        self.table_bytes = sum(file.size for file in tables)
        tasks = None
        if self.dump_bytes and chunk_bytes:
            steps = (self.posts, *self.tables)
            tasks = max(
                -(-step.file.size // (step.chunk_bytes or SMALLEST_PIECE)) for step in steps
            )
        size = self.dump_bytes and self.dump_bytes + self.table_bytes
        self.jobs = choose_jobs(run.jobs, size, tasks)
        self.report = Report(
            posts.name, names.output, dump_bytes=posts.size, jobs=self.jobs, core=options.core
        )
        self.report.as_of = options.filters.as_of
        self.report.later_until = options.transform.later_until
        options.records.prepare(self.report)

    def _step(self, file: TableFile, chunk_bytes: int, *, is_early: bool = False) -> FirstPass:
        is_early = is_early and bool(file.table.kind)
        return FirstPass(file, self.spill, self.options, chunk_bytes, is_early)

    def run(self, files: NewFiles) -> Report:
        """Run both passes, write the files of the output, and return the report."""
        report = self.report
        report.resumed = any(step.tallies() for step in self.steps)
        form = self.options.form
        spare = check_room(
            int((self.dump_bytes + self.table_bytes) * _expected_share(self.options.filters)),
            self.spill.folder,
            self.names.output,
            form.compression if FORMATS[form.format].compressed else "zstd",
        )
        self.spill.start_run()
        self.set_uncompressed_limit(spare)
        writing = FORMATS[self.options.form.format].work
        with Workers(self.jobs) as workers, self.progress:
            begun = time.perf_counter()
            second = self.read(workers, writing)
            report.spill_bytes = self.spill.size()
            _, report.spill_compressed_bytes = self.spill.block_sizes()
            between = time.perf_counter()
            second.run(workers, report, files)
            report.first_pass_seconds = between - begun
            report.second_pass_seconds = time.perf_counter() - between
            report.peak_memory_bytes = peak_memory() + sum(workers.peaks.values())
            self.spill.remove_temporary()
            if self.names.made_of_it:
                files.leave_out(self.names.output)
                self.options.records.finish(self.names, files, second.provenance, report)
        return report

    def set_uncompressed_limit(self, spare: int) -> None:
        """Limit the uncompressed data in the spill as requested, or else as `spare` allows."""
        requested = self.run_options.spill_budget
        before, _ = self.spill.block_sizes()
        self.spill.budget.allow(default_budget(spare) if requested is None else requested - before)

    def documents(self) -> Iterator[Iterator[tuple[int, bytes]]]:
        """Run both passes, the second in this process: one range of question ids at a time.

        Yields:
            For each range, an iterator over question id and JSON of its documents.
        """
        self.spill.start_run()
        self.set_uncompressed_limit(free_bytes(self.spill.folder) or 0)
        with Workers(self.jobs) as workers, self.progress:
            second = self.read(workers)
        yield from second.documents(self.report)

    def read_posts(self, reader: TableReader) -> None:
        """Run the first pass over the posts."""
        if self.posts.tallies():
            share = "all" if self.posts.is_read else "a part"
            log.info("resuming: %s of the dump is already spilled", share)
        with IdSetWriter(str(self.spill.folder / "post-ids.map")) as seen_ids:
            for keys in self.spill.pairs():
                for pages in count_pages(integers(keys)[1::2]):
                    seen_ids.add(pages)
            self.posts.run(reader, seen_ids=seen_ids)
            self.report.shared_ids = count_shared_ids(self.spill, seen_ids.repeated)
        self.report.dump_bytes = self.posts.end["size"]
        self.report.repaired_characters = self.posts.end["repaired"]
        self.report += RowCounts.total(self.posts.tallies().values())

    def read(self, workers: Workers, writing: float = 0) -> SecondPass:
        """Run the first pass over the posts and the tables, and prepare the second pass.

        Args:
            workers: Workers that parse the chunks.
            writing: Cost of writing a byte of the documents, if they are to be written.
        """
        if self.posts.file.work:
            work = sum(step.file.work for step in self.steps)
            self.progress.plan(work + writing * (self.dump_bytes + self.table_bytes))
        folder, threads = self.names.work_folder, self.run_options.threads
        reader = TableReader(workers, self.progress, folder, threads)
        posts_map = ""
        others = [step for step in self.steps if step.file.place[:2] != self.posts.file.place[:2]]
        for number, step in enumerate(self.steps[: len(self.steps) - len(others)]):
            if step is not self.posts:
                step.run(reader, posts_map)
                continue
            self.read_posts(reader)
            remaining = sum(step.file.work for step in self.steps[number + 1 :])
            # Replace the estimate by the number of bytes read.
            self.progress.plan(remaining + writing * (self.report.dump_bytes + self.table_bytes))
            if self.tables:
                posts_map = map_posts(self.spill)
            for early in self.tables:
                early.file_kept(workers, posts_map)
        reader.read_tables([(step.file, partial(step.run, posts_map=posts_map)) for step in others])
        self.spill.index()
        names, users = {step.table.name for step in self.tables}, ""
        if "users" in names:
            users = map_users(self.spill, workers, with_badges="badges" in names)
        for step in self.tables:
            add_table(step, self.report)
        self.spill.merge_only(POSTS.sequence)
        selection = select(self.spill, self.options.filters)
        nested = (step.table.sequence for step in self.tables if step.table.kind)
        self.spill.merge_only(POSTS.sequence, *nested)
        if self.options.errors == "strict":
            for step in self.steps:
                counts = RowCounts.total(step.tallies().values())
                strays = read_keyless_strays(self.spill)
                strict.check_table(step.name, counts, step.end["repaired"], strays)
        prepared = None
        if step_before_merge := find_step(self.options):
            tallies = [tally for step in self.steps for tally in step.tallies().values()]
            prepared = step_before_merge.prepare(
                self.spill, self.options, tallies, posts_map, workers
            )
        return SecondPass(
            self.spill,
            self.options,
            self.names,
            self.provenance.having_read(self.report.dump_bytes),
            users,
            prepared,
            self.progress,
            selection=selection,
        )
