"""Fuzz the reader of 7z headers: any header must give files, or an error of this package.

    python checks/fuzz/fuzz_seven_zip.py --seconds 60 [--seed 1]

The checksums of the changed headers are right, so that all of them are read. Memory is limited. A
header that breaks a promise is written to `build/fuzz/`.
"""

import argparse
import io
import random
import resource
import sys
import time
from collections import Counter
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "tests")]
FINDINGS = CHECKOUT / "build" / "fuzz"
MOST_MEMORY = 2 * 1024**3
"""Maximum address space in bytes; a dictionary of LZMA takes at most 1 GiB of it."""


def seeds() -> list[bytes]:
    """Return archives whose headers are not compressed."""
    import py7zr

    archives = []
    chains = [
        [py7zr.FILTER_LZMA2],
        [py7zr.FILTER_LZMA],
        [py7zr.FILTER_BZIP2],
        [py7zr.FILTER_COPY],
    ]
    for chain in chains:
        packed = io.BytesIO()
        filters = [{"id": number} for number in chain]
        with py7zr.SevenZipFile(packed, "w", filters=filters) as archive:
            archive.set_encoded_header_mode(False)
            for name in ("Posts.xml", "a/Tags.xml", "license.txt"):
                archive.writestr(name * 9, name)
        archives.append(packed.getvalue())
    return archives


def main() -> None:
    """Fuzz until the time is up; exit with 1 if a header broke a promise."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    from support.packed import mutate_header, read_seven_zip

    from so2docs.errors import DumpError

    rng, archives = random.Random(arguments.seed), seeds()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    outcomes: Counter[str] = Counter()
    started = time.monotonic()
    while time.monotonic() - started < arguments.seconds:
        data = mutate_header(rng, rng.choice(archives))
        try:
            read_seven_zip(data)
            outcomes["files"] += 1
        except DumpError as error:
            outcomes[type(error).__name__] += 1
        except Exception as error:
            outcomes["FINDING"] += 1
            FINDINGS.mkdir(parents=True, exist_ok=True)
            name = FINDINGS / f"{outcomes['FINDING']}.7z"
            name.write_bytes(data)
            print(f"{name}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
    print(f"{outcomes.total():,} headers: {dict(outcomes)}")
    sys.exit(outcomes["FINDING"] > 0)


if __name__ == "__main__":
    main()
