"""Documents as rows of a data frame: as JSON, or in the columns of `--format parquet`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import orjson

from so2docs.errors import OptionError
from so2docs.options.table import Options
from so2docs.output.formats.parquet import Parquet
from so2docs.spark.jobs import batch_by_bytes

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

IdsAndLines = Iterable[tuple[int, bytes]]


def batches(site: str, documents: IdsAndLines, options: Options, *, typed: bool) -> Iterator[Any]:
    """Documents of a site in Arrow batches: site, id and JSON of each, or its columns."""
    import pyarrow as pa

    parquet = _parquet(options, site) if typed else None
    for some in batch_by_bytes(documents, lambda one: len(one[1])):
        ids, lines = zip(*some, strict=True)
        if parquet is None:
            sites = pa.array([site] * len(ids), pa.string())
            arrays = [sites, pa.array(ids, pa.int64()), pa.array(lines, pa.string())]
            yield pa.record_batch(arrays, ["Site", "Id", "Document"])
        else:
            table = parquet.table([orjson.loads(line) for line in lines])
            yield from table.cast(_spark_schema(parquet.schema)).to_batches()


def columns(options: Options, *, typed: bool) -> StructType:
    """The columns of such batches, as a schema of Spark's."""
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    if not typed:
        names = {"Site": StringType(), "Id": LongType(), "Document": StringType()}
        return StructType([StructField(name, kind) for name, kind in names.items()])
    if options.recipe is not None:
        raise OptionError("a recipe's records have no typed columns: leave `typed` out")
    return _struct(_parquet(options, "").schema)


def _parquet(options: Options, site: str) -> Parquet:
    fields = options.filters.fields
    return Parquet(options.form, fields=fields, tables=options.nest, site=("Site", site))


def _spark_schema(schema: Any) -> Any:
    """An Arrow schema in the types that Spark takes."""
    import pyarrow as pa

    return pa.schema([pa.field(field.name, _spark_type(field.type)) for field in schema])


def _spark_type(kind: Any) -> Any:
    """An Arrow type with times in microseconds, the only ones that Spark reads."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _spark_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _spark_type(kind.value_type)))
    return pa.timestamp("us", tz="UTC") if pa.types.is_timestamp(kind) else kind


def _struct(fields: Any) -> StructType:
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(field.name, _from_arrow(field.type)) for field in fields])


def _from_arrow(kind: Any) -> DataType:
    import pyarrow as pa
    from pyspark.sql.types import ArrayType, LongType, StringType, TimestampType

    if pa.types.is_struct(kind):
        return _struct(kind)
    if pa.types.is_list(kind):
        return ArrayType(_from_arrow(kind.value_type))
    if pa.types.is_timestamp(kind):
        return TimestampType()
    return LongType() if pa.types.is_integer(kind) else StringType()
