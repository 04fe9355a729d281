"""Conversions on clusters: killed executors, object storage, and Spark Connect."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command import run_process, run_python
from support.places import CHECKOUT, SAMPLES
from support.spark_cluster import SHORT_LIVED, connect_server, object_store, standalone
from support.spark_runs import assert_same_as_plain, files_of, lines_of, sparse_dump

import so2docs
from so2docs.dump import storage
from so2docs.extensions.spark import stores

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a standalone master with two workers."""
    with standalone(tmp_path_factory.mktemp("cluster")) as url:
        yield url


@pytest.fixture(scope="module")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server of Spark Connect."""
    try:
        with connect_server(tmp_path_factory.mktemp("connect")) as url:
            yield url
    except TimeoutError as error:
        pytest.skip(f"Spark Connect does not start: {error}")


@pytest.fixture(scope="module")
def store() -> Iterator[tuple[Any, dict[str, str]]]:
    """A client of an object store with a bucket `lake`, and the variables to reach the store."""
    boto3 = pytest.importorskip("boto3")
    pytest.importorskip("s3fs")
    pytest.importorskip("moto")
    with object_store() as variables, pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        client = boto3.client("s3")
        client.create_bucket(Bucket="lake")
        yield client, variables


def run(script: str, *arguments: object) -> Any:
    """Run a script; return the JSON that it prints last."""
    result = run_python("-m", f"support.{script}", *arguments, cwd=CHECKOUT / "tests", timeout=600)
    return json.loads(result.stdout.splitlines()[-1])


def test_a_killed_executor_changes_nothing(master: str, tmp_path: Path) -> None:
    dumps = [
        sparse_dump(tmp_path / "dumps" / f"site{number}" / "Posts.xml", range(1, 90_000, 101))
        for number in range(3)
    ]
    out = tmp_path / "out"
    assert run("spark_killer", master, out, *dumps) == ["site0", "site1", "site2"]
    for dump in dumps:
        name = dump.parent.name
        assert_same_as_plain(dump, out / name, tmp_path / name)


def test_speculative_attempts_change_nothing(master: str, tmp_path: Path) -> None:
    dumps = [
        sparse_dump(tmp_path / "dumps" / name / "Posts.xml", range(1, 90_000, 101))
        for name in ("overtaken", "failed")
    ]
    out = tmp_path / "out"
    attempts = run("spark_speculation", master, out, *dumps)
    assert attempts == {"overtaken": [0, 1], "failed": [0, 1]}
    for dump in dumps:
        name = dump.parent.name
        assert sorted(files_of(out / name)) == ["_SUCCESS", "part-00000.jsonl.gz"]
        assert_same_as_plain(dump, out / name, tmp_path / name)


def test_files_written_by_others_into_a_store_are_seen(store: tuple[Any, dict[str, str]]) -> None:
    client, _ = store
    for content in (b"first", b"the second"):
        client.put_object(Bucket="lake", Key=f"folder/{len(content)}", Body=content)
        client.put_object(Bucket="lake", Key="folder/_run", Body=content)
        assert str(len(content)) in storage.list_folder("s3://lake/folder")
        with storage.open_file("s3://lake/folder/_run") as file:
            assert file.read() == content


def test_a_file_in_a_store_is_replaced_at_once(
    store: tuple[Any, dict[str, str]], tmp_path: Path
) -> None:
    client, _ = store
    client.create_bucket(Bucket="versions")
    client.put_bucket_versioning(Bucket="versions", VersioningConfiguration={"Status": "Enabled"})
    for content in (b"first", b"second"):
        (tmp_path / "draft").write_bytes(content)
        stores.publish(str(tmp_path / "draft"), "s3://versions/site/part-00000")
    listed = client.list_object_versions(Bucket="versions")
    # No version is deleted, and nothing has another name.
    assert "DeleteMarkers" not in listed
    assert [entry["Key"] for entry in listed["Versions"]] == ["site/part-00000"] * 2


def test_from_a_store_into_a_store_on_a_cluster(
    master: str, store: tuple[Any, dict[str, str]], tmp_path: Path
) -> None:
    client, variables = store
    for name in ("posts", "votes"):
        client.upload_file(SAMPLES / f"{name}.xml", "lake", f"dumps/{name}/Posts.xml")
    settings = {f"spark.executorEnv.{name}": value for name, value in variables.items()}
    settings |= {"spark.ui.enabled": "false", "spark.executor.memory": "600m"}
    settings |= {"spark.driver.extraJavaOptions": SHORT_LIVED}
    conf = [part for setting in settings.items() for part in ("--conf", "=".join(setting))]
    command = ["spark", "s3://lake/dumps/*/Posts.xml", "s3://lake/out", "--master", master, *conf]
    result = run_process(*command, timeout=300, code=0)
    for name in ("posts", "votes"):
        folder = tmp_path / name
        folder.mkdir()
        listed = client.list_objects_v2(Bucket="lake", Prefix=f"out/{name}/")["Contents"]
        for path in [Path(entry["Key"]) for entry in listed]:
            client.download_file("lake", str(path), folder / path.name)
        assert "_run" not in [path.name for path in folder.iterdir()]
        assert_same_as_plain(SAMPLES / f"{name}.xml", folder, tmp_path / f"plain-{name}")
    result = run_process(*command, "--min-score", "1", timeout=300, code=1)
    assert re.search(r"s3://lake/out/posts: exists, .* \(without --min-score\)", result.stderr)


def test_spark_connect(connect: str, tmp_path: Path) -> None:
    out, site = tmp_path / "out", SAMPLES / "site"
    result = run("spark_connected", connect, out, site)
    assert result["sites"] == ["site"]
    assert_same_as_plain(site, out / "site", tmp_path / "site", nest="all")
    documents = list(so2docs.documents(site, nest="all"))
    assert result["documents"] == len(documents)
    assert {row["Id"]: row["UpMod"] for row in result["loaded"]} == {
        one["Id"]: one["Votes"].get("UpMod") for one in documents
    }


def test_command_over_spark_connect(connect: str, tmp_path: Path) -> None:
    # The client needs no Java, and accepts the options of `convert`.
    options = ["--min-score", "2", "--fields", "Id,Title,Score", "--format", "json", "--limit", "2"]
    options += ["--compression", "none", "--level", "19", "--answers-by", "votes"]
    report = tmp_path / "report.json"
    command = ["spark", SAMPLES / "posts.xml", tmp_path, "--master", connect, *options]
    settings: dict[str, Any] = {"env": {"JAVA_HOME": str(tmp_path)}, "timeout": 600}
    result = run_process(*command, "--report", report, **settings, code=0)
    assert "filtered" in result.stderr
    plain = tmp_path / "q.json"
    so2docs.convert(
        SAMPLES / "posts.xml", plain, jobs=1, min_score=2, fields="Id,Title,Score", limit=2
    )
    assert (tmp_path / "samples" / "part-00000.json").read_bytes() == plain.read_bytes()
    assert json.loads(report.read_text())[0]["result"]["questions"] == 2


def test_a_task_uses_one_process_per_core(tmp_path: Path) -> None:
    # The dump has two chunks.
    dump = sparse_dump(tmp_path / "wide" / "Posts.xml", range(1, 800_000, 21))
    votes, report, out = SAMPLES / "votes.xml", tmp_path / "report.json", tmp_path / "out"
    options = ["--master", "local[2]", "--conf", "spark.task.cpus=2"]
    result = run_process(
        "spark", dump, votes, out, *options, "--report", report, timeout=600, code=0
    )
    assert "total" in result.stderr
    jobs = {one["site"]: one["result"]["jobs"] for one in json.loads(report.read_text())}
    assert jobs == {"votes": 1, "wide": 2}
    assert b"".join(lines_of(out / "votes")) == (SAMPLES / "votes.jsonl").read_bytes()
    assert_same_as_plain(dump, out / "wide", tmp_path / "plain")
