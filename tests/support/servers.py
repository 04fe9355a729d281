"""Database servers of Debian, started for a test on a socket in a temporary folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

Command = list[str | Path]


def find_program(name: str, package: str) -> Path:
    """Find the program of a server, or skip the test."""
    places = [*map(Path, os.get_exec_path()), Path("/usr/sbin")]
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    for place in places:
        if (place / name).exists():
            return place / name
    pytest.skip(f"{name} is not installed; apt-get install {package}")


@contextmanager
def run_server(*command: str | Path, user: str | None, ready: Command) -> Iterator[None]:
    """Run a server until the test ends; `ready` is a command that succeeds once it answers."""
    server = subprocess.Popen(
        [str(part) for part in command],
        user=user,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        command_ready = [str(part) for part in ready]
        while subprocess.run(command_ready, capture_output=True, check=False).returncode:
            assert server.poll() is None
            time.sleep(0.1)
        yield
    finally:
        server.terminate()
        server.wait()


@contextmanager
def make_short_folder() -> Iterator[Path]:
    """Make a folder that other users can read, with a path short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="so2docs-") as folder:
        os.chmod(folder, 0o755)  # PostgreSQL refuses to run as root.
        yield Path(folder)


@contextmanager
def run_postgres(folder: Path) -> Iterator[Command]:
    """Run PostgreSQL, and yield the client command, which ends before the name of the database."""
    initdb, psql = find_program("initdb", "postgresql"), find_program("psql", "postgresql")
    user = "postgres" if os.geteuid() == 0 else None
    data = folder / "postgres"
    data.mkdir()
    if user is not None:
        os.chmod(folder, 0o755)
        shutil.chown(data, user)
    setup = [str(initdb), "-D", str(data), "-U", "tester", "-E", "UTF8", "--no-sync"]
    subprocess.run(setup, cwd=data, user=user, capture_output=True, check=True)
    client: Command = [psql, "-X", "-q", "-A", "-t", "-h", data, "-U", "tester", "-d"]
    options = ("-k", data, "-c", "listen_addresses=", "-c", "fsync=off")
    ready: Command = [*client, "postgres", "-c", "SELECT 1"]
    with run_server(initdb.parent / "postgres", "-D", data, *options, user=user, ready=ready):
        yield client
