"""`--split` makes a file for each year, month or share, with the documents of a single file."""

import json
import random
from collections import defaultdict
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.command import run_python
from support.dumps import answer, left_by, question, write_dump
from support.formats_read_back import READERS, Document, jsonl
from support.interruptions import stopped
from support.places import SAMPLES

import so2docs
from so2docs.options.choices import FORMATS
from so2docs.pipeline import bucket as bucket_side

CHUNK_BYTES = 3000
UNUSUAL = ("21-10-01", "yesterday", "", None)
"""Dates that name no month."""


def dated_rows(questions: int = 160, months: int = 60) -> list[bytes]:
    """Make questions with answers in many buckets, not ordered by date, some without a date."""
    rng = random.Random(4)
    rows = []
    for number in range(1, questions + 1):
        month = rng.randrange(months)
        date = f"{2016 + month // 12}-{month % 12 + 1:02}-15T10:00:00.000"
        dates = {"CreationDate": UNUSUAL[number % 4] if number % 20 < 4 else date}
        if dates["CreationDate"] is None:
            dates = {}
        quoted = '"CreationDate":"1999-01-01"'  # The date does not belong to the question.
        rows.append(question(number * 700, Score=number, Body=quoted * 4, **dates))
        rows.append(answer(number * 700 + 1, number * 700, CreationDate="2024-05-06T00:00:00.000"))
    rng.shuffle(rows)
    return rows


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dump(tmp_path_factory.mktemp("dump") / "Posts.xml", *dated_rows())


def by_date(documents: list[Document], by: str) -> dict[str, list[Document]]:
    """Return the expected documents of each file."""
    by_period = defaultdict(list)
    for document in documents:
        date = document.get("CreationDate") or ""
        is_month = date[:4].isdigit() and date[5:7].isdigit() and 1 <= int(date[5:7]) <= 12
        by_period[date[: 4 if by == "year" else 7] if is_month else "undated"].append(document)
    return dict(by_period)


def parts(folder: Path) -> dict[str, Path]:
    """Return the files, by the distinctive part of their names."""
    return {path.name.split(".")[0].partition("-")[2]: path for path in folder.glob("q*-*")}


def convert(dump: Path, output: Path, **keywords: Any) -> so2docs.Report:
    output.parent.mkdir(exist_ok=True)
    options = {"split": "month", "jobs": 1, "chunk_bytes": CHUNK_BYTES} | keywords
    return so2docs.convert(dump, output, **options)


@pytest.mark.parametrize(
    ("name", "by"), [*((name, "year") for name in FORMATS), ("jsonl", "month"), ("json", "month")]
)
def test_each_file_has_the_questions_of_its_period(
    dump: Path, tmp_path: Path, name: str, by: str
) -> None:
    so2docs.convert(dump, tmp_path / "whole.jsonl", jobs=1)
    expected = by_date(jsonl(tmp_path / "whole.jsonl"), by)
    output, read = READERS[name]
    report = convert(dump, tmp_path / output, split=by, format=name)
    files = parts(tmp_path)
    assert files.keys() == expected.keys()
    assert report.files == len(files) > (50 if by == "month" else 5)
    for label, path in files.items():
        assert read(path) == expected[label], label
    ordered = sorted(map(str, files.values()))
    assert (report.first_file, report.last_file) == (ordered[0], ordered[-1])
    assert report.output_bytes == sum(path.stat().st_size for path in files.values())


def test_the_same_bytes_for_jobs_chunks_and_order_of_rows(dump: Path, tmp_path: Path) -> None:
    convert(dump, tmp_path / "a/q.jsonl.gz")
    convert(dump, tmp_path / "b/q.jsonl.gz", jobs=2, chunk_bytes=50_000)
    assert left_by(tmp_path / "a/q.jsonl.gz") == left_by(tmp_path / "b/q.jsonl.gz")
    for path in parts(tmp_path / "a").values():
        ids = [document["Id"] for document in jsonl(path)]
        assert all(one < other for one, other in pairwise(ids))


@pytest.mark.parametrize(
    ("name", "by", "bucket"),
    [
        ("q.jsonl.gz", "month", 1),
        ("q.json", "month", 4),
        ("q.jsonl.zst", "3files", 4),
        ("q.parquet", "year", 0),
    ],
)
def test_interrupted(dump: Path, tmp_path: Path, name: str, by: str, bucket: int) -> None:
    convert(dump, tmp_path / "wanted" / name, split=by)
    output = tmp_path / "found" / name
    with stopped(bucket_side, "merge_bucket", bucket):
        convert(dump, output, split=by)
    assert not list(output.parent.glob(".*.part"))
    label = {"3files": "00001", "year": "2019"}.get(by, "2019-01")
    (left := output.with_name(f".{name}.part")).mkdir()
    left /= f"q-{label}{output.name.removeprefix('q')}"
    left.write_bytes(b"left by a kill")
    assert convert(dump, output, split=by).resumed
    assert left_by(output) == left_by(tmp_path / "wanted" / name)


def test_few_files_are_open_at_a_time(dump: Path, tmp_path: Path) -> None:
    """Write 61 files although a process may open only 40, including files of Python and SQLite."""
    script = (
        "import resource, sys, so2docs; resource.setrlimit(resource.RLIMIT_NOFILE, (56, 56)); "
        "so2docs.convert(*sys.argv[1:], split='month', jobs=1)"
    )
    pytest.importorskip("resource", reason="limits of a process as POSIX has them")
    convert(dump, tmp_path / "wanted/q.jsonl.gz")
    (tmp_path / "found").mkdir()
    run_python("-c", script, dump, tmp_path / "found/q.jsonl.gz")
    assert left_by(tmp_path / "found/q.jsonl.gz") == left_by(tmp_path / "wanted/q.jsonl.gz")


