"""Documents as rows of a data frame: as JSON, or in the columns of `--format parquet`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from so2docs.errors import OptionError
from so2docs.options.conversion import Options
from so2docs.output.formats.parquet import Parquet
from so2docs.spark.frames import batched

IdsAndLines = Iterable[tuple[int, bytes]]


def batches(site: str, documents: IdsAndLines, options: Options, *, schema: bool) -> Iterator[Any]:
    """Documents of a site in Arrow batches: site, id and JSON of each, or its columns."""
    import pyarrow as pa

    parquet = _parquet(options, site) if schema else None
    for some in batched(documents, lambda one: len(one[1])):
        ids, lines = zip(*some, strict=True)
        if parquet is None:
            sites = pa.array([site] * len(ids), pa.string())
            arrays = [sites, pa.array(ids, pa.int64()), pa.array(lines, pa.string())]
            yield pa.record_batch(arrays, ["Site", "Id", "Document"])
        else:
            typed = parquet.table([orjson.loads(line) for line in lines])
            yield from typed.cast(_spark_schema(parquet.schema)).to_batches()


def columns(options: Options, *, schema: bool) -> str:
    """The columns of such batches, as Spark writes them."""
    if schema and options.recipe is not None:
        raise OptionError("a recipe's records have no typed columns: leave schema out")
    if not schema:
        return "Site string NOT NULL, Id bigint NOT NULL, Document string NOT NULL"
    fields = _spark_schema(_parquet(options, "").schema)
    return ", ".join(f"`{field.name}` {_ddl(field.type)}" for field in fields)


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


def _ddl(kind: Any) -> str:
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'`{field.name}`: {_ddl(field.type)}' for field in kind)}>"
    if pa.types.is_list(kind):
        return f"array<{_ddl(kind.value_type)}>"
    if pa.types.is_timestamp(kind):
        return "timestamp"
    return "bigint" if pa.types.is_integer(kind) else "string"
