"""Conversions in processes that may open only a few files."""

import subprocess
from pathlib import Path

import pytest
from support.command import run_python
from support.dumps import some_rows, write_dump

import so2docs

resource = pytest.importorskip("resource", reason="limits of a process as POSIX has them")

MOST = 40
SCRIPT = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, ({MOST}, {MOST}))
import so2docs
dump, output, jobs = sys.argv[1:]
try:
    so2docs.convert(dump, output, jobs=int(jobs), chunk_bytes=1000)
except so2docs.So2docsError as error:
    sys.exit(str(error))
"""


def convert(dump: Path, output: Path, jobs: int) -> subprocess.CompletedProcess[str]:
    return run_python("-c", SCRIPT, dump, output, jobs, timeout=300, code=None)


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dump with more chunks than files may be open."""
    path = write_dump(tmp_path_factory.mktemp("dump") / "Posts.xml", *some_rows(600))
    assert path.stat().st_size > 2 * MOST * 1000
    return path


def test_more_chunks_than_files_may_be_open(dump: Path, tmp_path: Path) -> None:
    so2docs.convert(dump, tmp_path / "wanted.gz", jobs=1)
    result = convert(dump, tmp_path / "found.gz", 2)
    assert (result.returncode, result.stderr) == (0, "")
    assert (tmp_path / "found.gz").read_bytes() == (tmp_path / "wanted.gz").read_bytes()


@pytest.mark.long
def test_advice_if_workers_exceed_the_limit_on_open_files(dump: Path, tmp_path: Path) -> None:
    failed = convert(dump, tmp_path / "questions.gz", 36)
    assert failed.returncode == 1
    assert "Too many open files; use fewer jobs" in failed.stderr
    assert "ulimit -n" in failed.stderr
    result = convert(dump, tmp_path / "questions.gz", 2)  # Follow the advice.
    assert (result.returncode, result.stderr) == (0, "")
