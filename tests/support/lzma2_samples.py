"""Data to be compressed with LZMA2 in tests and by fuzzers.

`python -m support.lzma2_samples FOLDER` writes seeds for `checks/fuzz/fuzz_lzma2.c`.
"""

import lzma
import random
import sys
from pathlib import Path

from support.bzip2_samples import samples

DICTIONARY = 1 << 16
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": DICTIONARY}]
LITERAL_SETTINGS = [(lc, lp) for lc in range(5) for lp in range(5 - lc)]
"""Bits of the previous byte and of the position that select the probabilities of a literal."""


def far_matches(size: int) -> bytes:
    """Make data whose matches have all distances and lengths, up to its whole size."""
    chosen = random.Random(size)
    data = bytearray(chosen.randbytes(40))
    while len(data) < size:
        start = len(data) - min(len(data), 1 << chosen.randrange(22))
        data += data[start : start + chosen.choice([2, 3, 5, 9, 17, 40, 273, 700])]
        data += chosen.randbytes(chosen.choice([0, 0, 1, 2]))
    return bytes(data[:size])


def pack(data: bytes, **settings: int) -> bytes:
    """Compress data as one stream of LZMA2."""
    filters = [{"id": lzma.FILTER_LZMA2, **settings}]
    return lzma.compress(data, lzma.FORMAT_RAW, filters=filters)


def pack_lzma2(parts: list[bytes]) -> bytes:
    """Make a stream like those of 7-Zip with several threads: each part resets the dictionary."""
    streams = [lzma.compress(part, lzma.FORMAT_RAW, filters=FILTERS) for part in parts]
    return b"".join(stream[:-1] for stream in streams) + b"\0"


def main(folder: Path) -> None:
    """Write seeds: six bytes of settings, then data to be compressed, or a stream."""
    folder.mkdir(parents=True, exist_ok=True)
    for size in (300, 5_000, 40_000):
        contents = [*samples(size).values(), far_matches(size)]
        for number, data in enumerate(contents):
            settings = bytes(
                [2 * number + 1, number, 13 * number % 256, 255 - 20 * number, 1, number]
            )
            (folder / f"{size}-{number}").write_bytes(settings + data)
            if size < 40_000:
                stream = pack(data[:8_000], dict_size=4096) + pack(data[:100], lc=0, lp=2)
                (folder / f"{size}-{number}-stream").write_bytes(bytes(6) + stream)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
