"""The tables beside the posts, seen from the main process: their chunks -> blocks in the spill.

Runs between the two passes, when the question of every post is known. Each table is read as the
posts were, and committed chunk by chunk, so that an interrupted conversion goes on with the others.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import asdict

from so2docs.errors import DumpError
from so2docs.options.conversion import Options
from so2docs.passes import resume, strict
from so2docs.passes.chunk import ChunkTally
from so2docs.passes.table_chunk import TableResult, TableTask, spill_table_chunk
from so2docs.passes.workers import Workers
from so2docs.progress import bar
from so2docs.report import Report, TableCounts
from so2docs.sources.dump import Chunk, Dump
from so2docs.sources.stream import SMALLEST_PIECE, AnyDump
from so2docs.sources.tables import TableFile
from so2docs.spill import SEQUENCE_BITS, Spill

_END = "end of {}"


class TablePass:
    """Reads one table into a spill.

    Args:
        file: Where it is.
        spill: Where its rows go; has all posts already.
        options: How to convert.
        work_dir: Folder for an archive that has to be unpacked from another.
    """

    def __init__(
        self, file: TableFile, spill: Spill, options: Options, work_dir: str | None
    ) -> None:
        self.file = file
        self.table = file.table
        self.spill = spill
        self.options = options
        self.work_dir = work_dir
        self.seconds = 0.0
        self.first_line = 1
        self.first_chunk = file.table.sequence << SEQUENCE_BITS
        wanted = options.chunk_bytes or file.chunk_bytes
        self.chunk_bytes = resume.claim_table(spill, file, wanted)

    @property
    def most_tasks(self) -> int:
        """How many tasks the table is, about."""
        return -(-self.file.size // (self.chunk_bytes or SMALLEST_PIECE))

    @property
    def chunks(self) -> int:
        """A number above those of all chunks of a table that was read."""
        return (self.end or {})["chunks"]

    @property
    def end(self) -> dict[str, int] | None:
        """What an earlier session found out by reading the table to its end."""
        return self.spill.get(_END.format(self.table.name))  # type: ignore[no-any-return]

    def run(self, workers: Workers, posts: str) -> None:
        """Spill every chunk that is not yet committed.

        Args:
            workers: Where the chunks are parsed.
            posts: The map from post ids to question ids.
        """
        begun = time.perf_counter()
        tallies = self.spill.tallies(self.table.sequence)
        if self.options.strict:
            strict.check_tallies(self.file.name, tallies)
        if self.end is None:
            options = self.options
            dump = self.file.open(threads=options.threads, work_dir=self.work_dir)
            with closing(dump):
                self.read(dump, workers, posts, {n - self.first_chunk for n in tallies})
        if self.options.strict:
            strict.check_decoded(self.file.name, (self.end or {})["repaired"])
        self.seconds = time.perf_counter() - begun

    def read(self, dump: AnyDump, workers: Workers, posts: str, done: set[int]) -> None:
        """Spill the chunks of an open table that are not in `done`."""
        self.first_line = dump.first_line
        total, before = dump.progress_total(self.chunk_bytes, done)
        label = f"reading {self.table.name}"
        with bar(label, total, before, shown=self.options.progress) as shown:
            try:
                for result in workers.run(spill_table_chunk, self.chunk_tasks(dump, done, posts)):
                    self.commit(result)
                    task = result.task
                    chunk = Chunk(task.chunk - self.first_chunk, task.dump, task.start, task.end)
                    shown.update(dump.progress(chunk))
                dump.check_end()
            except DumpError as error:
                # A dump that was overwritten looks malformed, but is not to be downloaded again.
                if isinstance(dump, Dump):
                    dump.check_unchanged()
                self.complete_place(error)
                raise
        chunks = -(-dump.size // self.chunk_bytes) if self.chunk_bytes else 0
        end = dump.end_state or {"size": dump.size, "repaired": 0, "chunks": chunks}
        self.spill.put(_END.format(self.table.name), end)

    def chunk_tasks(self, dump: AnyDump, done: Collection[int], posts: str) -> Iterator[TableTask]:
        """The chunks that are left to do."""
        for chunk in dump.chunks(self.chunk_bytes, done, self.spill.folder):
            number = self.first_chunk + chunk.number
            yield TableTask(
                self.table.name,
                chunk.dump,
                number,
                chunk.start,
                chunk.end,
                self.spill.new_file(number),
                posts,
                self.options,
                self.spill.budget.grant(number, chunk.end - chunk.start),
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
        place.line += self.first_line + sum(tally.lines for tally in before)
        if place.last_id is None:
            ids = [tally.last_id for tally in before if tally.last_id is not None]
            place.last_id = ids[-1] if ids else None

    def tallies(self) -> list[ChunkTally]:
        """What stands in the committed chunks."""
        return [ChunkTally(**tally) for tally in self.spill.tallies(self.table.sequence).values()]

    def take_stock(self, report: Report) -> None:
        """Add the chunks' tallies up."""
        strays: Counter[str] = Counter()
        end = self.end or {}
        counts = TableCounts(bytes=end["size"], seconds=self.seconds)
        report.repaired_characters += end["repaired"]
        for tally in self.tallies():
            counts.rows += tally.rows
            report.repaired_characters += tally.repaired
            strays.update(tally.strays)
        counts.strays = dict(sorted((+strays).items()))
        counts.spill_bytes = self.spill.size_of(self.table.sequence)
        if not self.table.kind:  # The merge counts no users.
            counts.nested = counts.rows - strays.total()
        report.tables[self.table.name] = counts
