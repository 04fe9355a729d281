"""Filters give the same documents as filtering the complete output, and count the other rows."""

import gzip
import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.dumps import answer, question, row, write_dump
from support.filtering import filtered
from support.flat_oracle import read_back
from support.formats_read_back import jsonl, parquet
from support.oracle import nest
from support.places import SAMPLES

import so2docs
from so2docs.domain import sample_place
from so2docs.parse.filters import choose_sample, sampled_id
from so2docs.schema import DUMP

COMBINATIONS: list[dict[str, Any]] = [
    {"tags": ["discussion"]},
    {"tags": ["Discussion", "bug", "c#"], "min_score": 3},
    {"tags": ["discussion", "feature-request"], "all_tags": True},
    {"tags": ["disc*", "?ug"], "min_score": 2},
    {"tags": ["*-*", "disc*"], "all_tags": True},
    {"min_score": 5, "min_answer_score": 5},
    {"min_answer_score": 0, "limit": 7},
    {"answered": True, "limit": 100_000},
    {"min_answers": 2, "max_body": 1000},
    {"max_answers": 1},
    {"min_answers": 1, "max_answers": 2},
    {"max_body": 300, "min_score": 1},
    {"drop_fabricated": True},
    {"accepted": True, "since": "2011-01-01"},
    {"since": "2012-06-01", "until": "2016-01-01T12:30:00"},
    {"until": "2013-01-01T00:00:00.000", "answered": True},
    {"sample": "10%"},
    {"sample": "30%", "min_score": 1, "min_answer_score": 1, "tags": ["discussion", "support"]},
    {"sample": "50%", "limit": 3, "fields": "Id,Title,Answers.Body"},
    {"sample_size": 2},
    {"sample_size": 40, "min_score": 3, "keep_users": [*range(1, 2000)]},
    {"fields": "Answers.Id"},
    {"fields": "Title,Tags"},
    {"fields": "Id,Answers", "limit": 1},
    {"drop_fields": "Body,Answers.Body,Answers.Score"},
    {"drop_fields": "Id,PostTypeId,Answers"},
    {"drop_fields": "Body", "accepted": True},
]

DATE = "2020-01-02T03:04:05.678"
AT_THE_BOUNDARY: list[tuple[str, Any, Any, Any, int]] = [
    ("min_score", 4, 5, 6, 1),
    ("min_answers", 1, 2, 3, 1),
    ("max_answers", 3, 2, 1, 1),
    ("max_body", 21, 20, 19, 1),
    ("since", "2020-01-02T03:04:05.677", DATE, "2020-01-02T03:04:05.679", 1),
    ("until", "2020-01-02T03:04:05.680", "2020-01-02T03:04:05.679", DATE, 1),
    ("min_answer_score", 2, 3, 4, 2),
    ("tags", "a,z", "B", "c", 1),
    ("sample", "100%", "97%", "96%", 1),
]
"""A filter; values that let a post pass, just let it pass, and just leave it out; its id."""


@pytest.mark.parametrize(("name", "wide", "just", "narrow", "post"), AT_THE_BOUNDARY)
def test_a_value_at_the_boundary_passes(
    name: str, wide: Any, just: Any, narrow: Any, post: int, tmp_path: Path
) -> None:
    dump = write_dump(
        tmp_path / "Posts.xml",
        question(1, Score=5, AnswerCount=2, Body="x" * 20, CreationDate=DATE, Tags="|A|b|"),
        answer(2, 1, Score=3, Body="x", CreationDate=DATE),
        answer(3, 1, Score=9, Body="x", CreationDate=DATE),
    )
    for value, passes in ((wide, True), (just, True), (narrow, False)):
        documents = list(so2docs.documents(dump, jobs=1, **{name: value}))
        ids = [post["Id"] for q in documents for post in (q, *q["Answers"])]
        assert (post in ids) == passes, value
        flat = {"jobs": 1, "only": "posts", "format": "jsonl", "force": True}
        so2docs.tables(dump, tmp_path / "flat", **flat, **{name: value})
        rows = read_back(tmp_path / "flat", DUMP["posts"], "jsonl")
        assert [row["Id"] for row in rows] == ids


