"""Convert on a cluster, and kill its executors on the way.

Run by test_spark_cluster.py in a process of its own: `python spark_killer.py MASTER OUT DUMP...`.
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

from so2docs import spark as on_spark
from so2docs.commands.spark import start_session


def executors(application: str) -> list[int]:
    """Process ids of the executors of an application."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if application.encode() in command and command[0].endswith(b"java"):
                found.append(int(entry.name))
    return sorted(found)


def kill(application: str, count: int) -> int:
    """Kill so many executors, at least one; how many were killed."""
    while not (found := executors(application)):
        time.sleep(0.01)
    for process in found[:count]:
        os.kill(process, signal.SIGKILL)
    return len(found[:count])


def main() -> None:
    """Convert, and say how many executors were killed after how many sites."""
    master, out, *dumps = sys.argv[1:]
    settings = ("spark.ui.enabled=false", "spark.executor.memory=600m", "spark.task.maxFailures=8")
    session = start_session(master, settings, quiet=True)
    application = session.sparkContext.applicationId
    killed = []

    def kill_in_between() -> None:
        for finished, count in ((2, 1), (5, 2)):
            while len(list(Path(out).glob("*/_SUCCESS"))) < finished:
                time.sleep(0.01)
            killed.append(kill(application, count))

    threading.Thread(target=kill_in_between, daemon=True).start()
    on_spark.convert(session, dumps, out, site=False)
    print(json.dumps({"killed": killed}))
    session.stop()


if __name__ == "__main__":
    main()
