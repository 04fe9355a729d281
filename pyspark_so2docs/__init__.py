"""The data source `so2docs` for Spark, which looks for it in packages named `pyspark_…`."""

from so2docs.spark.data_source import Questions as DefaultSource

__all__ = ["DefaultSource"]
