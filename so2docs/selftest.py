"""Self-test of an installation, which converts a made-up dump.

It is meant for packagers, for bug reports, and to check a new machine before a long conversion.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import so2docs
from so2docs.errors import So2docsError
from so2docs.parse import core

_QUESTIONS = 1500
_CHUNK_BYTES = 60_000
_DIE = """
import os, sys, so2docs
from so2docs.spill import Spill
dump, output, chunk_bytes = sys.argv[1:]
commit, left = Spill.commit, [1] * 5
def commit_or_die(*arguments):
    commit(*arguments)
    left.pop() if left else os._exit(9)
Spill.commit = commit_or_die
so2docs.convert(dump, output, chunk_bytes=int(chunk_bytes), jobs=1)
"""
"""Script for a conversion whose process exits abruptly after a few committed chunks."""

_WORDS = (
    "knead",
    "the dough",
    "<b>& wait</b>",
    'a "crust"',
    "čas\u2009é\U0001f35e",
    "a\r\n\tb",
    "",
)


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check of the self-test; `problem` is None if it succeeded."""

    name: str
    seconds: float
    problem: str | None

    def __str__(self) -> str:
        outcome = "ok    " if self.problem is None else "FAILED"
        return f"{outcome}  {self.name} ({self.seconds:.1f} s)" + (
            "" if self.problem is None else f": {self.problem}"
        )


def selftest() -> Iterator[Check]:
    """Convert a built-in sample in several ways, and check that all outputs are identical.

    The sample is converted with both cores. Then a conversion of an archive of the sample is killed
    and resumed. The self-test takes a few seconds, and uses a few megabytes in the system's
    temporary folder.

    Yields:
        The result of each check, as soon as it is finished.
    """
    with tempfile.TemporaryDirectory(prefix="so2docs-selftest-") as folder:
        bench = _Bench(Path(folder))
        for name, check in bench.checks():
            started = time.perf_counter()
            problem = None
            try:
                check()
            except Exception as error:
                problem = str(error) or type(error).__name__
            yield Check(name, time.perf_counter() - started, problem)


class _Bench:
    """The checks, with their sample dump and the output expected from every conversion."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.dump = folder / "Posts.xml"
        rows, self.documents = _sample()
        self.dump.write_bytes(rows)
        self.expected: bytes | None = None

    def checks(self) -> Iterator[tuple[str, Callable[[], None]]]:
        yield "python core", partial(self.converts, core="python", jobs=1)
        if core.built() == "compiled" or core.problem:
            yield "compiled core, 2 jobs", partial(self.converts, core="compiled", jobs=2)
        yield "a 7z archive, killed in the middle and resumed", self.resumes

    def converts(self, **options: Any) -> None:
        """Check that a conversion gives the expected documents, and always the same bytes."""
        output = self.folder / "questions.jsonl.gz"
        so2docs.convert(self.dump, output, chunk_bytes=_CHUNK_BYTES, force=True, **options)
        self.compare(output)

    def compare(self, output: Path) -> None:
        """Compare an output with the expected documents, or with the bytes of the first output."""
        data = output.read_bytes()
        if self.expected is None:
            if list(so2docs.read(output)) != self.documents:
                raise So2docsError("the documents differ from the expected ones")
            self.expected = data
        elif data != self.expected:
            raise So2docsError("the bytes differ from those of the first conversion")

    def resumes(self) -> None:
        """Check that a killed conversion of an archive resumes and gives the same bytes."""
        import py7zr  # Imported here, so that a failing import fails only this check.

        site, output = self.folder / "site.7z", self.folder / "killed.jsonl.gz"
        with py7zr.SevenZipFile(site, "w") as archive:
            archive.write(self.dump, "Posts.xml")
        arguments = [str(site), str(output), str(_CHUNK_BYTES)]
        killed = subprocess.run([sys.executable, "-c", _DIE, *arguments], check=False)
        if output.exists() or killed.returncode == 0:
            raise So2docsError("a conversion that should have been killed was not")
        report = so2docs.convert(site, output, chunk_bytes=_CHUNK_BYTES, jobs=1)
        if not report.resumed:
            raise So2docsError("the conversion was not resumed, but started over")
        self.compare(output)


def _sample() -> tuple[bytes, list[dict[str, Any]]]:
    """Make a dump with the peculiarities of published dumps; return it and its documents."""
    questions: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for number in range(_QUESTIONS):
        question_id = 1 + number * 11
        body = "<p>" + " ".join(_WORDS[(number * step) % 7] for step in range(1, 40)) + "</p>\n"
        question = {
            "Id": question_id,
            "PostTypeId": 1,
            "CreationDate": "2020-05-17T08:09:10.117",
            "Score": number % 40 - 4,
            "Body": body,
            "Title": f"Question {number}: {_WORDS[number % 7]}",
            "Tags": ["bread", "c++", "sour-dough"][: number % 4],
        }
        answers = [
            {
                "Id": question_id + 1 + answer,
                "PostTypeId": 2,
                "ParentId": question_id,
                "Score": answer,
                "Body": body[: 40 * answer],
            }
            for answer in range(number % 4)
        ]
        questions.append({**question, "Answers": answers})
        rows += [*answers, question] if number % 5 == 0 else [question, *answers]
    rows.append({"Id": 10**9, "PostTypeId": 5, "Body": "about a tag"})
    rows.append({"Id": 10**9 + 1, "PostTypeId": 2, "ParentId": 2, "Body": "a stray"})
    lines = "".join(f"  <row {_attributes(row)} />\r\n" for row in rows)
    frame = '\ufeff<?xml version="1.0" encoding="utf-8"?>\r\n<posts>\r\n{}</posts>'
    return frame.format(lines).encode(), questions


def _attributes(row: dict[str, Any]) -> str:
    def text(value: Any) -> str:
        plain = "".join(f"<{tag}>" for tag in value) if isinstance(value, list) else str(value)
        return escape(plain).replace("\r", "&#xD;").replace("\n", "&#xA;").replace("\t", "&#x9;")

    return " ".join(f'{name}="{text(value)}"' for name, value in row.items())
