"""Tasks on Spark: a Python function on each object of a list, in executors, results in order.

A task is a row of a data frame with a partition for each, so that it runs on a classic session and
over Spark Connect alike.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from so2docs.errors import (
    AccountingError,
    ChangedDumpError,
    ClusterError,
    DumpError,
    OptionError,
    OutputError,
    So2docsError,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Task = TypeVar("Task")
Result = TypeVar("Result")

_LASTING = (DumpError, OptionError, OutputError, AccountingError)
"""Errors that a second attempt would meet again. Whatever else happens, Spark tries again."""

RESULT = "result binary"

_FOREIGN = ("pyspark", "py4j", "grpc")


def run(
    spark: SparkSession, function: Callable[[Task], Result], tasks: Sequence[Task]
) -> list[Result | So2docsError]:
    """Apply a function to each task, in executors.

    Args:
        spark: The session.
        function: A function of a module, so that executors can import it.
        tasks: Its arguments; each gets a task of Spark's own, the first ones start first.

    Returns:
        What it returned, or the error that it raised, for each task in their order.

    Raises:
        ClusterError: Spark gave the job up.
    """

    def results(batches: Iterator[Any]) -> Iterator[Any]:
        yield from pickled(outcome(function, tasks[number]) for number in numbers(batches))

    if not tasks:
        return []
    return collected(task_rows(spark, len(tasks)).mapInArrow(results, RESULT))


def outcome(function: Callable[[Task], Result], task: Task) -> Result | So2docsError:
    """What a function makes of a task: its result, or the error that it would always raise."""
    try:
        return function(task)
    except _LASTING as error:
        if isinstance(error, ChangedDumpError):
            error.advice = "wait until it is complete and run the same command again"
        return error


def task_rows(spark: SparkSession, count: int) -> DataFrame:
    """A data frame of so many rows, the numbers from 0, each in a partition of its own."""
    return spark.range(0, count, numPartitions=max(1, count))


def pickled(results: Iterable[Any]) -> Iterator[Any]:
    """Objects in Arrow batches, a row each, as `RESULT` describes them."""
    import pyarrow as pa

    for result in results:
        yield pa.record_batch([pa.array([pickle.dumps(result)], pa.binary())], ["result"])


def collected(frame: DataFrame) -> list[Any]:
    """The objects in a data frame of those.

    Raises:
        ClusterError: Spark gave the job up.
    """
    with spark_errors():
        return [pickle.loads(row.result) for row in frame.collect()]


def numbers(batches: Iterator[Any]) -> Iterator[int]:
    """The numbers in the only column of some Arrow batches."""
    for batch in batches:
        yield from batch.column(0).to_pylist()


def cores() -> int:
    """Cores that Spark counts for this task: `spark.task.cpus`."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 1 if context is None else context.cpus()


@contextmanager
def spark_errors() -> Iterator[None]:
    """Say in one line why Spark gave a job up."""
    try:
        yield
    except So2docsError:
        raise
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in _FOREIGN:
            raise
        raise ClusterError(f"Spark gave the job up: {_cause(str(error))}") from error


def _cause(text: str) -> str:
    """The last line of the Python traceback in a message of Spark's, or its first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for number, line in enumerate(lines):
        if line.startswith("Traceback (most recent call last)"):
            for last in lines[number + 1 :]:
                name = last.partition(":")[0]
                if name.endswith(("Error", "Exception", "Interrupt")) and " " not in name:
                    return last
    return next((line for line in lines if "Exception" in line), lines[0] if lines else "no reason")
