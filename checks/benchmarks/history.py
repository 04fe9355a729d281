"""Measure the CPU time per row of each nested table, as a multiple of that of comments.

`python checks/benchmarks/history.py FOLDER` converts a folder written by `make_tables.py` several
times: with nothing nested, with comments, and with each level of the history, in turn. The cost of
a table is the CPU time of a conversion with the table, minus that of a conversion without tables.
CPU times are medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from measure import Measured, run

LEVELS = ("comments", "closings", "history", "history-text")


def convert(folder: str, out: Path, jobs: int, table: str | None) -> tuple[Measured, int]:
    """Convert with one nested table; return the measurement, and the rows of the table."""
    words = [sys.executable, "-m", "so2docs", "convert", folder, str(out), "--force", "--quiet"]
    words += ["--jobs", str(jobs), "--report", "-"]
    done = run(words if table is None else [*words, "--nest", table])
    report = json.loads(done.stdout)
    return done, report["tables"][table]["rows"] if table else 0


def main() -> None:
    """Measure each table several times, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    took: dict[str | None, list[Measured]] = {name: [] for name in (None, *LEVELS)}
    rows: dict[str | None, int] = {}
    sizes: dict[str | None, int] = {}
    with tempfile.TemporaryDirectory(dir=asked.folder) as work:
        out = Path(work) / "questions.jsonl.gz"
        for _ in range(asked.times):
            for name, runs in took.items():
                done, rows[name] = convert(asked.folder, out, asked.jobs, name)
                sizes[name] = out.stat().st_size
                runs.append(done)
    cpu = {name: statistics.median(one.cpu for one in runs) for name, runs in took.items()}
    unit = (cpu["comments"] - cpu[None]) / rows["comments"]
    print(f"{'nothing':<14} {cpu[None]:>6.2f} s CPU")
    for name in LEVELS:
        each = (cpu[name] - cpu[None]) / rows[name]
        memory = max(one.memory for one in took[name])
        print(
            f"{name:<14} {cpu[name]:>6.2f} s CPU {each * 1e6:>6.2f} s/M rows {each / unit:>5.2f} x "
            f"{memory >> 20:>4} MiB, output {sizes[name] / 1e6:.1f} MB"
        )


if __name__ == "__main__":
    main()
