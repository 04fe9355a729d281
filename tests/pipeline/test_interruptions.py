"""After a conversion is killed, stopped or frozen, the same call gives the same bytes.

`SO2DOCS_LONG=1` runs dozens of rounds instead of a few.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command import COMMAND
from support.dumps import left_by, row, some_rows, write_dump
from support.interruptions import stop_at_each_step, wait_for
from support.messages import heard
from support.places import LONG
from support.processes import children, members

import so2docs
from so2docs.errors import RESUMES, STARTS_OVER

CHUNK_BYTES = 280_000
CONVERT = (
    "import logging, sys, so2docs; logging.basicConfig(level=logging.INFO, format='%(message)s'); "
    "so2docs.convert(sys.argv[1], sys.argv[2], jobs=2, "
    f"chunk_bytes={CHUNK_BYTES})"
)
Undisturbed = tuple[dict[str, bytes], float]
"""The files of an undisturbed conversion, and its duration in seconds."""
STARTED: list[subprocess.Popen[str]] = []
pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills process groups")


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    count = 60_000 if LONG else 12_000
    return write_dump(
        tmp_path_factory.mktemp("dump") / "Posts.xml", *some_rows(count, body_bytes=400)
    )


@pytest.fixture(scope="module")
def undisturbed(dump: Path, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    output = tmp_path_factory.mktemp("undisturbed") / "questions.jsonl.gz"
    started = time.monotonic()
    running = start(dump, output)
    _, messages = running.communicate(timeout=300)
    assert (running.returncode, messages) == (0, "")
    return left_by(output), time.monotonic() - started


@pytest.fixture(autouse=True)
def _none_left() -> Iterator[None]:
    """Kill the processes that a failed test leaves."""
    yield
    while STARTED:
        running = STARTED.pop()
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.communicate()


def start(dump: Path, output: Path, *, command: bool = False) -> subprocess.Popen[str]:
    """Start a conversion in its own process group, by the library or the command."""
    how = [*COMMAND, "convert", "--jobs", "2"] if command else [sys.executable, "-c", CONVERT]
    running = subprocess.Popen(
        [*how, str(dump), str(output)], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    STARTED.append(running)
    return running


def wait_for_chunks(output: Path, running: subprocess.Popen[str], count: int = 4) -> None:
    spill = output.with_name(output.name + ".spill")
    wait_for(lambda: len(list(spill.glob("*.blocks"))) >= count or running.poll() is not None)
    assert running.poll() is None, running.communicate()


def finish(dump: Path, output: Path, undisturbed: Undisturbed) -> list[str]:
    """Resume until the end, and return the messages; check that only the usual files are left."""
    with heard() as messages:
        so2docs.convert(dump, output, jobs=1, chunk_bytes=CHUNK_BYTES)
    assert left_by(output) == undisturbed[0]
    return messages


@pytest.fixture
def output(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder / "questions.jsonl.gz"


@pytest.mark.long
@pytest.mark.parametrize("seed", range(24 if LONG else 1))
def test_killed_at_any_moment(
    seed: int, dump: Path, output: Path, undisturbed: Undisturbed
) -> None:
    rng = random.Random(seed)
    kills = 0
    for _ in range(8 if LONG else 2):
        running = start(dump, output)
        time.sleep(rng.uniform(0.1, undisturbed[1]))
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            kills += 1
        running.communicate()
        if running.returncode == 0:
            break
        assert not output.exists() or left_by(output)[output.name] == undisturbed[0][output.name]
    if not output.exists() or output.with_name(output.name + ".spill").exists():
        finish(dump, output, undisturbed)
    assert left_by(output) == undisturbed[0]
    print(f"kills survived: {kills}")


def test_workers_end_with_their_parent(dump: Path, output: Path) -> None:
    running = start(dump, output, command=True)
    wait_for_chunks(output, running, 1)
    running.kill()
    running.communicate(timeout=60)
    wait_for(lambda: not members(running.pid))


@pytest.mark.parametrize(
    ("number", "code", "word", "whole_group"),
    [
        (signal.SIGINT, 130, "interrupted", True),
        (signal.SIGTERM, 143, "terminated", False),
    ],
)
def test_asked_to_stop(
    number: signal.Signals, code: int, word: str, whole_group: bool, dump: Path, output: Path
) -> None:
    running = start(dump, output, command=True)
    wait_for_chunks(output, running, 1)
    (os.killpg if whole_group else os.kill)(running.pid, number)
    _, messages = running.communicate(timeout=60)
    assert running.returncode == code, messages
    is_begun = output.with_name(output.name + ".spill").exists()
    assert messages.strip() == f"so2docs: {word}; {RESUMES if is_begun else STARTS_OVER}"
    wait_for(lambda: not members(running.pid))
    assert not output.exists()


def test_a_worker_killed_alone(dump: Path, output: Path, undisturbed: Undisturbed) -> None:
    running = start(dump, output)
    wait_for_chunks(output, running)
    os.kill(children(running.pid)[0], signal.SIGKILL)
    _, messages = running.communicate(timeout=60)
    assert running.returncode == 1
    assert "WorkerDiedError: a worker process was killed" in messages
    wait_for(lambda: not members(running.pid))
    is_begun = output.with_name(output.name + ".spill").exists()
    resumed = finish(dump, output, undisturbed)
    assert any(text.startswith("resuming: ") for text in resumed) == is_begun


def test_frozen_and_thawed(dump: Path, output: Path, undisturbed: Undisturbed) -> None:
    running = start(dump, output)
    wait_for_chunks(output, running)
    os.killpg(running.pid, signal.SIGSTOP)
    with pytest.raises(so2docs.SpillTakenError, match="is working on this"):
        so2docs.convert(dump, output, jobs=1, chunk_bytes=CHUNK_BYTES)
    os.killpg(running.pid, signal.SIGCONT)
    _, messages = running.communicate(timeout=300)
    assert running.returncode == 0, messages
    assert left_by(output) == undisturbed[0]


BEIR = {"recipe": "beir", "tables": {"links": "PostLinks.xml"}}
DUPLICATES = {**BEIR, "recipe": "duplicates", "site": "tea.example.com"}
CARD = {"split": "2files", "card": True, "report": ""}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["kill", "fail"])
@pytest.mark.parametrize(
    "keywords", [{}, BEIR, DUPLICATES, CARD], ids=["", "beir", "duplicates", "card"]
)
def test_stopped_at_every_step_on_the_file_system(
    kind: str, keywords: dict[str, Any], tmp_path: Path
) -> None:
    small = write_dump(tmp_path / "Posts.xml", *some_rows(400 if LONG else 60))
    links = [row(Id=i, PostId=i, RelatedPostId=j, LinkTypeId=3) for i in range(99) for j in (2, 9)]
    write_dump(tmp_path / "PostLinks.xml", *links)
    steps = stop_at_each_step(small, tmp_path / "out", kind, 1 if LONG else 0, keywords)
    assert steps > 20