def name_of(options: dict[str, Any]) -> str:
    return "-".join(f"{name}={value}" for name, value in options.items())


def convert(dump: Path, output: Path, **options: Any) -> tuple[list[Any], so2docs.Report]:
    report = so2docs.convert(dump, output, jobs=options.pop("jobs", 1), **options)
    return jsonl(output), report


def assert_same(actual: list[Any], expected: list[Any]) -> None:
    assert [json.dumps(document) for document in actual] == [
        json.dumps(document) for document in expected
    ]


@pytest.fixture(scope="module")
def whole(
    dumps: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[Any], so2docs.Report]:
    """A published dump, all its documents, and the report of their conversion."""
    folder = tmp_path_factory.mktemp("whole")
    dump = folder / "Posts.xml"
    packed = dumps / "linguistics.meta-2020-12" / "Posts.xml.gz"
    dump.write_bytes(gzip.decompress(packed.read_bytes()))
    return dump, *convert(dump, folder / "complete.jsonl")


@pytest.mark.parametrize("options", COMBINATIONS, ids=name_of)
def test_real_dump(
    options: dict[str, Any], whole: tuple[Path, list[Any], so2docs.Report], tmp_path: Path
) -> None:
    dump, complete, everything = whole
    actual, report = convert(dump, tmp_path / "found.jsonl", **options)
    expected = filtered(complete, **options)
    assert expected
    assert_same(actual, expected)
    assert report.filtered == everything.questions + everything.answers - (
        report.questions + report.answers
    )
    assert report.strays == everything.strays
    assert report.other_types == everything.other_types


def test_sample(tmp_path: Path) -> None:
    sample = SAMPLES / "strays.xml"
    complete = nest(sample).documents
    everything = so2docs.convert(sample, tmp_path / "complete.jsonl", jobs=1)
    for number, options in enumerate(COMBINATIONS):
        output = tmp_path / f"{number}.jsonl"
        documents, report = convert(sample, output, chunk_bytes=700, **options)
        assert_same(documents, filtered(complete, **options))
        assert sum(report.strays.values()) <= sum(everything.strays.values())


MADE_UP = "1000000007"
POSTS = st.lists(
    st.fixed_dictionaries(
        {
            "PostTypeId": st.sampled_from(["1", "1", "2", "2", "2", "+1", "5"]),
            "Id": st.sampled_from(
                ["1", "2", "3", "4", "5", "6", "7", "8", "9", "05", "+6", "x", MADE_UP]
            ),
            "ParentId": st.sampled_from(["1", "2", "3", "4", "5", "6", "7", "8", "9", "03"]),
        },
        optional={
            "Score": st.sampled_from(["-2", "0", "1", "2", "3", "many"]),
            "Tags": st.sampled_from(["", "|a|", "<a><b>", "|B|c|", "a"]),
            "CreationDate": st.sampled_from(["2020-01-01T00:00:00.000", "2021-05-05T12:00:00", ""]),
            "AnswerCount": st.sampled_from(["0", "1", "2"]),
            "AcceptedAnswerId": st.sampled_from(["2", "4"]),
            "Body": st.just("text"),
            "OwnerUserId": st.sampled_from(["1", "2", "-1", "+2"]),
            "LastEditorUserId": st.sampled_from(["1", "2"]),
        },
    ),
    max_size=24,
)
FILTERS: dict[str, st.SearchStrategy[Any]] = {
    "tags": st.lists(st.sampled_from(["a", "b", "C", "*b", "?"]), min_size=1),
    "min_score": st.integers(-2, 3),
    "min_answer_score": st.integers(-2, 3),
    "answered": st.booleans(),
    "min_answers": st.integers(0, 3),
    "max_answers": st.integers(0, 3),
    "max_body": st.integers(3, 5),
    "drop_fabricated": st.booleans(),
    "drop_users": st.sets(st.sampled_from([1, 2, 3, -1])),
    "drop_posts": st.sets(st.sampled_from([1, 3, 5, 6, 10**9 + 7])),
    "keep_users": st.sets(st.sampled_from([1, 2, 3, -1]), min_size=1),
    "keep_posts": st.sets(st.sampled_from([*range(1, 7), 10**9 + 7]), min_size=1),
    "accepted": st.booleans(),
    "since": st.sampled_from(["2020-01-01", "2021-01-01"]),
    "until": st.sampled_from(["2021-05-05T12:00:00", "2022-01-01"]),
    "sample": st.sampled_from(["20%", "50%", "80%", "100%"]),
    "limit": st.integers(1, 4),
    "sample_size": st.integers(1, 4),
    "answers_by": st.sampled_from(["id", "votes"]),
}
CHOICES: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {},
        {"fields": "Title"},
        {"fields": "Answers.Id"},
        {"drop_fields": "Answers"},
        {"drop_fields": "Id"},
    ]
)


