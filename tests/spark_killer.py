"""Convert on two executor processes, and kill them: one in the first stage, both in the second.

Run by test_spark.py in a process of its own, whose executors are the Java processes below it that
are not the driver: `python spark_killer.py DUMP OUT TABLE...`.
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


def executors() -> list[int]:
    """Process ids of the executors that this process started by way of its driver."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            parents[int(entry.name)] = (int(stat[1]), b"CoarseGrainedExecutorBackend" in command)
    found = []
    for process, (_, is_executor) in parents.items():
        above = process
        while above in parents and above != os.getpid():
            above = parents[above][0]
        if is_executor and above == os.getpid():
            found.append(process)
    return sorted(found)


def kill_in_the_first_stage(context: Any) -> None:
    """Kill an executor when three chunks are parsed: it has shuffle files that are now lost."""
    tracker = context.statusTracker()
    while True:
        for stage in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage)
            if info and info.numTasks > 10 and info.numCompletedTasks >= 3:
                os.kill(executors()[0], signal.SIGKILL)
                return
        time.sleep(0.01)


def kill_in_the_second_stage(out: str) -> None:
    """Kill both executors while one of them is writing part files."""
    while len(list(Path(out).glob("*/part-*"))) < 3:
        time.sleep(0.01)
    for process in executors():
        os.kill(process, signal.SIGKILL)


def main() -> None:
    """Convert, and say in which stages an executor was killed."""
    dump, out, *nest = sys.argv[1:]
    settings = ("spark.ui.enabled=false", "spark.executor.memory=1g", "spark.task.maxFailures=8")
    session = start_session("local-cluster[2,1,1024]", settings, quiet=True)
    killed = []

    def kill_in_both() -> None:
        kill_in_the_first_stage(session.sparkContext)
        killed.append("first")
        kill_in_the_second_stage(out)
        killed.append("second")

    threading.Thread(target=kill_in_both, daemon=True).start()
    on_spark.convert(session, dump, out, chunk_bytes=200_000, site=False, nest=nest)
    print(json.dumps({"killed": killed}))
    session.stop()


if __name__ == "__main__":
    main()
