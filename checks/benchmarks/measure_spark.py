"""Measure conversions in one Spark session against the same conversions without Spark.

    python checks/benchmarks/measure_spark.py build/bench/posts.xml

The wall time excludes the start of the session. The CPU time is that of all processes, the JVM
included, beyond that of a session that runs only an empty task. The memory is VmHWM of a Python
worker and its child processes, without the executor's JVM heap. `--cpus 2` gives each task two
cores, and therefore two worker processes.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import so2docs
from so2docs.extensions import spark as on_spark
from so2docs.extensions.spark.jobs import run
from so2docs.extensions.spark.spark_command import start_session

_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Convert the dumps named on the command line, and print time and memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dumps", nargs="+")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--nest", help="tables, separated by commas, or all")
    parser.add_argument("--cpus", default=1, type=int, help="cores of a task: spark.task.cpus")
    parser.add_argument("--folder", default="build/bench", type=Path)
    parser.add_argument("--pairs", default=1, type=int, help="repetitions; the best counts")
    parser.add_argument("--only", choices=["idle", "spark", "plain"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.only:
        _convert(options)
        return
    best: dict[str, float] = {}
    for _ in range(options.pairs):
        for only in ("idle", "spark", "plain"):
            seconds = _cpu_of([sys.executable, *sys.argv, "--only", only])
            best[only] = min(seconds, best.get(only, seconds))
    spark, plain = best["spark"] - best["idle"], best["plain"]
    print(
        f"{spark:.2f} s of CPU on Spark beyond the {best['idle']:.2f} s of an idle session, "
        f"{plain:.2f} s without Spark: {spark / plain:.2f} times as much"
    )


def _convert(options: argparse.Namespace) -> None:
    nest = options.nest.split(",") if options.nest else []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        if options.only == "plain":
            so2docs.convert_all(options.dumps, folder, nest=nest, jobs=options.cpus)
            return
        settings = ("spark.ui.enabled=false", f"spark.task.cpus={options.cpus}")
        session = start_session(options.master, settings, quiet=True)
        run(session, str, [0])
        if options.only == "spark":
            begun = time.perf_counter()
            results = on_spark.convert(session, options.dumps, folder, nest=nest)
            seconds = time.perf_counter() - begun
            print(
                f"{sum(one.result.rows for one in results):,} rows: {seconds:.1f} s without "
                "starting Spark, at most "
                f"{max(one.result.peak_memory_bytes for one in results) / 2**20:.0f} MiB per "
                "Python worker"
            )
        session.stop()


def _cpu_of(command: list[str]) -> float:
    """Run a command; return the CPU seconds of all its processes, also of those it left."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
