"""`keep_users` and `keep_posts` select the questions of certain users and posts."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import oracle_tables
from support.command import run
from support.filtering import filtered
from support.formats_read_back import jsonl
from support.interruptions import stopped
from support.places import SAMPLES

import so2docs
from so2docs.pipeline import bucket, second_pass
from so2docs.pipeline.tasks import BucketResult, BucketTask
from so2docs.scan import table

SITE = SAMPLES / "site"
TABLES = ("comments", "links", "votes", "users")
COMPLETE = oracle_tables.nest(SITE, set(TABLES)).documents
POSTS = [post for question in COMPLETE for post in (question, *question["Answers"])]
ANSWERS = [answer for question in COMPLETE for answer in question["Answers"]]
USERS = [post["OwnerUserId"] for post in POSTS if "OwnerUserId" in post]
CASES: list[dict[str, Any]] = [
    {"keep_users": USERS[:1]},
    {"keep_users": USERS[-2:]},
    {"keep_posts": [COMPLETE[0]["Id"], ANSWERS[-1]["Id"], 10**12]},
    {"keep_users": USERS[:2], "keep_posts": [post["Id"] for post in POSTS[::2]]},
    {"keep_users": USERS[:3], "drop_users": USERS[1:2]},
    {"keep_posts": [ANSWERS[0]["Id"]], "min_answer_score": 1000},
    {"keep_users": USERS, "limit": 1},
    {"keep_users": [10**12]},
]


@pytest.mark.parametrize("lists", CASES)
def test_keeps_listed_questions(lists: dict[str, Any], tmp_path: Path) -> None:
    expected = filtered(COMPLETE, **lists)
    options: dict[str, Any] = {"nest": TABLES, **lists, "jobs": 1, "chunk_bytes": 2000}
    report = so2docs.convert(SITE, tmp_path / "q.jsonl", **options)
    assert jsonl(tmp_path / "q.jsonl") == expected
    assert report.questions == len(expected) < len(COMPLETE)
    assert report.filtered
    assert list(so2docs.documents(SITE, nest=TABLES, **lists)) == expected


@pytest.mark.parametrize("lists", CASES[2:4])
def test_counts_every_row_once_in_divided_buckets(
    lists: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options: Any = {"nest": TABLES, "jobs": 1, **lists}
    whole = so2docs.convert(SITE, tmp_path / "whole.jsonl", **options)
    monkeypatch.setattr(second_pass, "PART_BYTES_NESTED", 500)
    divided = so2docs.convert(SITE, tmp_path / "divided.jsonl", **options)
    divided.check()
    assert (divided.filtered, divided.strays) == (whole.filtered, whole.strays)
    assert jsonl(tmp_path / "divided.jsonl") == jsonl(tmp_path / "whole.jsonl")


def test_forms_of_a_list(tmp_path: Path) -> None:
    ids = [COMPLETE[0]["Id"], ANSWERS[-1]["Id"]]
    expected = filtered(COMPLETE, keep_posts=ids)
    path = tmp_path / "ids.txt"
    path.write_text("# Mine\n" + "\n".join(map(str, ids)))
    forms: list[Any] = [ids, tuple(ids), iter(ids), ", ".join(map(str, ids)), path, str(path)]
    for form in forms:
        assert list(so2docs.documents(SITE, nest=TABLES, keep_posts=form)) == expected
    arguments = ("--keep-posts", ",".join(map(str, ids)), "--nest", ",".join(TABLES))
    run("convert", SITE, tmp_path / "c.jsonl", *arguments, "--card", code=0)
    assert jsonl(tmp_path / "c.jsonl") == expected
    assert "--keep-posts FILE" in (tmp_path / "README.md").read_text()
    records = so2docs.documents(SITE, recipe="hub", keep_posts=ids, site="a.example.com")
    assert len(list(records)) == len(expected)


@pytest.mark.parametrize("value", ["nowhere.txt", "1,x", "1.5", [10**19], ["x"], ""])
def test_an_unreadable_list(value: Any) -> None:
    with pytest.raises(so2docs.OptionError, match="keep_users"):
        so2docs.documents(SITE, keep_users=value)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"12\n13\nJoe\n", "line 3 is 'Joe'; each line must be an id such as 1234"),
        (b"1.5", "line 1 is '1.5'"),
        (b"1" * 19, "line 1 is '1111"),
        (b"12 13", "line 1 is '12 13'"),
        (b"\xff\xfe1\0", "is not UTF-8 text"),
        (None, "cannot be read: No such file or directory; give ids, or a file"),
    ],
)
def test_an_unreadable_file(content: bytes | None, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(so2docs.OptionError) as error:
        so2docs.documents(SITE, drop_posts=path)
    assert f"drop_posts: {path}" in str(error.value)
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("module", "name", "calls"), [(table, "read_chunk", 2), (bucket, "merge_bucket", 0)]
)
def test_a_resumed_conversion_keeps_the_same(
    module: Any, name: str, calls: int, tmp_path: Path
) -> None:
    """The spill has the posts that each chunk found."""
    options: Any = {"keep_users": USERS[:1], "jobs": 1, "chunk_bytes": 500}
    so2docs.convert(SITE, tmp_path / "expected.jsonl", **options)
    with stopped(module, name, calls):
        so2docs.convert(SITE, tmp_path / "q.jsonl", **options)
    assert so2docs.convert(SITE, tmp_path / "q.jsonl", **options).resumed
    assert (tmp_path / "q.jsonl").read_bytes() == (tmp_path / "expected.jsonl").read_bytes()


@pytest.mark.long
def test_tasks_do_not_grow_with_the_lists(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Workers map the lists and read the marks of a bucket: no id is sent to them."""
    sizes: list[int] = []
    merge_bucket = bucket.merge_bucket

    def measure(task: BucketTask, result: BucketResult) -> None:
        sizes.append(len(pickle.dumps(replace(task, blocks=[]))))
        merge_bucket(task, result)

    monkeypatch.setattr(bucket, "merge_bucket", measure)
    ids = [*range(1, 100_000)]
    options: dict[str, Any] = {
        "keep_users": ids,
        "keep_posts": ids,
        "drop_posts": [10**9, *ids[5:]],
    }
    so2docs.convert(SITE, tmp_path / "q.jsonl", jobs=1, **options)
    assert 0 < max(sizes) < 20_000
