"""Every option of the plain command has the same effect on Spark."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.dumps import answer, question, strays_of, write_dump
from support.formats_read_back import READERS
from support.formats_read_back import unpacked as of_format
from support.places import SAMPLES
from support.spark_runs import (
    assert_same_as_plain,
    errors,
    files_of,
    noisy_dump,
    present,
    reports,
    sparse_dump,
)

import so2docs
from so2docs import spark as on_spark
from so2docs.options.output_form import output_suffix
from so2docs.spark import api

FILTERS: list[dict[str, Any]] = [
    {"tags": ["discussion"], "min_score": 3, "min_answer_score": 1, "answered": True},
    {"sample": "30%", "since": "2011-01-01", "until": "2022-01-01", "accepted": True},
    {"fields": "Id,Title,Answers.Body", "body": "text"},
    {"drop_fields": "Body,Answers", "answers_by": "votes"},
    {"limit": 7, "min_score": 2, "body": "markdown"},
    {"limit": 100_000},
]


@pytest.mark.spark
@pytest.mark.parametrize("options", FILTERS, ids="-".join)
def test_filters(session: Any, unpacked_dumps: Path, tmp_path: Path, options: Any) -> None:
    several = [
        path for path in sorted(unpacked_dumps.glob("*/Posts.xml")) if path.stat().st_size < 3e6
    ]
    assert several
    report = on_spark.convert(session, several, tmp_path / "out", **options)
    for dump in several:
        name = dump.parent.name
        site_report = reports(report)[name]
        assert_same_as_plain(dump, tmp_path / "out" / name, tmp_path / name, site_report, **options)


@pytest.mark.spark
@pytest.mark.parametrize("limit", [1, 60, 61, 10_000])
def test_limit_over_many_parts(session: Any, tmp_path: Path, limit: int) -> None:
    dump = sparse_dump(tmp_path / "wide" / "Posts.xml", range(-90_000, 3_000_000, 9_001))
    report = on_spark.convert(session, dump, tmp_path / "out", limit=limit)
    site_report = reports(report)["wide"]
    assert_same_as_plain(
        dump, tmp_path / "out" / "wide", tmp_path / "plain", site_report, limit=limit
    )
    assert on_spark.documents(session, dump, limit=limit).count() == site_report.questions


FORMS = [(name, None) for name in READERS] + [("jsonl", "zstd"), ("jsonl", "none")]


@pytest.mark.spark
@pytest.mark.parametrize(("name", "compression"), FORMS)
def test_every_part_file_is_whole(
    session: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    compression: Any,
) -> None:
    dump = noisy_dump(tmp_path / "wide" / "Posts.xml", range(50_000, 800_000, 9_001))
    monkeypatch.setattr(api, "PART_BYTES", "250kB")
    strays = '<row Id="3" PostTypeId="2" ParentId="5" /><row PostTypeId="1" /></posts>'
    dump.write_text(dump.read_text().replace("</posts>", strays))
    report = on_spark.convert(
        session, dump, tmp_path / "out", format=name, compression=compression, level=9
    )
    form = {"format": name, "compression": compression}
    plain = tmp_path / f"plain{output_suffix(form)}"
    so2docs.convert(dump, plain, jobs=1, level=9, **form)
    read = READERS[name][1]
    files = sorted((tmp_path / "out" / "wide").glob("part-*"))
    assert len(files) == reports(report)["wide"].files > 3
    assert [document for file in files for document in read(file)] == read(plain)
    assert reports(report)["wide"].output_bytes == sum(file.stat().st_size for file in files)
    assert {path.name.partition(".")[2] for path in files} == {plain.name.partition(".")[2]}
    side_files = sorted((tmp_path / "out" / "wide").glob(".strays-*"))
    of_plain = strays_of(plain)
    assert b"".join(map(of_format, side_files)) == of_format(of_plain)
    compression_end = of_plain.name.partition(".strays")[2]
    assert [path.name for path in side_files] == [f".strays-00000{compression_end}"]


@pytest.mark.spark
def test_strict_rejects_strays_found_by_the_merge(session: Any, tmp_path: Path) -> None:
    sites = [
        write_dump(tmp_path / f"{name}.xml", question(7), *rows)
        for name, rows in (
            ("good", [answer(8, 7)]),
            ("orphan", [answer(9, 400_000), answer(11, 5)]),
            ("repaired", [question(9, Title="a").replace(b'"a"', b'"&#1;"')]),
        )
    ]
    out = tmp_path / "out"
    report = on_spark.convert(session, sites, out, errors="strict", on_error="skip")
    assert list(reports(report)) == ["good"]
    for dump in sites[1:]:
        with pytest.raises(so2docs.StrictError) as plain:
            so2docs.convert(dump, tmp_path / f"{dump.stem}.jsonl.gz", errors="strict", jobs=1)
        message = errors(report)[dump.stem]
        assert str(message).partition("; a small")[0] == str(plain.value).partition("; a small")[0]
        assert [name for name in files_of(out / dump.stem) if name != "_error.xml"] == ["_run"]
    with pytest.raises(so2docs.StrictError, match="question_not_in_dump: post 11"):
        on_spark.convert(session, sites[:2], out, errors="strict")


@pytest.mark.spark
def test_options_are_checked_before_anything_is_read(session: Any, tmp_path: Path) -> None:
    for options, message in (
        ({"level": 12}, "level is 12"),
        ({"format": "parquet", "compression": "gzip"}, "format='parquet' has a compression"),
        ({"fields": "Tilte"}, "did you mean Title"),
    ):
        with pytest.raises(so2docs.OptionError, match=message):
            on_spark.convert(session, "nothing.xml", tmp_path, **options)
    with pytest.raises(TypeError, match="'splitt'"):
        on_spark.convert(session, "nothing.xml", tmp_path, splitt=3)


@pytest.mark.spark
def test_documents_take_the_same_options(session: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"fields": "Id,Title,Answers.Score", "min_score": 1}
    frame = on_spark.documents(session, SAMPLES / "posts.xml", typed=True, **options)
    assert frame.columns == ["Id", "Title", "Site", "Other", "Answers"]
    plain = list(so2docs.documents(SAMPLES / "posts.xml", **options))
    rows = [row.asDict(recursive=True) for row in frame.orderBy("Id").collect()]
    assert plain
    for row in rows:
        row["Answers"] = [present(answer) for answer in row["Answers"]]
    assert [present(row) for row in rows] == [one | {"Site": "samples"} for one in plain]
    no_answers = on_spark.documents(
        session, SAMPLES / "posts.xml", typed=True, drop_fields="Body,Answers"
    )
    assert not {"Body", "Answers"} & set(no_answers.columns)
    bodies = on_spark.documents(session, SAMPLES / "posts.xml", body="text").collect()
    assert [json.loads(row.Document) for row in sorted(bodies, key=lambda row: row.Id)] == list(
        so2docs.documents(SAMPLES / "posts.xml", body="text")
    )


@pytest.mark.spark
def test_records_of_a_recipe_and_attribution(session: Any, dumps: Path, tmp_path: Path) -> None:
    dump = dumps / "archives" / "eosio.meta.stackexchange.com.7z"
    for options in ({"recipe": "qa"}, {"attribution": True}):
        name = "-".join(options)
        on_spark.convert(session, dump, tmp_path / name, **options)
        folder = tmp_path / name / dump.name.removesuffix(".7z")
        assert_same_as_plain(dump, folder, tmp_path / f"plain-{name}", **options)
        frame = on_spark.documents(session, dump, **options)
        records = [json.loads(row.Document) for row in frame.collect()]
        assert records == list(so2docs.documents(dump, **options))
    with pytest.raises(so2docs.OptionError, match="no typed columns"):
        on_spark.documents(session, dump, recipe="qa", typed=True)
