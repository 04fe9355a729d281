"""The Spark data source `so2docs`; Spark discovers data sources in packages named `pyspark_…`."""

from so2docs.extensions.spark.data_source import Questions as DefaultSource

__all__ = ["DefaultSource"]
