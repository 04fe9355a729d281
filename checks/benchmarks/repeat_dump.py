"""Write a dump of any size to standard output, by repeating the rows of a dump with new ids.

    python checks/benchmarks/repeat_dump.py Posts.xml 45GB | so2docs convert - questions.jsonl.gz

The rows are split at their ids only once, so writing a gigabyte takes one CPU second. The input
dump is kept in memory.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import BinaryIO

from make_dump import END
from make_dump import size as parse_size

_IDS = re.compile(rb'( (?:Id|ParentId|AcceptedAnswerId)=")(\d+)')
_ORDINARY = 1_000_000_000
_PART_IDS = 20_000


def repeat(dump: bytes, size: int, out: BinaryIO) -> None:
    """Write a dump of at least `size` bytes, by repeating the rows of `dump` with new ids."""
    start, end = dump.index(b"<row"), dump.rindex(END)
    pieces = _IDS.split(dump[start:end])
    texts = [a + b for a, b in zip(pieces[::3], [*pieces[1::3], b""], strict=True)]
    ids = [*map(int, pieces[2::3])]
    step = 1 + max(number for number in ids if number < _ORDINARY)
    out.write(dump[:start])
    written = shift = 0
    while written < size:
        for at in range(0, len(ids), _PART_IDS):
            numbers = [b"%d" % (number + shift) for number in ids[at : at + _PART_IDS]]
            joined: list[bytes] = [b""] * (2 * len(numbers))
            joined[::2], joined[1::2] = texts[at : at + len(numbers)], numbers
            written += out.write(b"".join(joined))
        written += out.write(texts[-1])
        shift += step
    out.write(END)


def main() -> None:
    """Repeat the dump named on the command line, up to the size given there."""
    path, size = sys.argv[1:]
    repeat(Path(path).read_bytes(), parse_size(size), sys.stdout.buffer)


if __name__ == "__main__":
    main()
