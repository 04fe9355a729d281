"""`drop_users` and `drop_posts`: no output contains listed data, and every row is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from support import oracle_tables
from support.dumps import answer, question, row, write_dump
from support.filtering import filtered
from support.formats_read_back import jsonl
from support.packed import seven_zip
from support.places import SAMPLES

import so2docs

SITE = SAMPLES / "site"
TABLES = ("comments", "users")


def rows(name: str) -> list[dict[str, str]]:
    return [row.attrib for row in ElementTree.parse(SITE / name).getroot()]


def some(values: list[str]) -> list[int]:
    """Return every third of the ids."""
    return sorted({int(value) for value in values})[::3]


USERS = some([row["OwnerUserId"] for row in rows("Posts.xml") if "OwnerUserId" in row])
POSTS = some([row["Id"] for row in rows("Posts.xml")])


def packed(path: Path) -> Path:
    """Pack the site in the order of published archives: comments precede posts."""
    return seven_zip(path, sorted(SITE.glob("*.xml")))


@pytest.fixture
def lists(tmp_path: Path) -> dict[str, Path]:
    paths = {"drop_users": tmp_path / "users.txt", "drop_posts": tmp_path / "posts.txt"}
    for path, ids in zip(paths.values(), (USERS, POSTS), strict=True):
        path.write_text("\ufeff# Taken down\r\n" + "\r\n".join(map(str, ids)), encoding="utf-8")
    return paths


@pytest.mark.parametrize(
    ("names", "options", "is_packed"),
    [
        (("drop_users",), {"core": "python"}, False),
        (("drop_posts",), {"core": "python"}, True),
        (("drop_users", "drop_posts"), {"jobs": 1, "chunk_bytes": 2000}, True),
        (("drop_users", "drop_posts"), {"jobs": 1}, False),
    ],
)
def test_drops_listed_users_and_posts(
    names: tuple[str, ...],
    options: Any,
    is_packed: bool,
    lists: dict[str, Path],
    tmp_path: Path,
) -> None:
    source = packed(tmp_path / "a.example.7z") if is_packed else SITE
    ids = {"drop_users": USERS, "drop_posts": POSTS}
    expected = filtered(
        oracle_tables.nest(SITE, set(TABLES)).documents, **{name: ids[name] for name in names}
    )
    output, chosen = tmp_path / "q.jsonl", {name: lists[name] for name in names}
    report = so2docs.convert(source, output, nest=TABLES, **chosen, **options)
    assert jsonl(output) == expected
    users = set(USERS) if "drop_users" in names else set()
    posts = set(POSTS) if "drop_posts" in names else set()
    dropped = [
        row
        for row in rows("Posts.xml")
        if int(row["Id"]) in posts or int(row.get("OwnerUserId", 0)) in users
    ]
    dropped += [row for row in rows("Comments.xml") if int(row.get("UserId", 0)) in users]
    assert report.dropped == len(dropped) > 0
    assert report.filtered >= report.dropped - report.tables["comments"].filtered
    assert f"dropped              {len(dropped)} by the lists of users and posts" in str(report)
    everything = output.read_text(encoding="utf-8")
    if report.strays_path:
        everything += Path(report.strays_path).read_text(encoding="utf-8")
    for post in map(json.loads, everything.splitlines()):
        assert post.get("OwnerUserId") not in users


@pytest.mark.parametrize("core", ["python", "auto"])
def test_bounties_and_edits_stay_without_their_dropped_users(core: Any, tmp_path: Path) -> None:
    posts = [question(1, OwnerUserId=7), answer(2, 1, OwnerUserId=8)]
    by = {"UserId": 5, "UserDisplayName": "Ada"}
    votes = [
        row(PostId=1, VoteTypeId=8, UserId=5, BountyAmount=50),
        row(PostId=1, VoteTypeId=8, UserId=7, BountyAmount=100),
        row(PostId="?", VoteTypeId=8, UserId=5, BountyAmount=50),
    ]
    edits = [
        row(Id=n, PostId=2, PostHistoryTypeId=5, RevisionGUID=f"g{n}", Text="b", **of)
        for n, of in enumerate([by, {"UserId": 8}])
    ]
    voters = '{"OriginalQuestionIds":[1],"Voters":[{"Id":5,"DisplayName":"Ada"},{"Id":8}]}'
    edits += [
        row(Id=7, PostId=1, PostHistoryTypeId=10, RevisionGUID="c", Comment="101", Text=voters),
        *(
            row(
                Id=n,
                PostId=1,
                PostHistoryTypeId=24,
                RevisionGUID=f"s{n}",
                Comment=f"Proposed by {proposer} approved by 7, {approver} edit id of 3",
            )
            for n, proposer, approver in ((10, 5, 8), (11, 8, 5), (12, 8, 9))
        ),
    ]
    for name, rows_of_table in (("Posts", posts), ("Votes", votes), ("PostHistory", edits)):
        write_dump(tmp_path / f"{name}.xml", *rows_of_table)
    write_dump(tmp_path / "Users.xml", *(row(Id=n, DisplayName=f"u{n}") for n in (5, 7, 8)))
    (tmp_path / "users.txt").write_text("5\n")
    nest = "votes,history-text,users"
    options: Any = {"nest": nest, "core": core, "drop_users": tmp_path / "users.txt"}
    report = so2docs.convert(tmp_path, tmp_path / "q.jsonl", **options)
    [document] = jsonl(tmp_path / "q.jsonl")
    user = {"UserId": 7, "User": {"Id": 7, "DisplayName": "u7"}}
    assert document["Bounties"] == [{"Amount": 50}, {"Amount": 100, **user}]
    history = document["Answers"][0]["History"]
    assert [one.get("UserId") for one in history] == [None, 8]
    assert [one["UserId"] for one in document["Answers"][0]["Editors"]] == [8]
    closed, *suggested = document["History"]
    assert (closed["Voters"], closed["OriginalQuestionIds"]) == ([{"Id": 8}], [1])
    assert [one.get("ProposedBy") for one in suggested] == [None, None, 8]
    assert [one.get("ApprovedBy") for one in suggested] == [None, None, [7, 9]]
    assert (report.dropped, report.tables["votes"].nested) == (0, 2)
    everything = (tmp_path / "q.jsonl").read_text() + Path(report.strays_path or "").read_text()
    assert "Ada" not in everything
    assert '"UserId":5' not in everything
    assert '"Id":5' not in everything


def test_records_of_edits_omit_text_by_dropped_users(tmp_path: Path) -> None:
    """The record after an edit of a listed user would repeat the text of this user as `before`."""
    write_dump(tmp_path / "Posts.xml", question(1, OwnerUserId=7, Title="t", Tags="<a>"))
    by = [{"UserId": 7}, {"UserId": 5}, {"UserId": 8}, {"UserId": 7}, {"UserId": 9}, {"UserId": 8}]
    texts = ["first", "listed", "third", "fourth", "proposed", "sixth"]
    rows = [
        row(
            Id=n,
            PostId=1,
            PostHistoryTypeId=5 if n else 2,
            RevisionGUID=f"g{n}",
            CreationDate=f"2020-01-0{n + 1}T00:00:00.000",
            Text=text,
            **author,
        )
        for n, (text, author) in enumerate(zip(texts, by, strict=True))
    ]
    comment = "Proposed by 5 approved by 7 edit id of 3"
    of_proposal = {"PostId": 1, "PostHistoryTypeId": 24, "RevisionGUID": "g4", "Comment": comment}
    rows.append(row(Id=9, CreationDate="2020-01-05T00:00:00.000", **of_proposal))
    write_dump(tmp_path / "PostHistory.xml", *rows)
    (tmp_path / "users.txt").write_text("5\n")
    options: Any = {"recipe": "edits:EDITS", "site": "a.example", "jobs": 1}
    assert [r["after"] for r in so2docs.documents(tmp_path, **options)] == texts[1:]
    kept = so2docs.documents(
        tmp_path, drop_users=tmp_path / "users.txt", settings="known=true", **options
    )
    assert [(r["before"], r["after"]) for r in kept] == [("third", "fourth")]
