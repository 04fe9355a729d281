"""One session of a conversion: the two passes, one after the other."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from so2docs import resume
from so2docs.disk import check_room
from so2docs.first_pass import FirstPass
from so2docs.options import Options
from so2docs.paths import Names
from so2docs.progress import Notify, silent
from so2docs.report import Report
from so2docs.second_pass import SecondPass, published
from so2docs.spill import Spill
from so2docs.stream import AnyDump
from so2docs.workers import Workers, peak_memory

_WORTH_A_PROCESS = 32 * 1024 * 1024


class Session:
    """A dump, the spill between the passes, and where the documents go."""

    def __init__(
        self,
        dump: AnyDump,
        spill: Spill,
        options: Options,
        names: Names,
        notify: Notify = silent,
    ) -> None:
        self.dump = dump
        self.spill = spill
        self.options = options
        self.names = names
        self.notify = notify
        wanted = options.chunk_bytes or dump.chunk_bytes
        chunk_bytes = resume.claim(
            spill,
            dump,
            wanted,
            options.that_change_the_output(),
            options.that_change_the_spill(),
        )
        self.first_pass = FirstPass(dump, spill, options, chunk_bytes, notify)
        is_small = 0 < dump.size < _WORTH_A_PROCESS
        self.jobs = options.jobs or (1 if is_small else os.cpu_count() or 1)
        if dump.size and chunk_bytes:
            self.jobs = min(self.jobs, -(-dump.size // chunk_bytes))
        self.report = Report(
            dump.path, names.output, dump_bytes=dump.size, jobs=self.jobs, core=options.core
        )

    def run(self, *, force: bool) -> Report:
        """Both passes, into files.

        Args:
            force: Overwrite an existing output.
        """
        sealed = self.spill.get("sealed")
        if sealed and (done := published(sealed, self.names)):
            self.notify("going on: the documents were all written")
            done.resumed = True
            return done
        self.names.refuse_existing(force=force)
        report = self.report
        report.resumed = bool(self.spill.tallies())
        check_room(
            int(self.dump.size * self.options.filters.expected_share),
            self.spill.folder,
            self.names.output,
            self.options.form.packing,
        )
        self.spill.put("sealed", None)
        self.spill.start_run()
        with Workers(self.jobs) as workers:
            begun = time.perf_counter()
            owners = self.first_pass.run(workers, report)
            report.spill_bytes = self.spill.size()
            between = time.perf_counter()
            second = SecondPass(self.spill, self.options, self.names, owners, self.notify)
            second.run(workers, report)
            report.first_pass_seconds = between - begun
            report.second_pass_seconds = time.perf_counter() - between
            report.peak_memory_bytes = peak_memory() + sum(workers.peaks.values())
        self.spill.put("sealed", {**self.spill.get("sealed"), "report": report.as_dict()})
        published(self.spill.get("sealed"), self.names)
        return report

    def documents(self) -> Iterator[Iterator[bytes]]:
        """Both passes, the second in this process: lines of one range of question ids a time."""
        self.spill.start_run()
        with Workers(self.jobs) as workers:
            owners = self.first_pass.run(workers, self.report)
        yield from SecondPass(self.spill, self.options, self.names, owners).documents(self.report)
