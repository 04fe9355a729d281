"""Conversions on clusters: killed executors, and Spark Connect."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command import run_process
from support.places import CHECKOUT, SAMPLES
from support.spark_cluster import connect_server, standalone
from support.spark_runs import assert_same_as_plain, lines_of, noisy_dump, sparse_dump

import so2docs

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


def run(script: str, *arguments: object) -> Any:
    """Run a script; return the JSON that it prints last."""
    command = [sys.executable, "-m", f"support.{script}", *map(str, arguments)]
    result = subprocess.run(
        command, cwd=CHECKOUT / "tests", capture_output=True, text=True, timeout=600, check=False
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def test_a_killed_executor_changes_nothing_and_a_large_dump_gets_all_cores(
    master: str, tmp_path: Path
) -> None:
    dumps = [
        sparse_dump(tmp_path / "dumps" / f"site{number}" / "Posts.xml", range(1, 90_000, 101))
        for number in range(3)
    ]
    large = noisy_dump(tmp_path / "dumps" / "large" / "Posts.xml", range(1, 60_000, 31))
    out = tmp_path / "out"
    jobs = run("spark_killer", master, out, *dumps, large)
    assert jobs == {"site0": 1, "site1": 1, "site2": 1, "large": 2}
    for dump in (*dumps, large):
        name = dump.parent.name
        assert_same_as_plain(dump, out / name, tmp_path / name)


def test_spark_connect(connect: str, tmp_path: Path) -> None:
    out, site = tmp_path / "out", SAMPLES / "site"
    result = run("spark_connected", connect, out, site)
    assert result["sites"] == ["site"]
    assert_same_as_plain(site, out / "site", tmp_path / "site", nest="all")
    documents = list(so2docs.documents(site, nest="all"))
    assert result["documents"] == len(documents)
    assert {row["Id"]: row["UpMod"] for row in result["loaded"]} == {
        one["Id"]: one["Votes"].get("UpMod", 0) for one in documents
    }


def test_command_over_spark_connect(connect: str, tmp_path: Path) -> None:
    # It needs no Java of its own, and takes the options of `convert`.
    options = ["--min-score", "2", "--fields", "Id,Title,Score", "--format", "json", "--limit", "2"]
    options += ["--compression", "none", "--level", "19", "--answers-by", "votes"]
    report = tmp_path / "report.json"
    command = ["spark", SAMPLES / "posts.xml", tmp_path, "--master", connect, *options]
    settings: dict[str, Any] = {"env": {"JAVA_HOME": str(tmp_path)}, "timeout": 600}
    result = run_process(*command, "--report", report, **settings)
    assert result.returncode == 0, result.stderr
    assert "filtered" in result.stderr
    plain = tmp_path / "q.json"
    so2docs.convert(
        SAMPLES / "posts.xml", plain, jobs=1, min_score=2, fields="Id,Title,Score", limit=2
    )
    assert (tmp_path / "posts" / "part-00000.json").read_bytes() == plain.read_bytes()
    assert json.loads(report.read_text())["sites"]["posts"]["questions"] == 2


def test_a_task_has_as_many_processes_as_spark_gives_it_cores(tmp_path: Path) -> None:
    dump = sparse_dump(tmp_path / "wide" / "Posts.xml", range(1, 800_000, 21))  # Two chunks.
    votes, report, out = SAMPLES / "votes.xml", tmp_path / "report.json", tmp_path / "out"
    options = ["--master", "local[2]", "--conf", "spark.task.cpus=2"]
    result = run_process("spark", dump, votes, out, *options, "--report", report, timeout=600)
    assert result.returncode == 0, result.stderr
    assert "total" in result.stderr
    jobs = {name: one["jobs"] for name, one in json.loads(report.read_text())["sites"].items()}
    assert jobs == {"votes": 1, "wide": 2}
    assert b"".join(lines_of(out / "votes")) == (SAMPLES / "votes.jsonl").read_bytes()
    assert_same_as_plain(dump, out / "wide", tmp_path / "plain")
