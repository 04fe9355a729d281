"""Splits by shares have the same questions for any jobs, dump and recipe."""

from hashlib import blake2b
from pathlib import Path
from typing import Any

from support.dumps import answer, question, write_dump
from support.formats_read_back import jsonl

import so2docs

SHARES = "train=0.8,validation=0.1,test=0.1"


def expected(question_id: int) -> str:
    digest = blake2b(str(question_id).encode(), digest_size=8, person=b"split").hexdigest()
    place = int(digest, 16) / 2**64
    return "train" if place < 0.8 else "validation" if place < 0.9 else "test"


def dump_of(path: Path, first: int, last: int) -> Path:
    rows = [question(number, Title="t", Body="b") for number in range(first, last)]
    rows += [answer(10_000 + number, number, Body="b") for number in range(first, last)]
    return write_dump(path, *rows)


def splits(output: Path) -> dict[str, list[dict[str, Any]]]:
    stem = output.name.removesuffix(".jsonl")
    files = output.parent.glob(f"{stem}-*.jsonl")
    return {file.stem.removeprefix(f"{stem}-"): jsonl(file) for file in files}


def test_a_hash_of_the_question_decides(tmp_path: Path) -> None:
    dump = dump_of(tmp_path / "Posts.xml", 1, 400)
    options: dict[str, Any] = {"split": SHARES, "jobs": 1, "chunk_bytes": 9000}
    report = so2docs.convert(dump, tmp_path / "q.jsonl", **options)
    actual = splits(tmp_path / "q.jsonl")
    assert sorted(actual) == ["test", "train", "validation"]
    assert report.files == 3
    ids = {name: [row["Id"] for row in rows] for name, rows in actual.items()}
    for name in actual:
        assert ids[name] == [number for number in range(1, 400) if expected(number) == name]
    so2docs.convert(dump, tmp_path / "r.jsonl", recipe="qa", site="a.com", **options)
    for name, rows in splits(tmp_path / "r.jsonl").items():
        assert [row["metadata"]["qid"] for row in rows] == ids[name]


def test_splits_of_another_dump_and_of_a_sample(tmp_path: Path) -> None:
    dump = dump_of(tmp_path / "Posts.xml", 200, 900)
    so2docs.convert(dump, tmp_path / "q.jsonl", split=SHARES, sample="40%")
    actual = splits(tmp_path / "q.jsonl")
    assert all(expected(row["Id"]) == name for name, rows in actual.items() for row in rows)
    assert min(map(len, actual.values())) > 0


def test_a_split_without_questions_is_an_empty_file(tmp_path: Path) -> None:
    dump, output = dump_of(tmp_path / "Posts.xml", 1, 2), tmp_path / "q.jsonl"
    reports = [so2docs.convert(dump, output, split=SHARES) for _ in range(2)]
    assert [report.is_new for report in reports] == [True, False]
    assert sum(map(len, splits(tmp_path / "q.jsonl").values())) == 1
    actual = splits(tmp_path / "q.jsonl")
    assert len(actual) == 3
    empty = [name for name in actual if not actual[name]]
    for report in reports:
        assert report.empty_shares is not None
        assert sorted(report.empty_shares) == sorted(empty)
        assert f"empty shares         {', '.join(report.empty_shares)}" in str(report)
