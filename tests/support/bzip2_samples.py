"""Data to be compressed with bzip2 in tests and by fuzzers.

`python -m support.bzip2_samples FOLDER` writes seeds for `checks/fuzz/fuzz_bzip2.c`.
"""

import bz2
import random
import sys
from pathlib import Path

ROWS = b"".join(
    b'  <row Id="%d" PostTypeId="1" Body="&lt;p&gt;%d&lt;/p&gt;" />\r\n' % (n, n * n)
    for n in range(40_000)
)


BLOCK, END = 0x314159265359, 0x177245385090
"""The numbers that start a block and end a stream."""


def find_numbers(data: bytes) -> list[tuple[int, int]]:
    """Return each number that marks a block or the end of a stream, after its bit position."""
    bits = f"{int.from_bytes(data, 'big'):0{8 * len(data)}b}"
    numbers = []
    for number in (BLOCK, END):
        at = bits.find(f"{number:048b}")
        while at >= 0:
            numbers.append((at, number))
            at = bits.find(f"{number:048b}", at + 1)
    return sorted(numbers)


def samples(size: int) -> dict[str, bytes]:
    """Make data of up to n bytes, by kind."""
    chosen = random.Random(size)
    lengths = (1, 2, 3, 4, 5, 100, 255, 258, 259, 260, 1_000)
    runs = [bytes([chosen.randrange(5)]) * chosen.choice(lengths) for _ in range(size // 200)]
    weights = [0.95**value for value in range(256)]
    return {
        "empty": b"",
        "one byte": b"x",
        "rows": ROWS[:size],
        "random": chosen.randbytes(size),
        "one run": bytes(size),
        "a run of four": b"xaaaa",
        "runs": b"".join(runs)[:size],
        "repeated": (b"abcdefg" * (size // 7 + 1))[:size],
        "two bytes": bytes(chosen.choices(b"ab", k=size)),
        "long codes": bytes(chosen.choices(range(256), weights, k=size)),
    }


def main(folder: Path) -> None:
    """Write seeds: a byte for the level and the shift, then a stream after its first number."""
    folder.mkdir(parents=True, exist_ok=True)
    for size in (30, 400, 1_500):
        for number, data in enumerate(samples(size).values()):
            packed = bz2.compress(data, 1 + number % 9) + bz2.compress(data[::-1], 1)
            (folder / f"{size}-{number}").write_bytes(bytes([17 * number]) + packed[10:])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
