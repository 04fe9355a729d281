"""The history of posts, on an unusual site with every kind of event and on published dumps."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from support import oracle_history
from support.command import run
from support.dumps import answer, question, row, write_dump
from support.filtering import filtered
from support.formats_read_back import parquet
from support.manifests import schema_of

import so2docs
from so2docs.options.choices import Core

LEVELS = ("closings", "history", "history-text")
ADA = {"Id": 5, "Reputation": 7, "DisplayName": "Ada"}
NEW, DAY = "2020-01-{:02}T00:00:00.000", 1


def event(number: int, kind: int, post_id: int, guid: str, day: int, **more: Any) -> bytes:
    """Make a row of PostHistory.xml."""
    first = {"Id": number, "PostHistoryTypeId": kind, "PostId": post_id, "RevisionGUID": guid}
    return row(**first, CreationDate=NEW.format(day), **more)


def voters(*names: str, **more: Any) -> str:
    binding = [{"Id": -1, "BindingReason": {"GoldTagBadge": "beer"}}]
    users = [{"Id": 3, "DisplayName": name} for name in names]
    return json.dumps(more | {"Voters": users + (binding if "OriginalQuestionIds" in more else [])})


EVENTS = [
    # As after a migration, the first edit has a higher id than later events.
    event(10, 5, 1, "e", 4, UserId=5, Text="new *body*", Comment="better", ContentLicense="4.0"),
    event(12, 5, 1, "e", 4, UserId=5, Text="newer *body*"),
    event(11, 4, 1, "e", 4, UserId=5, Text="New title"),
    event(21, 1, 1, "a", 1, UserId=9, Text="Title"),
    event(20, 2, 1, "a", 1, UserId=9, Text="body", ContentLicense="3.0"),
    event(22, 3, 1, "a", 1, UserId=9, Text="<a><b>"),
    event(30, 6, 1, "s", 5, UserId=6, Text="<a>"),
    event(31, 24, 1, "s", 5, Comment="Proposed by 6 approved by 5, -1 edit id of 77"),
    event(32, 7, 1, "r", 6, UserId=5, Text="Title", Comment="Rollback to [0a-B]"),
    event(33, 8, 1, "r", 6, UserId=5, Text="body", Comment="Rollback to the past"),
    event(40, 10, 1, "c", 7, UserId=3, Comment="101", Text=voters("x", OriginalQuestionIds=[2, 4])),
    event(41, 11, 1, "o", 8, UserId=3, Text=voters("y")),
    event(42, 10, 1, "d", 9, UserId=3, Comment="105", Text=voters("z")),
    event(50, 25, 1, "t", 2, Comment="http://example.org/1"),
    event(51, 36, 1, "m", 3, UserId=-1, Comment="from http://example.org/2"),
    event(52, 33, 1, "n", 9, UserId=3, Comment="2"),
    event(53, 99, 1, "u", 9, UserDisplayName="gone", Text="words", Comment="?"),
    event(54, 14, 1, "l", 9, UserId=3, Text='{"Voters":[{"Id":"x"}]}'),
    # An answer by a user without an id, closed for an unknown reason and reopened.
    event(60, 2, 3, "b", 1, UserDisplayName="gone", Text="**answer**"),
    event(61, 5, 3, "f", 2, UserDisplayName="gone", Text="**answer**!"),
    event(62, 5, 3, "g", 3, UserDisplayName="gone", Text="answer"),
    event(66, 10, 3, "h", 4, UserId=3, Comment="777"),
    event(67, 11, 3, "i", 5, UserId=3),
    # One revision in two posts, as after a merge.
    event(63, 38, 1, "x", 10, UserId=3, Comment="from http://example.org/3"),
    event(64, 37, 2, "x", 10, UserId=3, Comment="to http://example.org/4"),
    event(65, 10, 2, "y", 10, UserId=3, Comment="777"),
    event(70, 2, 8, "w", 1, UserId=3, Text="of a wiki"),
]
BROKEN = [
    row(Id=80, PostId=1, CreationDate=NEW.format(1)),
    row(Id=81, PostId=1, PostHistoryTypeId="x"),
    row(PostId=1, PostHistoryTypeId=5),
    row(Id=82, PostHistoryTypeId=5),
    event(83, 5, 1, "v", 1, User="x"),
]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A dump with posts, users and an unusual history."""
    folder = tmp_path / "site"
    posts = [
        question(1, OwnerUserId=9, Title="New title", Tags="<a>", ClosedDate=NEW.format(9)),
        question(2, Title="other", Tags="<b>"),
        answer(3, 1, OwnerUserId=5),
        question(4, Title="no history"),
        row(Id=8, PostTypeId=5, Body="wiki"),
    ]
    write_dump(folder / "Posts.xml", *posts)
    write_dump(folder / "Users.xml", row(**ADA))
    write_dump(folder / "PostHistory.xml", *EVENTS)
    return folder


