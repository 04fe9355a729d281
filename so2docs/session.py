"""One session of a conversion: the two passes, one after the other."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from so2docs import resume
from so2docs.disk import check_room
from so2docs.dump import Dump
from so2docs.first_pass import FirstPass
from so2docs.options import Options
from so2docs.paths import Names
from so2docs.report import Report
from so2docs.second_pass import SecondPass
from so2docs.spill import Spill
from so2docs.workers import Workers, peak_memory

_SMALLEST_CHUNK = 8 * 1024 * 1024
_MOST_CHUNKS = 400
_WORTH_A_PROCESS = 32 * 1024 * 1024


class Session:
    """A dump, the spill between the passes, and where the documents go."""

    def __init__(self, dump: Dump, spill: Spill, options: Options, names: Names) -> None:
        self.dump = dump
        self.spill = spill
        self.options = options
        self.names = names
        wanted = options.chunk_bytes or max(_SMALLEST_CHUNK, -(-dump.size // _MOST_CHUNKS))
        chunk_bytes = resume.claim(
            spill,
            dump,
            wanted,
            options.that_change_the_output(),
            options.that_change_the_spill(),
        )
        self.first_pass = FirstPass(dump, spill, options, chunk_bytes)
        jobs = options.jobs or (os.cpu_count() or 1 if dump.size >= _WORTH_A_PROCESS else 1)
        self.jobs = min(jobs, max(1, len(self.first_pass.ranges)))
        self.report = Report(dump.path, names.output, dump_bytes=dump.size, jobs=self.jobs)

    def run(self) -> Report:
        """Both passes, into files."""
        report = self.report
        report.resumed = bool(self.spill.tallies())
        check_room(
            int(self.dump.size * self.options.filters.expected_share),
            self.spill.folder,
            self.names.output,
            self.options.form.packing,
        )
        self.spill.start_run()
        with Workers(self.jobs) as workers:
            begun = time.perf_counter()
            owners = self.first_pass.run(workers, report)
            report.spill_bytes = self.spill.size()
            between = time.perf_counter()
            SecondPass(self.spill, self.options, self.names, owners).run(workers, report)
            report.first_pass_seconds = between - begun
            report.second_pass_seconds = time.perf_counter() - between
            report.peak_memory_bytes = peak_memory() + sum(workers.peaks.values())
        return report

    def documents(self) -> Iterator[Iterator[bytes]]:
        """Both passes, the second in this process: lines of one range of question ids a time."""
        self.spill.start_run()
        with Workers(self.jobs) as workers:
            owners = self.first_pass.run(workers, self.report)
        yield from SecondPass(self.spill, self.options, self.names, owners).documents(self.report)
