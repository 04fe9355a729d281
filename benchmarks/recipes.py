"""Measure the CPU time and memory of converting a dump with each recipe, and without one.

`python benchmarks/recipes.py --size 200MB` prints a table for docs/performance.md.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from make_dump import make_dump
from make_dump import size as parse_size
from measure import Measured, run

PLAIN = "documents"
RECIPES = ("preferences", "pairs", "qa", "messages", "thread", "chunks", "blocks", "hub")


def convert(recipe: str, dump: Path, folder: Path, jobs: str) -> Measured:
    """Convert the dump once, with a recipe or to plain documents, and measure the command."""
    output = folder / "output.jsonl.gz"
    command = [sys.executable, "-m", "so2docs", "convert", str(dump), str(output), "--force"]
    command += ["--quiet", "--jobs", jobs]
    if recipe != PLAIN:
        command += ["--recipe", recipe]
        command += [] if recipe == "hub" else ["--site", "stackoverflow.com"]
    return run(command)


def main() -> None:
    """Make the dump, convert it with each recipe in turn, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", default="200MB", help="size of the dump")
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--rounds", default=3, type=int)
    parser.add_argument("--recipes", default=",".join(RECIPES))
    parser.add_argument("--folder", default="build/bench", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    names = (PLAIN, *options.recipes.split(","))
    with tempfile.TemporaryDirectory(dir=options.folder) as work:
        dump = Path(work) / "Posts.xml"
        make_dump(dump, parse_size(options.size))
        gigabytes = dump.stat().st_size / 1e9
        rounds = [
            {name: convert(name, dump, Path(work), options.jobs) for name in names}
            for _ in range(options.rounds)
        ]
    print("| | CPU s a GB | to documents | peak memory MiB |\n|---|---:|---:|---:|")
    for name in names:
        cpu = min(one[name].cpu for one in rounds)
        ratio = cpu / min(one[PLAIN].cpu for one in rounds)
        memory = max(one[name].memory for one in rounds) / 2**20
        print(f"| {name} | {cpu / gigabytes:.0f} | {ratio:.1f} | {memory:.0f} |")


if __name__ == "__main__":
    main()
