"""The conversion on clusters: executors that are killed, and Spark Connect."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from spark_cluster import standalone
from spark_runs import assert_same_as_plain, sparse_dump

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a standalone master with two workers."""
    with standalone(tmp_path_factory.mktemp("cluster")) as url:
        yield url


def test_killed_executors_change_nothing(master: str, tmp_path: Path) -> None:
    dumps = [
        sparse_dump(tmp_path / "dumps" / f"site{number}" / "Posts.xml", range(1, 900_000, 101))
        for number in range(12)
    ]
    script = Path(__file__).with_name("spark_killer.py")
    command = [sys.executable, str(script), master, str(tmp_path / "out"), *map(str, dumps)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"killed": [1, 2]}
    for dump in dumps:
        name = dump.parent.name
        assert_same_as_plain(dump, tmp_path / "out" / name, tmp_path / name)
