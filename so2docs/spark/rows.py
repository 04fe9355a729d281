"""Documents as rows of a data frame: as JSON, or in the columns of `--format parquet`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import orjson

from so2docs.options.conversion import Options
from so2docs.output.formats.parquet import Parquet

JSON_COLUMNS = "Site string NOT NULL, Id bigint NOT NULL, Document string NOT NULL"

_BATCH_BYTES = 2 * 1024 * 1024

Documents = Iterable[tuple[int, bytes]]


def json_batches(site: str, documents: Documents) -> Iterator[Any]:
    """Site, id and JSON of each document, in Arrow batches."""
    import pyarrow as pa

    for ids, lines in _held(documents):
        sites = pa.array([site] * len(ids), pa.string())
        columns = [sites, pa.array(ids, pa.int64()), pa.array(lines, pa.string())]
        yield pa.record_batch(columns, ["Site", "Id", "Document"])


def typed_batches(site: str, documents: Documents, options: Options) -> Iterator[Any]:
    """The columns of each document, in Arrow batches."""
    columns = _parquet(with_site(options, site))
    schema = spark_schema(columns.schema)
    for _, lines in _held(documents):
        table = columns.table([orjson.loads(line) for line in lines])
        yield from table.cast(schema).to_batches()


def typed_columns(options: Options) -> str:
    """The columns of documents, as Spark writes them."""
    schema = spark_schema(_parquet(with_site(options, "")).schema)
    return ", ".join(f"`{field.name}` {_ddl(field.type)}" for field in schema)


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


def _held(documents: Documents) -> Iterator[tuple[list[int], list[bytes]]]:
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
