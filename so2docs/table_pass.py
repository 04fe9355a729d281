"""The tables beside the posts, seen from the main process: their chunks -> blocks in the spill.

Runs between the two passes, when the question of every post is known. Each table is read as the
posts were, and committed chunk by chunk, so that an interrupted conversion goes on with the others.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict

from so2docs import resume, strict
from so2docs.chunk import ChunkTally
from so2docs.dump import Dump
from so2docs.errors import DumpError
from so2docs.options import Options
from so2docs.progress import bar
from so2docs.report import Report, TableCounts
from so2docs.spill import SEQUENCE_BITS, Spill
from so2docs.table_chunk import TableResult, TableTask, spill_table_chunk
from so2docs.tables import Table
from so2docs.workers import Workers


class TablePass:
    """Reads one table into a spill.

    Args:
        table: Which.
        dump: Its file.
        spill: Where its rows go; has all posts already.
        options: How to convert.
        chunk_bytes: Bytes of the file that one task takes, where the spill is new.
    """

    def __init__(
        self, table: Table, dump: Dump, spill: Spill, options: Options, chunk_bytes: int
    ) -> None:
        self.table = table
        self.dump = dump
        self.spill = spill
        self.options = options
        self.seconds = 0.0
        self.first_chunk = table.sequence << SEQUENCE_BITS
        size = resume.claim_table(spill, table, dump, chunk_bytes)
        self.chunks = list(dump.chunks(size, (), spill.folder))

    def run(self, workers: Workers, posts: str) -> None:
        """Spill every chunk that is not yet committed.

        Args:
            workers: Where the chunks are parsed.
            posts: The map from post ids to question ids.
        """
        begun = time.perf_counter()
        done = self.spill.tallies(self.table.sequence)
        if self.options.strict:
            strict.check_tallies(self.dump.path, done)
        size = sum(
            chunk.end - chunk.start
            for chunk in self.chunks
            if self.first_chunk + chunk.number in done
        )
        label = f"reading {self.table.name}"
        with bar(label, self.dump.size, size, shown=self.options.progress) as shown:
            try:
                for result in workers.run(spill_table_chunk, self.chunk_tasks(set(done), posts)):
                    self.commit(result)
                    shown.update(result.task.end - result.task.start)
            except DumpError as error:
                self.complete_place(error)
                raise
        self.dump.check_unchanged()
        self.seconds = time.perf_counter() - begun

    def chunk_tasks(self, done: set[int], posts: str) -> Iterator[TableTask]:
        """The chunks that are left to do."""
        for chunk in self.chunks:
            number = self.first_chunk + chunk.number
            if number not in done:
                path = self.spill.new_file(number)
                yield TableTask(
                    self.table.name,
                    self.dump,
                    number,
                    chunk.start,
                    chunk.end,
                    path,
                    posts,
                    self.options,
                )

    def commit(self, result: TableResult) -> None:
        """Make a chunk part of the spill."""
        task = result.task
        self.spill.commit(task.chunk, task.path, result.blocks, asdict(result.tally))

    def complete_place(self, error: DumpError) -> None:
        """Turn a place within a chunk into one within the table."""
        place = error.place
        if place is None or place.line is None:
            return
        place.row = self.table.row
        before = self.tallies()
        place.line += self.dump.first_line + sum(tally.lines for tally in before)
        if place.last_id is None:
            ids = [tally.last_id for tally in before if tally.last_id is not None]
            place.last_id = ids[-1] if ids else None

    def tallies(self) -> list[ChunkTally]:
        """What stands in the committed chunks."""
        return [ChunkTally(**tally) for tally in self.spill.tallies(self.table.sequence).values()]

    def take_stock(self, report: Report) -> None:
        """Add the chunks' tallies up."""
        strays: Counter[str] = Counter()
        counts = TableCounts(bytes=self.dump.size, seconds=self.seconds)
        for tally in self.tallies():
            counts.rows += tally.rows
            report.repaired_characters += tally.repaired
            strays.update(tally.strays)
        counts.strays = dict(sorted((+strays).items()))
        counts.spill_bytes = self.spill.size_of(self.table.sequence)
        if not self.table.kind:  # The merge counts no users.
            counts.nested = counts.rows - strays.total()
        report.tables[self.table.name] = counts
