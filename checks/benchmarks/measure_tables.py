"""Measure the CPU time and spill size of each table, and the CPU time of nesting all of them.

`python checks/benchmarks/measure_tables.py FOLDER` measures a folder written by `make_tables.py`,
with one worker. CPU time is reliable even on a busy machine. A conversion with `--jobs N` on N idle
cores takes about an Nth of the CPU time as wall time.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from so2docs.dump.source import Source
from so2docs.limits import peak_memory
from so2docs.options.request import tables_to_nest
from so2docs.options.table import Options, RunOptions
from so2docs.output.new_files import NewFiles
from so2docs.output.paths import OutputPaths
from so2docs.parse import core
from so2docs.pipeline.maps import map_posts, map_users
from so2docs.pipeline.second_pass import SecondPass
from so2docs.pipeline.session import Session, add_table
from so2docs.processes.pool import Workers
from so2docs.scan.table import TableReader
from so2docs.spill import Spill


class Clock:
    """Stopwatch that prints the CPU time of each step."""

    def __init__(self) -> None:
        self.begun = time.process_time()

    def step(self, name: str, rows: int, spill_bytes: int, xml_bytes: int) -> None:
        """Print the CPU seconds since the previous step, and seconds and MB per million rows."""
        now = time.process_time()
        seconds, millions = now - self.begun, max(rows, 1) / 1e6
        per_million = f"{seconds / millions:>6.2f} s/M"
        sizes = (
            f"spill {spill_bytes / 1e6 / millions:>6.1f}, xml {xml_bytes / 1e6 / millions:>6.1f}"
        )
        peak = f"peak {peak_memory() >> 20} MiB"
        print(f"{name:<20} {rows:>10,} rows {seconds:>7.1f} s {per_million} {sizes} MB/M {peak}")
        self.begun = time.process_time()


def measure(folder: str, tables: list[str], work_dir: str) -> None:
    """Run the steps of a conversion one by one, and print the figures of each."""
    nest = tables_to_nest(tables, {})
    files = Source(folder).find_to_convert(nest, {})
    output = str(Path(work_dir) / "questions.jsonl.gz")
    options, names = Options(nest=nest, core=core.built()), OutputPaths(output, work_dir)
    spill = Spill(Path(work_dir) / "spill")
    session = Session(files, spill, options, names, RunOptions(jobs=1))
    report, clock, users = session.report, Clock(), ""
    spill.start_run()
    with Workers(1) as workers:
        reader = TableReader(workers, session.progress, work_dir, 1)
        session.read_posts(reader)
        spilled = spill.size()
        clock.step("posts", report.rows, spilled, files[0].size)
        posts = map_posts(spill)
        clock.step("map of the posts", report.rows, Path(posts).stat().st_size, 0)
        for step in session.tables:
            before = spill.size()
            step.run(reader, posts)
            spilled = spill.size() - before
            if step.table.name == "users":
                users = map_users(spill, workers, with_badges=False)
            add_table(step, report)
            counts = report.tables[step.table.name]
            clock.step(step.table.name, counts.rows, spilled, counts.bytes)
        spill.index()
        nested = (step.table.sequence for step in session.tables if step.table.kind)
        spill.merge_only(0, *nested)
        with NewFiles(output) as new_files:
            SecondPass(spill, options, names, session.provenance, users).run(
                workers, report, new_files
            )
    clock.step("nesting and writing", report.rows, report.output_bytes, 0)
    print(report)
    spill.remove()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure the nesting of tables.")
    parser.add_argument("folder")
    parser.add_argument("--nest", dest="tables", action="append", default=[])
    parser.add_argument("--work-dir")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=wanted.work_dir) as work:
        measure(wanted.folder, wanted.tables, work)
    sys.exit(0)
