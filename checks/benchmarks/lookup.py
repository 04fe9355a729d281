"""Measure look-ups in an output, the size and rebuilding of its index, and `so2docs inspect`.

    python checks/benchmarks/make_dump.py /tmp/Posts.xml --size 3GB
    so2docs convert /tmp/Posts.xml /tmp/questions.jsonl.gz
    python checks/benchmarks/lookup.py /tmp/questions.jsonl.gz
    python checks/benchmarks/lookup.py /tmp/questions.jsonl.gz --dump /tmp/Posts.xml  # converts too

Before each cold look-up, the output and its index are dropped from the page cache, and the output
is reopened. CPU time covers all processes. On a busy machine, it is more reliable than wall time.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

import so2docs
from so2docs.output import writer
from so2docs.output.file import Output
from so2docs.output.index import index_path
from so2docs.reader.collection import Collection
from so2docs.reader.reading import SegmentReader


def some_ids(path: str, number: int, seed: int) -> list[int]:
    """Choose `number` question ids at random positions in an output."""
    choice = random.Random(seed)
    reader = SegmentReader(path)
    with so2docs.open(path) as docs:
        ids = []
        for _ in range(number):
            lines = reader.read(docs.index[choice.randrange(docs.index.count)]).splitlines()
            ids.append(orjson.loads(choice.choice(lines))["Id"])
    reader.close()
    return ids


def forget(*paths: str) -> None:
    """Evict files from the page cache."""
    for path in paths:
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def report(label: str, times: list[tuple[float, float]]) -> None:
    """Print a line with the median and 95th percentile of wall times, and the median CPU time.

    Args:
        label: Start of the line.
        times: Wall and CPU seconds of each run.
    """
    wall = sorted(seconds for seconds, _ in times)
    processor = statistics.median(seconds for _, seconds in times)
    middle, slow = statistics.median(wall), wall[int(len(wall) * 0.95)]
    print(
        f"{label:<38} median {middle * 1e3:7.2f} ms   95 % {slow * 1e3:7.2f} ms   "
        f"CPU, median {processor * 1e3:7.2f} ms   ({len(wall)})"
    )


def processor_time() -> float:
    """Return the CPU seconds that this process and its finished children have used."""
    return sum(os.times()[2:4]) + time.process_time()


def timed(function: Any, *arguments: Any) -> tuple[float, float]:
    """Call a function; return the wall time and CPU time of the call in seconds."""
    begun, used = time.perf_counter(), processor_time()
    function(*arguments)
    return time.perf_counter() - begun, processor_time() - used


def open_and_find(path: str, question_id: int) -> None:
    """Open an output and look up one document, as a separate program would."""
    with Collection(path) as docs:
        assert docs[question_id]["Id"] == question_id


def lookups(path: str) -> None:
    """Measure look-ups with a cold and a warm page cache, and print the figures."""
    index = index_path(path)
    cold = []
    for question_id in some_ids(path, 100, seed=1):
        forget(path, index)
        cold.append(timed(open_and_find, path, question_id))
    report("open, and look up, cold", cold)
    ids = some_ids(path, 300, seed=2)
    for question_id in ids:
        open_and_find(path, question_id)
    report("open, and look up, warm", [timed(open_and_find, path, number) for number in ids])
    with Collection(path) as docs:
        report("look up in an open output, warm", [timed(docs.__getitem__, n) for n in ids])
        close = ids[-1]
        report("the same segment again", [timed(docs.__getitem__, close) for _ in range(300)])
        missing = [number for number in range(close - 2000, close + 2000) if number not in docs]
        report("an id that does not exist", [timed(docs.get, number) for number in missing[:300]])
    command = [sys.executable, "-m", "so2docs", "show", path]
    shown = [
        timed(lambda n: subprocess.run([*command, str(n)], stdout=subprocess.PIPE, check=True), n)
        for n in ids[:10]
    ]
    report("so2docs show, the whole command", shown)


def index_figures(path: str) -> None:
    """Print the size of the index and the time to rebuild it."""
    index = Path(index_path(path))
    written = index.read_bytes()
    share = len(written) / os.path.getsize(path)
    with so2docs.open(path) as docs:
        print(
            f"{os.path.getsize(path) / 1e9:.2f} GB, {len(docs):,} documents, "
            f"{docs.index.count:,} segments; index {len(written):,} bytes ({share:.4%})"
        )
    index.unlink()
    wall, used = timed(lambda: so2docs.open(path).close())
    same = index.read_bytes() == written
    print(f"index rebuilt in {wall:.1f} s, {used:.1f} s CPU, same bytes: {same}")


def resident(process: int) -> int:
    """Return the resident bytes of a process and all its descendants."""
    total = 0
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        total = pages * os.sysconf("SC_PAGE_SIZE") + sum(resident(int(child)) for child in children)
    except OSError:
        pass  # The process has exited.
    return total


def run(label: str, *command: str) -> float:
    """Run a Python command, and print its times and peak memory; return its CPU seconds."""
    before, begun = os.times(), time.perf_counter()
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL)
    most = 0
    while process.poll() is None:
        most = max(most, resident(process.pid))
        time.sleep(0.05)
    assert process.returncode == 0
    wall, after = time.perf_counter() - begun, os.times()
    cpu = sum(after[2:4]) - sum(before[2:4])
    print(f"{label:<44} {wall:6.1f} s wall, {cpu:6.1f} s CPU, {most / 2**20:4.0f} MiB")
    return cpu


@contextmanager
def scratch() -> Iterator[str]:
    """Yield a path for a temporary output, which is removed at the end."""
    folder = tempfile.mkdtemp(prefix="lookup-", dir=os.environ.get("TMPDIR"))
    try:
        yield os.path.join(folder, "questions.jsonl.gz")
    finally:
        shutil.rmtree(folder)


class WithoutIndex(Output):
    """An output for which no index is written."""

    def __init__(self, *arguments: Any, indexed: bool = False, **options: Any) -> None:
        super().__init__(*arguments, indexed=False, **options)


def conversions(dump: str, times: int) -> None:
    """Measure conversions with and without an index alternately; print the ratio of CPU times."""
    ways = {"with": [str(Path(__file__)), "--convert", dump]}
    ways["without"] = [*ways["with"], "--without-index"]
    cpu: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(times):
        for way, command in ways.items():
            cpu[way].append(run(f"convert {way} index", *command))
    ratio = statistics.median(cpu["with"]) / statistics.median(cpu["without"])
    print(f"CPU time with an index / without: {ratio:.3f}")


def main() -> None:
    """Run the measurements selected on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("output", nargs="?")
    parser.add_argument("--dump", help="convert this dump with and without an index")
    parser.add_argument("--times", type=int, default=3, help="number of conversions of each kind")
    parser.add_argument("--convert", help=argparse.SUPPRESS)
    parser.add_argument("--without-index", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.convert:
        if options.without_index:
            setattr(writer, "Output", WithoutIndex)  # noqa: B010
        with scratch() as output:
            so2docs.convert(options.convert, output)
        return
    if options.output:
        index_figures(options.output)
        lookups(options.output)
        run("so2docs inspect", "-m", "so2docs", "inspect", options.output)
    if options.dump:
        conversions(options.dump, options.times)


if __name__ == "__main__":
    main()
