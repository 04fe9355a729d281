"""Convert on a cluster, and kill the executor that has converted the first site.

Run by test_spark_cluster.py in a separate process: `python -m support.spark_killer MASTER OUT
DUMP...`. It prints the names of the sites.
"""

import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from so2docs.extensions import spark as on_spark
from so2docs.extensions.spark import api, sites
from so2docs.extensions.spark.sites import Site
from so2docs.extensions.spark.spark_command import start_session
from support.spark_cluster import SETTINGS


def executors(application: str) -> list[int]:
    """Return the process ids of the executors of an application."""
    pids = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            command = entry.joinpath("cmdline").read_bytes().split(b"\0")
            if application.encode() in command and command[0].endswith(b"java"):
                pids.append(int(entry.name))
    return pids


def kill_own_executor(application: str) -> None:
    """Kill the executor of this Python worker."""
    # The worker belongs to a daemon started by the executor.
    status = Path(f"/proc/{os.getppid()}/stat").read_text()
    own = int(status.rpartition(")")[2].split()[1])
    assert own in executors(application)
    os.kill(own, signal.SIGKILL)


def main() -> None:
    """Convert dumps."""
    master, out, *dumps = sys.argv[1:]
    claim = f"{out}-killed"
    session = start_session(master, SETTINGS, quiet=True)
    application = session.sparkContext.applicationId

    def convert_and_kill(one: Site, **keywords: Any) -> Any:
        report = sites.convert_site(one, **keywords)
        with suppress(FileExistsError):
            os.mkdir(claim)
            kill_own_executor(application)
        return report

    api.convert_site = convert_and_kill
    report = on_spark.convert(session, dumps, out)
    assert os.path.isdir(claim)
    print(json.dumps([one.site for one in report]))
    session.stop()


if __name__ == "__main__":
    main()
