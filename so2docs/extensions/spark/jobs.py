"""Run functions as Spark tasks, and make Arrow batches of documents on executors."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from so2docs.counts import group_by_size
from so2docs.errors import (
    ChangedDumpError,
    ClusterError,
    OptionError,
    So2docsError,
    naming_flags,
    spelling,
)
from so2docs.extensions.parquet.columns import question_columns
from so2docs.extensions.parquet.row_group import Group
from so2docs.options.table import Options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

Task = TypeVar("Task")
Result = TypeVar("Result")

_FOREIGN = ("pyspark", "py4j", "grpc")
_CAUSE = re.compile(r"^[: ]*((?:\w+\.)*\w+(?:Error|Exception|Interrupt)\b.*)", re.MULTILINE)
_BATCH_BYTES = 2 * 1024 * 1024


def run(
    spark: SparkSession,
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    *,
    profile: Any = None,
) -> list[Result | So2docsError]:
    """Run a function on each item of `tasks`, each in its own Spark task, started in this order.

    Returns:
        The return value of the function or its exception as a `So2docsError`, for each item.

    Raises:
        ClusterError: Spark ended the job because a worker died repeatedly.
    """
    if not tasks:
        return []

    flags = spelling()

    @wraps(function)
    def run_tasks(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            for number in batch.column(0).to_pylist():
                with naming_flags(flags):
                    data = pickle.dumps(catch_errors(function, tasks[number]))
                yield pa.record_batch([pa.array([number]), pa.array([data])], ["id", "data"])

    numbers = spark.range(0, len(tasks), numPartitions=len(tasks))
    try:
        frame = numbers.mapInArrow(run_tasks, "id bigint, data binary", profile=profile)
        results = {row.id: pickle.loads(row.data) for row in frame.collect()}
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in _FOREIGN:
            raise
        raise ClusterError(f"Spark ended the job: {_find_cause(str(error))}") from error
    return [results[number] for number in range(len(tasks))]


def catch_errors(function: Callable[[Task], Result], task: Task) -> Result | So2docsError:
    """Call a function; return its result, or its exception converted to a `So2docsError`."""
    try:
        return function(task)
    except ChangedDumpError as error:
        error.advice = "wait until it is complete and run the same command again"
        return error
    except So2docsError as error:
        return error
    except Exception as error:
        return ClusterError(f"the executor failed: {type(error).__name__}: {error}")


def _find_cause(text: str) -> str:
    """Find the line of a Spark message that names an exception; otherwise return the first line."""
    if match := _CAUSE.search(text):
        return match[1]
    return text.strip().partition("\n")[0] or "no reason"


def batches(
    site: str, documents: Iterable[tuple[int, bytes]], options: Options, *, typed: bool
) -> Iterator[Any]:
    """Yield the documents of a site, given as pairs of question id and JSON, in Arrow batches."""
    import pyarrow as pa

    from so2docs.extensions.parquet import arrow

    columns, schema = _columns(options, site), _schema(options, typed=typed)
    for group in group_by_size(documents, lambda document: len(document[1]), _BATCH_BYTES):
        ids, lines = zip(*group, strict=True)
        if typed:
            batch = arrow.arrow_batch(columns, [orjson.loads(line) for line in lines])
            yield from pa.Table.from_batches([batch]).cast(schema).to_batches()
        else:
            yield pa.record_batch([[site] * len(ids), ids, lines], schema=schema)


def columns(options: Options, *, typed: bool) -> StructType:
    """Return the Spark schema of the batches that `batches` yields.

    Raises:
        OptionError: Typed columns are requested for the records of a recipe.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    if typed and options.recipe is not None:
        raise OptionError("a recipe's records have no typed columns: leave `typed` out")
    return from_arrow_schema(_schema(options, typed=typed))


def _columns(options: Options, site: str = "") -> Group:
    fields = options.filters.fields
    return question_columns(fields, options.shown, ("Site", site), is_attributed=False)


def _schema(options: Options, *, typed: bool) -> Any:
    """Return the Arrow schema of the batches, with only types that Spark supports."""
    import pyarrow as pa

    from so2docs.extensions.parquet.arrow import arrow_schema

    if not typed:
        return pa.schema({"Site": pa.string(), "Id": pa.int64(), "Document": pa.string()})
    fields = arrow_schema(_columns(options))
    return pa.schema([pa.field(field.name, _spark_type(field.type)) for field in fields])


def _spark_type(kind: Any) -> Any:
    """Replace timestamps in an Arrow type by timestamps in microseconds, which Spark requires."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _spark_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _spark_type(kind.value_type)))
    return pa.timestamp("us", tz="UTC") if pa.types.is_timestamp(kind) else kind
