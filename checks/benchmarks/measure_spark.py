"""Measure conversions in a Spark session against the same conversions without Spark.

    python checks/benchmarks/measure_spark.py build/bench/posts.xml --pairs 3

The times exclude the start of the session. The CPU time is that of all processes, the JVM included.
The memory is VmHWM of a Python worker and its child processes, without the executor's JVM heap.
`--cpus 2` gives each task two cores, and therefore two worker processes.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import so2docs
from so2docs.extensions import spark as on_spark
from so2docs.extensions.spark.jobs import run
from so2docs.extensions.spark.spark_command import start_session

_TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Convert the dumps named on the command line, and print time and memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dumps", nargs="+")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--nest", help="tables, separated by commas, or all")
    parser.add_argument("--cpus", default=1, type=int, help="cores of a task: spark.task.cpus")
    parser.add_argument("--folder", default="build/bench", type=Path)
    parser.add_argument("--pairs", default=1, type=int)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    nest = options.nest.split(",") if options.nest else []
    settings = ("spark.ui.enabled=false", f"spark.task.cpus={options.cpus}")
    session = start_session(options.master, settings, quiet=True)
    run(session, str, [0])  # Start the Python workers.
    for _ in range(options.pairs):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            results, seconds, cpu = _measure(
                lambda out: on_spark.convert(session, options.dumps, out, nest=nest), folder
            )
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            _, plain_seconds, plain = _measure(
                lambda out: so2docs.convert_all(options.dumps, out, nest=nest, jobs=options.cpus),
                folder,
            )
        memory = max(one.result.peak_memory_bytes for one in results)
        print(
            f"{sum(one.result.rows for one in results):,} rows: {seconds:.1f} s, {cpu:.2f} s of "
            f"CPU, at most {memory / 2**20:.0f} MiB per Python worker; without Spark "
            f"{plain_seconds:.1f} s, {plain:.2f} s of CPU"
        )
    session.stop()


def _measure(convert: Callable[[str], Any], folder: str) -> tuple[Any, float, float]:
    """Return the result of a conversion, and its wall and CPU seconds."""
    cpu, begun = _cpu_seconds(), time.perf_counter()
    results = convert(folder)
    return results, time.perf_counter() - begun, _cpu_seconds() - cpu


def _cpu_seconds() -> float:
    """Return the CPU time of this process and its descendants, also of those that ended."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # The process has ended.
        process = int(stat.parent.name)
        parents[process], ticks[process] = int(fields[1]), sum(map(int, fields[11:15]))
    own = {os.getpid()}
    while more := {process for process in parents if parents[process] in own} - own:
        own |= more
    return sum(ticks[process] for process in own) / _TICKS


if __name__ == "__main__":
    main()
