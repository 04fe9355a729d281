"""Measure each kind of source, against its tool alone and a bare lxml loop, in turns.

`python benchmarks/sources.py --size 1GB --large 45GB --rounds 3`; needs 7z, zstd, gzip. Posts come
from a file, a pipe, gzip and zstd; archives hold all tables of a site of the same size, in the
shares of `archives.py`. In each round, conversion, tool and loop follow each other, so a busy
neighbour slows all of them. The loop reads the uncompressed tables that the conversion reads. The
large dump is written into a pipe by `repeat_dump.py`, whose CPU is not counted, and converted once.
The result is a table for `docs/performance.md`; steps and times go to standard error.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from archives import make_site, pack, tell
from make_dump import make_dump
from make_dump import size as parse_size
from measure import Measured, run

HERE = Path(__file__).parent
CONVERT = [sys.executable, "-m", "so2docs", "convert", "-q", "--force"]
LOOP = [sys.executable, str(HERE / "contestants.py"), "iterparse"]
LOOP_ON_A_PIPE = 2_000_000_000
BASE = 250_000_000
ARCHIVES = {
    "`.7z`, bzip2, solid, all tables": ["-m0=bzip2", "-ms=on"],
    "`.7z`, LZMA2, solid, two threads, all tables": ["-m0=lzma2", "-ms=on", "-mmt=2"],
    "`.7z`, LZMA2, level 3, solid, two threads, all tables": [
        *("-m0=lzma2", "-mx=3", "-ms=on", "-mmt=2")
    ],
    "`.7z`, LZMA2, a stream for each table": ["-m0=lzma2", "-ms=off", "-mmt=2"],
}


@dataclass(slots=True)
class Way:
    """A source of a dump.

    Attributes:
        name: Name in the table.
        size: Bytes of XML to read, for CPU seconds a gigabyte.
        convert: Command for the conversion.
        tool: Command for the decompression alone, or None.
        loops: Files for the lxml loop.
    """

    name: str
    size: int
    convert: list[str]
    tool: list[str] | None
    loops: list[Path]


def shell(command: str) -> list[str]:
    """Make a command of a pipeline."""
    return ["bash", "-o", "pipefail", "-ec", command]


def posts_ways(work: Path, size: int) -> list[Way]:
    """Make sources of posts: a file, a pipe, gzip and zstd."""
    dump, out = work / "Posts.xml", work / "out.jsonl.gz"
    tell("make posts")
    make_dump(dump, size)
    packed = {"gz": "gzip -dc", "zst": "zstd -dcq"}
    tell("pack: gzip, zstd")
    subprocess.run(shell(f"gzip -k '{dump}'; zstd -q -k '{dump}'"), check=True)
    piped = " ".join(f"'{part}'" for part in [*CONVERT, "-", str(out)])
    ways = [
        Way("a file", size, [*CONVERT, str(dump), str(out)], None, [dump]),
        Way("a pipe", size, shell(f"cat '{dump}' | {piped}"), None, [dump]),
    ]
    for ending, tool in packed.items():
        source = f"{dump}.{ending}"
        alone = shell(f"{tool} '{source}' >/dev/null")
        ways.append(Way(f"`.{ending}`", size, [*CONVERT, source, str(out)], alone, [dump]))
    return ways


def archive_ways(work: Path, size: int) -> list[Way]:
    """Make archives of a site with all tables."""
    site, ways = work / "site", []
    tell("make a site")
    make_site(site, size, 1)
    wanted = [path for path in sorted(site.glob("*.xml")) if path.name != "PostHistory.xml"]
    for number, (name, options) in enumerate(ARCHIVES.items()):
        archive = work / f"{number}.7z"
        tell(f"pack: {name}")
        pack(archive, site, options)
        threads = "-mmt1" if "LZMA2" in name else "-mmt2"
        tool = shell(f"rm -rf '{work}/x'; 7z x -y {threads} -o'{work}/x' '{archive}' >/dev/null")
        convert = [*CONVERT, "--with", "all", str(archive), str(work / "out.jsonl.gz")]
        ways.append(Way(name, size, convert, tool, wanted))
    return ways


def total(measured: list[Measured]) -> Measured:
    """Measurements of commands that ran one after the other."""
    seconds = sum(one.wall for one in measured), sum(one.cpu for one in measured)
    return Measured(*seconds, max(one.memory for one in measured), "")


def measure(way: Way, rounds: int) -> str:
    """Format a line of the table: medians, and the median of the ratios within a round."""
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
    """Format a line of the table."""
    middle: Callable[[list[float]], float] = statistics.median
    wall, cpu = middle([one.wall for one in converted]), middle([one.cpu for one in converted])
    memory = max(one.memory for one in converted) / 2**20
    alone = f"{middle(to_tool):.2f}" if to_tool else ""
    return (
        f"| {name} | {wall:.1f} | {wall / size * 1e9:.1f} | {cpu / size * 1e9:.1f} | {memory:.0f} "
        f"| {alone} | {middle(to_loop):.2f} |"
    )


def large(work: Path, size: int) -> str:
    """Measure a large dump through a pipe, and format its line."""
    base, out = work / "base.xml", work / "out.jsonl.gz"
    tell(f"measure: {size / 1e9:.0f} GB through a pipe")
    make_dump(base, BASE)
    converted = through_a_pipe(base, size, [*CONVERT, "-", str(out)])
    least = min(size, LOOP_ON_A_PIPE)
    loop = through_a_pipe(base, least, [*LOOP, "/dev/stdin", "/dev/null.none"])
    ratio = converted.wall / size / (loop.wall / least)
    return line(f"{size / 1e9:.0f} GB through a pipe", size, [converted], [], [ratio])


def through_a_pipe(base: Path, size: int, command: list[str]) -> Measured:
    """Run a command with a dump of n bytes as standard input."""
    repeat = [sys.executable, str(HERE / "repeat_dump.py"), str(base), str(size)]
    with subprocess.Popen(repeat, stdout=subprocess.PIPE) as generator:
        return run(command, stdin=generator.stdout)


def main() -> None:
    """Make the sources, measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=parse_size, default=1_000_000_000)
    parser.add_argument("--large", type=parse_size, help="also convert a dump of this size")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--work-dir", help="for dumps and outputs; the temporary folder if left out"
    )
    options = parser.parse_args()
    print("| source | wall s | s a GB | CPU s a GB | MiB | : tool | : lxml loop |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory(dir=options.work_dir) as folder:
        for make in (posts_ways, archive_ways):
            for way in make(Path(folder), options.size):
                print(measure(way, options.rounds), flush=True)
        if options.large:
            print(large(Path(folder), options.large), flush=True)


if __name__ == "__main__":
    main()
