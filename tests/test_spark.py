"""The conversion on Spark: the same lines as the plain one, whatever the cluster does."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from oracle import nest

import so2docs
from so2docs import merge, posts
from so2docs import spark as on_spark
from so2docs.spark import plan
from so2docs.spark.job import spark_errors

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
SAMPLE_NAMES = sorted(path.stem for path in SAMPLES.glob("*.xml"))

JAVA = shutil.which(
    "java", path=f"{os.environ['JAVA_HOME']}/bin" if "JAVA_HOME" in os.environ else None
)
MISSING = [
    name for name, is_there in (("PySpark", find_spec("pyspark")), ("Java", JAVA)) if not is_there
]
needs_spark = pytest.mark.skipif(
    bool(MISSING), reason=f"{' and '.join(MISSING)} missing: make test-spark installs PySpark"
)
slow = pytest.mark.skipif(
    "SO2DOCS_SPARK_SLOW" not in os.environ,
    reason="starts a cluster of its own, which takes half a minute: make test-spark",
)


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    from so2docs.spark.cli import start_session

    settings = ("spark.ui.enabled=false", "spark.driver.memory=512m")
    found = start_session("local[2]", settings, quiet=True)
    yield found
    found.stop()


def lines_of(folder: Path, pattern: str = "part-*.jsonl.gz") -> list[bytes]:
    """The lines of the part files, one after the other."""
    return [line for path in sorted(folder.glob(pattern)) for line in gzip.open(path)]


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def sparse_dump(path: Path, ids: range, malformed: int | None = None) -> Path:
    """A dump whose ids lie far apart, with answers before, and long after, their questions."""
    rows = []
    for number, post_id in enumerate(ids):
        kind = "2" if number % 3 else "1"
        parent = ids[(number * 7) % len(ids) // 3 * 3]
        link = f' ParentId="{parent}"' if kind == "2" else ""
        body = "&#xA;".join([f"post {post_id}"] * (number % 40))
        end = "" if post_id == malformed else "/>"
        rows.append(f'  <row Id="{post_id}" PostTypeId="{kind}"{link} Body="{body}" {end}')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("<posts>\n" + "\n".join(rows) + "\n</posts>\n")
    return path


def assert_same_as_plain(dump: Path, folder: Path, plain: Path, **options: Any) -> None:
    """Lines and counts of a site's folder are those of `so2docs.convert`."""
    plain.mkdir()
    so2docs.convert(dump, plain / "questions.jsonl.gz", jobs=1, **options)
    assert lines_of(folder) == lines_of(plain, "questions.jsonl.gz")
    assert lines_of(folder, "_strays-*.jsonl.gz") == lines_of(plain, "questions.strays.jsonl.gz")
    assert (folder / "_SUCCESS").exists()
    assert not (folder / "_temporary").exists()


@needs_spark
@pytest.mark.parametrize(("chunk_bytes", "answers_by"), [(None, "id"), (700, "votes")])
def test_samples(session: Any, tmp_path: Path, chunk_bytes: int | None, answers_by: Any) -> None:
    report = on_spark.convert(
        session,
        SAMPLES / "*.xml",
        tmp_path / "out",
        site=False,
        chunk_bytes=chunk_bytes,
        answers_by=answers_by,
    )
    assert list(report.sites) == SAMPLE_NAMES
    for name in SAMPLE_NAMES:
        dump, folder = SAMPLES / f"{name}.xml", tmp_path / "out" / name
        assert_same_as_plain(dump, folder, tmp_path / name, answers_by=answers_by)
        oracle, counts = nest(dump), report.sites[name]
        assert (counts.rows, counts.questions) == (oracle.rows, oracle.questions)
        assert counts.answers == oracle.answers
        assert counts.strays == dict(sorted(oracle.strays_by_reason.items()))
        assert counts.other_types == oracle.other_types
        assert counts.repaired_characters == oracle.repaired_characters


