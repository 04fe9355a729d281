"""The conversion checks itself where it is installed: a made-up dump in every way that there is.

For packagers, for bug reports, and before a long conversion on a machine that is new.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import tempfile
import time
import zipfile
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
"""A conversion whose process ends, as by a kill, when it has committed some chunks."""

_WORDS = (
    "knead",
    "the dough",
    "<b>& wait</b>",
    'a "crust"',
    "čas\u2009é\U0001f35e",
    "a\r\n\tb",
    "",
)


class _FailedError(So2docsError):
    """A check found what should not be."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a self-test.

    Attributes:
        name: What was tried.
        seconds: How long it took.
        problem: What went wrong; None if nothing did.
    """

    name: str
    seconds: float
    problem: str | None

    def __str__(self) -> str:
        outcome = "ok    " if self.problem is None else "FAILED"
        return f"{outcome}  {self.name} ({self.seconds:.1f} s)" + (
            "" if self.problem is None else f": {self.problem}"
        )


def selftest() -> Iterator[Check]:
    """Convert a built-in sample with both cores, several jobs, interrupted once, and compare.

    Takes seconds, and a few megabytes in the system's temporary folder.

    Yields:
        Each check when it is done.
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
    """The sample, and the output that every way has to give."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.dump = folder / "Posts.xml"
        rows, self.documents = _sample()
        self.dump.write_bytes(rows)
        self.expected: bytes | None = None

    def checks(self) -> Iterator[tuple[str, Callable[[], None]]]:
        cores = ["python"]
        if core.built() == "compiled" or core.problem:
            cores.append("compiled")
        for name in cores:
            for jobs in (1, 2):
                ways = f"{name} core, {jobs} job{'s' * (jobs > 1)}"
                yield ways, partial(self.converts, core=name, jobs=jobs)
        yield "killed in the middle, and resumed", self.resumes
        yield "a gzip file", lambda: self.converts(self.packed_gzip())
        yield "a zip archive", lambda: self.converts(self.packed_zip())
        yield "a 7z archive", lambda: self.converts(self.packed_7z())
        yield "looking questions up", self.looks_up

    def converts(self, source: Path | None = None, **options: Any) -> None:
        """Whether a conversion gives the documents, and the bytes of those before it."""
        output = self.folder / "questions.jsonl.gz"
        so2docs.convert(
            source or self.dump, output, chunk_bytes=_CHUNK_BYTES, force=True, **options
        )
        self.compare(output)

    def compare(self, output: Path) -> None:
        """Compare an output with what it has to be."""
        data = output.read_bytes()
        if self.expected is None:
            if list(so2docs.read(output)) != self.documents:
                raise _FailedError("the documents are not those that the sample was made from")
            self.expected = data
        elif data != self.expected:
            raise _FailedError("the bytes differ from those of the first conversion")

    def resumes(self) -> None:
        """Whether a killed conversion is resumed, and ends with the same bytes."""
        output = self.folder / "killed.jsonl.gz"
        arguments = [str(self.dump), str(output), str(_CHUNK_BYTES)]
        killed = subprocess.run([sys.executable, "-c", _DIE, *arguments], check=False)
        if output.exists() or killed.returncode == 0:
            raise _FailedError("a conversion that had to die did not")
        report = so2docs.convert(self.dump, output, chunk_bytes=_CHUNK_BYTES, jobs=1)
        if not report.resumed:
            raise _FailedError("the conversion was not resumed, but started over")
        self.compare(output)

    def packed_gzip(self) -> Path:
        """The sample as a gzip file."""
        path = self.folder / "Posts.xml.gz"
        path.write_bytes(gzip.compress(self.dump.read_bytes()))
        return path

    def packed_zip(self) -> Path:
        """The sample in a zip archive."""
        path = self.folder / "site.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(self.dump, "Posts.xml")
        return path

    def packed_7z(self) -> Path:
        """The sample in a 7z archive, as sites are published."""
        import py7zr  # Here, so that one that cannot be imported fails this check alone.

        path = self.folder / "site.7z"
        with py7zr.SevenZipFile(path, "w") as archive:
            archive.write(self.dump, "Posts.xml")
        return path

    def looks_up(self) -> None:
        """Whether single documents are found."""
        with so2docs.open(self.folder / "questions.jsonl.gz") as documents:
            for document in self.documents[:: len(self.documents) // 10]:
                if documents[document["Id"]] != document:
                    raise _FailedError(f"question {document['Id']} differs")


def _sample() -> tuple[bytes, list[dict[str, Any]]]:
    """A dump with the oddities of published ones, and its documents."""
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
