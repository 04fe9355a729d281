"""Numbers of badges in the objects of users."""

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from support.dumps import row, strays_of, unpacked, write_dump
from support.formats_read_back import mongodb, parquet
from support.manifests import schema_of
from support.oracle_tables import FILES, nest
from support.table_sites import SITE

import so2docs
from so2docs.spill import Spill

TABLES = [*FILES, "badges"]
BADGES = [
    row(Id=1, UserId=5, Name="Teacher", Date="2024-03-01T00:00:00.000", Class=3, TagBased="False"),
    row(Id=2, UserId=5, Name="Student", Class=3),
    row(Id=3, UserId=5, Name="Great", Class=1),
    row(Id=3, UserId=5, Name="Great", Class=1),
    row(Id=14, UserId=5, Name="Good", Class=3),
    row(Id=4, UserId=-1, Name="Odd", Class=2),
    row(Id=5, UserId=404, Name="Student", Class=3),
    row(Id=6, UserId=404, Name="Student", Class=3),
    row(Id=7, UserId=404, Name="Great", Class=1),
    row(Id=8, UserId=5, Name="From before there were classes"),
    row(Id=9, UserId=5, Name="Platinum", Class=4),
    row(Id=10, Name="Nobody's", Class=1),
    row(Id=11, UserId="five", Class=1),
    row(Id=12, UserId=1 << 61, Class=1),
    row(UserId=8, Class="02"),
]
STRAYS = {
    "badge_invalid_class": 1,
    "badge_invalid_user_id": 1,
    "badge_missing_class": 1,
    "badge_missing_user_id": 1,
    "badge_without_user": 4,
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The sample with badges."""
    site = Path(shutil.copytree(SITE, tmp_path / "site"))
    write_dump(site / "Badges.xml", *BADGES)
    return site


def test_badges_of_every_user(site: Path, tmp_path: Path) -> None:
    oracle, output, files = nest(site, TABLES), tmp_path / "q.jsonl.gz", set()
    assert oracle.documents[0]["Owner"]["Badges"] == {"Gold": 2, "Silver": 0, "Bronze": 3}
    for core, jobs, chunk_bytes in (("python", 1, 300), ("auto", 1, None), ("auto", 2, 300)):
        options: dict[str, Any] = {"core": core, "jobs": jobs, "chunk_bytes": chunk_bytes}
        report = so2docs.convert(site, output, nest=["all", "badges"], force=True, **options)
        assert [unpacked(output), unpacked(strays_of(output))] == oracle.contents
        counts = report.tables["badges"]
        assert (counts.rows, counts.nested, counts.strays) == (len(BADGES), 7, STRAYS)
        files.add((output.read_bytes(), strays_of(output).read_bytes()))
    assert len(files) == 1


def test_resumes_after_every_commit(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"nest": ["all", "badges"], "jobs": 1, "chunk_bytes": 2000}
    commit, left, stop, files = Spill.commit, 0, 0, set()

    def stopping(*arguments: Any) -> None:
        nonlocal left
        commit(*arguments)
        left -= 1
        if left == 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(Spill, "commit", stopping)
    is_interrupted = True
    while is_interrupted:
        left, stop, output = stop + 1, stop + 1, tmp_path / f"{stop}.jsonl.gz"
        with suppress(KeyboardInterrupt):
            so2docs.convert(site, output, **options)
        if is_interrupted := left <= 0:
            so2docs.convert(site, output, **options)
        files.add((output.read_bytes(), strays_of(output).read_bytes()))
    assert (len(files), stop > 8) == (1, True)


def test_badges_bring_their_users(site: Path) -> None:
    with so2docs.documents(site, nest="badges", jobs=1) as documents:
        questions = list(documents)
    assert list(documents.report.tables) == ["users", "badges"]
    assert questions[0]["Owner"]["Badges"] == {"Gold": 2, "Silver": 0, "Bronze": 3}
    assert all("Badges" not in str(one) for one in so2docs.documents(site, nest="all", jobs=1))


def test_some_fields_of_badges(site: Path) -> None:
    fields = "Id,Owner.Badges.Gold,Answers.LastEditor.Badges"
    [first, *_] = so2docs.documents(site, nest="badges", jobs=1, fields=fields)
    assert (first["Id"], first["Owner"]) == (1, {"Badges": {"Gold": 2}})
    with pytest.raises(so2docs.OptionError, match="needs nest='badges'"):
        so2docs.documents(site, nest="users", fields="Id,Owner.Badges")


def test_formats_hold_badges(site: Path, tmp_path: Path) -> None:
    nested = {"nest": ["all", "badges"], "jobs": 1}
    documents = nest(site, TABLES).documents
    so2docs.convert(site, tmp_path / "q.parquet", **nested)
    assert parquet(tmp_path / "q.parquet") == documents
    so2docs.convert(site, tmp_path / "q.jsonl", format="mongodb", **nested)
    assert mongodb(tmp_path / "q.jsonl") == documents


def test_the_schema_has_badges_and_bounties(site: Path) -> None:
    schema = schema_of(nest="all,badges")
    validator = jsonschema_rs.validator_for(schema)
    for document in so2docs.documents(site, nest=["all", "badges"], jobs=1):
        validator.validate(document)
    assert tuple(schema["properties"]["Owner"]["properties"]["Badges"]["properties"]) == (
        "Gold",
        "Silver",
        "Bronze",
    )
    assert "Bounties" not in schema["required"]
