"""Run functions as Spark tasks."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from so2docs.errors import ChangedDumpError, ClusterError, naming_flags, spelling
from so2docs.plugin import So2docsError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Task = TypeVar("Task")
Result = TypeVar("Result")

_FOREIGN = ("pyspark", "py4j", "grpc")
_CAUSE = re.compile(r"^[: ]*((?:\w+\.)*\w+(?:Error|Exception|Interrupt)\b.*)", re.MULTILINE)


def run(
    spark: SparkSession, function: Callable[[Task], Result], tasks: Sequence[Task]
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
        frame = numbers.mapInArrow(run_tasks, "id bigint, data binary")
        results = {row.id: pickle.loads(row.data) for row in frame.collect()}
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in _FOREIGN:
            raise
        raise ClusterError(f"Spark ended the job: {find_cause(str(error))}") from error
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


def find_cause(text: str) -> str:
    """Find the line of a Spark message that names an exception; otherwise return the first line."""
    if match := _CAUSE.search(text):
        return match[1]
    return text.strip().partition("\n")[0] or "no reason"