@needs_spark
def test_real_dumps(session: Any, dumps: Path, tmp_path: Path) -> None:
    for packed in dumps.glob("*/Posts.xml.gz"):
        dump = tmp_path / "dumps" / packed.parent.name / "Posts.xml"
        dump.parent.mkdir(parents=True)
        dump.write_bytes(gzip.decompress(packed.read_bytes()))
    for packed in dumps.glob("archives/*.7z"):
        py7zr = pytest.importorskip("py7zr", reason=f"py7zr is needed to unpack {packed.name}")
        with py7zr.SevenZipFile(packed) as archive:
            archive.extract(path=tmp_path / "dumps" / packed.stem, targets=["Posts.xml"])
    pattern = tmp_path / "dumps" / "*" / "Posts.xml"
    report = on_spark.convert(session, pattern, tmp_path / "out", site=False, chunk_bytes=500_000)
    assert report.sites
    for name in report.sites:
        dump = tmp_path / "dumps" / name / "Posts.xml"
        assert_same_as_plain(dump, tmp_path / "out" / name, tmp_path / name)


@needs_spark
def test_same_files_for_any_chunks_and_many_parts_in_order(session: Any, tmp_path: Path) -> None:
    dump = sparse_dump(tmp_path / "wide" / "Posts.xml", range(-90_000, 3_000_000, 9_001))
    found = []
    for chunk_bytes in (None, 20_011):
        out = tmp_path / str(chunk_bytes)
        on_spark.convert(session, dump, out, chunk_bytes=chunk_bytes)
        found.append(files_of(out))
    assert found[0] == found[1]
    assert len([name for name in found[0] if "part-" in name]) > 10
    assert_same_as_plain(dump, tmp_path / "None" / "wide", tmp_path / "plain")
    ids = [json.loads(line)["Id"] for line in lines_of(tmp_path / "None" / "wide")]
    assert ids == sorted(ids)


@needs_spark
def test_site_stands_before_the_answers(session: Any, tmp_path: Path) -> None:
    on_spark.convert(session, [SAMPLES / "votes.xml"], tmp_path)
    expected = (SAMPLES / "votes.jsonl").read_bytes().splitlines(keepends=True)
    found = lines_of(tmp_path / "votes")
    assert [
        line.replace(b',"Site":"votes","Answers":', b',"Answers":') for line in found
    ] == expected
    assert all(json.loads(line)["Site"] == "votes" for line in found)


@needs_spark
def test_repeated_ids_across_parts_keep_the_first_row(session: Any, tmp_path: Path) -> None:
    rows = [f'<row Id="{number * 200_000}" PostTypeId="1" />' for number in range(1, 9)]
    rows += [
        f'<row Id="77" PostTypeId="2" ParentId="{parent * 200_000}" Score="{parent}" />'
        for parent in (5, 2, 7, 2, 3)
    ]
    dump = tmp_path / "Posts.xml"
    dump.write_text("<posts>" + "\n".join(rows) + "</posts>")
    for chunk_bytes in (60, 150, None):
        out = tmp_path / str(chunk_bytes)
        on_spark.convert(session, dump, out, chunk_bytes=chunk_bytes)
        assert_same_as_plain(dump, out / tmp_path.name, tmp_path / f"plain{chunk_bytes}")
        answered = [json.loads(line) for line in lines_of(out / tmp_path.name)]
        assert [question["Id"] for question in answered if question["Answers"]] == [1_000_000]


@needs_spark
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
    report = on_spark.convert(session, pattern, out, on_error="skip", chunk_bytes=10_000)
    assert list(report.sites) == ["good"]
    assert sorted(report.failures) == ["malformed", "truncated"]
    assert lines_of(out / "good")
    for name, error in report.failures.items():
        with pytest.raises(so2docs.DumpError) as plain:
            so2docs.convert(
                tmp_path / "dumps" / name / "Posts.xml", tmp_path / "q.jsonl.gz", jobs=1
            )
        assert type(error) is type(plain.value)
        assert error.excerpt_path == str(out / name / "_error.xml")
        assert (
            str(error).partition("; a small dump")[0]
            == str(plain.value).partition("; a small dump")[0]
        )
        assert (out / name / "_error.xml").read_bytes() == plain.value.excerpt
        assert not (out / name / "_SUCCESS").exists()
    with pytest.raises(so2docs.DumpError, match="malformed"):
        on_spark.convert(session, tmp_path / "dumps" / "malformed" / "Posts.xml", tmp_path / "two")
    skipped = on_spark.convert(
        session, tmp_path / "dumps" / "malformed" / "Posts.xml", out, skip_malformed=True
    )
    assert skipped.sites["malformed"].strays["malformed_row"] == 1


