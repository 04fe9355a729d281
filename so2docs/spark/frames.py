"""Data frames of Python objects: tasks, what they make, and what is shuffled between them.

A task is a row with a partition of its own, so that it runs on a classic session and over Spark
Connect alike. What it makes are rows again, all of the same columns: a pickled object, and the part
of a site that it goes to. A join is a cogroup in all but name: rows of two kinds come sorted, so
that what is known of a range of ids comes before those who ask. That takes less memory than to hold
both sides.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from so2docs.errors import (
    AccountingError,
    ChangedDumpError,
    ClusterError,
    DumpError,
    OptionError,
    OutputError,
    So2docsError,
)
from so2docs.posts.keys import BUCKET_BITS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Task = TypeVar("Task")
Result = TypeVar("Result")
Item = TypeVar("Item")

_LASTING = (DumpError, OptionError, OutputError, AccountingError)
"""Errors that a second attempt would meet again. Whatever else happens, Spark tries again."""

_FOREIGN = ("pyspark", "py4j", "grpc")

PART_BITS = 3
"""A part holds 2^3 buckets, 131,072 question ids: 160 MB of JSON of a busy site, 50 MB of gzip."""

RANGE_BITS = BUCKET_BITS + PART_BITS
"""So many post ids or user ids are joined at a time."""

RESULT, BLOCK, QUESTIONS, ROWS, USERS, WANTED = range(6)
"""Kinds of rows, in the order that joins need: what a task tells the driver; a block of a part.
Then by ranges of post ids: the questions of posts, and blocks of the rows of tables. By ranges of
user ids: users, and those that a part names."""


class Row(NamedTuple):
    """An object on its way to a part of a site, or to the driver.

    Attributes:
        kind: What it is.
        site: Number of the site.
        part: The part, or range of post or user ids; None for strays that belong to no question.
        chunk: Number of the chunk in the spill, or of the part that wants users.
        place: Its order among those.
        data: The object.
    """

    kind: int
    site: int
    part: int | None
    chunk: int
    place: int
    data: Any


Groups = Iterator[tuple[tuple[int, int | None], Iterator[Row]]]
"""The rows of each site and part."""

_COLUMNS = ", ".join(f"{name} {'binary' if name == 'data' else 'bigint'}" for name in Row._fields)
_PART = attrgetter("site", "part")
_BATCH_BYTES = 2 * 1024 * 1024


def run(
    spark: SparkSession, function: Callable[[Task], Result], tasks: Sequence[Task]
) -> list[Result | So2docsError]:
    """What a function returns, or the error that it raises, for each task in their order."""

    def result(task: Task) -> list[Row]:
        return [Row(RESULT, 0, None, 0, 0, outcome(function, task))]

    return collected(each(spark, result, tasks)) if tasks else []


def outcome(function: Callable[[Task], Result], task: Task) -> Result | So2docsError:
    """What a function makes of a task: its result, or the error that it would always raise."""
    try:
        return function(task)
    except _LASTING as error:
        if isinstance(error, ChangedDumpError):
            error.advice = "wait until it is complete and run the same command again"
        return error


def each(
    spark: SparkSession, function: Callable[[Task], Iterable[Row]], tasks: Sequence[Task]
) -> DataFrame:
    """The rows that a function makes of each task; the first tasks start first."""

    @wraps(function)
    def made(task: Task) -> Iterator[Any]:
        return _batches(function(task))

    return of_tasks(spark, made, tasks, _COLUMNS)


def of_tasks(
    spark: SparkSession,
    function: Callable[[Task], Iterator[Any]],
    tasks: Sequence[Task],
    columns: str,
) -> DataFrame:
    """The Arrow batches that a function makes of each task."""

    @wraps(function)
    def made(found: Iterator[Any]) -> Iterator[Any]:
        for batch in found:
            for number in batch.column(0).to_pylist():
                yield from function(tasks[number])

    numbers = spark.range(0, len(tasks), numPartitions=max(1, len(tasks)))
    return numbers.mapInArrow(made, columns)


def by_part(frame: DataFrame, kinds: Sequence[int], count: int) -> DataFrame:
    """The rows of some kinds, sorted and in so many partitions, those of a part in one."""
    # Their number is given: for a cogroup, Spark would make 200 of however little.
    parts = frame.where(frame.kind.isin(list(kinds))).repartition(max(1, count), "site", "part")
    return parts.sortWithinPartitions("site", "part", "kind", "chunk", "place")


def joined(
    frame: DataFrame, kinds: Sequence[int], count: int, function: Callable[[Groups], Iterable[Row]]
) -> DataFrame:
    """The rows that a function makes of those of some kinds, a part at a time."""

    @wraps(function)
    def made(found: Iterator[Any]) -> Iterator[Any]:
        return _batches(function(groups(found)))

    return by_part(frame, kinds, count).mapInArrow(made, _COLUMNS)


def collected(frame: DataFrame) -> list[Any]:
    """The results in a frame, in its order."""
    with _spark_errors():
        results = frame.where(frame.kind == RESULT).select("data").collect()
    return [pickle.loads(row.data) for row in results]


def groups(batches: Iterator[Any]) -> Groups:
    """The rows in Arrow batches, by site and part."""
    rows = (
        Row._make((*keys, pickle.loads(data.as_buffer())))
        for some in batches
        for keys, data in zip(_keys(some), some.column("data"), strict=True)
    )
    return groupby(rows, _PART)


def _keys(batch: Any) -> Iterator[tuple[Any, ...]]:
    return zip(*(batch.column(name).to_pylist() for name in Row._fields[:-1]), strict=True)


def _batches(rows: Iterable[Row]) -> Iterator[Any]:
    """Rows in Arrow batches of some megabytes."""
    import pyarrow as pa

    types = [pa.binary() if name == "data" else pa.int64() for name in Row._fields]
    packed = (row._replace(data=pickle.dumps(row.data)) for row in rows)
    for some in batched(packed, lambda row: len(row.data)):
        columns = zip(zip(*some, strict=True), types, strict=True)
        yield pa.record_batch([pa.array(*column) for column in columns], Row._fields)


def batched(items: Iterable[Item], size: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Items in lists of some megabytes, by the bytes of each."""
    held, held_bytes = list[Item](), 0
    for item in items:
        held.append(item)
        held_bytes += size(item)
        if held_bytes >= _BATCH_BYTES:
            yield held
            held, held_bytes = [], 0
    if held:
        yield held


@contextmanager
def _spark_errors() -> Iterator[None]:
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
