"""Spark nests comments, links, votes and users as a plain conversion does."""

import json
import shutil
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from support.oracle_tables import FILES, nest
from support.places import SAMPLES
from support.spark_runs import (
    assert_same_as_parquet,
    assert_same_as_plain,
    errors,
    files_of,
    lines_of,
    reports,
    wide_site,
)

import so2docs
from so2docs import spark as on_spark
from so2docs.schema import TABLES

SITE = SAMPLES / "site"
SETS = [
    ("users",),
    ("votes",),
    ("comments", "users"),
]


@pytest.mark.spark
@pytest.mark.parametrize("names", SETS)
def test_sample(session: Any, tmp_path: Path, names: tuple[str, ...]) -> None:
    oracle = nest(SITE, names)
    for chunk_bytes in (None, 700) if len(names) == len(FILES) else (700,):
        out = tmp_path / str(chunk_bytes)
        report = on_spark.convert(session, SITE, out, nest=names, chunk_bytes=chunk_bytes)
        assert b"".join(lines_of(out / "site")) == b"".join(oracle.document_lines())
        strays = lines_of(out / "site", ".strays-*")
        assert sorted(strays) == sorted(oracle.stray_lines())
        assert_same_as_plain(
            SITE / "Posts.xml",
            out / "site",
            tmp_path / f"p{chunk_bytes}",
            reports(report)["site"],
            nest=names,
        )


@pytest.mark.spark
def test_real_dumps(session: Any, unpacked_dumps: Path, tmp_path: Path) -> None:
    for has in (set(TABLES), {"comments", "links", "users"}, {"comments"}):
        sites = [
            folder
            for folder in sorted(unpacked_dumps.iterdir())
            if {name for name in TABLES if (folder / TABLES[name].file).exists()} == has
        ]
        if not sites:
            continue
        out = tmp_path / str(len(has))
        report = on_spark.convert(
            session, sites, out, nest=has, chunk_bytes=500_000, answers_by="votes"
        )
        for folder in sites:
            assert_same_as_plain(
                folder / "Posts.xml",
                out / folder.name,
                tmp_path / folder.name,
                reports(report)[folder.name],
                nest=has,
                answers_by="votes",
            )


@pytest.mark.spark
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"limit": 20},
        {"sample": "40%"},
        {"min_answer_score": 2, "fields": "Id,OwnerUserId,Answers"},
    ],
    ids=lambda options: "-".join(options) or "all",
)
def test_far_apart(session: Any, tmp_path: Path, options: Any) -> None:
    site = wide_site(tmp_path / "wide", repeated=True)
    contents = []
    for chunk_bytes in (None, 1500):
        out = tmp_path / str(chunk_bytes)
        report = on_spark.convert(
            session, site, out, nest="all", chunk_bytes=chunk_bytes, **options
        )
        plain = tmp_path / f"plain{chunk_bytes}"
        found_report = reports(report)["wide"]
        assert_same_as_plain(site, out / "wide", plain, found_report, nest="all", **options)
        contents.append(files_of(out))
    assert contents[0] == contents[1]


@pytest.mark.spark
def test_documents(session: Any, tmp_path: Path) -> None:
    site = wide_site(tmp_path / "wide", repeated=True)
    plain = list(so2docs.documents(site, nest="all"))
    frame = on_spark.documents(session, site, nest="all")
    rows = sorted(frame.collect(), key=attrgetter("Id"))
    assert [json.loads(one.Document) for one in rows] == plain
    assert_same_as_parquet(session, tmp_path, site, nest="all")


CHOSEN = [
    {"drop_fields": "Comments.Text,Answers.Comments.Text,Links.PostId"},
    {"fields": "Id,Comments.Id,Links.Id,Votes.UpMod,Owner.Id,Answers.Id,Answers.Comments.UserId"},
]


@pytest.mark.spark
@pytest.mark.parametrize("chosen", CHOSEN, ids="-".join)
def test_fields_of_tables_are_chosen(session: Any, tmp_path: Path, chosen: Any) -> None:
    out = tmp_path / "out"
    report = on_spark.convert(session, SITE, out, nest="all", **chosen)
    assert_same_as_plain(
        SITE / "Posts.xml",
        out / "site",
        tmp_path / "plain",
        reports(report)["site"],
        nest="all",
        **chosen,
    )
    for line in lines_of(out / "site"):
        for post in (json.loads(line), *json.loads(line).get("Answers", ())):
            assert all("Text" not in comment for comment in post.get("Comments", ()))
    assert_same_as_parquet(session, tmp_path, SITE, nest="all", **chosen)


@pytest.mark.spark
def test_packed_tables(session: Any, dumps: Path, tmp_path: Path) -> None:
    pytest.importorskip("py7zr")
    sixteen = tmp_path / "sixteen"
    shutil.copytree(SITE, sixteen)
    for path in [sixteen / table.file for table in TABLES.values() if table.is_in_all]:
        path.write_bytes(path.read_bytes().decode().encode("utf-16"))
    published = sorted((dumps / "archives").glob("*.7z"))
    out = tmp_path / "out"
    report = on_spark.convert(session, [sixteen, *published], out, nest="all")
    for dump in (sixteen, *published):
        name = dump.name.removesuffix(".7z")
        plain = tmp_path / f"plain-{name}"
        assert_same_as_plain(dump, out / name, plain, reports(report)[name], nest="all")


@pytest.mark.spark
def test_a_broken_table_fails_only_its_site(session: Any, tmp_path: Path) -> None:
    for name in ("good", "missing", "malformed", "cut"):
        shutil.copytree(SITE, tmp_path / "in" / name)
    (tmp_path / "in" / "missing" / "Votes.xml").unlink()
    comments = (SITE / "Comments.xml").read_bytes()
    at = comments.rindex(b"<row")
    (tmp_path / "in" / "malformed" / "Comments.xml").write_bytes(
        comments[:at] + comments[at:].replace(b" />", b">", 1)
    )
    (tmp_path / "in" / "cut" / "PostLinks.xml").write_bytes(
        (SITE / "PostLinks.xml").read_bytes()[:-20]
    )
    out = tmp_path / "out"
    report = on_spark.convert(
        session, tmp_path / "in" / "*", out, nest="all", on_error="skip", chunk_bytes=400
    )
    assert list(reports(report)) == ["good"]
    for name, error in errors(report).items():
        with pytest.raises(so2docs.DumpError) as plain:
            so2docs.convert(
                tmp_path / "in" / name,
                tmp_path / f"{name}.jsonl.gz",
                jobs=1,
                nest="all",
                chunk_bytes=400,
            )
        assert type(error) is type(plain.value)
        assert str(error).partition("; a small")[0] == str(plain.value).partition("; a small")[0]
    assert sorted(errors(report)) == ["cut", "malformed", "missing"]
