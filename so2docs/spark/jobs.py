"""What a task on Spark may know of Spark, and what is told of a job that Spark gave up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from so2docs.errors import (
    AccountingError,
    ChangedDumpError,
    ClusterError,
    DumpError,
    OptionError,
    OutputError,
    So2docsError,
)

Task = TypeVar("Task")
Result = TypeVar("Result")

_LASTING = (DumpError, OptionError, OutputError, AccountingError)
"""Errors that a second attempt would meet again. Whatever else happens, Spark tries again."""

_FOREIGN = ("pyspark", "py4j", "grpc")


def outcome(function: Callable[[Task], Result], task: Task) -> Result | So2docsError:
    """What a function makes of a task: its result, or the error that it would always raise."""
    try:
        return function(task)
    except _LASTING as error:
        if isinstance(error, ChangedDumpError):
            error.advice = "wait until it is complete and run the same command again"
        return error


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