@needs_spark
def test_a_finished_folder_stays_unless_forced(session: Any, tmp_path: Path) -> None:
    dump = SAMPLES / "posts.xml"
    on_spark.convert(session, dump, tmp_path)
    before = files_of(tmp_path)
    with pytest.raises(so2docs.OutputError, match="is finished"):
        on_spark.convert(session, dump, tmp_path)
    (tmp_path / "posts" / "part-00009.jsonl.gz").write_bytes(b"of a larger dump")
    on_spark.convert(session, dump, tmp_path, force=True)
    assert files_of(tmp_path) == before
    (tmp_path / "posts" / "_SUCCESS").unlink()
    on_spark.convert(session, dump, tmp_path)
    assert files_of(tmp_path) == before
    (tmp_path / "posts" / "notes.txt").write_text("mine")
    with pytest.raises(so2docs.OutputError, match="holds notes"):
        on_spark.convert(session, dump, tmp_path, force=True)


@needs_spark
def test_urls_are_read_and_written_by_way_of_fsspec(session: Any, tmp_path: Path) -> None:
    pattern, out = f"file://{SAMPLES}/s*.xml", f"file://{tmp_path}/out"
    report = on_spark.convert(session, pattern, out, site=False, chunk_bytes=700)
    assert report.sites["strays"].output.startswith("file://")
    assert_same_as_plain(SAMPLES / "strays.xml", tmp_path / "out" / "strays", tmp_path / "plain")
    assert not [name for name in files_of(tmp_path / "out") if name.endswith(".part")]
    with pytest.raises(so2docs.OutputError, match="is finished"):
        on_spark.convert(session, pattern, out)
    on_spark.convert(session, pattern, out, site=False, force=True)
    assert_same_as_plain(SAMPLES / "strays.xml", tmp_path / "out" / "strays", tmp_path / "again")


def test_a_url_without_a_driver_is_an_error() -> None:
    with pytest.raises(so2docs.OptionError, match="nosuchstore"):
        plan.paths("nosuchstore://bucket/*/Posts.xml")


@needs_spark
def test_empty_dumps(session: Any, tmp_path: Path) -> None:
    report = on_spark.convert(session, SAMPLES / "empty.xml", tmp_path)
    assert report.total().rows == 0
    assert list(files_of(tmp_path)) == ["empty/_SUCCESS"]
    assert on_spark.documents(session, SAMPLES / "empty.xml").count() == 0


@needs_spark
def test_documents(session: Any) -> None:
    frame = on_spark.documents(session, [SAMPLES / "posts.xml", SAMPLES / "strays.xml"])
    assert frame.columns == ["Site", "Id", "Document"]
    found = frame.orderBy("Site", "Id").collect()
    expected = [
        (name, json.loads(line)["Id"], line.decode())
        for name in ("posts", "strays")
        for line in (SAMPLES / f"{name}.jsonl").read_bytes().splitlines()
    ]
    assert [tuple(row) for row in found] == expected


@needs_spark
def test_documents_with_typed_columns(session: Any) -> None:
    frame = on_spark.documents(session, SAMPLES / "posts.xml", schema=True)
    types = dict(frame.dtypes)
    assert (types["Id"], types["CreationDate"], types["Tags"]) == (
        "bigint",
        "timestamp_ntz",
        "array<string>",
    )
    rows = {row["Id"]: row for row in frame.collect()}
    for line in (SAMPLES / "posts.jsonl").read_bytes().splitlines():
        question = json.loads(line)
        row = rows.pop(question["Id"]).asDict(recursive=True)
        assert row.pop("Site") == "posts"
        for post in [row, *row["Answers"]]:
            for name, value in post.items():
                if name.endswith("Date") and value is not None:
                    post[name] = value.isoformat(timespec="milliseconds")
        answers = row.pop("Answers")
        assert [_present(answer) for answer in answers] == question.pop("Answers")
        assert _present(row) == question
    assert not rows


def _present(post: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in post.items() if value is not None}


@needs_spark
def test_a_folder_that_cannot_be_written_is_said_in_one_line(session: Any, tmp_path: Path) -> None:
    (tmp_path / "posts").write_text("a file where the folder should be")
    with pytest.raises(so2docs.OutputError, match="is a file") as error:
        on_spark.convert(session, SAMPLES / "posts.xml", tmp_path)
    assert "\n" not in str(error.value)


