"""Where Spark finds the data source `so2docs`: in a package whose name starts with `pyspark_`."""

from so2docs.spark.data_source import Questions as DefaultSource

__all__ = ["DefaultSource"]
