"""A conversion on Spark writes the same lines as a plain conversion, whatever the cluster does."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from support.command import run_process, run_python, start
from support.oracle import nest
from support.places import SAMPLES
from support.spark_runs import (
    SAMPLE_NAMES,
    assert_same_as_plain,
    errors,
    files_of,
    lines_of,
    noisy_dump,
    reports,
    sparse_dump,
    up_to_date,
)

import so2docs
from so2docs.extensions import spark as on_spark
from so2docs.extensions.sites.tasks import SiteResult
from so2docs.extensions.spark import api, folders, sites
from so2docs.extensions.spark.jobs import catch_errors, run
from so2docs.extensions.spark.sites import convert_site
from so2docs.options.sites import site_from_name
from so2docs.options.split import Split


def error_of(results: list[SiteResult]) -> str:
    """Return the error of the only site."""
    [error] = errors(results).values()
    return str(error)


@pytest.mark.spark
def test_samples(session: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"chunk_bytes": 700, "answers_by": "votes"}
    report = on_spark.convert(session, SAMPLES / "*.xml", tmp_path / "out", **options)
    assert len(reports(report)) == len(SAMPLE_NAMES)
    for name in SAMPLE_NAMES:
        dump = SAMPLES / f"{name}.xml"
        site = site_from_name(dump)
        folder = tmp_path / "out" / site
        assert_same_as_plain(dump, folder, tmp_path / site, answers_by="votes")
        oracle, counts = nest(dump), reports(report)[site]
        assert (counts.rows, counts.questions) == (oracle.rows, oracle.questions)
        assert counts.answers == oracle.answers
        assert counts.strays == dict(sorted(oracle.strays_by_reason.items()))
        assert counts.other_types == oracle.other_types
        assert counts.repaired_characters == oracle.repaired_characters


@pytest.mark.spark
def test_a_bad_dump_fails_with_the_message_of_the_plain_command(
    session: Any, tmp_path: Path
) -> None:
    ids = range(1, 2000, 3)
    sparse_dump(tmp_path / "dumps" / "good" / "Posts.xml", ids)
    sparse_dump(tmp_path / "dumps" / "malformed" / "Posts.xml", ids, malformed=1201)
    cut = sparse_dump(tmp_path / "dumps" / "truncated" / "Posts.xml", ids)
    cut.write_bytes(cut.read_bytes()[:-500])
    pattern = str(tmp_path / "dumps" / "*" / "Posts.xml")
    out = tmp_path / "out"
    report = on_spark.convert(session, pattern, out, chunk_bytes=10_000)
    assert list(reports(report)) == ["good"]
    assert sorted(errors(report)) == ["malformed", "truncated"]
    assert lines_of(out / "good")
    for name, error in errors(report).items():
        with pytest.raises(so2docs.DumpError) as plain:
            so2docs.convert(
                tmp_path / "dumps" / name / "Posts.xml", tmp_path / "q.jsonl.gz", jobs=1
            )
        assert type(error) is type(plain.value)
        assert str(error) == str(plain.value).partition("; a small dump")[0]
        assert not (out / name / "_SUCCESS").exists()
    skipped = on_spark.convert(
        session, tmp_path / "dumps" / "malformed" / "Posts.xml", out, errors="skip"
    )
    assert reports(skipped)["malformed"].strays["malformed_row"] == 1


@pytest.mark.spark
def test_a_finished_site_stays_unless_forced(session: Any, tmp_path: Path) -> None:
    dump = SAMPLES / "posts.xml"
    on_spark.convert(session, dump, tmp_path)
    before = files_of(tmp_path)
    part = tmp_path / "samples" / "part-00000.jsonl.gz"
    marked = b"-" * part.stat().st_size
    part.write_bytes(marked)
    again = on_spark.convert(session, dump, tmp_path)
    assert (up_to_date(again), reports(again), part.read_bytes()) == (["samples"], {}, marked)
    (tmp_path / "samples" / "part-00009.jsonl.gz").write_bytes(b"of a larger dump")
    on_spark.convert(session, dump, tmp_path, force=True)
    assert files_of(tmp_path) == before
    (tmp_path / "samples" / "_SUCCESS").unlink()
    on_spark.convert(session, dump, tmp_path)
    assert files_of(tmp_path) == before
    (tmp_path / "samples" / "notes.txt").write_text("mine")
    assert "holds notes" in error_of(on_spark.convert(session, dump, tmp_path, force=True))


@pytest.mark.spark
def test_a_site_with_a_damaged_part_is_converted_again(session: Any, tmp_path: Path) -> None:
    convert = partial(on_spark.convert, session, SAMPLES / "posts.xml", tmp_path)
    convert()
    before = files_of(tmp_path)
    part = tmp_path / "samples" / "part-00000.jsonl.gz"
    part.write_bytes(part.read_bytes()[:-1])
    assert "limit" in error_of(convert(limit=1))
    assert list(reports(convert())) == ["samples"]
    assert files_of(tmp_path) == before
    part.unlink()
    assert list(reports(convert())) == ["samples"]
    assert files_of(tmp_path) == before


@pytest.mark.spark
def test_a_finished_site_of_another_dump_or_other_options(session: Any, tmp_path: Path) -> None:
    dump, out = tmp_path / "in" / "wide" / "Posts.xml", tmp_path / "out"
    sparse_dump(dump, range(1, 2000, 3))
    convert = partial(on_spark.convert, session, dump, out)
    convert(site_field="Site")
    before = files_of(out)
    changes: dict[str, dict[str, Any]] = {
        "limit": {"limit": 3, "site_field": "Site"},
        "site_field": {"site_field": "Other"},
    }
    for option, keywords in changes.items():
        results = convert(**keywords)
        assert option in error_of(results)
        assert results[0].state == "other options"
    sparse_dump(dump, range(1, 2600, 3))
    results = convert(site_field="Site")
    assert str(out / "wide") in error_of(results)
    assert results[0].state == "another input"
    assert files_of(out) == before
    assert list(reports(convert(site_field="Site", update=True))) == ["wide"]
    assert_same_as_plain(dump, out / "wide", tmp_path / "plain", site_field="Site", site="wide")
    assert up_to_date(convert(site_field="Site", update=True)) == ["wide"]


@pytest.mark.spark
def test_urls_are_read_and_written_by_way_of_fsspec(session: Any, tmp_path: Path) -> None:
    pattern, out = f"file://{SAMPLES}/s*.xml", f"file://{tmp_path}/out"
    report = on_spark.convert(session, pattern, out, chunk_bytes=700)
    assert reports(report)["strays"].output.startswith("file://")
    assert_same_as_plain(SAMPLES / "strays.xml", tmp_path / "out" / "strays", tmp_path / "plain")
    assert not [name for name in files_of(tmp_path / "out") if ".part" in name]
    assert up_to_date(on_spark.convert(session, pattern, out)) == list(reports(report))
    on_spark.convert(session, pattern, out, force=True)
    assert_same_as_plain(SAMPLES / "strays.xml", tmp_path / "out" / "strays", tmp_path / "again")


@pytest.mark.spark
def test_a_url_without_a_driver_is_an_error(session: Any, tmp_path: Path) -> None:
    for url in ("nosuchstore://bucket/*/Posts.xml", "nosuchstore:/bucket/Posts.xml"):
        with pytest.raises(so2docs.OptionError, match="nosuchstore"):
            on_spark.convert(session, url, tmp_path)


@pytest.mark.spark
def test_executors_without_fsspec_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    site = sites.Site("posts", f"file://{SAMPLES}/posts.xml", str(tmp_path))
    for result in (
        catch_errors(partial(sites.prepare, run="", keywords={}, force=False, update=False), site),
        catch_errors(partial(convert_site, run="", keywords={}), site),
    ):
        assert isinstance(result, so2docs.OptionError)
        assert "pip install fsspec" in str(result)


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("file:/lake/posts.xml", "file:///lake/posts.xml"),
        ("dbfs:/lake/*/Posts.xml", "dbfs:///lake/*/Posts.xml"),
        ("s3://lake/2024", "s3://lake/2024"),
        ("hdfs:///lake", "hdfs:///lake"),
        ("/a/b:/c", "/a/b:/c"),
        ("here", None),
        ("ab:/x", None),  # A folder with this name.
    ],
)
def test_locates_paths_and_urls(
    location: str, expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ab:" / "x").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert sites.locate(location) == (expected or os.path.abspath(location))


@pytest.mark.spark
def test_empty_dumps(session: Any, tmp_path: Path) -> None:
    report = on_spark.convert(session, SAMPLES / "empty.xml", tmp_path)
    assert reports(report)["empty"].rows == 0
    assert list(files_of(tmp_path)) == ["empty/_SUCCESS"]
    assert up_to_date(on_spark.convert(session, SAMPLES / "empty.xml", tmp_path)) == ["empty"]


@pytest.mark.spark
def test_spark_reads_json_lines_and_parquet(session: Any, tmp_path: Path) -> None:
    site, options = SAMPLES / "site", {"nest": "all", "site_field": "Site"}
    expected = {one["Id"]: one for one in so2docs.documents(site, nest="all")}
    for form in ("jsonl", "parquet"):
        on_spark.convert(session, site, tmp_path / form, format=form, **options)
    lines = session.read.json(f"{tmp_path}/jsonl/*/").select("Site", "Id", "Title").collect()
    assert {row.Id: row.Title for row in lines} == {n: one["Title"] for n, one in expected.items()}
    frame = session.read.parquet(f"{tmp_path}/parquet/*/")
    assert dict(frame.dtypes)["CreationDate"] == "timestamp"
    rows = frame.select("Site", "Id", "Votes.UpMod", "Answers.Id").collect()
    assert [tuple(row) for row in sorted(rows, key=lambda row: row[1])] == [
        (
            "site",
            n,
            one["Votes"].get("UpMod", 0),
            [answer["Id"] for answer in one["Answers"]],
        )
        for n, one in sorted(expected.items())
    ]


@pytest.mark.spark
def test_an_unwritable_folder_is_a_one_line_error(session: Any, tmp_path: Path) -> None:
    (tmp_path / "samples").write_text("a file where the folder should be")
    message = error_of(on_spark.convert(session, SAMPLES / "posts.xml", tmp_path))
    assert "is a file" in message
    assert "\n" not in message


@pytest.mark.spark
def test_an_error_in_an_executor_is_the_result_of_its_task(session: Any) -> None:
    def fail(number: int) -> int:
        if number == 7:
            raise OSError(28, f"No space left on device number {number}")
        return number

    first, second = run(session, fail, [7, 8])
    assert (type(first), second) == (so2docs.ClusterError, 8)
    assert str(first) == (
        "the executor failed: OSError: [Errno 28] No space left on device number 7"
    )


@pytest.mark.spark
def test_a_dead_worker_fails_only_its_site(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dumps = [
        sparse_dump(tmp_path / "in" / name / "Posts.xml", range(1, 2000, 3))
        for name in ("first", "deadly", "last")
    ]

    def convert_or_die(site: sites.Site, **keywords: Any) -> so2docs.Report:
        if site.name == "deadly":
            os.kill(os.getpid(), signal.SIGKILL)
        return convert_site(site, **keywords)

    monkeypatch.setattr(api, "convert_site", convert_or_die)
    report = on_spark.convert(session, dumps, tmp_path / "out")
    assert list(reports(report)) == ["first", "last"]
    assert isinstance(errors(report)["deadly"], so2docs.ClusterError)
    assert "Spark ended the job" in str(errors(report)["deadly"])
    assert not (tmp_path / "out" / "deadly" / "_SUCCESS").exists()
    for dump in (dumps[0], dumps[2]):
        name = dump.parent.name
        assert_same_as_plain(dump, tmp_path / "out" / name, tmp_path / name)


@pytest.mark.spark
@pytest.mark.parametrize("full", ["output", "spill"])
def test_the_error_of_a_full_disk_names_that_disk(
    full: str, tmp_path: Path, tmpfs: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    dump = noisy_dump(tmp_path / "in" / "Posts.xml", range(1, 400, 2))
    small, large = str(tmpfs(200_000)), str(tmp_path)
    out, spill = (small, large) if full == "output" else (large, small)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", spill)
    site = sites.Site("in", str(dump), f"{out}/site")
    folders.begin(site.output, "run")
    with pytest.raises(so2docs.DiskFullError, match=f"^{small}/.*free some space"):
        convert_site(site, run="run", keywords={})


@pytest.mark.spark
def test_a_retry_after_a_full_disk_still_has_the_folder(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dump = sparse_dump(tmp_path / "wide" / "Posts.xml", range(1, 2000, 3))
    tried = tmp_path / "tried"

    def convert_on_a_full_disk_at_first(site: sites.Site, **keywords: Any) -> so2docs.Report:
        if tried.exists():
            return convert_site(site, **keywords)
        tried.touch()

        def finish(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(folders, "finish", finish)
            return convert_site(site, **keywords)

    monkeypatch.setattr(api, "convert_site", convert_on_a_full_disk_at_first)
    report = on_spark.convert(session, dump, tmp_path / "out")
    assert tried.exists()
    assert list(reports(report)) == ["wide"]
    assert_same_as_plain(dump, tmp_path / "out" / "wide", tmp_path / "plain")


@pytest.mark.spark
def test_success_lists_the_files(tmp_path: Path) -> None:
    site = sites.Site("posts", str(SAMPLES / "posts.xml"), str(tmp_path / "posts"))
    convert = partial(convert_site, run="run", keywords={"split": Split(size=1_000_000)})
    folders.begin(site.output, "run")
    report = convert(site)
    success = json.loads((tmp_path / "posts" / "_SUCCESS").read_bytes())
    part = tmp_path / "posts" / "part-00000.jsonl.gz"
    assert success["files"] == {part.name: part.stat().st_size}
    assert success["report"]["questions"] == report.questions
    # An attempt is not repeated if only its result was lost.
    assert convert(site) == report


@pytest.mark.spark
def test_an_interrupted_command_gives_the_next_step(tmp_path: Path) -> None:
    dump = sparse_dump(tmp_path / "wide" / "Posts.xml", range(1, 9_000_000, 101))
    command = ["spark", dump, tmp_path / "out", "--master", "local[1]", "-q"]
    with start(*command, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not [*tmp_path.glob("out/wide/_temporary*")]:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        stderr = process.communicate(timeout=60)[1]
    assert process.returncode == 130, stderr
    # The JVM ends with the command, and may log a last line about its Python worker.
    lines = [line for line in stderr.splitlines() if " ERROR Executor: " not in line]
    assert lines[-1] == (
        "so2docs: interrupted; the same command converts the sites that are not finished"
    )
    assert "Traceback" not in stderr
    assert not (tmp_path / "out" / "wide" / "_SUCCESS").exists()


@pytest.mark.skipif(find_spec("pyspark") is None, reason="PySpark is missing")
def test_command_without_java_says_so(tmp_path: Path) -> None:
    result = run_process(
        "spark", SAMPLES / "posts.xml", tmp_path, env={"JAVA_HOME": str(tmp_path)}, code=1
    )
    assert result.stderr.startswith("so2docs: Spark needs Java 17 or later")
    assert result.stderr.count("\n") == 1


def test_command_without_pyspark_names_the_extra(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['pyspark'] = sys.modules['pyspark.sql'] = None\n"
        "from so2docs.__main__ import main; main(['spark', *sys.argv[1:]])"
    )
    result = run_python("-c", code, SAMPLES / "posts.xml", tmp_path, timeout=60, code=1)
    assert "pip install pyspark" in result.stderr
    assert result.stderr.count("\n") == 1


def test_help_does_not_import_pyspark() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from so2docs.cli import cli\n"
        "done = CliRunner().invoke(cli, ['spark', '--help'])\n"
        "assert '--master' in done.output, done.output\n"
        "assert 'pyspark' not in sys.modules"
    )
    run_python("-c", code, timeout=60)


def test_a_pattern_without_matches(tmp_path: Path) -> None:
    with pytest.raises(so2docs.DumpError, match="matches no file"):
        sites.find_dumps(str(tmp_path / "*" / "Posts.xml"))
