"""Giant dumps, seen from the driver: from the blocks of all executors to part files or documents.

A lost executor costs the work that was lost with it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from so2docs.errors import So2docsError
from so2docs.options.conversion import Options
from so2docs.passes.totals import add_posts, add_table_chunks
from so2docs.report import Report
from so2docs.schema import POSTS
from so2docs.sources import storage
from so2docs.spark import folders, parts, rows
from so2docs.spark.jobs import RESULT, collected, pickled, run
from so2docs.spark.looking import FoundDump
from so2docs.spark.parts import Giant, Written
from so2docs.spark.report import total
from so2docs.spark.spread import Chosen, Spread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GIANT_BYTES = 4_000_000_000
"""A plain dump of more is spread. That is worth it for large ones only: 1.2 GB took 48 seconds of
CPU with it, 0.8 GB in one task 28, both with starting Spark."""

_ARROW_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_BATCH_BYTES = 8 * 1024 * 1024
"""Of blocks that a worker is handed at once; Spark's own default is 64 MB, or none before 4.1."""


def is_giant(found: FoundDump, options: Options) -> bool:
    """Whether a site is spread over all executors: its files are plain, and parts stand alone."""
    has_parts = options.recipe is None and options.filters.limit is None
    return bool(found.dumps) and found.size > GIANT_BYTES and has_parts


def convert(
    spark: SparkSession, sites: Sequence[Chosen], options: list[Options]
) -> list[Report | So2docsError | None]:
    """Convert giant dumps into part files.

    Args:
        spark: The session.
        sites: The dumps.
        options: How to convert each.

    Returns:
        For each its report, or why it has none; None if one task has to convert it, because a
        post id stands in several of its ranges.
    """
    if not sites:
        return []
    started = time.perf_counter()
    with _small_batches(spark):
        spread = Spread(spark, sites, options)
        between = time.perf_counter()
        giants = spread.giants

        def write(found: Iterator[Any]) -> Iterator[Any]:
            yield from pickled(parts.write(found, giants))

        try:
            written: list[Written] = collected(spread.shuffled().mapInArrow(write, RESULT))
        finally:
            spread.release()
    seconds = between - started, time.perf_counter() - between
    results: list[Report | So2docsError | None] = []
    ends = []
    for number, (site, _) in enumerate(sites):
        of_site = [one for one in written if one.site == number]
        errors = [spread.error(number), *(one.error for one in of_site)]
        result: Report | So2docsError | None = next(filter(None, errors), None)
        if result is None and number in giants:
            result = _report(spread, number, of_site, seconds)
        results.append(result)
        if result is not None:
            names = {name for one in of_site for name in one.files}
            error = result if isinstance(result, So2docsError) else None
            ends.append(folders.SiteEnd(site.folder, names, error))
    for ended in run(spark, folders.end, ends):
        if isinstance(ended, So2docsError):
            raise ended
    return results


def _report(
    spread: Spread, number: int, written: list[Written], seconds: tuple[float, float]
) -> Report:
    """What became of a dump; every row of it went somewhere."""
    site, found = spread.sites[number]
    posts = found.dumps[POSTS.name]
    first = Report(site.path, site.folder, files=0, dump_bytes=posts.size)
    for table, dump in found.dumps.items():
        summary = spread.summary(number, table)
        first.peak_memory_bytes = max(first.peak_memory_bytes, summary.peak)
        if table == POSTS.name:
            first.core = summary.core
            add_posts(summary.tallies, first)
        else:
            add_table_chunks(summary.table, summary.tallies, dump.size, first)
    parts = [one.report for one in written if one.report]
    report = total([first, *parts], posts.path, site.folder)
    report.core = first.core
    report.check()
    sizes = [item for one in written for item in one.files.items()]
    of_parts = [size for name, size in sizes if name.startswith(folders.PART)]
    report.files, report.output_bytes = len(of_parts), sum(of_parts)
    if len(of_parts) < len(sizes):
        report.strays_path = storage.join(site.folder, f"{folders.STRAYS}-*")
    report.first_pass_seconds, report.second_pass_seconds = seconds
    report.seconds = sum(seconds)
    return report


@contextmanager
def _small_batches(spark: SparkSession) -> Iterator[None]:
    """Hand workers few blocks at once."""
    before = spark.conf.get(_ARROW_BYTES, "256m")
    spark.conf.set(_ARROW_BYTES, _BATCH_BYTES)
    try:
        yield
    finally:
        spark.conf.set(_ARROW_BYTES, str(before))


def documents(
    spark: SparkSession, sites: Sequence[Chosen], options: list[Options], *, schema: bool
) -> tuple[DataFrame | None, list[Chosen]]:
    """The documents of giant dumps, and the sites among them that one task has to convert.

    Raises:
        So2docsError: A dump is not sound.
    """
    if not sites:
        return None, []
    spread = Spread(spark, sites, options)
    for number in range(len(sites)):
        if error := spread.error(number):
            spread.release()
            raise error
    giants: Mapping[int, Giant] = spread.giants

    def nest(found: Iterator[Any]) -> Iterator[Any]:
        for giant, nested in parts.documents(found, giants):
            yield from rows.batches(giant.site.name, nested, giant.options, schema=schema)

    frame = spread.shuffled().mapInArrow(nest, rows.columns(options[0], schema=schema))
    return frame, [one for number, one in enumerate(sites) if number not in giants]
