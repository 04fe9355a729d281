"""Run functions as Spark tasks, and make Arrow batches of documents on executors."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
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
from so2docs.options.table import Options
from so2docs.output.formats.columns import ObjectColumns, question_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Task = TypeVar("Task")
Result = TypeVar("Result")

_FOREIGN = ("pyspark", "py4j", "grpc")
_BATCH_BYTES = 2 * 1024 * 1024


def run(
    spark: SparkSession,
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    *,
    profile: Any = None,
) -> list[Result | So2docsError]:
    """Run a function on each item of `tasks`, each in its own Spark task, started in this order.

    Args:
        spark: A Spark session, classic or Spark Connect.
        function: The function; an exception that it raises becomes the result of the task.
        tasks: Arguments, one for each call of the function.
        profile: A `ResourceProfile` for these tasks; None for the Spark default.

    Returns:
        The return value or the error of each task, in the order of the tasks.

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
    with _spark_errors():
        frame = numbers.mapInArrow(run_tasks, "id bigint, data binary", profile=profile)
        results = {row.id: pickle.loads(row.data) for row in frame.collect()}
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


@contextmanager
def _spark_errors() -> Iterator[None]:
    """Convert exceptions of Spark in a block to a `ClusterError` with a one-line message."""
    try:
        yield
    except So2docsError:
        raise
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in _FOREIGN:
            raise
        raise ClusterError(f"Spark ended the job: {_find_cause(str(error))}") from error


def _find_cause(text: str) -> str:
    """Find the line of a Spark message that gives the cause.

    This is the exception of the first Python traceback, or else the first line with `Exception`, or
    else the first line.
    """
    lines = [stripped for line in text.splitlines() if (stripped := line.strip(": "))]
    for number, line in enumerate(lines):
        if line.startswith("Traceback (most recent call last)"):
            for last in lines[number + 1 :]:
                name = last.partition(":")[0]
                if name.endswith(("Error", "Exception", "Interrupt")) and " " not in name:
                    return last
    return next((line for line in lines if "Exception" in line), lines[0] if lines else "no reason")


if TYPE_CHECKING:
    from pyspark.sql.types import StructType

IdsAndLines = Iterable[tuple[int, bytes]]


def batches(site: str, documents: IdsAndLines, options: Options, *, typed: bool) -> Iterator[Any]:
    """Yield the documents of a site in Arrow batches.

    Args:
        site: Name of the site.
        documents: Pairs of question id and JSON.
        options: Options of the conversion.
        typed: Make typed columns, instead of the columns `Site`, `Id` and `Document`.
    """
    import pyarrow as pa

    from so2docs.output.formats import arrow

    columns = _columns(options, site) if typed else None
    for group in group_by_size(documents, lambda document: len(document[1]), _BATCH_BYTES):
        ids, lines = zip(*group, strict=True)
        if columns is None:
            yield pa.record_batch([[site] * len(ids), ids, lines], schema=_json_schema())
        else:
            table = arrow.document_table(columns, [orjson.loads(line) for line in lines])
            yield from table.cast(_typed_schema(columns)).to_batches()


def columns(options: Options, *, typed: bool) -> StructType:
    """Return the Spark schema of the batches that `batches` yields.

    Raises:
        OptionError: Typed columns are requested for the records of a recipe.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    if typed and options.recipe is not None:
        raise OptionError("a recipe's records have no typed columns: leave `typed` out")
    return from_arrow_schema(_typed_schema(_columns(options, "")) if typed else _json_schema())


def _json_schema() -> Any:
    import pyarrow as pa

    return pa.schema({"Site": pa.string(), "Id": pa.int64(), "Document": pa.string()})


def _columns(options: Options, site: str) -> ObjectColumns:
    fields = options.filters.fields
    return question_columns(fields, options.nest, ("Site", site), is_attributed=False)


def _typed_schema(columns: ObjectColumns) -> Any:
    """Return the Arrow schema for `columns`, with only types that Spark supports."""
    import pyarrow as pa

    from so2docs.output.formats.arrow import arrow_fields

    return pa.schema(
        [pa.field(field.name, _spark_type(field.type)) for field in arrow_fields(columns)]
    )


def _spark_type(kind: Any) -> Any:
    """Replace timestamps in an Arrow type by timestamps in microseconds, which Spark requires."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _spark_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _spark_type(kind.value_type)))
    return pa.timestamp("us", tz="UTC") if pa.types.is_timestamp(kind) else kind
