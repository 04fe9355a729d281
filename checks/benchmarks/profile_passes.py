"""`make profile`: measure the CPU time of the steps of each pass, with one worker.

The functions of both passes are timed with the CPU clock, in one process. The time of a function
includes the functions that it calls.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import so2docs
from so2docs import merge
from so2docs.output import formats, segments
from so2docs.parse import core, id_set, posts, rows
from so2docs.pipeline import bucket
from so2docs.scan import table
from so2docs.store import blocks

STEPS: list[tuple[Any, str, str]] = [
    (table, "read_chunk", "first pass"),
    (rows, "_parse_plain", "  parse: lxml"),
    (rows, "_is_plain", "  look for text between rows"),
    (posts, "add", "  rows -> posts: types, JSON, buckets"),
    (blocks.BlockWriter, "write", "  blocks: zstd, write"),
    (core, "add_fast", "  compiled core: the three lines above"),
    (id_set, "to_pages", "  repeated ids"),
    (bucket, "merge_bucket", "second pass"),
    (blocks.BlockReader, "read", "  blocks: read, checksum, zstd"),
    (merge, "gather", "  keys and blocks, without the compiled core"),
    (bucket, "join_records", "  compiled core: documents joined"),
    (formats, "compress", "  compress segments"),
    (segments, "store", "  write segments, by several jobs"),
]


def timed(
    seconds: dict[str, float], label: str, function: Callable[..., Any]
) -> Callable[..., Any]:
    """Wrap a function so that each call adds its CPU time to `seconds[label]`."""

    def call(*arguments: Any, **options: Any) -> Any:
        started = time.process_time()
        try:
            return function(*arguments, **options)
        finally:
            seconds[label] += time.process_time() - started

    return call


def main() -> None:
    """Convert the dump named on the command line, and print the CPU time of each step."""
    seconds: dict[str, float] = defaultdict(float)
    for owner, name, label in STEPS:
        setattr(owner, name, timed(seconds, label, getattr(owner, name)))
    with tempfile.TemporaryDirectory(dir=Path(sys.argv[1]).parent) as folder:
        started = time.process_time()
        report = so2docs.convert(sys.argv[1], Path(folder) / "questions.jsonl.gz", jobs=1)
        total = time.process_time() - started
    for _, _, label in STEPS:
        print(f"{label:<40} {seconds[label]:7.2f} s {seconds[label] / total:6.1%}")
    print(f"{'all':<40} {total:7.2f} s of CPU for {report.dump_bytes / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
