"""`tables --types`: the five tables of types, which dumps do not contain."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from support.command import run
from support.dumps import question, row, write_dump
from support.flat_oracle import read_back

import so2docs
from so2docs.extensions.tables.types import TYPES
from so2docs.options.choices import TableFormat
from so2docs.schema import DUMP, VOTE_TYPES

FORMATS = [form for form in get_args(TableFormat) if form != "arrow"]
SOME = {
    "PostTypes": {1: "Question", 2: "Answer", 4: "TagWikiExcerpt"},
    "VoteTypes": VOTE_TYPES,
    "LinkTypes": {1: "Linked", 3: "Duplicate"},
    "PostHistoryTypes": {2: "Initial Body", 10: "Post Closed", 24: "Suggested Edit Applied"},
    "CloseReasonTypes": {1: "Exact Duplicate", 103: "Needs details or clarity"},
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site without wikis or closings."""
    folder = tmp_path / "tea.stackexchange.com"
    write_dump(folder / "Posts.xml", question(1, Tags="<a>", CreationDate="2020-01-01T00:00:00"))
    text = {"PostHistoryTypeId": 2, "Text": "t", "CreationDate": "2020-01-01T00:00:00"}
    write_dump(folder / "PostHistory.xml", row(Id=1, PostId=1, **text))
    write_dump(folder / "Votes.xml", row(Id=1, PostId=1, VoteTypeId=2))
    return folder


def names_in(folder: Path, form: str) -> dict[str, dict[int, str]]:
    """Read the names of all types, by table and id."""
    return {
        stem: {row["Id"]: row["Name"] for row in read_back(folder, table, form)}
        for stem, table in TYPES.items()
    }


@pytest.mark.parametrize("form", FORMATS)
def test_every_format(form: TableFormat, site: Path, tmp_path: Path) -> None:
    report = so2docs.tables(site, tmp_path / "out", types=True, format=form)
    assert list(report)[-5:] == list(TYPES)
    names = names_in(tmp_path / "out", form)
    assert {stem: len(rows) for stem, rows in names.items()} == {
        stem: report[stem].written for stem in TYPES
    }
    for stem, some in SOME.items():
        assert some.items() <= names[stem].items()
    assert read_back(tmp_path / "out", DUMP["votes"], form) != []
    again = so2docs.tables(site, tmp_path / "out", types=True, format=form)
    assert not again.is_new


@pytest.mark.parametrize(
    "options",
    [
        {"since": "2030"},
        {"tags": "none"},
        {"drop_posts": [1]},
        {"as_of": "2020"},
        {"only": "posts", "jobs": 2},
    ],
    ids=str,
)
def test_filters_keep_all_types(options: dict[str, Any], site: Path, tmp_path: Path) -> None:
    so2docs.tables(site, tmp_path / "whole", types=True)
    so2docs.tables(site, tmp_path / "part", types=True, **options)
    for stem in TYPES:
        whole, part = (tmp_path / name / f"{stem}.parquet" for name in ("whole", "part"))
        assert whole.read_bytes() == part.read_bytes()


def test_a_script_creates_them(site: Path, tmp_path: Path) -> None:
    so2docs.tables(site, tmp_path / "out", types=True, format="csv", load="mysql")
    script = (tmp_path / "out" / "load.sql").read_text("utf-8")
    for stem in TYPES:
        assert f"CREATE TABLE {stem} (" in script
        assert f"ALTER TABLE {stem} ADD PRIMARY KEY (Id);" in script
        assert f"LOAD DATA LOCAL INFILE '{stem}.csv' INTO TABLE {stem} " in script


def test_a_dump_has_none_by_default(site: Path, tmp_path: Path) -> None:
    assert set(so2docs.tables(site, tmp_path / "out")) == {"posts", "history", "votes"}
    stream = run("tables", site, "-", "--only", "votes", "--types", "--format", "csv", code=2)
    assert "--types writes files" in stream.stderr