@pytest.mark.long
@settings(max_examples=int(os.environ.get("SO2DOCS_EXAMPLES", "50")))
@given(rows=POSTS, options=st.fixed_dictionaries({}, optional=FILTERS), choice=CHOICES)
def test_any_posts_and_filters(
    rows: list[dict[str, str]], options: dict[str, Any], choice: dict[str, Any], tmp_path: Path
) -> None:
    if "Answers" in (choice.get("drop_fields"), choice.get("fields")) or choice == {
        "fields": "Title"
    }:
        options = {name: options[name] for name in options if name != "min_answer_score"}
    if "sample_size" in options:
        options = {name: options[name] for name in options if name not in ("limit", "sample")}
    dump = write_dump(tmp_path / "Posts.xml", *(row(**values) for values in rows))
    complete = nest(dump, options.get("answers_by", "id")).documents
    expected = filtered(complete, **options, **choice)
    for chunk_bytes in (None, 200):
        actual, report = convert(
            dump, tmp_path / "q.jsonl", chunk_bytes=chunk_bytes, force=True, **options, **choice
        )
        assert_same(actual, expected)
        assert report.questions == len(expected)
    assert_same(list(so2docs.documents(dump, **options, **choice)), expected)


VALUES = {
    "Score": st.sampled_from(["-2", "0", "3", "+3", "many"]),
    "Tags": st.sampled_from(["", "|a|", "<a><B>", "|A|c|", "a"]),
    "CreationDate": st.sampled_from(
        ["2020-01-01T00:00:00.000", "2021-05-05T12:00:00.5", "2021-02-30T00:00:00", "2021-02", ""]
    ),
    "AnswerCount": st.sampled_from(["0", "1", "2", "none"]),
    "AcceptedAnswerId": st.sampled_from(["12", "x"]),
    "Body": st.sampled_from(["text", "a longer text", "\u00fc\u00fc\u00fc"]),
}
NOT_OF_TABLES = {"limit", "answers_by", "drop_users", "drop_posts", "keep_users", "keep_posts"}
OF_TABLES = {name: FILTERS[name] for name in FILTERS.keys() - NOT_OF_TABLES}


@settings(max_examples=14)
@given(
    questions=st.lists(st.fixed_dictionaries({}, optional=VALUES), min_size=1, max_size=9),
    options=st.fixed_dictionaries({}, optional=OF_TABLES),
)
def test_documents_and_tables_have_the_same_questions(
    questions: list[dict[str, str]], options: dict[str, Any], tmp_path: Path
) -> None:
    if "sample" in options:
        options.pop("sample_size", None)
    posts = [row(Id=n, PostTypeId=1, **values) for n, values in enumerate(questions, 1)]
    posts += [
        row(Id=n + 10, PostTypeId=2, ParentId=n, **values) for n, values in enumerate(questions, 1)
    ]
    dump = write_dump(tmp_path / "Posts.xml", *posts)
    documents = list(so2docs.documents(dump, jobs=1, **options))
    so2docs.tables(dump, tmp_path / "flat", jobs=1, format="jsonl", force=True, **options)
    if not options.keys() <= {"since", "until", "drop_fabricated"}:
        rows = read_back(tmp_path / "flat", DUMP["posts"], "jsonl")
        ids = [post["Id"] for one in documents for post in (one, *one["Answers"])]
        assert sorted(row["Id"] for row in rows) == sorted(ids)
    if options.keys().isdisjoint({"since", "until"}):  # The oracle compares dates as texts.
        assert documents == filtered(list(so2docs.documents(dump, jobs=1)), **options)


