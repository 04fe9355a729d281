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
from functools import wraps
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from so2docs.errors import So2docsError
from so2docs.posts.keys import BUCKET_BITS
from so2docs.spark.jobs import Result, Task, outcome, spark_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
_BATCH_BYTES = 4 * 1024 * 1024


def run(
    spark: SparkSession, function: Callable[[Task], Result], tasks: Sequence[Task]
) -> list[Result | So2docsError]:
    """Apply a function to each task, in executors; each is a task of Spark's own.

    Returns:
        What it returned, or the error that it raised, for each task in their order.

    Raises:
        ClusterError: Spark gave the job up.
    """

    def result(task: Task) -> list[Row]:
        return [Row(RESULT, 0, None, 0, 0, outcome(function, task))]

    return collected(each(spark, result, tasks)) if tasks else []


def each(
    spark: SparkSession, function: Callable[[Task], Iterable[Row]], tasks: Sequence[Task]
) -> DataFrame:
    """The rows that a function makes of each task; the first tasks start first."""

    @wraps(function)
    def made(found: Iterator[Any]) -> Iterator[Any]:
        return _batches(row for number in numbers(found) for row in function(tasks[number]))

    return task_rows(spark, len(tasks)).mapInArrow(made, _COLUMNS)


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
    """The results in a frame, in its order.

    Raises:
        ClusterError: Spark gave the job up.
    """
    with spark_errors():
        results = frame.where(frame.kind == RESULT).select("data").collect()
    return [pickle.loads(row.data) for row in results]


def task_rows(spark: SparkSession, count: int) -> DataFrame:
    """A data frame of so many rows, the numbers from 0, each in a partition of its own."""
    return spark.range(0, count, numPartitions=max(1, count))


def numbers(batches: Iterator[Any]) -> Iterator[int]:
    """The numbers in the only column of some Arrow batches."""
    for batch in batches:
        yield from batch.column(0).to_pylist()


def groups(batches: Iterator[Any]) -> Groups:
    """The rows in Arrow batches, by site and part."""
    rows = (
        Row._make((*keys, pickle.loads(data.as_buffer())))
        for some in batches
        for *keys, data in zip(*(_values(some, name) for name in Row._fields), strict=True)
    )
    return groupby(rows, _PART)


def _values(batch: Any, name: str) -> Any:
    column = batch.column(name)
    return column if name == "data" else column.to_pylist()


def _batches(rows: Iterable[Row]) -> Iterator[Any]:
    """Rows in Arrow batches of some megabytes."""
    import pyarrow as pa

    types = [pa.binary() if name == "data" else pa.int64() for name in Row._fields]
    held: list[Row] = []
    size = 0

    def batch() -> Any:
        columns = zip(zip(*held, strict=True), types, strict=True)
        return pa.record_batch([pa.array(*column) for column in columns], Row._fields)

    for row in rows:
        held.append(row._replace(data=pickle.dumps(row.data)))
        size += len(held[-1].data)
        if size >= _BATCH_BYTES:
            yield batch()
            held.clear()
            size = 0
    if held:
        yield batch()
