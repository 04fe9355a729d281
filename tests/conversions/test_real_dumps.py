"""Whole published dumps: all documents, strays and counts equal those of the oracle."""

import json
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest
from support.dumps import strays_of, unpacked
from support.oracle import AnswersBy, Oracle, nest

import so2docs
from so2docs.options.choices import Core
from so2docs.parse.core import built


@dataclass(frozen=True, slots=True)
class Converted:
    """A converted dump, and the result of the oracle."""

    output: Path
    report: so2docs.Report
    oracle: Oracle


@pytest.fixture(scope="module", params=["id", "votes"])
def converted(
    request: pytest.FixtureRequest,
    core: Core,
    real_dump: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Converted:
    answers_by: AnswersBy = request.param
    output = tmp_path_factory.mktemp("converted") / "questions.jsonl.gz"
    report = so2docs.convert(real_dump, output, jobs=2, answers_by=answers_by)
    assert report.core == core
    return Converted(output, report, nest(real_dump, answers_by))


def assert_same_lines(actual: bytes, expected: list[bytes]) -> None:
    """Compare line by line; parsed values come first because their difference is easier to read."""
    for found_line, expected_line in zip_longest(
        actual.splitlines(True), expected, fillvalue=b"null\n"
    ):
        if found_line != expected_line:
            assert json.loads(found_line) == json.loads(expected_line)
            assert found_line == expected_line


def test_every_document(converted: Converted) -> None:
    assert converted.oracle.documents
    assert_same_lines(unpacked(converted.output), converted.oracle.document_lines())


def test_every_stray(converted: Converted) -> None:
    strays = strays_of(converted.output)
    assert strays.exists() == bool(converted.oracle.strays)
    assert_same_lines(unpacked(strays), converted.oracle.stray_lines())


def test_every_count(converted: Converted) -> None:
    report, oracle = converted.report, converted.oracle
    assert report.rows == oracle.rows
    assert report.questions == oracle.questions
    assert report.answers == oracle.answers
    assert {reason: n for reason, n in report.strays.items() if n} == oracle.strays_by_reason
    assert {kind: n for kind, n in report.other_types.items() if n} == oracle.other_types
    assert report.repaired_characters == oracle.repaired_characters


def test_same_bytes_for_any_jobs_chunks_and_core(real_dump: Path, tmp_path: Path) -> None:
    contents = set()
    fastest = built()
    ways: list[tuple[int, int | None, Core]] = [
        (1, None, "python"),
        (1, None, fastest),
        (2, None, fastest),
        (1, 65_536, fastest),
        (2, 10_007, fastest),
        (2, 1_000_003, "python"),
    ]
    for number, (jobs, chunk_bytes, core) in enumerate(ways):
        output = tmp_path / str(number) / "questions.jsonl.gz"
        output.parent.mkdir()
        so2docs.convert(real_dump, output, jobs=jobs, chunk_bytes=chunk_bytes, core=core)
        contents.add(
            tuple((path.name, path.read_bytes()) for path in sorted(output.parent.iterdir()))
        )
    assert len(contents) == 1
