"""Compare conversions of each kind of source with its usual tool and with a bare lxml loop.

`python checks/benchmarks/sources.py --size 1GB --large 45GB --rounds 3 [--only pipe,large]` needs
7z (or 7zz), zstd and gzip. The parts are:

- `file`: a plain file
- `pipe`: a pipe, gzip and zstd
- `bzip2` and `lzma2`: archives with all tables of a site of this size, in the proportions of
  `archives.py`
- `large`: one conversion of a dump that `repeat_dump.py` writes into a pipe; its CPU time is not
  counted

Each round runs the conversion, the tool and the loop one after the other, so other load on the
machine slows down all of them. The loop reads the tables that the conversion reads, but
uncompressed. The program prints a table for `docs/performance.md`: median seconds, peak memory of
all processes together, and the median of the ratios of wall times within a round. Each step is
logged to standard error with a timestamp.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from archives import SEVEN_ZIP, make_site, pack, tell, total
from make_dump import make_dump
from make_dump import size as parse_size
from measure import Measured, run

HERE = Path(__file__).parent
CONVERT = [sys.executable, "-m", "so2docs", "convert", "-q", "--force"]
LOOP = [sys.executable, str(HERE / "contestants.py"), "iterparse"]
LOOP_ON_A_PIPE = 2_000_000_000
BASE = 250_000_000
BZIP2 = {"`.7z`, bzip2, solid, all tables": ["-m0=bzip2", "-ms=on"]}
LZMA2 = {
    "`.7z`, LZMA2, solid, two threads, all tables": ["-m0=lzma2", "-ms=on", "-mmt=2"],
    "`.7z`, LZMA2, level 3, solid, two threads, all tables": [
        *("-m0=lzma2", "-mx=3", "-ms=on", "-mmt=2")
    ],
    "`.7z`, LZMA2, a stream for each table": ["-m0=lzma2", "-ms=off", "-mmt=2"],
}


DISK = {"file": 2.5, "pipe": 3.5, "bzip2": 4.5, "lzma2": 4.5}
"""Disk space for each part, as a multiple of the dump's size: sources, unpacked files, spill and
output."""

DISK_OF_LARGE, UNCOMPRESSED_SPILL = 0.85, 4_000_000_000
"""Disk space for the large dump: for the output and the compressed part of the spill, as a share of
the dump's size; for the uncompressed part of the spill, in bytes."""


@dataclass(slots=True)
class Way:
    """A source to measure.

    Attributes:
        name: Name in the table.
        size: Bytes of XML to read, for seconds per gigabyte.
        convert: Command for the conversion.
        tool: Command that only decompresses the source; None for uncompressed sources.
        loops: Uncompressed files for the lxml loop.
    """

    name: str
    size: int
    convert: list[str]
    tool: list[str] | None
    loops: list[Path]


def shell(command: str) -> list[str]:
    """Make a command that runs a shell pipeline."""
    return ["bash", "-o", "pipefail", "-ec", command]


def posts_ways(part: str, work: Path, size: int) -> Iterator[Way]:
    """Yield the sources with only posts: a file, or, for the part `pipe`, a pipe, gzip and zstd."""
    dump, out = work / "Posts.xml", work / "out.jsonl.gz"
    tell("make posts")
    make_dump(dump, size)
    if part == "file":
        yield Way("a file", size, [*CONVERT, str(dump), str(out)], None, [dump])
        return
    piped = " ".join(f"'{part}'" for part in [*CONVERT, "-", str(out)])
    yield Way("a pipe", size, shell(f"cat '{dump}' | {piped}"), None, [dump])
    for ending, packer, tool in (("gz", "gzip", "gzip -dc"), ("zst", "zstd -q", "zstd -dcq")):
        tell(f"pack: {ending}")
        source = f"{dump}.{ending}"
        subprocess.run(shell(f"{packer} -k '{dump}'"), check=True)
        alone = shell(f"{tool} '{source}' >/dev/null")
        yield Way(f"`.{ending}`", size, [*CONVERT, source, str(out)], alone, [dump])
        Path(source).unlink()


def archive_ways(part: str, work: Path, size: int) -> Iterator[Way]:
    """Yield archives of a site with all tables, in each form of the part."""
    site, archive, unpacked = work / "site", work / "site.7z", work / "x"
    tell("make a site")
    make_site(site, size, 1)
    wanted = [path for path in sorted(site.glob("*.xml")) if path.name != "PostHistory.xml"]
    for name, options in (BZIP2 if part == "bzip2" else LZMA2).items():
        tell(f"pack: {name}")
        pack(archive, site, options)
        threads = "-mmt1" if part == "lzma2" else "-mmt2"
        extract = f"{SEVEN_ZIP} x -y {threads} -o'{unpacked}' '{archive}' >/dev/null"
        tool = shell(f"rm -rf '{unpacked}'; {extract}")
        convert = [*CONVERT, "--nest", "all", str(archive), str(work / "out.jsonl.gz")]
        yield Way(name, size, convert, tool, wanted)
        archive.unlink()


