"""Fuzz the conversion: any bytes must give the oracle's documents, or an error of this package.

    python checks/fuzz/fuzz_convert.py --seconds 600 [--seed 1] [--engine atheris|random]

atheris steers the mutations by code coverage; `random` flips, cuts, repeats and splices bytes of
the samples at random. An input that breaks a promise is written to `build/fuzz/`; add it to
`tests/conversions/test_damage.py` with the fix.
"""

import argparse
import contextlib
import faulthandler
import hashlib
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "tests")]
FINDINGS = CHECKOUT / "build" / "fuzz"


class Run:
    """Runs inputs until the time is up, and counts the outcomes."""

    def __init__(self, seconds: float, folder: Path) -> None:
        self.outcomes: Counter[str] = Counter()
        self.folder = folder
        self.started = time.monotonic()
        self.seconds = seconds

    def one(self, data: bytes) -> None:
        """Check one input, and save it if it breaks a promise."""
        faulthandler.dump_traceback_later(60, exit=True)
        from support.judge import check

        try:
            self.outcomes[check(data, self.folder)] += 1
        except Exception as error:
            self.outcomes["FINDING"] += 1
            FINDINGS.mkdir(parents=True, exist_ok=True)
            name = FINDINGS / hashlib.sha1(data).hexdigest()[:12]
            name.write_bytes(data)
            print(f"{name}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)

    def is_over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() - self.started >= self.seconds

    def summary(self) -> str:
        """Return a line with the number of executions, the time, and the outcomes."""
        seconds = time.monotonic() - self.started
        return f"{self.outcomes.total():,} executions in {seconds:.0f} s: {dict(self.outcomes)}"


def main() -> None:
    """Fuzz until the time is up; exit with 1 if an input broke a promise."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=["atheris", "random"])
    arguments = parser.parse_args()
    seeds = [path.read_bytes() for path in sorted((CHECKOUT / "samples").glob("*.xml"))]
    engine = arguments.engine
    atheris = None
    if engine != "random":
        with contextlib.suppress(ImportError):
            import atheris  # type: ignore[no-redef]
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        run = Run(arguments.seconds, Path(folder))
        if atheris is None:
            rng = random.Random(arguments.seed)
            from support.judge import mutated

            while not run.is_over():
                run.one(mutated(rng, seeds))
            finish(run)
        else:
            fuzz_with_atheris(atheris, run, seeds, arguments.seed)


def fuzz_with_atheris(atheris: object, run: Run, seeds: list[bytes], seed: int) -> None:
    """Fuzz guided by code coverage of the package; half of the inputs also go through `mutated`."""
    corpus = FINDINGS.parent / "fuzz-corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(seeds):
        (corpus / f"sample-{number}").write_bytes(data)
    with atheris.instrument_imports(include=["so2docs"]):  # type: ignore[attr-defined]
        pass

    from support.judge import mutated

    def mutate(data: bytes, max_size: int, choice: int) -> bytes:
        rng = random.Random(choice)
        changed = data if rng.random() < 0.5 else mutated(rng, [data, *seeds] if data else seeds)
        return bytes(atheris.Mutate(changed, max_size))[:max_size]  # type: ignore[attr-defined]

    def one(data: bytes) -> None:
        if run.is_over():
            finish(run)
        run.one(data)

    options = [f"-seed={seed}", "-max_len=20000", "-timeout=60", "-rss_limit_mb=4096", str(corpus)]
    atheris.Setup([sys.argv[0], *options], one, custom_mutator=mutate)  # type: ignore[attr-defined]
    atheris.Fuzz()  # type: ignore[attr-defined]


def finish(run: Run) -> None:
    """Print the summary, and exit the process: libFuzzer cannot be stopped in another way."""
    print(run.summary(), flush=True)
    for path in run.folder.iterdir():
        path.unlink() if path.is_file() else None
    os._exit(1 if run.outcomes["FINDING"] else 0)


if __name__ == "__main__":
    main()
