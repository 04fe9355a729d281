"""Numbers of badges in the objects of users."""

import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema_rs
import pytest
from support.dumps import row, strays_of, unpacked, write_dump
from support.formats_read_back import mongodb, parquet
from support.manifests import schema_of
from support.oracle_tables import FILES, nest
from support.places import DUMPS, NO_DUMPS
from support.table_sites import SITE

import so2docs

NAMES = ("Gold", "Silver", "Bronze")
BADGES = [
    row(Id=1, UserId=5, Name="Teacher", Date="2024-03-01T00:00:00.000", Class=3, TagBased="False"),
    row(Id=2, UserId=5, Name="Student", Class=3),
    row(Id=3, UserId=5, Name="Great", Class=1),
    row(Id=3, UserId=5, Name="Great", Class=1),
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
    "badge_invalid_user_id": 2,
    "badge_missing_class": 1,
    "badge_missing_user_id": 1,
    "badge_without_user": 3,
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The sample with badges."""
    site = Path(shutil.copytree(SITE, tmp_path / "site"))
    write_dump(site / "Badges.xml", *BADGES)
    return site


def expected(folder: Path) -> list[dict[str, Any]]:
    """Return the expected documents, with the badges of every user."""
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for badge in ElementTree.parse(folder / "Badges.xml").getroot():
        user_id, of_class = badge.get("UserId", ""), badge.get("Class", "")
        if user_id.removeprefix("-").isdigit() and of_class.isdigit():
            counts[int(user_id)][int(of_class)] += 1
    documents = nest(folder, FILES).documents
    for holder, key in _users(documents):
        of_user = counts[holder[key]["Id"]]
        badges = {name: of_user[number] for number, name in enumerate(NAMES, 1)}
        holder[key] = {**holder[key], "Badges": badges}
    return documents


def _users(documents: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    for question in documents:
        for post in (question, *question["Answers"]):
            for holder in (post, *post["Comments"], *post.get("Bounties", ())):
                for key in ("Owner", "LastEditor", "User"):
                    if key in holder:
                        yield holder, key


@pytest.mark.usefixtures("core")
def test_badges_of_every_user(site: Path, tmp_path: Path) -> None:
    expected_lines = [json.dumps(document) for document in expected(site)]
    assert '"Gold": 2, "Silver": 0, "Bronze": 2' in expected_lines[0]
    packed = set()
    for jobs, chunk_bytes in ((1, None), (2, 300)):
        output = tmp_path / "q.jsonl.gz"
        report = so2docs.convert(
            site, output, nest=["all", "badges"], jobs=jobs, chunk_bytes=chunk_bytes, force=True
        )
        lines = unpacked(output).decode().splitlines()
        assert [json.dumps(json.loads(line)) for line in lines] == expected_lines
        counts = report.tables["badges"]
        assert (counts.rows, counts.nested, counts.strays) == (len(BADGES), 6, STRAYS)
        packed.add((output.read_bytes(), strays_of(output).read_bytes()))
    assert len(packed) == 1
    strays = [json.loads(line) for line in unpacked(strays_of(output)).splitlines()]
    unknown = [stray for stray in strays if stray["reason"] == "badge_without_user"]
    assert [(stray["count"], stray["row"]) for stray in unknown] == [
        (1, {"UserId": 404, "Class": 1}),
        (2, {"UserId": 404, "Class": 3}),
    ]


def test_badges_bring_their_users(site: Path) -> None:
    with so2docs.documents(site, nest="badges", jobs=1) as documents:
        questions = list(documents)
    assert list(documents.report.tables) == ["users", "badges"]
    assert questions[0]["Owner"]["Badges"] == {"Gold": 2, "Silver": 0, "Bronze": 2}
    assert all("Badges" not in str(one) for one in so2docs.documents(site, nest="all", jobs=1))


def test_some_fields_of_badges(site: Path) -> None:
    fields = "Id,Owner.Badges.Gold,Answers.LastEditor.Badges"
    [first, *_] = so2docs.documents(site, nest="badges", jobs=1, fields=fields)
    assert (first["Id"], first["Owner"]) == (1, {"Badges": {"Gold": 2}})
    with pytest.raises(so2docs.OptionError, match="needs nest='badges'"):
        so2docs.documents(site, nest="users", fields="Id,Owner.Badges")


def test_formats_hold_badges(site: Path, tmp_path: Path) -> None:
    nested = {"nest": ["all", "badges"], "jobs": 1}
    expected_documents = expected(site)
    so2docs.convert(site, tmp_path / "q.parquet", **nested)
    assert parquet(tmp_path / "q.parquet") == expected_documents
    so2docs.convert(site, tmp_path / "q.jsonl", format="mongodb", **nested)
    assert mongodb(tmp_path / "q.jsonl") == expected_documents


def test_the_schema_has_badges_and_bounties(site: Path) -> None:
    schema = schema_of(nest="all,badges")
    validator = jsonschema_rs.validator_for(schema)
    for document in so2docs.documents(site, nest=["all", "badges"], jobs=1):
        validator.validate(document)
    assert tuple(schema["properties"]["Owner"]["properties"]["Badges"]["properties"]) == NAMES
    assert "Bounties" not in schema["required"]


@pytest.mark.long
@pytest.mark.skipif(not list(DUMPS.glob("archives/*.7z")), reason=NO_DUMPS)
@pytest.mark.usefixtures("core")
@pytest.mark.parametrize("source", sorted(DUMPS.glob("archives/*.7z")), ids=lambda path: path.name)
def test_published_badges(source: Path, tmp_path: Path) -> None:
    py7zr = pytest.importorskip("py7zr", reason=f"py7zr is needed to unpack {source.name}")
    with py7zr.SevenZipFile(source) as archive:
        archive.extract(path=tmp_path, targets=["Posts.xml", "Badges.xml", *FILES.values()])
    expected_documents = expected(tmp_path)
    for dump, jobs in ((source, 1), (tmp_path, 2)):
        with so2docs.documents(dump, nest=["all", "badges"], jobs=jobs) as documents:
            assert list(documents) == expected_documents
        counts = documents.report.tables["badges"]
        assert counts.rows == counts.nested + sum(counts.strays.values())
