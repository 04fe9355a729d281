"""`make bench`: measure so2docs, its lower bounds and the alternatives in one run.

The program prints a table, with ratios to so2docs on all cores, and can write it as JSON. The floor
is a bare lxml iterparse of the dump plus ISA-L level 2 over the documents, divided perfectly among
the cores. The unavoidable part is the work of any such conversion: rows to JSON in C, one copy, and
ISA-L. A conversion with one job and the unavoidable part are measured in turn, a few times, because
the speed of shared cores changes by a quarter within minutes: single measurements, a minute apart,
gave ratios of 1.33 and 1.77 on one machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from contestants import CONTESTANTS, is_installed
from make_dump import make_dump
from make_dump import size as parse_size
from measure import Measured, run

from so2docs.parse.core import built

HERE = Path(__file__).parent
_GREEDY = {"in_memory", "clickhouse", "duckdb"}
_PAIRS = 3


@dataclass(slots=True)
class Line:
    """A row of the table: times in seconds, sizes in bytes; None for values that do not apply."""

    name: str
    wall: float
    cpu: float | None = None
    memory: int | None = None
    spill: int | None = None
    output: int | None = None


@dataclass(slots=True)
class Pair:
    """A conversion with one job, and the CPU seconds of the unavoidable steps run after it."""

    job: Line
    converting: float
    packing: float

    @property
    def least(self) -> float:
        """CPU seconds of the unavoidable part."""
        return self.converting + self.packing

    @property
    def ratio(self) -> float:
        """CPU time of the conversion, as a multiple of that of the unavoidable part."""
        assert self.job.cpu is not None
        return self.job.cpu / self.least


def so2docs_line(name: str, dump: Path, folder: Path, arguments: list[str]) -> Line:
    """Convert the dump with the so2docs command, and return the row of the table.

    Args:
        name: Name in the table.
        dump: The dump.
        folder: Folder for the output.
        arguments: Additional arguments of the command.
    """
    output, report = folder / "so2docs.jsonl.gz", folder / "report.json"
    command = [sys.executable, "-m", "so2docs", "convert", str(dump), str(output), "--force", "-q"]
    took = run([*command, "--report", str(report), *arguments])
    done = json.loads(report.read_text())
    return Line(name, took.wall, took.cpu, took.memory, done["spill_bytes"], done["output_bytes"])


def contestant(name: str, dump: Path, folder: Path) -> tuple[Line, Measured]:
    """Run a contestant; return its row of the table and its measurement."""
    output = folder / f"{name}.jsonl.gz"
    took = run([sys.executable, str(HERE / "contestants.py"), name, str(dump), str(output)])
    size = output.stat().st_size if output.exists() else None
    output.unlink(missing_ok=True)
    return Line(name, took.wall, took.cpu, took.memory, None, size), took


def pair(dump: Path, folder: Path) -> Pair:
    """Convert with one job, and measure the unavoidable part for the same dump and output."""
    job = so2docs_line("the same, 1 job", dump, folder, ["--jobs", "1"])
    packing = float(contestant("compress", folder / "so2docs.jsonl.gz", folder)[1].stdout)
    converting = 0.0
    if built() == "compiled":
        converting = float(contestant("rows_to_json", dump, folder)[1].stdout)
    return Pair(job, converting, packing)


def measure(dump: Path, folder: Path, names: list[str]) -> tuple[list[Line], list[Pair]]:
    """Measure all rows of the table one after the other.

    Returns:
        The rows, and the pairs whose median is in the table.
    """
    cores = os.cpu_count() or 1
    # Read the dump, so that every measurement starts with a warm page cache.
    dump.read_bytes() if dump.stat().st_size < 2e9 else None
    lines = [so2docs_line(f"so2docs, {built()} core, {cores} jobs", dump, folder, [])]
    pairs = [pair(dump, folder) for _ in range(_PAIRS)]
    middle = sorted(pairs, key=lambda one: one.ratio)[len(pairs) // 2]
    lines.append(middle.job)
    if built() == "compiled":
        python = ["--core", "python"]
        lines.append(so2docs_line(f"so2docs, Python core, {cores} jobs", dump, folder, python))
        lines.append(so2docs_line("the same, 1 job", dump, folder, [*python, "--jobs", "1"]))
    parse, _ = contestant("iterparse", dump, folder)
    packing = middle.packing
    lines += [parse, Line("ISA-L 2 of the output", packing, packing)]
    lines.append(Line(f"floor on {cores} cores", (parse.wall + packing) / cores))
    if built() == "compiled":
        least = middle.least
        lines.append(Line("unavoidable: rows to JSON in C, a copy, ISA-L", least / cores, least))
    for name in names:
        if not is_installed(name):
            print(f"{name}: not installed, left out (pip install chdb duckdb)", file=sys.stderr)
            continue
        lines.append(contestant(name, dump, folder)[0])
    return lines, pairs


def table(lines: list[Line], dump_bytes: int) -> str:
    """Format the rows as a Markdown table, with ratios to the first one."""

    def size(value: int | None, unit: float) -> str:
        return "" if value is None else f"{value / unit:.0f}"

    rows = [
        "| | wall s | ratio | CPU s | MB/s | peak MiB | spill MB | output MB |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for line in lines:
        cpu = "" if line.cpu is None else f"{line.cpu:.1f}"
        rows.append(
            f"| {line.name} | {line.wall:.1f} | {line.wall / lines[0].wall:.2f} | {cpu} "
            f"| {dump_bytes / 1e6 / line.wall:.0f} | {size(line.memory, 2**20)} "
            f"| {size(line.spill, 1e6)} | {size(line.output, 1e6)} |"
        )
    return "\n".join(rows)


def ratios(pairs: list[Pair]) -> str:
    """Format the median and all ratios of CPU times of a job and the unavoidable part."""
    found = sorted(one.ratio for one in pairs)
    each = ", ".join(f"{ratio:.2f}" for ratio in found)
    return f"CPU of 1 job / unavoidable: {median(found):.2f} (median of {len(found)} pairs: {each})"


def main() -> None:
    """Make the dump, measure all programs, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="1GB", help="size of the generated dump")
    parser.add_argument("--order", default="sorted", choices=["sorted", "grouped", "shuffled"])
    parser.add_argument("--folder", default="build/bench", type=Path)
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--only-so2docs", action="store_true", help="leave out the alternatives")
    parser.add_argument("--keep-users", metavar="IDS", help="also measure with this option")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    dump = options.folder / f"{options.size}-{options.order}.xml"
    if not dump.exists():
        make_dump(dump, parse_size(options.size), order=options.order)
    names = [] if options.only_so2docs else [name for name in CONTESTANTS if name in _GREEDY]
    lines, pairs = measure(dump, options.folder, names)
    if options.keep_users:
        part = ["--keep-users", options.keep_users]
        lines.append(so2docs_line(f"so2docs {' '.join(part)}", dump, options.folder, part))
    print(f"{dump.stat().st_size / 1e9:.2f} GB, {options.order}; {os.cpu_count()} cores, ", end="")
    print(f"{platform.machine()}, Python {platform.python_version()}\n")
    print(table(lines, dump.stat().st_size))
    if built() == "compiled":
        print(f"\n{ratios(pairs)}")
    if options.json:
        found = {"lines": [*map(asdict, lines)], "pairs": [*map(asdict, pairs)]}
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