@pytest.mark.parametrize("users", [False, True])
@pytest.mark.parametrize("level", LEVELS)
def test_every_kind_of_event(level: str, users: bool, site: Path) -> None:
    expected = oracle_history.nest(site, level, users=users)
    nest = [level, *["users"] * users]
    for options in ({"core": "python", "jobs": 1}, {"jobs": 2}, {"jobs": 1}):
        actual = so2docs.documents(site, nest=nest, **options)
        assert list(actual) == expected.documents
        counts, rows = actual.report.tables[level], expected.rows
        assert (counts.nested, counts.filtered) == (rows["nested"], rows["filtered"])
        strays = {"event_without_post": 1} if level != "closings" else {}
        assert counts.strays == strays


RARE = {
    "Proposed by 203.0.113.7|0a-B approved by 5, 6 edit id of 7": {"ApprovedBy": [5, 6]},
    "Proposed by 2001:db8::1|0a-B approved by  edit id of 7": {"ApprovedBy": []},
    "Proposed by 6 approved by  edit id of 7": {"ProposedBy": 6, "ApprovedBy": []},
    "Rollback to [0a-B] - overridden": {
        "Comment": "Rollback to [0a-B] - overridden",
        "RollbackTo": "0a-B",
    },
}


@pytest.mark.usefixtures("core")
@pytest.mark.parametrize("comment", RARE)
def test_rare_forms_of_suggested_edits_and_rollbacks(comment: str, site: Path) -> None:
    kind = 8 if comment.startswith("Rollback") else 24
    rows = [
        event(1, 2, 1, "a", 1, UserId=5, Text="old"),
        event(2, 5, 1, "b", 2, UserId=5, Text="new"),
        event(3, kind, 1, "b", 2, Comment=comment),
    ]
    write_dump(site / "PostHistory.xml", *rows)
    [question, *_] = so2docs.documents(site, nest=["history"], jobs=1)
    entry = question["History"][1]
    known = {"Id", "RevisionGUID", "CreationDate", "UserId", "Events"}
    assert {name: value for name, value in entry.items() if name not in known} == RARE[comment]
    [record] = so2docs.documents(site, recipe="edits:EDITS", jobs=1, site="a.example")
    assert (record["before"], record["after"]) == ("old", "new")
    assert record["comment"] == RARE[comment].get("Comment", "")


@pytest.mark.usefixtures("core")
def test_attributes_named_like_keys_of_history_entries(site: Path, tmp_path: Path) -> None:
    """The attributes are in the object `Other`, in JSON, columns and databases."""
    names = ("Events", "Voters", "OriginalQuestionIds", "Body", "RollbackTo", "Other")
    text = voters("x", OriginalQuestionIds=[2])
    rows = [
        event(1, 10, 1, "a", 1, Comment="101", Text=text, **dict.fromkeys(names[:3], "first")),
        event(2, 5, 1, "a", 1, Text="b", **dict.fromkeys(names, "second"), New="new"),
    ]
    write_dump(site / "PostHistory.xml", *rows)
    other = dict.fromkeys(names[:3], "first") | dict.fromkeys(names[3:], "second")
    nest = ["history-text"]
    report = so2docs.convert(site, tmp_path / "q.jsonl", nest=nest, jobs=1)
    assert not report.tables["history-text"].strays
    [question, *_] = so2docs.read(tmp_path / "q.jsonl")
    [entry] = question["History"]
    assert (entry["Other"], entry["New"], entry["Body"]) == (other, "new", "b")
    assert (entry["Events"], entry["OriginalQuestionIds"]) == (["EditBody", "PostClosed"], [2])
    assert question["Closed"]["OriginalQuestionIds"] == [2]
    so2docs.convert(site, tmp_path / "q.parquet", nest=nest, jobs=1)
    [question, *_] = parquet(tmp_path / "q.parquet")
    assert (question["History"][0]["Other"], question["History"][0]["New"]) == (other, "new")