def measure(way: Way, rounds: int) -> str:
    """Run the rounds for a source, and format its row of the table."""
    tell(f"measure: {way.name}")
    converted: list[Measured] = []
    to_tool: list[float] = []
    to_loop: list[float] = []
    for _ in range(rounds):
        took = run(way.convert)
        converted.append(took)
        if way.tool is not None:
            to_tool.append(took.wall / run(way.tool).wall)
        loop = total([run([*LOOP, str(path), "/dev/null.none"]) for path in way.loops])
        to_loop.append(took.wall / loop.wall)
    return line(way.name, way.size, converted, to_tool, to_loop)


def line(
    name: str, size: int, converted: list[Measured], to_tool: list[float], to_loop: list[float]
) -> str:
    """Format a row of the table.

    Args:
        name: Name of the source.
        size: Bytes of XML.
        converted: Measurements of the conversions.
        to_tool: Ratios of wall times to those of the tool.
        to_loop: Ratios of wall times to those of the lxml loop.
    """
    middle: Callable[[list[float]], float] = statistics.median
    wall, cpu = middle([one.wall for one in converted]), middle([one.cpu for one in converted])
    memory = max(one.memory for one in converted) / 2**20
    alone = f"{middle(to_tool):.2f}" if to_tool else ""
    return (
        f"| {name} | {wall:.1f} | {wall / size * 1e9:.1f} | {cpu / size * 1e9:.1f} | {memory:.0f} "
        f"| {alone} | {middle(to_loop):.2f} |"
    )


def large(work: Path, size: int) -> str:
    """Measure a dump of `size` bytes through a pipe once, and format its row of the table."""
    base, out = work / "base.xml", work / "out.jsonl.gz"
    tell("make posts")
    make_dump(base, min(BASE, size))
    tell(f"measure: {size / 1e9:.0f} GB through a pipe")
    converted = through_a_pipe(base, size, [*CONVERT, "-", str(out)])
    least = min(size, LOOP_ON_A_PIPE)
    loop = through_a_pipe(base, least, [*LOOP, "/dev/stdin", "/dev/null.none"])
    ratio = converted.wall / size / (loop.wall / least)
    return line(f"{size / 1e9:.0f} GB through a pipe", size, [converted], [], [ratio])


def through_a_pipe(base: Path, size: int, command: list[str]) -> Measured:
    """Measure a command whose standard input is `base`, repeated up to `size` bytes."""
    repeat = [sys.executable, str(HERE / "repeat_dump.py"), str(base), str(size)]
    with subprocess.Popen(repeat, stdout=subprocess.PIPE) as generator:
        return run(command, stdin=generator.stdout)


def check_disk(work: str | None, parts: list[str], size: int, large: int) -> None:
    """Exit with an error if there is not enough disk space for one of the parts."""
    needs = {part: int(DISK[part] * size) for part in parts if part in DISK}
    if "large" in parts:
        needs["large"] = int(DISK_OF_LARGE * large) + UNCOMPRESSED_SPILL
    folder = work or tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    for part, needed in needs.items():
        if needed > free:
            sys.exit(f"{folder}: {part} needs {needed / 1e9:.1f} GB, {free / 1e9:.1f} GB are free")


def main() -> None:
    """Make the sources, measure them, and print a table."""
    parts = [*DISK, "large"]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(DISK), help=f"parts: {','.join(parts)}")
    parser.add_argument("--size", type=parse_size, default=1_000_000_000)
    parser.add_argument("--large", type=parse_size, help="size of the large dump; adds the part")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--work-dir", help="folder for dumps and outputs (default: the temporary folder)"
    )
    options = parser.parse_args()
    wanted = options.only.split(",")
    if options.large and "large" not in wanted:
        wanted.append("large")
    if unknown := {*wanted} - {*parts}:
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}")
    size_of_large = options.large or 45_000_000_000
    check_disk(options.work_dir, wanted, options.size, size_of_large)
    print("| source | wall s | s a GB | CPU s a GB | MiB | : tool | : lxml loop |")
    print("|---|---:|---:|---:|---:|---:|---:|", flush=True)
    for part in parts:
        if part not in wanted:
            continue
        with tempfile.TemporaryDirectory(dir=options.work_dir) as folder:
            if part == "large":
                print(large(Path(folder), size_of_large), flush=True)
                continue
            make = posts_ways if part in {"file", "pipe"} else archive_ways
            for way in make(part, Path(folder), options.size):
                print(measure(way, options.rounds), flush=True)


if __name__ == "__main__":
    main()
