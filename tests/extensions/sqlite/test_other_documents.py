"""JSON lines of other programs are returned unchanged, or refused."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import so2docs
from so2docs.errors import OutputError
from so2docs.extensions.sqlite.about import connect_to_site, read_about
from so2docs.extensions.sqlite.rows import stored_documents

Document = dict[str, Any]

QUESTION: Document = {
    "Id": 1,
    "PostTypeId": 1,
    "Score": 1,
    "Title": "t",
    "Body": "<p>b</p>",
    "Tags": ["a"],
    "Answers": [],
}
ANSWER: Document = {"Id": 2, "PostTypeId": 2, "ParentId": 1, "Score": 1, "Body": "x"}


def question(**more: Any) -> Document:
    return {**QUESTION, **more}


def answer(**more: Any) -> Document:
    return question(Answers=[{**ANSWER, **more}])


def lines(path: Path, documents: list[Any]) -> Path:
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    return path


def stored(path: Path) -> list[Document]:
    about = read_about(str(path))
    (site,) = about.sites
    with closing(connect_to_site(about, site)) as connection:
        return list(stored_documents(connection))


KEPT: dict[str, list[Document]] = {
    "integers of 64 bits": [question(Score=2**63 - 1, ViewCount=-(2**63))],
    "an unknown integer of 64 bits": [question(Foo=2**64 - 1)],
    "booleans": [question(Score=True, ViewCount=False)],
    "fractions": [question(Score=1.5)],
    "null": [question(Score=None, Title=None, Tags=None, Owner=None)],
    "a title that is no string": [question(Title={"en": "t"}), question(Id=3, Title=["t"])],
    "odd tags": [question(Tags=[1, None, True, {"x": 1}]), question(Id=3, Tags=["a", "a", ""])],
    "names of columns": [question(Other={"a": 1}, Row=5, Position=6, QuestionId=9, score=2)],
    "names of columns in an answer": [answer(Position="9", Other="o", Row=1, Answers="q")],
    "nested": [question(Foo="bar", Nested={"a": [1, {"b": None}]})],
    "no votes": [question(Votes={})],
    "an owner of another id": [question(OwnerUserId=3, Owner={"Id": 4, "DisplayName": "x"})],
    "an owner whose id is a string": [question(OwnerUserId="3", Owner={"Id": "3"})],
    "more of an owner": [question(OwnerUserId=3, Owner={"Id": 3, "Foo": 1, "Other": "z"})],
    "answers nowhere": [{"Id": 1}, {"Id": 2}],
    "a history": [
        question(
            History=[
                {
                    "Id": 3,
                    "PostId": 1,
                    "Events": ["EditBody"],
                    "Body": "b",
                    "UserId": 77,
                    "Voters": [{"Id": 5}],
                }
            ],
            Closed={"Reason": "r"},
            Revisions=1,
            Editors=[{"UserId": 77}],
            BodyMarkdown="b",
            OwnerUserId=3,
            Owner={"Id": 3},
        )
    ],
    "a history of another make": [
        question(
            History=[{"Id": 3, "PostId": 1, "Events": "x", "Body": 5, "OriginalQuestionIds": 5}],
            Closed="yes",
            Revisions="3",
            Editors={"a": None},
            BodyMarkdown=7,
        )
    ],
    "answers that are null": [question(Answers=None)],
    "the order of comments": [
        QUESTION | {"Comments": [{"Id": 5, "PostId": 1}, {"Id": 3, "PostId": 1}]}
    ],
    "comments of some": [question(Comments=[]), question(Id=7)],
    "parents of some": [question(Answers=[{"Id": 2}, {**ANSWER, "Id": 3}])],
    "two names of a user": [
        question(
            OwnerUserId=3,
            Owner={"Id": 3, "DisplayName": "x"},
            Answers=[{**ANSWER, "OwnerUserId": 3, "Owner": {"Id": 3, "DisplayName": "y"}}],
        )
    ],
}
REFUSED: dict[str, tuple[list[Any], str]] = {
    "over 63 bits": ([QUESTION, question(Id=3, Score=2**63)], "line 2: Score: has more than 64"),
    "over 64 bits": ([question(Score=2**64)], "line 1: Score: has more than 64 bits"),
    "an id over 63 bits": ([question(Id=2**63)], "line 1: Id: has more than 64 bits"),
    "over 63 bits in an answer": ([answer(Score=-(2**63) - 1)], "Answers.Score: has more than"),
    "over 63 bits in a user": (
        [question(OwnerUserId=3, Owner={"Id": 3, "Reputation": 2**63})],
        "line 1: Owner.Reputation: has more than 64 bits",
    ),
    "over 63 bits in a comment": (
        [question(Comments=[{"Id": 5, "Score": 2**63}])],
        "line 1: Comments.Score: has more than 64 bits",
    ),
    "votes over 63 bits": ([question(Votes={"UpMod": 2**63})], "line 1: Votes.UpMod: is not an"),
    "an id that is a boolean": ([question(Id=True)], "line 1: Id: is missing or not an integer"),
    "no id": ([QUESTION, {"Title": "x"}], "line 2: Id: is missing or not an integer"),
    "no id of a comment": ([answer(Comments=[{}])], "line 1: Answers.Comments.Id: is missing"),
    "a number": ([QUESTION, 5], "line 2"),
    "votes": ([question(Votes="3")], "line 1: Votes: is not an object"),
    "votes of an answer": ([answer(Votes=[1])], "line 1: Answers.Votes: is not an object"),
    "comments": ([question(Comments="3")], "line 1: Comments: is not an array"),
    "a comment": ([question(Comments=["3"])], "line 1: Comments: is not an object"),
    "links": ([question(Links=5)], "line 1: Links: is not an array"),
    "an owner": ([question(Owner="bob", OwnerUserId=3)], "line 1: Owner: is not an object"),
    "answers": ([question(Answers="3")], "line 1: Answers: is not an array"),
    "tags": ([question(Tags="<a>")], "line 1: Tags: is not an array"),
    "another post's answer": ([answer(ParentId=9)], "line 1: Answers.ParentId: is 9 within post 1"),
    "another post's comment": (
        [question(Comments=[{"Id": 1, "PostId": 9}])],
        "line 1: Comments.PostId: is 9 within post 1",
    ),
    "a question twice": (
        [QUESTION, question(Id=3), QUESTION],
        "q.jsonl: questions: Id 1 occurs twice",
    ),
    "an answer in two questions": (
        [answer(), {**question(Id=5), "Answers": [{**ANSWER, "ParentId": 5}]}],
        "q.jsonl: answers: Id 2 occurs twice",
    ),
    "a comment twice": (
        [question(Comments=[{"Id": 5}]), question(Id=9, Comments=[{"Id": 5}])],
        "q.jsonl: comments: Id 5 occurs twice",
    ),
    "nested too deep": ([question(Foo=json.loads("[" * 300 + "]" * 300))], "line 1: Foo: cannot"),
}


def test_documents_come_back(tmp_path: Path) -> None:
    for name, documents in KEPT.items():
        source, path = lines(tmp_path / "q.jsonl", documents), tmp_path / f"{name}.db"
        so2docs.to_sqlite(source, path)
        assert stored(path) == documents, name
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == [], name


def test_the_state_of_posts_has_columns(tmp_path: Path) -> None:
    so2docs.to_sqlite(KEPT["a history"], tmp_path / "q.db")
    with closing(sqlite3.connect(tmp_path / "q.db")) as connection:
        sql = "SELECT Closed ->> 'Reason', Revisions, Editors, BodyMarkdown, Other FROM questions"
        assert connection.execute(sql).fetchall() == [("r", 1, '[{"UserId":77}]', "b", None)]
        last = [row[1] for row in connection.execute("PRAGMA table_info(questions)")][-2:]
        assert last == ["Body", "BodyMarkdown"]


def test_rejects_documents_that_cannot_be_stored(tmp_path: Path) -> None:
    for name, (documents, message) in REFUSED.items():
        source = lines(tmp_path / "q.jsonl", documents)
        with pytest.raises(OutputError) as refused:
            so2docs.to_sqlite(source, tmp_path / "q.db")
        assert message in str(refused.value), name
        assert str(source) in str(refused.value)
        assert [path.name for path in tmp_path.iterdir()] == ["q.jsonl"]


MANY = [
    question(Id=10 * n, Title=f"Title {n}", OwnerUserId=n % 9 + 1, Owner={"Id": n % 9 + 1},
             Answers=[{**ANSWER, "Id": 10 * n + 1, "ParentId": 10 * n}] * (n % 3 > 0))
    for n in range(1, 1201)
]  # fmt: skip
"""Rows of some batches, which are made in processes of their own."""


@pytest.mark.parametrize("site_field", [None, "Site"])
def test_a_database_is_the_same_for_any_number_of_jobs(
    site_field: str | None, tmp_path: Path
) -> None:
    source = lines(tmp_path / "q.jsonl", MANY)
    contents = []
    for jobs in (1, 2, 3):
        (tmp_path / str(jobs)).mkdir()
        path = tmp_path / str(jobs) / "q.db"
        database = so2docs.to_sqlite(source, path, jobs=jobs, site_field=site_field)
        assert database.rows["answers"] == 800
        contents.append(path.read_bytes())
    assert contents[0] == contents[1] == contents[2]
    assert stored(path) == MANY
    with closing(sqlite3.connect(path)) as connection:
        row = "Row" if site_field else "Id"
        sql = (
            f"SELECT q.Id FROM texts_fts s JOIN questions q ON q.{row} = s.rowid "
            "WHERE texts_fts MATCH ?"
        )
        assert connection.execute(sql, ["1180"]).fetchall() == [(11800,)]


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (json.dumps(question(Id=5, Score=2**63)), "line 1,201: Score: has more than 64 bits"),
        ("{", "line 1,201 is not JSON"),
    ],
)
def test_errors_of_later_batches_name_the_line(last: str, message: str, tmp_path: Path) -> None:
    source = lines(tmp_path / "q.jsonl", MANY)
    with source.open("a") as file:
        file.write(f"{last}\n")
    with pytest.raises(OutputError) as refused:
        so2docs.to_sqlite(source, tmp_path / "q.db", jobs=3)
    assert message in str(refused.value)
    assert str(refused.value).count(str(source)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["q.jsonl"]


def test_rejects_a_site_other_than_a_string(tmp_path: Path) -> None:
    source = lines(tmp_path / "q.jsonl", [question(Site="5"), question(Id=3, Site=5)])
    with pytest.raises(OutputError, match="line 2: Site: is not a string"):
        so2docs.to_sqlite(source, tmp_path / "q.db", site_field="Site")


def test_documents_of_a_program_are_named(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="the documents: questions: Id 7 occurs twice"):
        so2docs.to_sqlite([question(Id=7), question(Id=7)], tmp_path / "q.db")
    with pytest.raises(OutputError, match="the documents: document 2: Score: has more than 64"):
        so2docs.to_sqlite([question(), question(Id=7, Score=2**63)], tmp_path / "q.db")
