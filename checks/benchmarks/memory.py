"""Measure the peak memory of converting a small and a large dump, with rows in each order.

Memory is summed over all processes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from make_dump import make_dump
from make_dump import size as parse_size
from run import so2docs_line


def main() -> None:
    """Make, convert and delete each dump, and print a row of figures for it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="300MB", help="size of the smaller dump")
    parser.add_argument("--times", default=8, type=int, help="ratio of the sizes of the dumps")
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--folder", default="build/bench", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    small = parse_size(options.size)
    print("| order | MB | peak MiB | MB/s | spill / dump | output / dump |")
    print("|---|---:|---:|---:|---:|---:|")
    for order in ("sorted", "grouped", "shuffled"):
        for size in (small, small * options.times):
            dump = options.folder / f"memory-{order}.xml"
            make_dump(dump, size, order=order)
            line = so2docs_line(order, dump, options.folder, ["--jobs", options.jobs])
            print(
                f"| {order} | {size / 1e6:.0f} | {(line.memory or 0) / 2**20:.0f} "
                f"| {size / 1e6 / line.wall:.0f} | {(line.spill or 0) / size:.2f} "
                f"| {(line.output or 0) / size:.2f} |",
                flush=True,
            )
            dump.unlink()


if __name__ == "__main__":
    main()
