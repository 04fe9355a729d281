"""Conversion on Spark: many dumps on several machines, with input and output in a data lake.

Examples:
    >>> from so2docs import spark as on_spark
    >>> results = on_spark.convert(session, "dumps/*/Posts.xml", "out")
    >>> frame = session.read.json("out/*/")

`so2docs.convert` converts each dump; this package only distributes the dumps to executors and
collects the outputs.
"""

from so2docs.extensions.spark.api import convert

__all__ = ["convert"]
