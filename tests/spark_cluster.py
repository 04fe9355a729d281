"""A standalone cluster on loopback: a master and two workers, each a process of its own."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

_DEADLINE = 120


def spark_home() -> Path:
    """Where PySpark keeps what starts Spark."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """The address of a master with two workers of one core each.

    Args:
        folder: For their logs and files.
    """
    with ExitStack() as started:
        master = folder / "master.log"
        options = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        started.enter_context(_daemon("master.Master", *options, log=master))
        url = said(master, rb"Starting Spark master at (spark://\S+)")
        for number in (1, 2):
            log = folder / f"worker{number}.log"
            own = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work{number}"))
            started.enter_context(_daemon("worker.Worker", *own, *options, url, log=log))
            said(log, rb"(Successfully registered)")
        yield url


def said(log: Path, pattern: bytes) -> str:
    """Wait until a log has what a pattern finds."""
    deadline = time.monotonic() + _DEADLINE
    while time.monotonic() < deadline:
        if found := re.search(pattern, log.read_bytes()):
            return found.group(1).decode()
        time.sleep(0.1)
    raise TimeoutError(f"{log} says nothing like {pattern!r}: {log.read_text()[-2000:]}")


@contextmanager
def _daemon(name: str, *options: str, log: Path) -> Iterator[None]:
    command = [str(spark_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_DAEMON_MEMORY": "256m",
    }
    with log.open("wb") as said_to:
        process = subprocess.Popen(
            [*command, *options],
            stdout=said_to,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(_DEADLINE)
