"""Dumps on Spark in one session: seconds without starting it, and the peak of a Python worker.

`python benchmarks/measure_spark.py DUMP... --spread 0` reads plain dumps as giants, whatever their
size. The peak is VmHWM of a worker and of the processes that it started; the heap of the executor
stands beside it.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from make_dump import size as parse_size

from so2docs import spark as on_spark
from so2docs.commands.spark import start_session
from so2docs.spark import giants


def main() -> None:
    """Convert, and print a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dumps", nargs="+")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--nest", help="tables, separated by commas, or all")
    parser.add_argument("--spread", help="plain dumps of more are spread, such as 0 or 1GB")
    parser.add_argument("--folder", default="build/bench", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.spread is not None:
        giants.GIANT_BYTES = parse_size(options.spread)
    session = start_session(options.master, ("spark.ui.enabled=false",), quiet=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        nest = options.nest.split(",") if options.nest else []
        report = on_spark.convert(session, options.dumps, folder, nest=nest)
    session.stop()
    print(
        f"{report.total().rows:,} rows: {report.seconds:.1f} s without starting Spark, "
        f"at most {report.worker_peak_bytes / 2**20:.0f} MiB a Python worker"
    )


if __name__ == "__main__":
    main()
