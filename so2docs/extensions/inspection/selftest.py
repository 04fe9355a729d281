"""Self-test of an installation, for packagers, bug reports and new machines."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import so2docs
from so2docs.errors import So2docsError
from so2docs.parse import core


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check of the self-test; `problem` is None if it succeeded."""

    name: str
    seconds: float
    problem: str | None

    def __str__(self) -> str:
        outcome, reason = ("FAILED", f": {self.problem}") if self.problem else ("ok    ", "")
        return f"{outcome}  {self.name} ({self.seconds:.1f} s){reason}"


def selftest() -> Iterator[Check]:
    """Convert the sample in several ways, and check that all outputs are identical.

    Yields:
        The result of each check, as soon as it is finished.
    """
    sample = Path(str(files("so2docs") / "sample"))
    posts, (archive,) = sample / "Posts.xml", sample.glob("*.7z")
    checks: list[tuple[str, Path, dict[str, Any]]] = [
        ("python core", posts, {"core": "python", "jobs": 1}),
        ("compiled core, 2 jobs", posts, {"core": "compiled", "jobs": 2, "chunk_bytes": 4096}),
        ("a 7z archive", archive, {"jobs": 1}),
    ]
    if core.built() != "compiled" and not core.problem:
        del checks[1]
    expected = None
    for name, dump, options in checks:
        started, problem = time.perf_counter(), None
        try:
            with tempfile.TemporaryDirectory(prefix="so2docs-selftest-") as folder:
                output = Path(folder, "questions.jsonl.gz")
                report = so2docs.convert(dump, output, **options)
                expected = expected or output.read_bytes()
                if report.questions != posts.read_bytes().count(b'PostTypeId="1"'):
                    raise So2docsError("some questions are missing")
                if output.read_bytes() != expected:
                    raise So2docsError("the bytes differ from those of the first conversion")
        except Exception as error:
            problem = str(error) or type(error).__name__
        yield Check(name, time.perf_counter() - started, problem)
