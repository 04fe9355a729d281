"""Convert on a cluster, and kill its executors on the way.

Run by test_spark_cluster.py in a process of its own:
`python -m support.spark_killer MASTER OUT sites|giant DUMP...`.
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from so2docs import spark as on_spark
from so2docs.commands.spark import start_session
from so2docs.spark import giants


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


def wait_for_sites(out: str, count: int) -> None:
    """Wait until so many sites are finished."""
    while len(list(Path(out).glob("*/_SUCCESS"))) < count:
        time.sleep(0.01)


def wait_for_chunks(context: Any, count: int) -> None:
    """Wait until so many ranges of a giant are parsed: whose blocks are lost with an executor."""
    tracker = context.statusTracker()
    while True:
        for stage in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage)
            if info and info.numTasks > 10 and info.numCompletedTasks >= count:
                return
        time.sleep(0.01)


def wait_for_parts(out: str, count: int) -> None:
    """Wait until so many part files are written."""
    while len(list(Path(out).glob("*/part-*"))) < count:
        time.sleep(0.01)


def main() -> None:
    """Convert, and say how many executors were killed each time."""
    master, out, what, *dumps = sys.argv[1:]
    settings = ("spark.ui.enabled=false", "spark.executor.memory=600m", "spark.task.maxFailures=8")
    session = start_session(master, settings, quiet=True)
    context = session.sparkContext
    killed = []
    if what == "giant":
        giants.GIANT_BYTES = 0

    def kill_in_between() -> None:
        if what == "giant":
            steps = [lambda: wait_for_chunks(context, 3), lambda: wait_for_parts(out, 3)]
        else:
            steps = [lambda: wait_for_sites(out, 2), lambda: wait_for_sites(out, 5)]
        for count, wait in enumerate(steps, 1):
            wait()
            killed.append(kill(context.applicationId, count))

    threading.Thread(target=kill_in_between, daemon=True).start()
    on_spark.convert(session, dumps, out, site=False, chunk_bytes=200_000)
    print(json.dumps({"killed": killed}))
    session.stop()


if __name__ == "__main__":
    main()
