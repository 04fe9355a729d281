"""The same conversion on Spark: many dumps, more than one machine, from a lake into a lake.

Examples:
    >>> from so2docs import spark as on_spark
    >>> report = on_spark.convert(session, "dumps/*/Posts.xml", "out")
    >>> frame = on_spark.documents(session, "dumps/*/Posts.xml")

A dump is cut, parsed, nested and compressed by the functions that `so2docs.convert` calls; here is
only what carries their bytes between machines. PySpark is imported when a session is needed.
"""

from so2docs.spark.api import SparkReport, convert, documents

__all__ = ["SparkReport", "convert", "documents"]
