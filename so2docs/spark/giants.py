"""Giant dumps, seen from the driver: from the blocks of all executors to part files or documents.

Each range of posts and of tables is read by a task; its blocks are kept on the disks of the
executors (`persist`). What was counted in each is added up here, as the plain command does. Then
rows of tables find the questions of their posts, and parts the users that they name. A lost
executor costs the work that was lost with it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from so2docs.errors import DumpError, So2docsError
from so2docs.options.conversion import Options
from so2docs.passes import totals
from so2docs.passes.first_pass import complete_place
from so2docs.posts import repeats
from so2docs.report import Report
from so2docs.schema import POSTS, TABLES
from so2docs.sources import storage
from so2docs.sources.dump import Dump
from so2docs.spark import folders, joins, parts, ranges, rows
from so2docs.spark.frames import (
    BLOCK,
    QUESTIONS,
    ROWS,
    USERS,
    WANTED,
    Groups,
    Row,
    by_part,
    collected,
    each,
    groups,
    joined,
    run,
)
from so2docs.spark.looking import FoundDump
from so2docs.spark.parts import Giant
from so2docs.spark.plan import PlannedSite
from so2docs.spark.ranges import RangeResult, RangeTask
from so2docs.spark.report import total
from so2docs.store.tally import ChunkTally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GIANT_BYTES = 4_000_000_000
"""A plain dump of more is spread. That is worth it for large ones only: 1.2 GB took 48 seconds of
CPU with it, 0.8 GB in one task 28, both with starting Spark."""

_ARROW_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_BATCH_BYTES = 8 * 1024 * 1024
"""Of blocks that a worker is handed at once; Spark's own default is 64 MB, or none before 4.1."""

_SMALLEST_CHUNK = 32 * 1024 * 1024
_MOST_CHUNKS = 800

Chosen = tuple[PlannedSite, FoundDump]


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
        giants, between = spread.giants, time.perf_counter()

        def write(found: Groups) -> Iterator[Row]:
            return parts.write(found, giants)

        try:
            frame = joined(spread.blocks, (BLOCK, USERS), spread.parts, write)
            written: list[tuple[int, Report | So2docsError]] = collected(frame)
        finally:
            spread.release()
    seconds = between - started, time.perf_counter() - between
    results, ends = [], []
    for number, (site, _) in enumerate(sites):
        result = spread.results[number]
        of_parts = [part for of, part in written if of == number]
        reports = [part for part in of_parts if isinstance(part, Report)]
        if len(reports) < len(of_parts):
            result = next(part for part in of_parts if isinstance(part, So2docsError))
        elif number in giants and isinstance(result, Report):
            result = _report(result, reports, seconds)
        names = {name for one in reports for name in (one.first_file, one.strays_path) if name}
        if result is not None:
            error = result if isinstance(result, So2docsError) else None
            ends.append(folders.SiteEnd(site.folder, names, error))
        results.append(result)
    for ended in run(spark, folders.end, ends):
        if isinstance(ended, So2docsError):
            raise ended
    return results


def _report(first: Report, written: list[Report], seconds: tuple[float, float]) -> Report:
    """What became of a dump, from what its ranges and its parts tell; every row went somewhere."""
    report = total([first, *written], first.dump, first.output)
    report.core = first.core
    report.check()
    if any(one.strays_path for one in written):
        report.strays_path = storage.join(first.output, f"{folders.STRAYS}-*")
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
    for result in spread.results:
        if isinstance(result, So2docsError):
            spread.release()
            raise result
    giants = spread.giants

    def nest(found: Iterator[Any]) -> Iterator[Any]:
        for giant, nested in parts.documents(groups(found), giants):
            yield from rows.batches(giant.site.name, nested, giant.options, schema=schema)

    blocks = by_part(spread.blocks, (BLOCK, USERS), spread.parts)
    frame = blocks.mapInArrow(nest, rows.columns(options[0], schema=schema))
    return frame, [one for number, one in enumerate(sites) if number not in giants]


