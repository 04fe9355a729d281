"""Which of several acceptances of a question is restored."""

from pathlib import Path
from typing import Any

import pytest
from support.dumps import answer, question, row, write_dump

import so2docs

DAY = "2020-01-{:02}T00:00:00.000"


@pytest.mark.parametrize(
    ("accepted", "day", "restored"),
    [
        ({}, 2, None),
        ({}, 4, 2),  # Answer 4 was accepted later.
        ({"AcceptedAnswerId": 2}, 8, 2),  # That of the dump, if it was accepted by then.
        ({"AcceptedAnswerId": 4}, 8, 4),
        ({"AcceptedAnswerId": 3}, 8, 4),  # Otherwise that of the latest answer.
        ({}, 8, 4),
    ],
)
def test_the_acceptance_of_a_date(
    accepted: dict[str, Any], day: int, restored: int | None, tmp_path: Path
) -> None:
    date = {"CreationDate": DAY.format(1)}
    posts = [question(1, Title="t", Body="<p>b</p>", Tags="|a|", Score=0, **accepted, **date)]
    posts += [answer(number, 1, Body="<p>b</p>", Score=0, **date) for number in (2, 3, 4)]
    history = [
        row(Id=n, PostHistoryTypeId=2, PostId=n, RevisionGUID=f"g{n}", Text="b", **date)
        for n in (1, 2, 3, 4)
    ]
    votes = [
        row(Id=n, PostId=post, VoteTypeId=1, CreationDate=DAY.format(n))
        for n, post in ((3, 2), (5, 4))
    ]
    write_dump(tmp_path / "Posts.xml", *posts)
    write_dump(tmp_path / "PostHistory.xml", *history)
    write_dump(tmp_path / "Votes.xml", *votes)
    with so2docs.documents(tmp_path, as_of=f"2020-01-{day:02}", jobs=1) as documents:
        [document] = list(documents)
    assert document.get("AcceptedAnswerId") == restored
