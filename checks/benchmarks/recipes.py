"""Measure the CPU time and memory of what people make of a dump, relative to plain documents.

`make bench-recipes` prints a table for docs/performance.md: each recipe, documents as Parquet, and
a database from documents. All are made in turn in each round, so that a slow minute of the machine
affects all of them.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median

from make_dump import make_dump
from make_dump import size as parse_size
from measure import Measured, run

DOCUMENTS, PARQUET, SQLITE = "documents", "documents as Parquet", "`sqlite` from documents"
RECIPES = ("thread", "qa", "messages", "pairs", "preferences", "chunks", "hub")


def make(name: str, dump: Path, jobs: str) -> Measured:
    """Make documents, a database or the records of a recipe, and measure the command."""
    documents = dump.with_name("documents.jsonl.gz")
    if name == SQLITE:
        return so2docs("sqlite", documents, dump.with_name("q.db"), jobs)
    if name == DOCUMENTS:
        return so2docs("convert", dump, documents, jobs)
    if name == PARQUET:
        return so2docs("convert", dump, dump.with_name("q.parquet"), jobs)
    site = () if name == "hub" else ("--site", "stackoverflow.com")
    output = dump.with_name("records.jsonl.gz")
    return so2docs("convert", dump, output, jobs, "--recipe", name, *site)


def so2docs(command: str, source: Path, output: Path, jobs: str, *options: str) -> Measured:
    """Run a command that makes an output from a source, and measure it."""
    paths = [str(source), str(output)]
    settings = ["--force", "--quiet", "--jobs", jobs, *options]
    return run([sys.executable, "-m", "so2docs", command, *paths, *settings])


def main() -> None:
    """Make the dump, make everything from it in each round, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", default="100MB", help="size of the dump")
    parser.add_argument("--jobs", default="1")
    parser.add_argument("--rounds", default=3, type=int)
    parser.add_argument("--recipes", default=",".join(RECIPES))
    parser.add_argument("--folder", default="build/bench", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    names = (DOCUMENTS, PARQUET, SQLITE, *filter(None, options.recipes.split(",")))
    with tempfile.TemporaryDirectory(dir=options.folder) as work:
        dump = Path(work) / "Posts.xml"
        make_dump(dump, parse_size(options.size))
        gigabytes = dump.stat().st_size / 1e9
        rounds = [
            {name: make(name, dump, options.jobs) for name in names} for _ in range(options.rounds)
        ]
    print("| | CPU s per GB | relative to documents | peak memory MiB |\n|---|---:|---:|---:|")
    for name in names:
        cpu = min(one[name].cpu for one in rounds)
        ratio = median(one[name].cpu / one[DOCUMENTS].cpu for one in rounds)
        memory = max(one[name].memory for one in rounds) / 2**20
        label = f"`{name}`" if name in RECIPES else name
        print(f"| {label} | {cpu / gigabytes:.0f} | {ratio:.1f} | {memory:.0f} |")


if __name__ == "__main__":
    main()
