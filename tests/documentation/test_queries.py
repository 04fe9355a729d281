"""The queries of docs/queries.md run on a published dump, and give what the XML says."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import py7zr
import pytest
from support.command import run_python
from support.flat_oracle import Row, rows_of
from support.places import CHECKOUT, DUMPS, NO_DUMPS

from so2docs.schema import DUMP

pytestmark = pytest.mark.long
ARCHIVE = DUMPS / "archives" / "beer.stackexchange.com.7z"
PAGE = (CHECKOUT / "docs" / "queries.md").read_text(encoding="utf-8")


def block(heading: str, language: str) -> str:
    """Return the code under a heading; without a heading, at the start of the page."""
    match = re.search(rf"^```{language}\n(.*?)^```", section(heading), re.DOTALL | re.MULTILINE)
    assert match is not None
    return match[1]


def section(heading: str) -> str:
    """Return the text under a heading."""
    sections = re.split(r"^##? ", PAGE, flags=re.MULTILINE)
    (text,) = [part for part in sections if part.startswith(heading)]
    return text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not ARCHIVE.exists():
        pytest.skip(NO_DUMPS)
    folder = tmp_path_factory.mktemp("queries")
    (folder / "sample.stackexchange.com.7z").symlink_to(ARCHIVE)
    with py7zr.SevenZipFile(ARCHIVE) as archive:
        archive.extract(folder / "xml", targets=["Posts.xml", "Users.xml"])
    shell(block("Queries over", "console").splitlines()[-1].removeprefix("$ "), folder)
    return folder


def shell(command: str, folder: Path) -> None:
    program, *arguments = command.split()
    assert program == "so2docs"
    run_python("-m", "so2docs", *arguments, cwd=folder)


@pytest.fixture(scope="module")
def database(folder: Path) -> Any:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.execute(f"SET file_search_path = '{folder}'")
        connection.execute(block("Queries over", "sql"))
        connection.execute(block("One row", "sql"))
        yield connection


@pytest.fixture(scope="module")
def posts(folder: Path) -> list[Row]:
    return rows_of(folder / "xml" / "Posts.xml", DUMP["posts"])


@pytest.fixture(scope="module")
def pairs(posts: list[Row]) -> list[tuple[Row, Row]]:
    """Pair every question with each of its answers, in chronological order."""
    answers = sorted(
        (post for post in posts if post["PostTypeId"] == 2),
        key=lambda post: (post["CreationDate"], post["Id"]),
    )
    questions = {post["Id"]: post for post in posts if post["PostTypeId"] == 1}
    return [(questions[post["ParentId"]], post) for post in answers]


def minutes(question: Row, answer: Row) -> float:
    start, end = (datetime.fromisoformat(post["CreationDate"]) for post in (question, answer))
    return (end - start).total_seconds() / 60


def test_answers(folder: Path, database: Any, pairs: list[tuple[Row, Row]]) -> None:
    users = rows_of(folder / "xml" / "Users.xml", DUMP["users"])
    names = {user["Id"]: user["DisplayName"] for user in users}
    places: Counter[int] = Counter()
    expected = []
    for question, answer in pairs:
        places[question["Id"]] += 1
        people = [names.get(post["OwnerUserId"]) for post in (question, answer)]
        expected.append(
            (
                *(question["Id"], answer["Id"], *people, places[question["Id"]]),
                round(minutes(question, answer) * 60_000),
                question["AcceptedAnswerId"] == answer["Id"],
                *(len(question["Body"]), len(answer["Body"]), question["Tags"]),
            )
        )
    rows = database.execute(
        "SELECT question_id, answer_id, asker, answerer, place, round(minutes * 60000), "
        "is_accepted, question_length, answer_length, Tags "
        "FROM answers ORDER BY CreationDate, answer_id"
    ).fetchall()
    assert len(rows) > 2000
    assert rows == expected
