"""Measure the wall time and the peak memory of a worker for conversions in one Spark session.

The time excludes the start of the session. The memory is VmHWM of a Python worker and its child
processes, without the executor's JVM heap. `--cpus 2` gives each task two cores, and
therefore two worker processes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from so2docs.extensions import spark as on_spark
from so2docs.extensions.spark.spark_command import start_session


def main() -> None:
    """Convert the dumps named on the command line, and print time and memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dumps", nargs="+")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--nest", help="tables, separated by commas, or all")
    parser.add_argument("--cpus", default=1, type=int, help="cores of a task: spark.task.cpus")
    parser.add_argument("--folder", default="build/bench", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    settings = ("spark.ui.enabled=false", f"spark.task.cpus={options.cpus}")
    session = start_session(options.master, settings, quiet=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        nest = options.nest.split(",") if options.nest else []
        begun = time.perf_counter()
        results = on_spark.convert(session, options.dumps, folder, nest=nest)
        seconds = time.perf_counter() - begun
    session.stop()
    print(
        f"{sum(one.result.rows for one in results):,} rows: {seconds:.1f} s without starting "
        f"Spark, at most {max(one.result.peak_memory_bytes for one in results) / 2**20:.0f} MiB "
        "per Python worker"
    )


if __name__ == "__main__":
    main()
