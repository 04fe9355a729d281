"""What a client of Spark Connect does, in a process without a session of another kind.

Run by test_spark_cluster.py: `python -m support.spark_connected ADDRESS OUT SITE GIANT`.
"""

import json
import sys

from so2docs import spark as on_spark
from so2docs.commands.spark import start_session
from so2docs.spark import giants


def main() -> None:
    """Convert a site and a giant with their tables, and say what their data frames hold."""
    address, out, site, giant = sys.argv[1:]
    session = start_session(address, quiet=True)
    assert type(session).__module__.startswith("pyspark.sql.connect")
    converted = on_spark.convert(session, site, f"{out}/small", nest="all")
    giants.GIANT_BYTES = 0
    spread = on_spark.convert(session, giant, f"{out}/giant", chunk_bytes=3_000, nest="all")
    loaded = session.read.format("so2docs").option("nest", "all").load(site)
    found = {
        "sites": [*converted.sites, *spread.sites],
        "spread": on_spark.documents(session, giant, chunk_bytes=3_000, nest="all").count(),
        "loaded": [row.asDict() for row in loaded.select("Id", "Votes.UpMod").collect()],
    }
    print(json.dumps(found))
    session.stop()


if __name__ == "__main__":
    main()