def test_answers_of_rejected_questions_are_not_strays(tmp_path: Path) -> None:
    _, report = convert(SAMPLES / "posts.xml", tmp_path / "q.jsonl", min_score=1_000_000)
    everything = nest(SAMPLES / "posts.xml")
    assert (report.questions, report.answers, report.strays) == (0, 0, {})
    assert report.filtered == everything.questions + everything.answers
    assert "filtered" in str(report)


def test_samples_of_a_size_grow(tmp_path: Path) -> None:
    rows = [question(n * 6000, Score=n % 3) for n in range(1, 40)]
    rows += [answer(n * 6000 + 1, n * 6000) for n in range(1, 40)]
    rows += [question(6000), answer(8, 9), answer(12000, 6000)]  # Repeated, and without a question.
    write_dump(tmp_path / "Comments.xml", *(row(Id=n, PostId=n * 6000) for n in range(1, 40)))
    dump = write_dump(tmp_path / "Posts.xml", *reversed(rows[:60]), *rows[60:])
    complete = list(so2docs.documents(dump, min_score=1, nest="comments", jobs=1))
    smaller: set[int] = set()
    for size in (1, 3, 10):
        expected = filtered(complete, sample_size=size)
        options: dict[str, Any] = {"min_score": 1, "nest": "comments", "sample_size": size}
        for jobs, chunk_bytes in [(1, 700), (2, 300)] if size == 10 else [(1, None)]:
            output = tmp_path / f"{size}-{jobs}.jsonl"
            documents, report = convert(dump, output, jobs=jobs, chunk_bytes=chunk_bytes, **options)
            assert_same(documents, expected)
            assert report.questions == size
            assert report.tables["comments"].filtered == 39 - size
        assert_same(list(so2docs.documents(dump, jobs=1, **options)), expected)
        flat = {"min_score": 1, "sample_size": size, "only": "posts", "jobs": 1}
        so2docs.tables(dump, tmp_path / f"flat{size}", **flat)
        posts = parquet(tmp_path / f"flat{size}" / "Posts.parquet")
        ids = {document["Id"] for document in expected}
        assert {post["Id"] for post in posts if post["PostTypeId"] == 1} == ids
        assert smaller < ids
        smaller = ids


def test_a_sample_of_too_few_questions_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dump = write_dump(tmp_path / "Posts.xml", question(1), question(2, Score=1))
    convert(dump, tmp_path / "q.jsonl", sample_size=3)
    so2docs.tables(dump, tmp_path / "flat", sample_size=2, min_score=1)
    assert "sample_size=3: only 2 questions passed the filters" in caplog.text
    assert f"{dump}: sample_size=2: only 1 question passed the filters" in caplog.text


@pytest.mark.long
def test_memory_of_a_sample_depends_on_its_size() -> None:
    tracemalloc.start()
    try:
        sample = choose_sample(range(200_000), 10)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000 * (44 + 8)
    assert [sampled_id(key) for key in sample] == sorted(range(200_000), key=sample_place)[:10]


def test_limit_within_and_between_buckets(tmp_path: Path) -> None:
    ids = range(6000, 78_000, 6000)
    posts = [post for i in ids for post in (question(i), answer(i + 1, i))]
    dump = write_dump(tmp_path / "Posts.xml", *posts)
    for limit in (1, 2, 3, 5, 8, 11, 12, 13):
        for jobs in (1, 2) if limit == 5 else (1,):
            output = tmp_path / f"{limit}-{jobs}.jsonl"
            documents, report = convert(dump, output, limit=limit, jobs=jobs, chunk_bytes=500)
            assert [document["Id"] for document in documents] == [
                i * 6000 for i in range(1, 1 + min(limit, 12))
            ]
            assert report.filtered == 24 - 2 * len(documents)


@pytest.mark.parametrize("name", ["ravendb", "elasticsearch"])
def test_documents_without_any_field_are_still_json(name: Any, tmp_path: Path) -> None:
    output = tmp_path / "q.json" if name in ("json", "ravendb") else tmp_path / "q.jsonl"
    so2docs.convert(SAMPLES / "posts.xml", output, format=name, fields="ClosedDate", jobs=1)
    text = output.read_bytes()
    values = [json.loads(text)] if output.suffix == ".json" else map(json.loads, text.splitlines())
    assert list(values)


