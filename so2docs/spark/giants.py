"""Giant dumps, seen from the driver: ranges to all executors, their blocks through Spark's shuffle.

The first job parses every range and keeps the blocks on the disks of the executors (`persist`);
what each chunk tells is combined, and says whether the dump is sound and which parts it has. The
second shuffles the blocks by part and merges them. A lost executor costs the work that was lost
with it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from so2docs.errors import So2docsError
from so2docs.options.conversion import Options
from so2docs.passes.totals import add_posts
from so2docs.posts import repeats
from so2docs.report import Report
from so2docs.sources import storage
from so2docs.spark import folders, parts, ranges, rows
from so2docs.spark.jobs import RESULT, collected, numbers, pickled, run, spark_errors, task_rows
from so2docs.spark.looking import Found
from so2docs.spark.parts import Giant, Written
from so2docs.spark.plan import Site
from so2docs.spark.ranges import RangeTask, Summary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GIANT_BYTES = 4_000_000_000
"""A plain dump of more is spread. That is worth it for large ones only: 1.2 GB took 48 seconds of
CPU with it, 0.8 GB in one task 28, both with starting Spark."""

_SMALLEST_CHUNK = 32 * 1024 * 1024
_MOST_CHUNKS = 800

_ARROW_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_BATCH_BYTES = 8 * 1024 * 1024
"""Of blocks that a worker is handed at once; Spark's own default is 64 MB, or none before 4.1."""

Chosen = tuple[Site, Found]


def is_giant(found: Found, options: Options) -> bool:
    """Whether a site is spread over all executors, which is possible for posts alone."""
    is_plain = not (options.nest or options.recipe or options.is_attributed)
    is_plain = is_plain and options.filters.limit is None
    return found.dump is not None and found.size > GIANT_BYTES and is_plain


class Spread:
    """The blocks of giant dumps, and what their chunks tell.

    Attributes:
        frame: The rows of `ranges.COLUMNS`, kept until they are unpersisted.
        summaries: Of each site, by its place among the given ones.
        giants: The sites that can be merged, by the same.
    """

    def __init__(
        self, spark: SparkSession, sites: Sequence[Chosen], options: list[Options]
    ) -> None:
        from pyspark import StorageLevel

        dumps = {number: found.dump for number, (_, found) in enumerate(sites) if found.dump}
        tasks = [
            RangeTask(number, chunk, options[number])
            for number, dump in dumps.items()
            for chunk in dump.chunks(_chunk_bytes(dump.size, options[number]), (), Path())
        ]

        def spill(found: Iterator[Any]) -> Iterator[Any]:
            for number in numbers(found):
                yield from ranges.batches(tasks[number])

        def summarize(found: Iterator[Any]) -> Iterator[Any]:
            yield from pickled(ranges.summaries(found, dumps).items())

        spilled = task_rows(spark, len(tasks)).mapInArrow(spill, ranges.COLUMNS)
        with spark_errors():
            self.frame = spilled.persist(StorageLevel.DISK_ONLY)
        told = self.frame.where("crc IS NULL").repartition(len(sites), "site")
        self.summaries: dict[int, Summary] = dict(collected(told.mapInArrow(summarize, RESULT)))
        self.giants = {
            number: Giant(
                sites[number][0],
                options[number],
                repeats.owners(lambda: (), {}, add_posts(summary.tallies, Report("", ""))),
                {part: order for order, part in enumerate(summary.parts)},
            )
            for number, summary in self.summaries.items()
            if summary.error is None and not summary.is_repeated
        }

    def shuffled(self) -> DataFrame:
        """The blocks of those sites by site and part."""
        count = sum(len(giant.numbers) for giant in self.giants.values())
        blocks = self.frame.where("crc IS NOT NULL")
        blocks = blocks.where(blocks.site.isin(list(self.giants)))
        blocks = blocks.repartition(max(1, count), "site", "part")
        return blocks.sortWithinPartitions("site", "part", "chunk", "offset")


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
            spread.frame.unpersist()
    results: list[Report | So2docsError | None] = []
    for number, (site, found) in enumerate(sites):
        summary = spread.summaries[number]
        of_site = [one for one in written if one.site == number]
        errors = [one.error for one in of_site if one.error is not None]
        error = summary.error or (errors[0] if errors else None)
        if error is not None or summary.is_repeated:
            results.append(error)
            continue
        report = _report(site, found, summary, of_site)
        report.first_pass_seconds = between - started
        report.seconds = time.perf_counter() - started
        report.second_pass_seconds = report.seconds - report.first_pass_seconds
        results.append(report)
    ends = [
        folders.End(
            site.folder,
            {name for one in written if one.site == number for name in one.files},
            result if isinstance(result, So2docsError) else None,
        )
        for number, ((site, _), result) in enumerate(zip(sites, results, strict=True))
        if result is not None
    ]
    for ended in run(spark, folders.end, ends):
        if isinstance(ended, So2docsError):
            raise ended
    return results


def _chunk_bytes(size: int, options: Options) -> int:
    return options.chunk_bytes or max(_SMALLEST_CHUNK, -(-size // _MOST_CHUNKS))


def _report(site: Site, found: Found, summary: Summary, written: list[Written]) -> Report:
    """What became of a dump; every row of it went somewhere."""
    report = Report(site.path, site.folder, dump_bytes=found.size, core=summary.core)
    if found.dump is not None:
        report.dump = found.dump.path
    add_posts(summary.tallies, report)
    sizes: dict[str, int] = {}
    strays = Counter(report.strays)
    for one in written:
        if one.report is not None:
            report.questions += one.report.questions
            report.answers += one.report.answers
            report.filtered += one.report.filtered
            report.fabricated += one.report.fabricated
            strays.update(one.report.strays)
            sizes |= one.files
    report.strays = dict(sorted(strays.items()))
    report.check()
    of_parts = [size for name, size in sizes.items() if name.startswith(folders.PART)]
    report.files, report.output_bytes = len(of_parts), sum(of_parts)
    if len(of_parts) < len(sizes):
        report.strays_path = storage.join(site.folder, f"{folders.STRAYS}-*")
    report.peak_memory_bytes = max([summary.peak, *(one.peak for one in written)])
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
    for summary in spread.summaries.values():
        if summary.error is not None:
            spread.frame.unpersist()
            raise summary.error
    giants: Mapping[int, Giant] = spread.giants

    def nest(found: Iterator[Any]) -> Iterator[Any]:
        for giant, nested in parts.documents(found, giants):
            yield from rows.batches(giant.site.name, nested, giant.options, schema=schema)

    frame = spread.shuffled().mapInArrow(nest, rows.columns(options[0], schema=schema))
    return frame, [sites[number] for number, one in spread.summaries.items() if one.is_repeated]
