"""Giant dumps are spread over all tasks: the same lines, whatever the ranges."""

import json
import os
import re
import shutil
from contextlib import closing
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from support.dumps import answer, question, write_dump
from support.formats_read_back import READERS
from support.places import SAMPLES
from support.spark_runs import (
    assert_same_as_parquet,
    assert_same_as_plain,
    files_of,
    lines_of,
    sparse_dump,
    wide_site,
)

import so2docs
from so2docs import spark as on_spark
from so2docs.options.conversion import Options
from so2docs.output.paths import Names
from so2docs.passes.chunk import ChunkResult, ChunkTask
from so2docs.posts import core
from so2docs.schema import POSTS
from so2docs.sources.dump import Chunk, open_dump
from so2docs.spark import giants, parts, ranges
from so2docs.spark.frames import BLOCK, by_part
from so2docs.spark.sites import FoundDump, Site
from so2docs.spill import Spill

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def every_dump_is_giant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giants, "GIANT_BYTES", 0)


def documents(session: Any, dump: Path, **options: Any) -> list[dict[str, Any]]:
    """The documents of a frame; sorted by Spark, it would be computed twice."""
    rows = on_spark.documents(session, dump, **options).collect()
    return [json.loads(one.Document) for one in sorted(rows, key=attrgetter("Id"))]


def test_same_files_for_any_chunks_and_many_parts_in_order(session: Any, tmp_path: Path) -> None:
    dump = sparse_dump(tmp_path / "wide" / "Posts.xml", range(-90_000, 1_500_000, 9_001))
    strays = '<row Id="3" PostTypeId="2" ParentId="5" /><row PostTypeId="1" /></posts>'
    dump.write_text(dump.read_text().replace("</posts>", strays))
    found = []
    for chunk_bytes in (None, 20_011):
        out = tmp_path / str(chunk_bytes)
        report = on_spark.convert(session, dump, out, chunk_bytes=chunk_bytes, answers_by="votes")
        found.append(files_of(out))
    assert found[0] == found[1]
    assert len([name for name in found[0] if "part-" in name]) == report.sites["wide"].files > 10
    plain = tmp_path / "plain"
    folder = tmp_path / "None" / "wide"
    assert_same_as_plain(dump, folder, plain, report.sites["wide"], answers_by="votes")
    ids = [json.loads(line)["Id"] for line in lines_of(folder)]
    assert ids == sorted(ids)
    assert documents(session, dump, chunk_bytes=20_011) == list(so2docs.documents(dump))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tags": ["discussion"], "min_score": 3, "min_answer_score": 1, "answered": True},
        {"sample": "30%", "fields": "Id,Title,Answers.Body", "body": "text"},
    ],
    ids=lambda options: "-".join(options) or "all",
)
def test_real_dumps(session: Any, unpacked_dumps: Path, tmp_path: Path, options: Any) -> None:
    pattern, out = unpacked_dumps / "*" / "Posts.xml", tmp_path / "out"
    report = on_spark.convert(session, pattern, out, site=False, chunk_bytes=500_000, **options)
    assert report.sites
    for name in report.sites:
        dump = unpacked_dumps / name / "Posts.xml"
        assert_same_as_plain(dump, out / name, tmp_path / name, report.sites[name], **options)


def test_attribution_names_the_site_of_each(session: Any, tmp_path: Path) -> None:
    name = "beer.stackexchange.com"
    dump = sparse_dump(tmp_path / name / "Posts.xml", range(1, 800_000, 9_001))
    report = on_spark.convert(session, dump, tmp_path / "out", attribution=True)
    assert report.sites[name].files > 3
    assert_same_as_plain(dump, tmp_path / "out" / name, tmp_path / "plain", attribution=True)
    nobody = sparse_dump(tmp_path / "nobody" / "Posts.xml", range(1, 10))
    with pytest.raises(so2docs.OptionError, match="put the dump into a folder of that name"):
        on_spark.convert(session, [dump, nobody], tmp_path / "none", attribution=True)
    assert not list((tmp_path / "none").glob("*/part-*"))


@pytest.mark.parametrize("name", READERS)
def test_every_part_file_is_whole(session: Any, tmp_path: Path, name: Any) -> None:
    dump = sparse_dump(tmp_path / "wide" / "Posts.xml", range(50_000, 800_000, 9_001))
    on_spark.convert(session, dump, tmp_path / "out", format=name)
    plain = tmp_path / "plain"
    so2docs.convert(dump, plain, jobs=1, format=name)
    read = READERS[name][1]
    files = sorted((tmp_path / "out" / "wide").glob("part-*"))
    assert len(files) == 6
    assert [document for file in files for document in read(file)] == read(plain)


