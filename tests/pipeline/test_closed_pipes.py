"""Commands do not hang if their reader leaves, a worker dies, or a signal arrives.

At these moments, megabytes of results are being sent to the main process, in every form of output
that a single process writes.
"""

import os
import random
import signal
import subprocess
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from support.command import start
from support.dumps import some_rows, write_dump
from support.places import LONG
from support.processes import children

SECONDS = 40
FORMS = {
    "stdout": ["-"],
    "uncompressed": ["questions.jsonl"],
    "split": ["questions.jsonl.gz", "--split", "3files"],
}

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills processes")


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = some_rows(9_000, body_bytes=900, dense=True)
    return write_dump(tmp_path_factory.mktemp("dump") / "Posts.xml", *rows)


@cache
def duration(dump: Path) -> float:
    """Return the seconds of an undisturbed conversion."""
    started = time.monotonic()
    converting(dump, ["-"], dump.parent).communicate(timeout=SECONDS)
    return time.monotonic() - started


def converting(
    dump: Path, arguments: list[str], folder: Path, stdout: int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    command = ("convert", "--quiet", "--jobs", "2", dump, *arguments)
    return start(
        *command, cwd=folder, stdout=stdout, stderr=subprocess.PIPE, start_new_session=True
    )


def end_of(running: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Return the exit code and the messages; kill a process that hangs, and fail the test."""
    try:
        _, messages = running.communicate(timeout=SECONDS)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
    return running.returncode, messages.decode()


def wait_for_workers(running: subprocess.Popen[bytes]) -> list[int]:
    deadline = time.monotonic() + SECONDS
    while running.poll() is None and not (workers := children(running.pid)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return workers


def test_a_reader_leaving_after_one_line(dump: Path, tmp_path: Path) -> None:
    running = converting(dump, ["-"], tmp_path, stdout=subprocess.PIPE)
    assert running.stdout is not None
    assert running.stdout.readline().startswith(b'{"Id"')
    running.stdout.close()
    assert end_of(running) == (141, "")


@pytest.mark.long
@pytest.mark.parametrize("number", range(20 if LONG else 1))
@pytest.mark.parametrize(
    ("form", "sent", "code"),
    [
        ("stdout", signal.SIGKILL, 1),
        ("stdout", signal.SIGINT, 130),
        ("uncompressed", signal.SIGTERM, 143),
        ("split", signal.SIGKILL, 1),
    ],
)
def test_stopped_at_any_moment(
    form: str, sent: signal.Signals, code: int, number: int, dump: Path, tmp_path: Path
) -> None:
    rng = random.Random(f"{form} {number} {sent}")
    seconds = duration(dump)
    running = converting(dump, FORMS[form], tmp_path)
    wait_for_workers(running)
    time.sleep(rng.uniform(0.2, 0.8) * seconds)
    processes = [running.pid] if sent != signal.SIGKILL else children(running.pid)
    if processes:
        with suppress(ProcessLookupError):  # The process may have ended meanwhile.
            os.kill(rng.choice(processes), sent)
    found_code, messages = end_of(running)
    assert found_code in (0, code), messages
    assert "Traceback" not in messages


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="asks Linux")
def test_nothing_is_left_in_shared_memory(dump: Path, tmp_path: Path) -> None:
    running = converting(dump, ["-"], tmp_path, subprocess.PIPE)  # Nobody reads, so it waits.
    workers = wait_for_workers(running)
    time.sleep(0.2)
    maps = [Path(f"/proc/{pid}/maps").read_text() for pid in (running.pid, *workers)]
    os.killpg(running.pid, signal.SIGKILL)
    end_of(running)
    assert not [line for text in maps for line in text.splitlines() if "/dev/shm" in line]