def test_rows_without_a_place(site: Path, tmp_path: Path) -> None:
    write_dump(site / "PostHistory.xml", *EVENTS, *BROKEN)
    report = so2docs.convert(site, tmp_path / "q.jsonl", nest=["history"], jobs=1)
    assert report.tables["history"].strays == {
        "event_without_post": 1,
        "event_missing_post_history_type_id": 1,
        "event_invalid_post_history_type_id": 1,
        "event_missing_id": 1,
        "event_missing_post_id": 1,
        "event_reserved_attribute": 1,
    }
    assert report.tables["history"].rows == len(EVENTS) + len(BROKEN)


def test_names_of_the_option(site: Path, tmp_path: Path) -> None:
    """The widest level applies; `all` is unchanged, and a file has the requested level."""
    output = tmp_path / "q.jsonl"
    file = str(site / "PostHistory.xml")
    for options, level in (
        (["--nest", "closings,history"], "history"),
        (["--table", f"history={file}"], "history"),
        (["--table", f"history={file}", "--nest", "closings"], "closings"),
        (["--table", f"history={file}", "--nest", "history-text"], "history-text"),
    ):
        result = run("convert", site, output, "--force", "--report", "-", *options, code=0)
        assert list(json.loads(result.stdout)["tables"]) == [level]
    result = run("convert", site, output, "--force", "--nest", "all")
    assert "Comments.xml" in result.stderr
    assert "has no PostHistory" not in result.stderr


@pytest.mark.parametrize(
    "choice",
    [
        {"fields": "Id,Closed.Reason,History.Id,History.Voters.DisplayName,Revisions"},
        {"drop_fields": "History,Editors"},
    ],
)
def test_fields_of_the_history(choice: dict[str, str], site: Path) -> None:
    expected = filtered(oracle_history.nest(site, "history").documents, **choice)
    actual = list(so2docs.documents(site, nest=["history"], jobs=1, **choice))
    assert list(map(json.dumps, actual)) == list(map(json.dumps, expected))
    with pytest.raises(so2docs.OptionError, match=r"BodyMarkdown.*needs"):
        so2docs.documents(site, nest=["history"], fields="Id,BodyMarkdown")


def test_parquet_of_the_history(site: Path, tmp_path: Path) -> None:
    so2docs.convert(site, tmp_path / "q.parquet", nest=["history-text", "users"], jobs=1)
    expected = oracle_history.nest(site, "history-text", users=True).documents
    assert parquet(tmp_path / "q.parquet") == expected


@pytest.mark.parametrize("level", LEVELS)
def test_documents_keep_to_their_json_schema(level: str, site: Path) -> None:
    schema = schema_of(nest=f"{level},users")
    validator = jsonschema_rs.validator_for(schema)
    for document in so2docs.documents(site, nest=[level, "users"], jobs=1):
        validator.validate(document)
    properties = schema["properties"]
    assert ("Revisions" in properties, "BodyMarkdown" in properties) == (
        level != "closings",
        level == "history-text",
    )


def test_an_entry_takes_each_attribute_from_the_lowest_id(tmp_path: Path, core: Core) -> None:
    rows = [
        event(12, 6, 1, "e", 2, UserId=7, ContentLicense="4.0"),
        event(10, 4, 1, "e", 4, UserDisplayName="first"),
        event(11, 5, 1, "e", 3, UserId=5, UserDisplayName="second", ContentLicense="3.0"),
    ]
    write_dump(tmp_path / "Posts.xml", question(1, Title="t", Body="b"))
    write_dump(tmp_path / "PostHistory.xml", *rows)
    with so2docs.documents(tmp_path, nest="history", jobs=1, core=core) as documents:
        [entry] = next(iter(documents))["History"]
    assert entry["Id"] == 10
    assert entry["CreationDate"] == NEW.format(2)
    assert (entry["UserId"], entry["UserDisplayName"]) == (5, "first")
    assert entry["ContentLicense"] == "3.0"