def test_repeated_ids_across_parts_keep_the_first_row(session: Any, tmp_path: Path) -> None:
    rows = [f'<row Id="{number * 200_000}" PostTypeId="1" />' for number in range(1, 9)]
    rows += [
        f'<row Id="77" PostTypeId="2" ParentId="{parent * 200_000}" Score="{parent}" />'
        for parent in (5, 2, 7, 2, 3)
    ]
    dump = tmp_path / "Posts.xml"
    dump.write_text("<posts>" + "\n".join(rows) + "</posts>")
    for chunk_bytes in (150, None):
        out = tmp_path / str(chunk_bytes)
        on_spark.convert(session, dump, out, chunk_bytes=chunk_bytes)
        assert_same_as_plain(dump, out / tmp_path.name, tmp_path / f"plain{chunk_bytes}")
    assert documents(session, dump, chunk_bytes=150) == list(so2docs.documents(dump))


def test_what_is_wrong_with_one_ends_that_one_only(session: Any, tmp_path: Path) -> None:
    ids = range(1, 2000, 3)
    sites = {
        "good": sparse_dump(tmp_path / "in" / "good" / "Posts.xml", ids),
        "malformed": sparse_dump(tmp_path / "in" / "malformed" / "Posts.xml", ids, malformed=1201),
        "orphan": write_dump(tmp_path / "in" / "orphan.xml", question(7), answer(9, 400_000)),
    }
    out = tmp_path / "out"
    report = on_spark.convert(
        session,
        list(sites.values()),
        out,
        on_error="skip",
        chunk_bytes=10_000,
        strict=True,
        site=False,
    )
    assert (list(report.sites), sorted(report.failures)) == (["good"], ["malformed", "orphan"])
    assert_same_as_plain(sites["good"], out / "good", tmp_path / "plain")
    for name, error in report.failures.items():
        with pytest.raises(so2docs.DumpError) as plain:
            so2docs.convert(sites[name], tmp_path / f"{name}.jsonl.gz", jobs=1, strict=True)
        assert type(error) is type(plain.value)
        assert (
            str(error).partition("; a small dump")[0]
            == str(plain.value).partition("; a small dump")[0]
        )
        assert set(files_of(out / name)) <= {"_error.xml"}
    with pytest.raises(so2docs.MalformedDumpError):
        on_spark.documents(session, sites["malformed"], chunk_bytes=10_000)


