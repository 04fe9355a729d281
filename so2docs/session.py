"""One session of a conversion: the two passes, one after the other."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from so2docs import maps, resume
from so2docs.disk import check_room
from so2docs.dump import Dump
from so2docs.first_pass import FirstPass
from so2docs.options import Options
from so2docs.paths import Names
from so2docs.report import Report
from so2docs.second_pass import SecondPass
from so2docs.sources import Sources
from so2docs.spill import Spill
from so2docs.table_pass import TablePass
from so2docs.tables import TABLES
from so2docs.workers import Workers, peak_memory

_SMALLEST_CHUNK = 8 * 1024 * 1024
_MOST_CHUNKS = 400
_WORTH_A_PROCESS = 32 * 1024 * 1024


class Session:
    """A dump, the spill between the passes, and where the documents go."""

    def __init__(self, sources: Sources, spill: Spill, options: Options, names: Names) -> None:
        dump = self.dump = sources.posts
        self.sources = sources
        self.spill = spill
        self.options = options
        self.names = names
        wanted = self.chunk_bytes(dump)
        chunk_bytes = resume.claim(spill, dump, wanted, options.that_change_the_output())
        self.first_pass = FirstPass(dump, spill, options, chunk_bytes)
        self.table_passes = [
            TablePass(TABLES[name], table, spill, options, self.chunk_bytes(table))
            for name, table in sources.tables.items()
        ]
        spill.merge_only(step.table.sequence for step in self.table_passes)
        jobs = options.jobs or (os.cpu_count() or 1 if sources.size >= _WORTH_A_PROCESS else 1)
        chunks = [len(self.first_pass.ranges), *(len(step.ranges) for step in self.table_passes)]
        self.jobs = min(jobs, max(1, *chunks))
        self.report = Report(dump.path, names.output, dump_bytes=dump.size, jobs=self.jobs)

    def run(self) -> Report:
        """Both passes, into files."""
        report = self.report
        report.resumed = bool(self.spill.tallies())
        check_room(self.sources.size, self.spill.folder, self.names.output, self.names.compression)
        self.spill.start_run()
        with Workers(self.jobs) as workers:
            begun = time.perf_counter()
            second_pass = self.read(workers)
            report.spill_bytes = self.spill.size()
            between = time.perf_counter()
            second_pass.run(workers, report)
            report.first_pass_seconds = between - begun
            report.second_pass_seconds = time.perf_counter() - between
            report.peak_memory_bytes = peak_memory() + sum(workers.peaks.values())
        return report

    def documents(self) -> Iterator[Iterator[bytes]]:
        """Both passes, the second in this process: lines of one range of question ids a time."""
        self.spill.start_run()
        with Workers(self.jobs) as workers:
            second_pass = self.read(workers)
        yield from second_pass.documents(self.report)

    def read(self, workers: Workers) -> SecondPass:
        """The first pass over the posts, then the tables; what is left to do then."""
        owners = self.first_pass.run(workers, self.report)
        users = None
        posts = maps.map_posts(self.spill, owners) if self.table_passes else ""
        for step in self.table_passes:
            step.run(workers, posts)
            if not step.table.kind:
                users = maps.map_users(self.spill, len(step.ranges))
            step.take_stock(self.report)
        self.spill.index()
        return SecondPass(self.spill, self.options, self.names, owners, users)

    def chunk_bytes(self, dump: Dump) -> int:
        """Bytes of a file that one task takes."""
        return self.options.chunk_bytes or max(_SMALLEST_CHUNK, -(-dump.size // _MOST_CHUNKS))