@needs_spark
def test_what_fails_in_an_executor_is_said_in_one_line(session: Any) -> None:
    def fail(number: int) -> None:
        raise OSError(28, f"No space left on device number {number}")

    with pytest.raises(so2docs.ClusterError) as error, spark_errors():
        session.sparkContext.parallelize([7], 1).foreach(fail)
    assert str(error.value) == (
        "Spark gave the job up: OSError: [Errno 28] No space left on device number 7"
    )


@slow
@needs_spark
def test_a_killed_executor_changes_nothing(tmp_path: Path) -> None:
    ids = range(1, 4_000_000, 101)
    dump = sparse_dump(tmp_path / "dumps" / "wide" / "Posts.xml", ids)
    script = Path(__file__).with_name("spark_killer.py")
    command = [sys.executable, str(script), str(dump), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"killed": ["first", "second"]}
    assert_same_as_plain(dump, tmp_path / "out" / "wide", tmp_path / "plain")


@slow
@needs_spark
def test_command(tmp_path: Path) -> None:
    done = run_command(str(SAMPLES / "v*.xml"), str(tmp_path), "--master", "local[2]", "--no-site")
    assert done.returncode == 0, done.stderr
    assert "in all" in done.stderr
    for name in ("values", "votes"):
        assert b"".join(lines_of(tmp_path / name)) == (SAMPLES / f"{name}.jsonl").read_bytes()


def run_command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "so2docs", "spark", *arguments]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.skipif(find_spec("pyspark") is None, reason="PySpark is missing")
def test_command_without_java_says_so(tmp_path: Path) -> None:
    done = run_command(str(SAMPLES / "posts.xml"), str(tmp_path), JAVA_HOME=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith("so2docs: Spark needs Java 17 or later")
    assert done.stderr.count("\n") == 1


def test_command_without_pyspark_names_the_extra(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['pyspark'] = sys.modules['pyspark.sql'] = None\n"
        "from so2docs.cli import main; main(['spark', *sys.argv[1:]])"
    )
    command = [sys.executable, "-c", code, str(SAMPLES / "posts.xml"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "pip install 'so2docs[spark]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_help_does_not_import_pyspark() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from so2docs.cli import cli\n"
        "done = CliRunner().invoke(cli, ['spark', '--help'])\n"
        "assert '--master' in done.output, done.output\n"
        "assert 'pyspark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["dumps/beer/Posts.xml", "dumps/dba/Posts.xml"], ["beer", "dba"]),
        (["a/beer.stackexchange.com.xml"], ["beer.stackexchange.com"]),
        (["stackoverflow.com-Posts.7z", "x/beer.7z"], ["stackoverflow.com", "beer"]),
        (["2023/beer/Posts.xml", "2024/beer/Posts.xml"], ["2023/beer", "2024/beer"]),
        (["s3://lake/2024/beer/Posts.xml.gz"], ["beer"]),
    ],
)
def test_names_of_sites(paths: list[str], expected: list[str]) -> None:
    assert plan.names(paths) == expected


def test_two_dumps_of_one_name_are_refused() -> None:
    with pytest.raises(so2docs.OptionError, match="same name"):
        plan.names(["beer/Posts.xml", "beer/Posts.xml.gz"])


def test_a_pattern_that_matches_nothing(tmp_path: Path) -> None:
    with pytest.raises(so2docs.DumpError, match="matches no file"):
        plan.paths(tmp_path / "*" / "Posts.xml")


def test_nesting_puts_the_site_before_the_answers() -> None:
    found = posts.Posts()
    posts.add(found, [{"Id": "1", "PostTypeId": "1"}])
    block = (bytes(found.buckets[0].keys), bytes(found.buckets[0].json))
    nesting = merge.Nesting(merge.sorted_posts([block], range(10)), extra=b'"Site":"a \\"b\\""')
    lines = [b"".join(document.parts) for document in nesting]
    assert lines == [b'{"Id":1,"PostTypeId":1,"Site":"a \\"b\\"","Answers":[]']


def test_every_bucket_has_its_place_in_the_shuffle() -> None:
    layout = plan.layout([3_000_000_000, 10, 700_000_000])
    for site in range(3):
        for bucket in (-5, 0, 1, 7, 8, 100, 1 << 49):
            place = layout.of_bucket(site, bucket)
            assert 0 <= place < layout.partitions
            assert place == layout.of_bucket(site, bucket | 7)
        assert layout.of_bucket(site, None) == layout.of_tallies(site) == layout.partitions + site
