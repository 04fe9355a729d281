"""Whole published dumps: documents, strays and counts are those of independent computations."""

import json
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
from support import oracle, oracle_history, oracle_tables
from support.dumps import strays_of, unpacked
from support.oracle import AnswersBy, Nested
from support.places import LONG, published

import so2docs
from so2docs.parse.core import built

WAYS: list[dict[str, Any]] = [
    {"jobs": 1, "core": built()},
    {"jobs": 1, "core": built(), "chunk_bytes": 65_536},
    {"jobs": 2, "core": built(), "chunk_bytes": 40_009},
    {"jobs": 2, "core": "python", "chunk_bytes": 1_000_003},
]
"""Ways to convert a dump, all of which give the same files."""
Unpack = Callable[[Path], Path]


def ways_of(posts: Path) -> list[dict[str, Any]]:
    """Return the ways for a dump; the slow core has large ones only with `SO2DOCS_LONG=1`."""
    return WAYS if LONG or posts.stat().st_size < 2_000_000 else WAYS[:3]


def convert(
    dump: Path, folder: Path, documents: bytes, strays: bytes | None, **options: Any
) -> so2docs.Report:
    """Convert in each way, compare the lines with the expected ones, and return the last report."""
    files = set()
    for way in options.pop("ways"):
        output = folder / str(len(list(folder.iterdir()))) / "questions.jsonl.gz"
        output.parent.mkdir()
        report = so2docs.convert(dump, output, **options, **way)
        assert report.core == way["core"]
        paths = sorted(output.parent.iterdir())
        files.add(tuple((path.name, path.read_bytes()) for path in paths))
    assert len(files) == 1
    assert_same_lines(unpacked(output), documents)
    if strays is not None:
        assert strays_of(output).exists() == bool(strays)
        assert_same_lines(unpacked(strays_of(output)), strays)
    return report


def assert_same_lines(actual: bytes, expected: bytes) -> None:
    """Compare line by line; parsed values come first because their difference is easier to read."""
    for found, wanted in zip_longest(
        actual.splitlines(True), expected.splitlines(True), fillvalue=b"null\n"
    ):
        if found != wanted:
            assert json.loads(found) == json.loads(wanted)
            assert found == wanted


@pytest.mark.parametrize("answers_by", ["id", "votes"])
def test_posts(answers_by: AnswersBy, real_dump: Path, tmp_path: Path) -> None:
    expected = oracle.nest(real_dump, answers_by)
    contents = expected.contents
    ways = ways_of(real_dump)[:: 1 if answers_by == "id" else 3]
    report = convert(real_dump, tmp_path, *contents, answers_by=answers_by, ways=ways)
    assert expected.documents
    for name in ("rows", "questions", "answers", "repaired_characters"):
        assert getattr(report, name) == getattr(expected, name), name
    assert {reason: n for reason, n in report.strays.items() if n} == expected.strays_by_reason
    assert {kind: n for kind, n in report.other_types.items() if n} == expected.other_types


@pytest.mark.long
@pytest.mark.parametrize("source", published("Comments"))
def test_tables(source: Path, unpack: Unpack, tmp_path: Path) -> None:
    """All tables that there are, with badges; the site counted comments and votes itself."""
    folder = unpack(source)
    files = oracle_tables.FILES | {"badges": "Badges.xml"}
    names = [name for name, file in files.items() if (folder / file).exists()]
    expected = oracle_tables.nest(folder, names)
    contents = expected.contents
    convert(folder, tmp_path, *contents, nest=names, ways=ways_of(folder / "Posts.xml"))
    report = convert(source, tmp_path, *contents, nest=names, ways=[{"jobs": 2, "core": built()}])
    for name, counts in report.tables.items():
        assert (counts.rows, counts.nested) == (expected.rows[name], expected.nested[name])
        assert counts.strays == expected.reasons[name]
    for question in expected.documents:
        for post in (question, *question["Answers"]):
            assert len(post["Comments"]) == post["CommentCount"]
            if "votes" in names:
                votes = post["Votes"]
                assert votes.get("UpMod", 0) - votes.get("DownMod", 0) == post["Score"]


@pytest.mark.parametrize("source", published("PostHistory", "Users"))
@pytest.mark.parametrize("level", ["closings", "history", "history-text"])
def test_history(level: str, source: Path, unpack: Unpack, tmp_path: Path) -> None:
    """The last texts are those of the post, and it is closed if the site says so."""
    folder = unpack(source)
    expected = oracle_history.nest(folder, level, users=True)
    contents = Nested(expected.documents, []).contents[0]
    ways = ways_of(folder / "Posts.xml")[::3]
    report = convert(folder, tmp_path, contents, None, nest=[level, "users"], ways=ways)
    counts, rows = report.tables[level], expected.rows
    assert (counts.rows, counts.nested) == (rows["all"], rows["nested"])
    assert counts.filtered == rows["filtered"]
    assert counts.strays.get("event_without_post", 0) == rows["event_without_post"]
    for question in expected.documents:
        for post in (question, *question["Answers"]):
            assert ("Closed" in post) == ("ClosedDate" in post)
            texts = {name: entry[name] for entry in post["History"] for name in entry}
            for name in ("Title", "Tags") if level == "history-text" else ():
                assert sorted(texts.get(name, "")) == sorted(post.get(name, ""))
