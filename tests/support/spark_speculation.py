"""Convert on a cluster with speculation, and let the attempts for each site meet.

Run by test_spark_cluster.py in a separate process: `python -m support.spark_speculation MASTER OUT
DUMP...`. It prints the numbers of the attempts for each site. The first attempt for each site waits
before it publishes, until the second one has finished the site or, for the site `failed`, given up.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from so2docs.errors import ClusterError
from so2docs.extensions import spark as on_spark
from so2docs.extensions.spark import api, folders, sites
from so2docs.extensions.spark.sites import Site
from so2docs.extensions.spark.spark_command import start_session
from support.spark_cluster import SETTINGS

_DEADLINE = 120


def await_file(path: Path) -> None:
    """Wait until a file exists, which another attempt makes."""
    deadline = time.monotonic() + _DEADLINE
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.05)


def main() -> None:
    """Convert dumps."""
    master, out, *dumps = sys.argv[1:]
    settings = (
        *SETTINGS,
        "spark.speculation=true",
        # Start a second attempt for every task that takes a second.
        "spark.speculation.task.duration.threshold=1s",
        "spark.speculation.quantile=0.1",
        "spark.speculation.multiplier=1.0",
    )
    session = start_session(master, settings, quiet=True)

    def convert_and_meet(site: Site, **keywords: Any) -> Any:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        number = context.attemptNumber()
        Path(f"{out}-{site.name}-{number}").touch()
        done = Path(f"{out}-{site.name}-done")
        publish = folders.finish

        def finish(*arguments: Any) -> None:
            await_file(done if number == 0 else Path(f"{out}-{site.name}-0"))
            if number and site.name == "failed" and not done.exists():
                raise ClusterError("lost")
            publish(*arguments)

        folders.finish = finish
        try:
            return sites.convert_site(site, **keywords)
        finally:
            folders.finish = publish
            if number:
                done.touch()

    api.convert_site = convert_and_meet
    on_spark.convert(session, dumps, out)
    files = [path.name.rsplit("-", 2) for path in Path(out).parent.glob(f"{Path(out).name}-*-[01]")]
    attempts: dict[str, list[int]] = {}
    for _, site, number in sorted(files):
        attempts.setdefault(site, []).append(int(number))
    print(json.dumps(attempts))
    session.stop()


if __name__ == "__main__":
    main()
