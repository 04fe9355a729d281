"""A client of Spark Connect, in a process without another session.

Run by test_spark_cluster.py: `python -m support.spark_connected ADDRESS OUT SITE`.
"""

import json
import sys

from so2docs.extensions import spark as on_spark
from so2docs.extensions.spark.spark_command import start_session


def main() -> None:
    """Convert a site with its tables, and print what Spark reads of them."""
    address, out, site = sys.argv[1:]
    session = start_session(address, quiet=True)
    assert type(session).__module__.startswith("pyspark.sql.connect")
    converted = on_spark.convert(session, site, out, nest="all")
    loaded = session.read.json(f"{out}/*/")
    result = {
        "sites": [one.site for one in converted],
        "documents": loaded.count(),
        "loaded": [row.asDict() for row in loaded.select("Id", "Votes.UpMod").collect()],
    }
    print(json.dumps(result))
    session.stop()


if __name__ == "__main__":
    main()