class Spread:
    """The blocks of giant dumps and their tables, and what their ranges tell.

    Attributes:
        results: For each site, its report so far, what is wrong with it, or None if one task has
            to convert it.
        giants: The sites that can be merged, by their number.
        blocks: A frame with the blocks, and the users, of their parts.
    """

    def __init__(
        self, spark: SparkSession, sites: Sequence[Chosen], options: list[Options]
    ) -> None:
        self.results: list[Report | So2docsError | None] = []
        self.giants: dict[int, Giant] = {}
        self._kept: list[DataFrame] = []
        tasks = [
            RangeTask(site, POSTS if table == POSTS.name else TABLES[table], chunk, options[site])
            for site, (_, found) in enumerate(sites)
            for table, dump in found.dumps.items()
            for chunk in dump.chunks(_chunk_bytes(dump.size, options[site]), (), Path())
        ]
        read, told = self._keep(each(spark, ranges.read, tasks))
        done = list(zip(tasks, told, strict=True))
        for number, (site, found) in enumerate(sites):
            giant = Giant(site, options[number])
            of_site = [one for one in done if one[0].site == number]
            self.results.append(_added(giant, found.dumps, of_site))
            if isinstance(self.results[-1], Report):
                self.giants[number] = giant
        self.blocks = self._joined(read.where(read.site.isin(list(self.giants))), tasks)
        self.parts = sum(len(giant.parts) for giant in self.giants.values())

    def release(self) -> None:
        """Remove the blocks from the disks of the executors."""
        for frame in self._kept:
            frame.unpersist()

    def _keep(self, frame: DataFrame) -> tuple[DataFrame, list[Any]]:
        """Compute a frame, and keep it on disks; and the results in it."""
        from pyspark import StorageLevel

        self._kept.append(frame.persist(StorageLevel.DISK_ONLY))
        return frame, collected(frame)

    def _joined(self, read: DataFrame, tasks: list[RangeTask]) -> DataFrame:
        """What was read, and what tables and users became of it."""
        count = {table: sum(task.table == table for task in tasks) for table in TABLES.values()}
        users, rows = count.pop(TABLES["users"]), sum(count.values())
        if rows:

            def find(found: Groups) -> Iterator[Row]:
                return joins.find_questions(found, users=users > 0)

            of_tables = joined(read, (QUESTIONS, ROWS), rows, find)
            if users:  # Twice needed: by parts, and for the users of comments.
                self._keep(of_tables)
            read = read.unionAll(of_tables)
        if not users:
            return read
        named = joined(read, (USERS, WANTED), users, joins.find_users)
        return read.where(read.kind == BLOCK).unionAll(named)


def _added(
    giant: Giant, dumps: Mapping[str, Dump], done: list[tuple[RangeTask, RangeResult]]
) -> Report | So2docsError | None:
    """Add up what the ranges of a site tell, in the order of the plain command."""
    posts = dumps[POSTS.name]
    report = Report(posts.path, giant.site.folder, files=0, dump_bytes=posts.size)
    parts: set[int] = set()
    is_repeated = False
    for name, dump in dumps.items():
        tallies: dict[int, ChunkTally] = {}
        seen = repeats.SeenIds()
        for task, result in done:
            found = result.found
            if task.table.name != name:
                continue
            if isinstance(found, So2docsError):
                if isinstance(found, DumpError):
                    complete_place(found, dump, tallies.values(), task.table)
                return found
            tallies[task.number] = found.tally
            seen.add(found.pages)
            parts |= result.parts
            report.peak_memory_bytes = max(report.peak_memory_bytes, result.peak)
            report.core = found.task.options.core
        within = totals.within_chunks(tallies)
        is_repeated |= bool(seen.repeated)
        if name == POSTS.name:
            totals.add_posts(tallies, report)
            giant.first_question_of.update(repeats.first_questions(lambda: (), {}, within))
        else:
            is_repeated |= bool(within)
            totals.add_table_chunks(TABLES[name], tallies, dump.size, report)
    giant.parts.extend(sorted(parts))
    return None if is_repeated else report


def _chunk_bytes(size: int, options: Options) -> int:
    return options.chunk_bytes or max(_SMALLEST_CHUNK, -(-size // _MOST_CHUNKS))
