"""Dumps on Spark in one session: wall time, CPU of all processes, and the peak of a Python worker.

`python benchmarks/measure_spark.py DUMP... --spread 0` reads plain dumps as giants, whatever their
size. The peak is VmHWM of a worker and of the processes that it started; the heap of the executor
stands beside it. CPU counts the session's JVM and all workers, with starting and stopping them.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from make_dump import size as parse_size

_SET_CHILD_SUBREAPER = 36


def measured(options: argparse.Namespace) -> None:
    """Convert in this process, and print what it took as JSON."""
    from so2docs import spark as on_spark
    from so2docs.commands.spark import start_session
    from so2docs.spark import giants

    if options.spread is not None:
        giants.GIANT_BYTES = parse_size(options.spread)
    session = start_session(options.master, ("spark.ui.enabled=false",), quiet=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        tables = {"nest": options.nest.split(",")} if options.nest else {}
        report = on_spark.convert(session, options.dumps, folder, **tables)
    session.stop()
    rows = report.total().rows
    print(json.dumps({"rows": rows, "peak": report.worker_peak_bytes, "wall": report.seconds}))


def main() -> None:
    """Run it in a process of its own, and print a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dumps", nargs="+")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--nest", help="tables, separated by commas, or all")
    parser.add_argument("--spread", help="plain dumps of more are spread, such as 0 or 1GB")
    parser.add_argument("--folder", default="build/bench", type=Path)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.here:
        measured(options)
        return
    # What Spark leaves behind becomes a child of this process, and its CPU counts when it ends.
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1)
    begun = time.perf_counter()
    command = [sys.executable, *sys.argv, "--here"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    wall = time.perf_counter() - begun
    with suppress(ChildProcessError):
        while True:
            os.wait()
    cpu = sum(os.times()[2:4])
    found = json.loads(done.stdout.splitlines()[-1])
    print(
        f"{found['rows']:,} rows: {cpu:.1f} s of CPU, {wall:.1f} s with starting Spark, "
        f"{found['wall']:.1f} s without, at most {found['peak'] / 2**20:.0f} MiB a Python worker"
    )


if __name__ == "__main__":
    main()
