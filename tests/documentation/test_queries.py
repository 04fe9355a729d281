"""The view of answers in docs/queries.md has what the XML of a published dump says."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import chdir
from datetime import datetime
from pathlib import Path

import pytest
from support.flat_oracle import rows_of
from support.places import CHECKOUT

import so2docs
from so2docs.schema import DUMP

COLUMNS = """question_id, answer_id, asker, answerer, place, round(minutes * 60000), is_accepted,
    question_length, answer_length, Tags"""


@pytest.mark.long
def test_answers(unpacked_dumps: Path, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    site = unpacked_dumps / "beer.stackexchange.com"
    posts = rows_of(site / "Posts.xml", DUMP["posts"])
    users = rows_of(site / "Users.xml", DUMP["users"])
    names = {user["Id"]: user["DisplayName"] for user in users}
    questions = {post["Id"]: post for post in posts if post["PostTypeId"] == 1}
    answers = [post for post in posts if post["PostTypeId"] == 2]
    places: Counter[int] = Counter()
    expected = []
    for answer in sorted(answers, key=lambda post: (post["CreationDate"], post["Id"])):
        question = questions[answer["ParentId"]]
        places[question["Id"]] += 1
        start, end = (datetime.fromisoformat(p["CreationDate"]) for p in (question, answer))
        expected.append(
            (
                *(question["Id"], answer["Id"]),
                *(names.get(post["OwnerUserId"]) for post in (question, answer)),
                places[question["Id"]],
                round((end - start).total_seconds() * 1000),
                question["AcceptedAnswerId"] == answer["Id"],
                *(len(question["Body"]), len(answer["Body"]), question["Tags"]),
            )
        )
    so2docs.tables(site, tmp_path / "sample", only="posts,users")
    page = (CHECKOUT / "docs" / "queries.md").read_text(encoding="utf-8")
    views, answers_table, *_ = re.findall(r"^```sql\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    with chdir(tmp_path), duckdb.connect() as connection:
        connection.execute(views + answers_table)
        order = "ORDER BY CreationDate, answer_id"
        assert connection.execute(f"SELECT {COLUMNS} FROM answers {order}").fetchall() == expected
    assert len(expected) > 2000
