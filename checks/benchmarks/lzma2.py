"""Measure decoders of LZMA2, one thread each: the compiled core, 7-Zip and liblzma.

`python checks/benchmarks/lzma2.py FILE... [--rounds 5]` needs 7z. The files are packed as one block
at levels 1, 3, 5 and 9. The table has the best rates, in MB per CPU second. Build the core with
`CFLAGS=-DSO2DOCS_PORTABLE` to measure it without assembler.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from archives import SEVEN_ZIP
from measure import run

from so2docs.dump.compressed import decompress_streams, lzma_settings, raw_lzma
from so2docs.dump.lzma2 import Method
from so2docs.dump.seven_zip import SevenZip

LEVELS = 1, 3, 5, 9


def rate(size: int, rounds: int, seconds: Callable[[], float]) -> float:
    """Return the best of several rates in MB per second."""
    return size / min(seconds() for _ in range(rounds)) / 1e6


def cpu_seconds(step: Callable[[], int], size: int) -> float:
    """Return the CPU seconds that a step takes, which decompresses `size` bytes."""
    started = time.process_time()
    assert step() == size
    return time.process_time() - started


def rates(archive: Path, rounds: int) -> list[float]:
    """Return the rates of the compiled core, 7-Zip and liblzma."""
    with open(archive, "rb") as file:
        [block] = SevenZip(archive.name, file)._blocks
        file.seek(block.start)
        packed = file.read(block.packed)
    properties, size = block.properties, block.size
    settings = lzma_settings(archive.name, properties, size, is_lzma2=True)
    new = raw_lzma(settings)
    method = Method(new, settings["dict_size"])

    def by_core() -> int:
        return sum(map(len, method.decompress(lambda: io.BytesIO(packed).read)))

    def by_library() -> int:
        return sum(map(len, decompress_streams(io.BytesIO(packed).read, new)))

    return [
        rate(size, rounds, lambda: cpu_seconds(by_core, size)),
        rate(size, rounds, lambda: run([SEVEN_ZIP, "t", "-mmt1", str(archive)]).cpu),
        rate(size, rounds, lambda: cpu_seconds(by_library, size)),
    ]


def main() -> None:
    """Pack the files at each level, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    wanted = parser.parse_args()
    print("| level | compiled core | 7-Zip | liblzma |\n|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for level in LEVELS:
            archive = Path(folder) / f"{level}.7z"
            pack = [SEVEN_ZIP, "a", "-m0=lzma2", f"-mx={level}", "-mmt=1", str(archive)]
            subprocess.run([*pack, *wanted.files], check=True, stdout=subprocess.DEVNULL)
            print(f"| {level} | {' | '.join(f'{r:.0f}' for r in rates(archive, wanted.rounds))} |")


if __name__ == "__main__":
    main()
