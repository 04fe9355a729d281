"""Conversion on Spark: many dumps, several machines, from and to a data lake.

Examples:
    >>> from so2docs import spark as on_spark
    >>> report = on_spark.convert(session, "dumps/*/Posts.xml", "out")
    >>> frame = on_spark.documents(session, "dumps/*/Posts.xml")

The functions of `so2docs.convert` cut, parse, nest and compress a dump; this package only moves
their bytes between machines. PySpark is imported when a session is needed.
"""

from so2docs.spark.api import SparkReport, convert, documents

__all__ = ["SparkReport", "convert", "documents"]