def test_more_files_than_there_may_be(
    dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("so2docs.output.writer.MOST_FILES", 20)
    with pytest.raises(so2docs.OutputError, match="would create more than 20 files from the dates"):
        convert(dump, tmp_path / "q.jsonl.gz")
    assert convert(dump, tmp_path / "q.jsonl.gz", split="year", restart=True).files == 6


@pytest.mark.parametrize("keywords", [{"nest": "all"}, {"recipe": "thread", "site": "a.example"}])
def test_dates_of_the_question_alone(tmp_path: Path, keywords: dict[str, Any]) -> None:
    """Dates of answers and nested rows do not count, and a record needs no date."""
    whole = tmp_path / "whole.jsonl"
    so2docs.convert(SAMPLES / "site", whole, jobs=1, **keywords)
    ids = {int(d["Id"] if "Id" in d else d["id"].rsplit("-", 1)[1]): d for d in jsonl(whole)}
    so2docs.convert(SAMPLES / "site", tmp_path / "plain.jsonl", jobs=1)
    documents = jsonl(tmp_path / "plain.jsonl")
    convert(SAMPLES / "site", tmp_path / "q.jsonl", **keywords)
    expected = {
        label: [ids[d["Id"]] for d in of_date]
        for label, of_date in by_date(documents, "month").items()
    }
    assert {label: jsonl(path) for label, path in parts(tmp_path).items()} == expected


def test_users_with_dates_of_a_question_without(tmp_path: Path) -> None:
    write_dump(tmp_path / "Posts.xml", question(1, OwnerUserId=5, Score=1), question(2, Score=1))
    user = b'  <row Id="5" Reputation="1" CreationDate="2010-01-01T00:00:00.000" />\r\n'
    write_dump(tmp_path / "Users.xml", user)
    convert(tmp_path / "Posts.xml", tmp_path / "out/q.jsonl", nest="users")
    assert jsonl(tmp_path / "out/q-undated.jsonl")[0]["Owner"]["CreationDate"][:4] == "2010"
    assert parts(tmp_path / "out").keys() == {"undated"}


def test_no_documents_give_one_empty_file(tmp_path: Path) -> None:
    report = convert(SAMPLES / "empty.xml", tmp_path / "q.json")
    assert (report.files, report.first_file) == (1, str(tmp_path / "q-undated.json"))
    assert json.loads((tmp_path / "q-undated.json").read_text()) == []


SHARES = "train=0.8,validation=0.1,test=0.1"


def share_of(question_id: int) -> str:
    digest = blake2b(str(question_id).encode(), digest_size=8, person=b"split").hexdigest()
    place = int(digest, 16) / 2**64
    return "train" if place < 0.8 else "validation" if place < 0.9 else "test"


def shared_dump(path: Path, first: int, last: int) -> Path:
    rows = [question(number, Title="t", Body="b") for number in range(first, last)]
    rows += [answer(10_000 + number, number, Body="b") for number in range(first, last)]
    return write_dump(path, *rows)


def splits(folder: Path) -> dict[str, list[Document]]:
    return {label: jsonl(path) for label, path in parts(folder).items()}


def test_a_hash_of_the_question_decides(tmp_path: Path) -> None:
    dump = shared_dump(tmp_path / "Posts.xml", 1, 400)
    options: dict[str, Any] = {"split": SHARES, "jobs": 1, "chunk_bytes": 9000}
    report = so2docs.convert(dump, tmp_path / "q.jsonl", **options)
    actual = splits(tmp_path)
    assert sorted(actual) == ["test", "train", "validation"]
    assert report.files == 3
    ids = {name: [row["Id"] for row in rows] for name, rows in actual.items()}
    for name in actual:
        assert ids[name] == [number for number in range(1, 400) if share_of(number) == name]
    convert(dump, tmp_path / "r" / "q.jsonl", recipe="qa", site="a.com", **options)
    for name, rows in splits(tmp_path / "r").items():
        assert [row["metadata"]["qid"] for row in rows] == ids[name]


def test_splits_of_another_dump_and_of_a_sample(tmp_path: Path) -> None:
    dump = shared_dump(tmp_path / "Posts.xml", 200, 900)
    so2docs.convert(dump, tmp_path / "q.jsonl", split=SHARES, sample="40%")
    actual = splits(tmp_path)
    assert all(share_of(row["Id"]) == name for name, rows in actual.items() for row in rows)
    assert min(map(len, actual.values())) > 0


def test_a_split_without_questions_is_an_empty_file(tmp_path: Path) -> None:
    dump, output = shared_dump(tmp_path / "Posts.xml", 1, 2), tmp_path / "q.jsonl"
    reports = [so2docs.convert(dump, output, split=SHARES) for _ in range(2)]
    assert [report.is_new for report in reports] == [True, False]
    assert sum(map(len, splits(tmp_path).values())) == 1
    actual = splits(tmp_path)
    assert len(actual) == 3
    empty = [name for name in actual if not actual[name]]
    for report in reports:
        assert report.empty_shares is not None
        assert sorted(report.empty_shares) == sorted(empty)
        assert f"empty shares         {', '.join(report.empty_shares)}" in str(report)
