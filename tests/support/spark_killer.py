"""Convert on a cluster, and kill an executor in each stage, all of them in the last.

Run by test_spark_cluster.py in a process of its own: `python -m support.spark_killer MASTER OUT
GIANT DUMP...`. It prints the functions in which executors were killed, in their order.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from so2docs import spark as on_spark
from so2docs.commands.spark import start_session
from so2docs.spark import giants
from support.spark_cluster import SHORT_LIVED

Mapped = Callable[[Iterator[Any]], Iterator[Any]]

ONLY = {"run": 3}
"""Where dumps are found and looked at, nothing can be lost."""


def executors(application: str) -> list[int]:
    """Process ids of the executors of an application."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            command = entry.joinpath("cmdline").read_bytes().split(b"\0")
            if application.encode() in command and command[0].endswith(b"java"):
                found.append(int(entry.name))
    return found


def kill_executors(application: str, *, all_of_them: bool) -> None:
    """Kill the executor of this Python worker, or all."""
    status = Path(f"/proc/{os.getppid()}/stat").read_text()  # Of a daemon that it started.
    own = int(status.rpartition(")")[2].split()[1])
    for process in executors(application) if all_of_them else [own]:
        os.kill(process, signal.SIGKILL)


def deadly(function: Mapped, claim: str, application: str) -> Mapped:
    """A function of Arrow batches that once loses what it has made, with its executor."""

    def mapped(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in function(batches):
            yield batch
            with suppress(FileExistsError):
                os.mkdir(claim)
                kill_executors(application, all_of_them=claim.endswith("-convert"))

    return mapped


def main() -> None:
    """Convert small dumps, then a giant with its tables."""
    master, out, giant, *dumps = sys.argv[1:]
    claims = Path(out, "claims")
    claims.mkdir(parents=True)
    java = [f"spark.{who}.extraJavaOptions={SHORT_LIVED}" for who in ("driver", "executor")]
    settings = ("spark.ui.enabled=false", "spark.executor.memory=600m", *java)
    session = start_session(master, settings, quiet=True)
    application = session.sparkContext.applicationId
    frame: Any = type(session.range(1))
    map_in_arrow, begun = frame.mapInArrow, []

    def map_deadly(frame: Any, function: Mapped, columns: str) -> Any:
        name = function.__qualname__.partition(".<locals>")[0]
        begun.append(name)
        if ONLY.get(name) in (None, begun.count(name)):
            function = deadly(function, str(claims / f"{len(begun):02}-{name}"), application)
        return map_in_arrow(frame, function, columns)

    frame.mapInArrow = map_deadly
    on_spark.convert(session, dumps, f"{out}/sites", site=False)
    giants.GIANT_BYTES = 0
    on_spark.convert(session, giant, f"{out}/giant", chunk_bytes=3_000, nest="all")
    print(json.dumps([claim.name.partition("-")[2] for claim in sorted(claims.iterdir())]))
    session.stop()


if __name__ == "__main__":
    main()
