"""Measure the speed of decompressing and converting a dump, and the number of busy cores.

`python checks/benchmarks/packed.py DUMP.7z`
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from measure import Measured, run

_DECOMPRESS = """
import sys
from so2docs.dump.source import Source
with Source(sys.argv[1]) as source:
    [posts] = source.find_to_convert([], {})
    while posts.open(threads=int(sys.argv[2])).layers.reader.read1(1 << 20):
        pass
"""


def measure(dump: str, cores: int, folder: Path) -> list[tuple[str, Measured]]:
    """Measure each step in a new process; return the measurements with their labels."""
    python, output = sys.executable, folder / "questions.jsonl.gz"
    convert = [python, "-m", "so2docs", "convert", dump, str(output), "--force", "-q"]
    lines = []
    for threads in (1, cores):
        took = run([python, "-c", _DECOMPRESS, dump, str(threads)])
        lines.append((f"decompress, {threads} threads", took))
    library = ["env", "SO2DOCS_CORE=python", python, "-c", _DECOMPRESS, dump, "1"]
    lines.append(("decompress, 1 threads, without the compiled core", run(library)))
    for jobs in (1, cores):
        report = ["--report", str(folder / "report.json")]
        lines.append((f"convert, {jobs} jobs", run([*convert, "--jobs", str(jobs), *report])))
    return lines


def main() -> None:
    """Measure each step, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dump")
    dump = parser.parse_args().dump
    with tempfile.TemporaryDirectory() as folder:
        lines = measure(dump, os.cpu_count() or 1, Path(folder))
        size = json.loads((Path(folder) / "report.json").read_text())["dump_bytes"]
    print("| | wall s | CPU s | cores busy | MB/s of XML |\n|---|---:|---:|---:|---:|")
    for name, took in lines:
        busy, rate = took.cpu / took.wall, size / 1e6 / took.wall
        print(f"| {name} | {took.wall:.1f} | {took.cpu:.1f} | {busy:.2f} | {rate:.0f} |")


if __name__ == "__main__":
    main()
