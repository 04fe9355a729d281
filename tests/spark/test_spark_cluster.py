"""The conversion on clusters: executors that are killed, and Spark Connect."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.places import CHECKOUT
from support.spark_cluster import connect_server, standalone
from support.spark_runs import SAMPLES, assert_same_as_plain, sparse_dump

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


def run(script: str, *arguments: object) -> str:
    """What a script prints last."""
    command = [sys.executable, "-m", f"support.{script}", *map(str, arguments)]
    done = subprocess.run(
        command, cwd=CHECKOUT / "tests", capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_executors_killed_among_sites_change_nothing(master: str, tmp_path: Path) -> None:
    dumps = [
        sparse_dump(tmp_path / "dumps" / f"site{number}" / "Posts.xml", range(1, 900_000, 101))
        for number in range(12)
    ]
    killed = run("spark_killer", master, tmp_path / "out", "sites", *dumps)
    assert json.loads(killed) == {"killed": [1, 2]}
    for dump in dumps:
        name = dump.parent.name
        assert_same_as_plain(dump, tmp_path / "out" / name, tmp_path / name)


def test_executors_killed_in_each_stage_of_a_giant_change_nothing(
    master: str, tmp_path: Path
) -> None:
    dump = sparse_dump(tmp_path / "dumps" / "wide" / "Posts.xml", range(1, 4_000_000, 101))
    killed = run("spark_killer", master, tmp_path / "out", "giant", dump)
    assert json.loads(killed) == {"killed": [1, 2]}
    assert_same_as_plain(dump, tmp_path / "out" / "wide", tmp_path / "plain")


def test_spark_connect(connect: str, tmp_path: Path) -> None:
    giant = sparse_dump(tmp_path / "wide" / "Posts.xml", range(1, 800_000, 1_001))
    out, site = tmp_path / "out", SAMPLES / "site"
    found = json.loads(run("spark_connected", connect, out, site, giant))
    assert found["sites"] == ["site", "wide"]
    assert_same_as_plain(site, out / "small" / "site", tmp_path / "site", nest="all")
    assert_same_as_plain(giant, out / "giant" / "wide", tmp_path / "giant")
    assert len(list((out / "giant" / "wide").glob("part-*"))) > 5
    assert found["spread"] == sum(1 for _ in so2docs.documents(giant))
    assert {row["Id"]: row["UpMod"] for row in found["loaded"]} == {
        one["Id"]: one["Votes"].get("UpMod", 0) for one in so2docs.documents(site, nest="all")
    }


def test_command_over_spark_connect(connect: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "so2docs", "spark", str(SAMPLES / "votes.xml")]
    # It needs no Java of its own.
    environment = {**os.environ, "JAVA_HOME": str(tmp_path)}
    done = subprocess.run(
        [*command, str(tmp_path / "out"), "--master", connect],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert_same_as_plain(SAMPLES / "votes.xml", tmp_path / "out" / "votes", tmp_path / "plain")


def test_a_task_has_as_many_processes_as_spark_gives_it_cores(tmp_path: Path) -> None:
    dump = sparse_dump(tmp_path / "wide" / "Posts.xml", range(1, 800_000, 1_001))
    code = (
        "import sys; from so2docs.spark import convert\n"
        "from so2docs.commands.spark import start_session\n"
        "session = start_session('local[2]', ('spark.task.cpus=2', 'spark.ui.enabled=false'))\n"
        "done = convert(session, sys.argv[1], sys.argv[2], chunk_bytes=20_000)\n"
        "print(done.sites['wide'].jobs); session.stop()"
    )
    command = [sys.executable, "-c", code, str(dump), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.splitlines()[-1:] == ["2"], done.stderr
    assert_same_as_plain(dump, tmp_path / "out" / "wide", tmp_path / "plain")