BODY = (
    "<p>Is <code>a &lt; b</code> <em>fine</em>?<br>See <a href='https://x.org'>x</a></p>\n\n"
    "<pre><code>if a:\n    b()\n</code></pre>\n\n<ul>\n<li>one</li>\n<li>two</li>\n</ul>\n"
)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("html", BODY),
        ("text", "Is a < b fine?\nSee x\n\nif a:\n    b()\n\n\n\none\ntwo"),
        (
            "markdown",
            "Is `a < b` *fine*?  \nSee [x](https://x.org)\n\n"
            "```\nif a:\n    b()\n```\n\n- one\n- two",
        ),
    ],
)
def test_bodies(body: Any, expected: str, tmp_path: Path) -> None:
    posts = [question(1, Body=BODY, Title="<p>"), answer(2, 1, Body=BODY), question(3, Body="")]
    dump = write_dump(tmp_path / "Posts.xml", *posts, question(4))
    (first, empty, none), _ = convert(dump, tmp_path / "q.jsonl", body=body)
    assert first["Body"] == first["Answers"][0]["Body"] == expected
    assert first["Title"] == "<p>"
    assert empty["Body"] == ""
    assert "Body" not in none


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, False),
        ({"limit": 3, "split": "1GB", "format": "elasticsearch"}, False),
        ({"format": "mongodb"}, False),
        ({"body": "text"}, False),
        ({"drop_fields": "Body"}, True),
        ({"sample": "1%"}, True),
        ({"fields": "Id"}, True),
        ({"nest": "all", "drop_fields": "Comments.UserId,Answers.Votes"}, False),
        ({"nest": "all", "drop_fields": "Body,Comments.UserId"}, True),
    ],
)
def test_needs_rows(options: dict[str, Any], expected: bool) -> None:
    from so2docs.options.output_form import output_form
    from so2docs.options.request import build_options, read_keywords
    from so2docs.options.table import OF_CONVERT
    from so2docs.pipeline.filing import needs_rows

    values = read_keywords(options, OF_CONVERT)
    built = build_options(values, output_form("q.jsonl", values), core="python")
    assert needs_rows(built) is expected


def test_the_made_up_answer_has_no_question(tmp_path: Path) -> None:
    documents, report = convert(SAMPLES / "strays.xml", tmp_path / "kept.jsonl")
    assert report.strays["answer_without_parent_id"] == report.fabricated == 1
    assert "made up              1 (ids above 1,000,000,000; drop_fabricated=True" in str(report)
    dropped, second_report = convert(
        SAMPLES / "strays.xml", tmp_path / "dropped.jsonl", drop_fabricated=True
    )
    assert dropped == documents
    assert not second_report.strays.get("answer_without_parent_id")
    assert (second_report.filtered, second_report.fabricated) == (1, 0)
    assert "made up" not in str(second_report)


def test_made_up_questions_and_answers_are_counted(tmp_path: Path) -> None:
    made_up = 1_000_000_001
    rows = [
        question(made_up, Body='"Id":5000000000'),
        answer(made_up + 1, made_up),
        row(Id=made_up + 2, PostTypeId=2, Body="no question"),
        answer(3, made_up),
        question(1),
        question(1_000_000_000),
    ]
    dump = write_dump(tmp_path / "Posts.xml", *rows)
    assert convert(dump, tmp_path / "all.jsonl")[1].fabricated == 3
    assert convert(dump, tmp_path / "some.jsonl", drop_fabricated=True)[1].fabricated == 0
    documents = so2docs.documents(dump)
    assert len(list(documents)) == 3
    assert documents.report.fabricated == 3


@pytest.mark.parametrize(
    "body", ["&#x1b;x", "<img alt='&#7;'>x", "<html><br>x", "<b>" * 3000 + "x"]
)
def test_text_of_any_body(body: str, tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "Posts.xml", question(1, Body=body))
    (document,) = so2docs.documents(dump, body="text")
    assert document["Body"].endswith("x")
