"""Measure three ways to process archives: unpack, unpack and convert, and convert directly.

`python checks/benchmarks/archives.py --size 300MB --size 1GB --sites 40 [--rounds 3]` needs 7z.
Generated posts and tables, in the proportions of a small site, are packed in three forms: one solid
bzip2 block, as in published archives; one solid LZMA2 block; and one bzip2 block for each member.
Each round measures the three ways one after the other, so other load on the machine slows down all
of them. Packing and bzip2 take most of the time. Each step is logged to standard error with a
timestamp.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from make_dump import size
from measure import Measured, run

HERE = Path(__file__).parent
SEVEN_ZIP = shutil.which("7z") or shutil.which("7zz") or "7z"
FORMS = {
    "bzip2, solid": ["-m0=bzip2", "-ms=on"],
    "LZMA2, solid": ["-m0=lzma2", "-ms=on"],
    "LZMA2, level 3, solid, packed by two threads": ["-m0=lzma2", "-ms=on", "-mx=3", "-mmt=2"],
    "bzip2, a block for each member": ["-m0=bzip2", "-ms=off"],
}
POSTS, HISTORY = 0.3, 0.35
"""Shares of posts and history in the bytes of a site. Conversions skip the history, which they do
not request."""

ROWS = {"comments": 0.12 / 380, "links": 0.005 / 110, "votes": 0.12 / 95, "users": 0.1 / 260}
"""Rows of each table per byte of a site: the share of the table, divided by the size of a row."""

SITE_BYTES = 18_000_000
DIFFERENT_SITES = 4


def make_site(folder: Path, site_bytes: int, seed: int) -> None:
    """Write the files of a site of about `site_bytes` bytes."""
    folder.mkdir(parents=True)
    for name, share, number in (("Posts", POSTS, seed), ("PostHistory", HISTORY, seed + 1000)):
        path, part = folder / f"{name}.xml", str(int(site_bytes * share))
        arguments = [str(path), "--size", part, "--seed", str(number)]
        command = [sys.executable, str(HERE / "make_dump.py"), *arguments]
        subprocess.run(command, check=True, stdout=sys.stderr)
    rows = [f"--{name}={max(1, int(site_bytes * share))}" for name, share in ROWS.items()]
    command = [sys.executable, str(HERE / "make_tables.py"), str(folder), f"--seed={seed}"]
    subprocess.run([*command, *rows], check=True)


def pack(archive: Path, folder: Path, options: list[str]) -> None:
    """Pack the XML files of a site, sorted by name, with these options of 7z."""
    files = sorted(folder.glob("*.xml"))
    subprocess.run(
        [SEVEN_ZIP, "a", *options, archive, *files], check=True, stdout=subprocess.DEVNULL
    )


def total(measured: list[Measured]) -> Measured:
    """Combine measurements of consecutive commands: the sum of times, and the maximum of memory."""
    seconds = sum(one.wall for one in measured), sum(one.cpu for one in measured)
    return Measured(*seconds, max(one.memory for one in measured), "")


def ways(archives: list[Path], work: Path) -> dict[str, list[Measured]]:
    """Measure each way once: unpack, unpack and convert the folders, and convert the archives.

    Returns:
        The measurement of each way, in a list, by its name in the table.

    """
    out, converter = (
        work / "out",
        [sys.executable, "-m", "so2docs", "convert", "-q", "--nest", "all"],
    )
    shutil.rmtree(out, ignore_errors=True)
    unpack = [
        f"{SEVEN_ZIP} x -y -o'{out / 'x' / path.stem}' '{path}' >/dev/null" for path in archives
    ]
    unpacked = run(["sh", "-ec", "\n".join(unpack)])
    folders = [str(out / "x" / path.stem) for path in archives]
    if len(archives) == 1:
        folder = run([*converter, *folders, str(out / "folder.jsonl.gz")])
        directly = run([*converter, str(archives[0]), str(out / "archive.jsonl.gz")])
        made = [out / "folder.jsonl.gz", out / "archive.jsonl.gz"]
    else:
        folder = run([*converter, *folders, "--output-dir", str(out / "1")])
        directly = run([*converter, *map(str, archives), "--output-dir", str(out / "2")])
        made = [out / number / f"{archives[-1].stem}.jsonl.gz" for number in "12"]
    assert made[0].read_bytes() == made[1].read_bytes()
    both = total([unpacked, folder])
    return {"`7z x`": [unpacked], "`7z x`, then the folder": [both], "the archive": [directly]}


def show(name: str, rounds: list[dict[str, list[Measured]]]) -> None:
    """Print a table row for each way: its medians, and their ratios to the medians of `7z x`."""
    medians = {}
    for way in rounds[0]:
        took = [measured for found in rounds for measured in found[way]]
        medians[way] = [
            statistics.median(one.wall for one in took),
            statistics.median(one.cpu for one in took),
            max(one.memory for one in took) / 2**20,
        ]
    base = medians["`7z x`"]
    for way, (wall, cpu, memory) in medians.items():
        ratios = f"{wall / base[0]:.2f} | {cpu / base[1]:.2f}"
        print(f"| {name} | {way} | {wall:.1f} | {cpu:.1f} | {ratios} | {memory:.0f} |", flush=True)


def tell(what: str) -> None:
    """Print the time of day and the next step to standard error."""
    print(time.strftime("%H:%M:%S"), what, file=sys.stderr, flush=True)


def main() -> None:
    """Make the archives, measure the three ways, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--size", type=size, action="append", help="size of a large site; can be repeated"
    )
    parser.add_argument("--sites", type=int, default=40, help="number of small sites")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--work-dir", help="folder for archives and outputs (default: the temporary folder)"
    )
    wanted = parser.parse_args()
    print("| archive | way | wall s | CPU s | wall : 7z | CPU : 7z | MiB |")
    print("|---|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory(dir=wanted.work_dir) as folder:
        work = Path(folder)
        for site_bytes in wanted.size or [300_000_000]:
            tell(f"a site of {site_bytes / 1e6:,.0f} MB")
            make_site(work / "large", site_bytes, 1)
            for name, options in FORMS.items():
                archive = work / "large.7z"
                tell(f"pack: {name}")
                pack(archive, work / "large", options)
                tell(f"measure: {name}")
                label = f"{site_bytes / 1e6:,.0f} MB, {name}"
                show(label, [ways([archive], work) for _ in range(wanted.rounds)])
                archive.unlink()
            shutil.rmtree(work / "large")
        if wanted.sites:
            tell(f"{wanted.sites} sites")
            archives: list[Path] = []
            for number in range(wanted.sites):
                archive = work / f"site{number}.7z"
                if number < DIFFERENT_SITES:
                    make_site(work / f"s{number}", SITE_BYTES, number + 2)
                    pack(archive, work / f"s{number}", FORMS["bzip2, solid"])
                else:
                    shutil.copy(archives[number % DIFFERENT_SITES], archive)
                archives.append(archive)
            name = f"{wanted.sites} sites, bzip2, solid"
            show(name, [ways(archives, work) for _ in range(wanted.rounds)])


if __name__ == "__main__":
    main()
