"""Measure every kind of command on made-up sites of several sizes, to see what grows with size.

`python checks/benchmarks/sizes.py --folder /tmp/sites --sizes 1GB,3GB` writes a site of each size,
half of it posts, runs the commands in turn with two jobs, and prints a row for each: CPU seconds a
GB, those of the first process alone, peak memory, and bytes on the disk, read and written, relative
to the size. `--sizes 1GB,10.9GB` takes an hour and 40 GB of disk space.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from make_dump import size as parse_size
from measure import Measured, run

HERE = Path(__file__).parent
ROWS = {"comments": 1_000, "votes": 3_000, "users": 500, "links": 60, "history": 700}
"""Rows of each table per MB of posts; together, the tables are about as large as the posts."""

COMMANDS: dict[str, list[str]] = {
    "convert": ["convert", "SITE/Posts.xml", "OUT/q.jsonl.gz"],
    "convert --nest all": ["convert", "SITE", "OUT/all.jsonl.gz", "--nest", "all"],
    "convert --as-of": ["convert", "SITE", "OUT/then.jsonl.gz", "--as-of", "2016"],
    "convert --keep-users": ["convert", "SITE", "OUT/k.jsonl.gz", "--keep-users", "OUT/users.txt"],
    "tables": ["tables", "SITE", "OUT/tables"],
    "tables --answered": ["tables", "SITE", "OUT/answered", "--answered"],
    "tables --as-of": ["tables", "SITE", "OUT/tables-then", "--as-of", "2016"],
    "sqlite": ["sqlite", "SITE", "OUT/site.db"],
    "inspect": ["inspect", "SITE"],
    "show": ["show", "OUT/q.jsonl.gz", "ANSWER"],
}


def make_site(folder: Path, size: int) -> Path:
    """Write a site of about `size` bytes unless it exists."""
    site = folder / f"site-{size}"
    if not site.exists():
        site.mkdir(parents=True)
        posts = site / "Posts.xml"
        make_dump = [sys.executable, str(HERE / "make_dump.py"), str(posts)]
        subprocess.run([*make_dump, "--size", str(size // 2)], check=True)
        counts = [
            part
            for name, rows in ROWS.items()
            for part in (f"--{name}", str(rows * size // 2_000_000))
        ]
        subprocess.run([sys.executable, HERE / "make_tables.py", site, *counts], check=True)
    return site


def late_answer(posts: Path) -> str:
    """Return the id of an answer near the end of a dump."""
    with posts.open("rb") as dump:
        dump.seek(max(0, posts.stat().st_size - (1 << 20)))
        rows = [row for row in dump.read().split(b"<row ") if b'PostTypeId="2"' in row]
    return rows[len(rows) // 2].split(b'"')[1].decode()


def measure(name: str, site: Path, out: Path) -> Measured:
    """Run a command on a site."""
    words = [
        word.replace("SITE", str(site))
        .replace("OUT", str(out))
        .replace("ANSWER", late_answer(site / "Posts.xml") if word == "ANSWER" else "")
        for word in COMMANDS[name]
    ]
    jobs = [] if name == "show" else ["--jobs", "2"]
    return run([sys.executable, "-m", "so2docs", *words, *jobs], folder=out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure commands on sites of several sizes.")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--sizes", default="1GB,3GB")
    parser.add_argument("--only", help="names of commands, separated by commas")
    arguments = parser.parse_args()
    print("| site | command | CPU s/GB | parent s/GB | MiB | disk | read | written |")
    print("|---|---|---|---|---|---|---|---|")
    for text in arguments.sizes.split(","):
        site = make_site(arguments.folder, parse_size(text))
        out = arguments.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        (out / "users.txt").write_text("\n".join(map(str, range(1, 1_000_001))))
        total = sum(path.stat().st_size for path in site.iterdir())
        for name in arguments.only.split(",") if arguments.only else COMMANDS:
            result = measure(name, site, out)
            shares = (result.disk / total, result.read / total, result.written / total)
            print(
                f"| {text} | {name} | {result.cpu / total * 1e9:.1f} | "
                f"{result.parent / total * 1e9:.1f} | {result.memory / 2**20:.0f} | "
                f"{' | '.join(f'{share:.2f}' for share in shares)} |",
                flush=True,
            )
