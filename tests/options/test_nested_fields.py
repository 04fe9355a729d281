"""Selecting fields of nested rows equals selecting them from the complete documents."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.dumps import strays_of, unpacked
from support.filtering import filtered
from support.formats_read_back import jsonl, mongodb, parquet
from support.oracle_tables import FILES, nest
from support.table_sites import SITE

import so2docs
from so2docs.nest import Nest
from so2docs.options.field_paths import Fields
from so2docs.parse.keys import ANSWER
from so2docs.schema import COMMENT

ALL = tuple(FILES)
COMPLETE = nest(SITE, FILES)

CHOICES: list[tuple[tuple[str, ...], dict[str, str]]] = [
    (ALL, {"drop_fields": "Comments.UserId"}),
    (ALL, {"drop_fields": "Comments.UserId,Answers.OwnerUserId,Answers.Owner.Id,Body"}),
    (ALL, {"drop_fields": "Comments,Answers.Links,Answers.Comments.User,LastEditor"}),
    (ALL, {"drop_fields": "Votes,Links.LinkTypeId,Answers.Votes.UpMod,Comments.User.DisplayName"}),
    (ALL, {"drop_fields": "Answers,Votes.99,Votes.BountyStart"}),
    (ALL, {"fields": "Id,Comments.Text,Answers.Links,Votes.UpMod,Owner.DisplayName"}),
    (ALL, {"fields": "Title,Comments.User,Links.LinkType,Answers.Votes,Answers.Id"}),
    (ALL, {"fields": "Id,Comments,Links,Answers"}),
    (ALL, {"drop_fields": "Bounties.UserId,Answers.Bounties,Bounties.User.Reputation"}),
    (("votes",), {"fields": "Id,Bounties.Amount,Answers.Bounties,Answers.Votes.UpMod"}),
    (ALL, {"fields": "Comments.User.DisplayName,Links.Id,Votes.-1,Answers.LastEditor"}),
    (("comments",), {"fields": "Id,Answers.Comments.Text"}),
    (("comments",), {"fields": "Comments.UserDisplayName"}),
    (("votes",), {"drop_fields": "Votes"}),
    (("users",), {"fields": "LastEditor,Answers.Owner"}),
    (("users", "comments"), {"fields": "Comments.User.Id"}),
]


def name_of(choice: Any) -> str:
    return "+".join(choice) if isinstance(choice, tuple) else str(next(iter(choice.values())))


def convert(output: Path, names: tuple[str, ...], **options: Any) -> so2docs.Report:
    return so2docs.convert(SITE, output, nest=names, jobs=options.pop("jobs", 1), **options)


@pytest.mark.parametrize(("names", "choice"), CHOICES, ids=name_of)
def test_selected_fields_are_kept(
    names: tuple[str, ...], choice: dict[str, str], tmp_path: Path
) -> None:
    expected = filtered(nest(SITE, names).documents, **choice)
    output = tmp_path / "q.jsonl"
    report = convert(output, names, **choice)
    assert list(map(json.dumps, jsonl(output))) == list(map(json.dumps, expected))
    once = output.read_bytes(), strays_of(output).read_bytes()
    jobs = 2 if choice == CHOICES[0][1] else 1
    convert(output, names, jobs=jobs, chunk_bytes=700, force=True, **choice)
    assert (output.read_bytes(), strays_of(output).read_bytes()) == once
    for name, counts in report.tables.items():
        assert counts.rows == COMPLETE.rows[name]
        assert counts.nested + counts.filtered + sum(counts.strays.values()) == counts.rows


@pytest.mark.parametrize(("names", "choice"), CHOICES[1::3], ids=name_of)
def test_formats(names: tuple[str, ...], choice: dict[str, str], tmp_path: Path) -> None:
    expected = filtered(nest(SITE, names).documents, **choice)
    convert(tmp_path / "q.parquet", names, **choice)
    assert parquet(tmp_path / "q.parquet") == expected
    if "Id" in expected[0]:
        convert(tmp_path / "q.jsonl", names, format="mongodb", **choice)
        with_answers = [{"Answers": [], **document} for document in expected]
        assert [
            {"Answers": [], **actual} for actual in mongodb(tmp_path / "q.jsonl")
        ] == with_answers


def test_omitted_rows_count_as_filtered(tmp_path: Path) -> None:
    output = tmp_path / "q.jsonl.gz"
    report = convert(output, ALL, drop_fields="Comments,Votes.UpMod,Answers.Votes")
    complete = convert(tmp_path / "all.jsonl.gz", ALL)
    of_questions = sum(len(question["Comments"]) for question in COMPLETE.documents)
    comments = report.tables["comments"]
    assert comments.filtered == of_questions
    assert comments.nested == complete.tables["comments"].nested - of_questions
    kept = sum(
        sum(question["Votes"].values()) - question["Votes"].get("UpMod", 0)
        for question in COMPLETE.documents
    )
    kept += sum(
        len(answer.get("Bounties", ()))
        for question in COMPLETE.documents
        for answer in question["Answers"]
    )
    votes = report.tables["votes"]
    assert (votes.nested, votes.filtered) == (kept, complete.tables["votes"].nested - kept)
    line = dict(report.lines())["comments nested"]
    assert re.match("3 of 14, filtered 4, 3 of 14 .*, strays 4 ", line)


def test_strays_without_a_post_keep_all_fields(tmp_path: Path) -> None:
    output = tmp_path / "q.jsonl.gz"
    convert(output, ("comments",), drop_fields="Comments,Answers.Comments.Text")
    strays = [json.loads(line) for line in unpacked(strays_of(output)).splitlines()]
    rows = {stray["row"].get("Id"): stray["row"] for stray in strays if "Text" in stray["row"]}
    assert rows[18]["Text"] == "On nothing at all."


def test_a_stray_of_a_known_post_has_the_chosen_fields() -> None:
    orphan = (5, 0, 0, ANSWER, b"{}")
    rows = [(COMMENT, post, 1, 0, b'{"Id":1,"PostId":%d,"Text":"t"}' % post) for post in (5, 6)]
    for left_out, kept in (
        ("Answers.Comments.Text", {"Id": 1, "PostId": 5}),
        ("Answers.Comments", {"Id": 1, "PostId": 5}),
        ("Comments", {"Id": 1, "PostId": 5, "Text": "t"}),
    ):
        nested = Nest(("comments",), fields=Fields(None, tuple(left_out.split(","))))
        lines = nested.reject(4, [orphan], rows, filtered=False)
        strays = [json.loads(line)["row"] for line in lines]
        assert strays == [kept, {"Id": 1, "PostId": 6, "Text": "t"}]
        assert nested.counts["comments"].as_dict()["strays"] == {"comment_without_post": 2}