def test_one_giant_among_many_small_ones(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql.functions import spark_partition_id

    monkeypatch.setattr(giants, "GIANT_BYTES", 100_000)
    giant = sparse_dump(tmp_path / "giant" / "Posts.xml", range(1, 1_700_000, 1_001))
    dumps = [giant, *(SAMPLES / f"{name}.xml" for name in ("posts", "strays", "votes"))]
    out = tmp_path / "out"
    report = on_spark.convert(session, dumps, out, site=False, chunk_bytes=50_000)
    assert list(report.sites) == ["giant", "posts", "strays", "votes"]
    for dump, name in zip(dumps, report.sites, strict=True):
        assert_same_as_plain(dump, out / name, tmp_path / f"plain-{name}")
    rows = on_spark.documents(session, dumps, schema=True).groupBy("Site").count().collect()
    assert dict(map(tuple, rows)) == {
        name: one.questions for name, one in report.sites.items() if one.questions
    }
    options = Options(chunk_bytes=50_000, core="python")
    chosen = parts.Giant(Site("giant", str(giant)), options)
    found = FoundDump(giant.stat().st_size, {POSTS.name: open_dump(str(giant))})
    spread = giants.Spread(session, [(chosen, found)])
    blocks = by_part(spread.blocks, (BLOCK,), spread.parts)
    assert blocks.select("part").distinct().count() == len(spread.giants[0].parts) > 10
    tasks = blocks.select(spark_partition_id()).distinct().count()
    assert tasks > 5
    spread.close()


TABLE_OPTIONS = [
    {},
    {"sample": "40%", "nest": ["comments", "votes"]},
    {"min_answer_score": 2, "fields": "Id,OwnerUserId,Answers,Comments.UserId", "body": "text"},
]


@pytest.mark.parametrize("options", TABLE_OPTIONS, ids=lambda options: "-".join(options) or "all")
def test_tables_find_their_posts_and_parts_their_users(
    session: Any, tmp_path: Path, options: Any
) -> None:
    site, out = wide_site(tmp_path / "wide"), tmp_path / "out"
    options = {"nest": "all", **options}
    report = on_spark.convert(session, site, out, chunk_bytes=3_000, **options)
    # In one task it would be one file.
    found = report.sites["wide"]
    assert found.files > 5
    assert_same_as_plain(site, out / "wide", tmp_path / "plain", found, **options)


def test_tables_in_columns_and_skewed(session: Any, tmp_path: Path) -> None:
    site = wide_site(tmp_path / "wide")
    # All comments and votes on one post, by one user, and all but one user in one range.
    for name, attribute in (("Comments", "PostId"), ("Votes", "PostId"), ("Comments", "UserId")):
        path = site / f"{name}.xml"
        path.write_text(re.sub(rf'{attribute}="[0-9]+"', f'{attribute}="15"', path.read_text()))
    assert_same_as_parquet(session, tmp_path, site, nest="all", chunk_bytes=3_000)


def test_what_tables_repeat_is_left_to_one_task(session: Any, tmp_path: Path) -> None:
    site, out = wide_site(tmp_path / "wide"), tmp_path / "out"
    users = site / "Users.xml"
    users.write_text(users.read_text().replace("</users>", '<row Id="15" /></users>'))
    report = on_spark.convert(session, site, out, nest=["users"], chunk_bytes=3_000)
    found = report.sites["wide"]
    assert found.files == 1
    assert_same_as_plain(site, out / "wide", tmp_path / "plain", found, nest=["users"])


@pytest.mark.parametrize("strict", [False, True])
def test_what_is_wrong_with_a_table(session: Any, tmp_path: Path, strict: bool) -> None:
    site = wide_site(tmp_path / "wide")
    comments = site / "Comments.xml"
    text = comments.read_text()
    if not strict:
        at = text.rindex("<row")
        comments.write_text(text[:at] + text[at:].replace("/>", ">", 1))
    options: dict[str, Any] = {"nest": "all", "strict": strict, "chunk_bytes": 3_000}
    with pytest.raises(so2docs.DumpError) as found:
        on_spark.convert(session, site, tmp_path / "out", **options)
    with pytest.raises(so2docs.DumpError) as plain:
        so2docs.convert(site, tmp_path / "q.jsonl.gz", jobs=1, **options)
    assert type(found.value) is type(plain.value)
    first, wanted = (str(one.value).partition("; a small dump")[0] for one in (found, plain))
    assert first == wanted


def test_parts_are_nested_by_the_core_of_their_executor(tmp_path: Path) -> None:
    giant = parts.Giant(Site("wide", "Posts.xml"), Options(core="auto"))
    with closing(Spill(tmp_path / "spill")) as spill:
        second, _ = parts.second_pass(spill, giant, Names("-", None))
    assert second.options.core == core.built()


def test_typed_columns(session: Any, tmp_path: Path) -> None:
    assert_same_as_parquet(session, tmp_path, SAMPLES / "posts.xml", chunk_bytes=700)


def test_workers_may_have_a_copy_of_the_dump_each(tmp_path: Path) -> None:
    dump = sparse_dump(tmp_path / "Posts.xml", range(1, 2000, 3))
    looked_at = open_dump(str(dump))
    shutil.copy(dump, tmp_path / "copy")
    os.utime(tmp_path / "copy", (1, 1))
    os.replace(tmp_path / "copy", dump)
    assert open_dump(str(dump)).identity != looked_at.identity
    assert isinstance(_read(looked_at), ChunkResult)
    sparse_dump(dump, range(1, 3000, 3))
    error = _read(looked_at)
    assert isinstance(error, so2docs.ChangedDumpError)
    assert "run the same command again" in str(error)
    assert "restart=" not in str(error)


def _read(dump: Any) -> ChunkResult | so2docs.So2docsError:
    chunk = Chunk(0, dump, dump.start, dump.end)
    *_, last = ranges.read((0, ChunkTask(chunk, "", Options(core="python"))))
    found: ChunkResult | so2docs.So2docsError
    found, _, _ = ranges.unpacked(last.data)
    return found
