"""Documents as rows of a data frame: as JSON, or in the columns of `--format parquet`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import orjson

from so2docs.errors import OptionError
from so2docs.options.conversion import Options
from so2docs.output.formats.parquet import Parquet

_BATCH_BYTES = 2 * 1024 * 1024

IdsAndLines = Iterable[tuple[int, bytes]]


def batches(site: str, documents: IdsAndLines, options: Options, *, schema: bool) -> Iterator[Any]:
    """Documents of a site in Arrow batches: site, id and JSON of each, or its columns."""
    return (_typed if schema else _as_json)(site, documents, options)


def columns(options: Options, *, schema: bool) -> str:
    """The columns of such batches, as Spark writes them.

    Raises:
        OptionError: A recipe makes records that have no such columns.
    """
    if schema and options.recipe is not None:
        raise OptionError("a recipe's records have no typed columns: leave schema out")
    if not schema:
        return "Site string NOT NULL, Id bigint NOT NULL, Document string NOT NULL"
    fields = spark_schema(_parquet(with_site(options, "")).schema)
    return ", ".join(f"`{field.name}` {_ddl(field.type)}" for field in fields)


def _as_json(site: str, documents: IdsAndLines, options: Options) -> Iterator[Any]:
    import pyarrow as pa

    for ids, lines in _held(documents):
        sites = pa.array([site] * len(ids), pa.string())
        arrays = [sites, pa.array(ids, pa.int64()), pa.array(lines, pa.string())]
        yield pa.record_batch(arrays, ["Site", "Id", "Document"])


def _typed(site: str, documents: IdsAndLines, options: Options) -> Iterator[Any]:
    parquet = _parquet(with_site(options, site))
    schema = spark_schema(parquet.schema)
    for _, lines in _held(documents):
        yield from parquet.table([orjson.loads(line) for line in lines]).cast(schema).to_batches()


def _parquet(options: Options) -> Parquet:
    return Parquet(
        options.form,
        fields=options.filters.fields,
        tables=options.nest,
        site=options.site_field,
    )


def with_site(options: Options, site: str) -> Options:
    """The options with the site's name in each document."""
    return replace(options, site_field=("Site", site))


def spark_schema(schema: Any) -> Any:
    """An Arrow schema in the types that Spark takes."""
    import pyarrow as pa

    return pa.schema([pa.field(field.name, _spark_type(field.type)) for field in schema])


def _held(documents: IdsAndLines) -> Iterator[tuple[list[int], list[bytes]]]:
    ids: list[int] = []
    lines: list[bytes] = []
    size = 0
    for question_id, line in documents:
        ids.append(question_id)
        lines.append(line)
        size += len(line)
        if size >= _BATCH_BYTES:
            yield ids, lines
            ids, lines, size = [], [], 0
    if ids:
        yield ids, lines


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
