"""Answers of merged questions stand where they were on the date."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.dumps import answer, question, row
from support.restored import check_any_way, event, write_site

import so2docs
from so2docs.options.choices import Core

Row = dict[str, Any]

FAR = 1 << 15
"""Id of a question in another bucket than those of the others."""
GONE = 99
"""Id of a question that was deleted after the merge."""


def date(month: int) -> str:
    return f"2020-{month:02}-01T00:00:00.000"


def merge(number: int, post_id: int, month: int, origin: int) -> bytes:
    comment = f"from http://ale.stackexchange.com/questions/{origin}/a-title"
    return event(number, post_id, 38, date(month), Comment=comment)


def post(id_: int, month: int, parent_id: int = 0) -> bytes:
    dated: Row = {"CreationDate": date(month), "Body": "b", "Score": 0}
    if parent_id:
        return answer(id_, parent_id, **dated)
    return question(id_, Title=f"t{id_}", Tags="<a>", **dated)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """A site with answers that came to other questions: 2 to 3, 5 to FAR, 7 by way of 3 to FAR."""
    posts = [
        post(1, 1),
        post(2, 2, 3),
        post(3, 3),
        post(4, 1),
        post(5, 2, FAR),
        post(6, 2, 4),
        post(7, 2, FAR),
        post(8, 2, FAR),
        post(FAR, 3),
        post(FAR + 1, 3, FAR),
    ]
    history = [
        merge(1, 2, 6, 1),
        merge(2, 3, 6, 1),
        merge(3, 5, 6, 4),
        merge(4, 7, 5, 1),
        merge(5, 7, 7, 3),
        merge(6, 8, 6, GONE),
        event(7, 1, 37, date(6)),
        merge(8, FAR, 7, 3),
    ]
    votes = [
        row(Id=i, PostId=id_, VoteTypeId=2, CreationDate=date(2))
        for i, id_ in enumerate((2, 2, 5, 6, 7, 7, 7, 8), 1)
    ]
    comments = [
        row(Id=i, PostId=id_, CreationDate=date(2), Text="t", Score=i)
        for i, id_ in enumerate((2, 5, 6, 7, 8), 1)
    ]
    return write_site(tmp_path / "dump", posts, history, Votes=votes, Comments=comments)


EXPECTED = {
    2: {1: [2, 7], 4: [5, 6]},
    4: {1: [2, 7], 3: [], 4: [5, 6], FAR: [FAR + 1]},
    5: {1: [2], 3: [7], 4: [5, 6], FAR: [FAR + 1]},
    6: {1: [], 3: [2, 7], 4: [6], FAR: [5, 8, FAR + 1]},
    7: {1: [], 3: [2], 4: [6], FAR: [5, 7, 8, FAR + 1]},
}
"""Answers by question, by the month of the date."""


def restore(dump: Path, month: int, **options: Any) -> dict[int, Row]:
    with so2docs.documents(dump, as_of=date(month), **options) as documents:
        return {document["Id"]: dict(document) for document in documents}


@pytest.mark.parametrize("month", EXPECTED)
def test_answers_belong_to_their_question_of_the_date(dump: Path, month: int, core: Core) -> None:
    votes = {2: 2, 5: 1, 6: 1, 7: 3, 8: 1}
    for nest in ({}, {"nest": "comments,votes,history"}):
        posts = restore(dump, month, core=core, **nest)
        assert {id_: [a["Id"] for a in q["Answers"]] for id_, q in posts.items()} == EXPECTED[month]
        for id_, asked in posts.items():
            assert asked["AnswerCount"] == len(asked["Answers"])
            for given in asked["Answers"]:
                assert given["ParentId"] == id_
                assert given["Score"] == votes.get(given["Id"], 0)
                assert given["CommentCount"] == (given["Id"] in votes)
                if nest:
                    assert len(given["Comments"]) == given["CommentCount"]
                    assert given["Votes"].get("UpMod", 0) == given["Score"]


def test_filters_count_the_answers_of_the_date(dump: Path, core: Core) -> None:
    assert restore(dump, 4, core=core, min_answers=2).keys() == {1, 4}
    assert restore(dump, 6, core=core, min_answers=2).keys() == {3, FAR}


def test_an_answer_to_a_deleted_question_is_a_stray(dump: Path, tmp_path: Path, core: Core) -> None:
    for month, strays in ((4, {"question_not_in_dump": 1}), (6, {})):
        options: Row = {"as_of": date(month), "core": core, "nest": "comments,votes,history"}
        report = so2docs.convert(dump, tmp_path / f"{month}.jsonl", **options)
        assert report.strays == strays
        assert (report.questions, report.answers) == (4, 6 - len(strays))


def test_the_same_bytes_in_any_way(dump: Path, tmp_path: Path) -> None:
    def convert(source: Path, path: Path, **way: Any) -> tuple[so2docs.Report, bytes]:
        output, nest = path.with_suffix(".jsonl"), "comments,votes,history"
        report = so2docs.convert(source, output, as_of=date(4), nest=nest, **way)
        return report, output.read_bytes()

    check_any_way(dump, tmp_path, convert, (300, 600))


def test_flat_tables_follow(dump: Path, tmp_path: Path) -> None:
    so2docs.tables(dump, tmp_path / "flat", as_of=date(4), only="posts")
    rows = pq.read_table(tmp_path / "flat" / "Posts.parquet").to_pylist()
    assert {r["Id"]: r["ParentId"] for r in rows if r["PostTypeId"] == 2} == {
        2: 1, 7: 1, 5: 4, 6: 4, FAR + 1: FAR
    }  # fmt: skip
