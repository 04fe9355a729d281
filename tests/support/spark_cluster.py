"""Servers on loopback: a master with two workers, Spark Connect, an object store."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from support.places import CHECKOUT

_DEADLINE = 120

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of Java for processes that live for seconds: little time is spent on optimization."""
SETTINGS = (
    "spark.ui.enabled=false",
    "spark.executor.memory=600m",
    "spark.executor.cores=2",
    *(f"spark.{who}.extraJavaOptions={SHORT_LIVED}" for who in ("driver", "executor")),
)
"""Settings of a session on the standalone master."""


def spark_home() -> Path:
    """Return the folder with the programs that start Spark."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """Start a master with two workers of two cores each.

    Args:
        folder: Folder for their logs and files.
    """
    with ExitStack() as started:
        master = folder / "master.log"
        options = ("--port", "0", "--webui-port", "0", "--host")
        started.enter_context(_daemon("master.Master", *options, "127.0.0.1", log=master))
        url = said(master, rb"Starting Spark master at (spark://\S+)")
        for number in (1, 2):
            log = folder / f"worker{number}.log"
            own = ("--cores", "2", "--memory", "1g", "--work-dir", str(folder / f"work{number}"))
            # Spark runs no two attempts of a task on one host.
            host = f"127.0.0.{number}"
            started.enter_context(_daemon("worker.Worker", *own, *options, host, url, log=log))
            said(log, rb"(Successfully registered)")
        yield url


def said(log: Path, pattern: bytes) -> str:
    """Wait until a log matches a pattern, and return the match."""
    deadline = time.monotonic() + _DEADLINE
    while time.monotonic() < deadline:
        if match := re.search(pattern, log.read_bytes()):
            return match.group(1).decode()
        time.sleep(0.1)
    raise TimeoutError(f"{log} says nothing like {pattern!r}: {log.read_text()[-2000:]}")


def _daemon(name: str, *options: str, log: Path) -> AbstractContextManager[None]:
    command = [str(spark_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
    return _started(
        [*command, *options], log, SPARK_DAEMON_MEMORY="256m", SPARK_DAEMON_JAVA_OPTS=SHORT_LIVED
    )


@contextmanager
def _started(command: list[str], log: Path, **variables: str) -> Iterator[None]:
    """Run a process and its children until the end of a block."""
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        # Spark does not find the data source of an editable installation.
        "PYTHONPATH": str(CHECKOUT),
        **variables,
    }
    with log.open("wb") as said_to:
        process = subprocess.Popen(
            command,
            stdout=said_to,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(_DEADLINE)


@contextmanager
def object_store() -> Iterator[dict[str, str]]:
    """Start a store that speaks the protocol of S3; yield its environment variables."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "id",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
    finally:
        server.stop()


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """Start a server of Spark Connect on loopback by PySpark's own script; yield its URL.

    Args:
        folder: Folder for its log.

    Raises:
        TimeoutError: The server does not start.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    script = spark_home() / "sbin" / "start-connect-server.sh"
    log = folder / "connect.log"
    command = ["bash", str(script), "--master", "local[2]", *options]
    with _started(command, log, SPARK_NO_DAEMONIZE="1", SPARK_HOME=str(spark_home())):
        said(log, rb"(Spark Connect server started)")
        yield f"sc://127.0.0.1:{port}"
