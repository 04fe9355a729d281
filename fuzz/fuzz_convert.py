"""Any bytes -> `convert`: documents that the oracle makes too, or an error of this package.

    python fuzz/fuzz_convert.py --seconds 600 [--seed 1] [--engine atheris|random]

atheris steers the mutations by what the package and the samples reach; `random` flips, cuts,
repeats and splices bytes of the samples by chance. What breaks a promise is written to
`build/fuzz/`, and belongs into `tests/test_damage.py` when it is mended.
"""

import argparse
import contextlib
import faulthandler
import gzip
import hashlib
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "tests")]
FINDINGS = CHECKOUT / "build" / "fuzz"
TOKENS = [
    b"<row ",
    b"/>",
    b"<posts>",
    b"</posts>",
    b"<!--",
    b"-->",
    b"<![CDATA[",
    b"]]>",
    b"<?x ?>",
]
TOKENS += [b"&#0;", b"&#xFFFF;", b"&#55296;", b"&amp;", b"&lol;", b"\x00", b"\xff", b"\xed\xa0\x80"]
TOKENS += [b'Id="1"', b' Id="2"', b'PostTypeId="1"', b'ParentId="', b'Answers="', b"\xef\xbf\xbf"]
TOKENS += [b"<!DOCTYPE posts [", b'<!ENTITY a "b">', b"]>", b"&#x110000;", b"9" * 20, b"-", b'"']


def check(data: bytes, folder: Path) -> str:
    """Convert `data` in one and in many pieces, and say what came out; anything odd raises."""
    from oracle import nest

    import so2docs

    dump, output = folder / "Posts.xml", folder / "questions.jsonl.gz"
    dump.write_bytes(data)
    outcomes = []
    for chunk_bytes in (None, 200):
        for path in folder.iterdir():
            if path != dump:
                path.unlink() if path.is_file() else so2docs.spill.clear(path)
        try:
            report = so2docs.convert(dump, output, jobs=1, chunk_bytes=chunk_bytes)
        except so2docs.AccountingError:
            raise
        except so2docs.So2docsError as error:
            assert not output.exists(), "an output after an error"
            outcomes.append((type(error).__name__, getattr(error, "problem", "")))
            continue
        strays = folder / "questions.strays.jsonl.gz"
        outcomes.append(
            (
                gzip.decompress(output.read_bytes()),
                gzip.decompress(strays.read_bytes()) if strays.exists() else b"",
                report.rows,
            )
        )
    assert outcomes[0] == outcomes[1], f"other chunks, other outcome: {outcomes}"
    if len(outcomes[0]) == 2:
        return str(outcomes[0][0])
    try:
        oracle = nest(data)
    except ElementTree.ParseError as error:
        if is_name_of_the_fifth_edition(data, error):
            return "names that expat does not know"
        raise AssertionError(f"converted what is not XML: {error}") from None
    except (ValueError, LookupError):
        return "unknown encoding"
    documents, strays_found, rows = outcomes[0]
    assert rows == oracle.rows, f"{rows} rows, not {oracle.rows}"
    assert documents == b"".join(oracle.document_lines()), "other documents than the oracle"
    assert strays_found == b"".join(oracle.stray_lines()), "other strays than the oracle"
    return "documents"


def is_name_of_the_fifth_edition(data: bytes, error: ElementTree.ParseError) -> bool:
    """Whether expat stumbled over a name that XML 1.0 allows since 2008, or over its colons."""
    from oracle import _repair

    line, column = error.position
    where = _repair(data)[0].encode().split(b"\n")[line - 1][max(0, column - 20) : column + 20]
    return "unbound prefix" in str(error) or b":" in where or "\ufffd".encode() in where


def mutated(rng: random.Random, seeds: list[bytes]) -> bytes:
    """A sample with some of its bytes changed by chance."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(6):
            case 0 if at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            case 1 if at < len(data):
                data[at] = rng.randrange(256)
            case 2:
                del data[at : at + rng.choice((1, 2, 5, 50, 500))]
            case 3:
                data[at:at] = rng.choice(TOKENS)
            case 4:
                other = rng.choice(seeds)
                start = rng.randrange(len(other) + 1)
                data[at:at] = other[start : start + rng.choice((1, 10, 100, 1000))]
            case _:
                start = rng.randrange(len(data) + 1)
                data[at:at] = data[start : start + rng.choice((1, 10, 100))]
    return bytes(data)


class Run:
    """Executions so far, by outcome."""

    def __init__(self, seconds: float, folder: Path) -> None:
        self.outcomes: Counter[str] = Counter()
        self.folder = folder
        self.started = time.monotonic()
        self.seconds = seconds

    def one(self, data: bytes) -> None:
        """Check one input, and keep it if it breaks a promise."""
        faulthandler.dump_traceback_later(60, exit=True)
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
        """What was done, in one line."""
        seconds = time.monotonic() - self.started
        return f"{self.outcomes.total():,} executions in {seconds:.0f} s: {dict(self.outcomes)}"


def main() -> None:
    """Fuzz until the time is up; exit 1 if anything was found."""
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
            while not run.is_over():
                run.one(mutated(rng, seeds))
            finish(run)
        else:
            fuzz_with_atheris(atheris, run, seeds, arguments.seed)


def fuzz_with_atheris(atheris: object, run: Run, seeds: list[bytes], seed: int) -> None:
    """Let coverage of the package steer; half of the inputs also go through `mutated`."""
    corpus = FINDINGS.parent / "fuzz-corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(seeds):
        (corpus / f"sample-{number}").write_bytes(data)
    with atheris.instrument_imports(include=["so2docs"]):  # type: ignore[attr-defined]
        import so2docs.bucket
        import so2docs.chunk
        import so2docs.convert  # noqa: F401

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
    """Say what was done and leave: libFuzzer knows no other way out."""
    print(run.summary(), flush=True)
    for path in run.folder.iterdir():
        path.unlink() if path.is_file() else None
    os._exit(1 if run.outcomes["FINDING"] else 0)


if __name__ == "__main__":
    main()
