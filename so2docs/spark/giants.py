"""Giant dumps, seen from the driver: from ranges of them all to part files or documents.

Each range of posts and of tables is read by a task; its blocks are kept on the disks of the
executors (`persist`). What was counted in each is added up here, as the plain command does. Then
rows of tables find the questions of their posts, and parts the users that they name. A lost
executor costs the work that was lost with it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from so2docs.errors import DumpError, So2docsError
from so2docs.options.conversion import Options
from so2docs.passes import totals
from so2docs.passes.chunk import ChunkTask
from so2docs.passes.first_pass import complete_place
from so2docs.posts import repeats
from so2docs.report import Report
from so2docs.schema import POSTS, TABLES
from so2docs.sources import storage
from so2docs.spark import folders, frames, parts, ranges, rows
from so2docs.spark.frames import Groups, Row, by_part, collected, each, groups, joined, run
from so2docs.spark.parts import Giant
from so2docs.spark.ranges import RangeTask
from so2docs.spark.report import total
from so2docs.spark.sites import Found, FoundDump, Site, site_options, sound
from so2docs.store.tally import ChunkTally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GIANT_BYTES = 4_000_000_000
"""A plain dump of more is spread, which is worth it for large ones only: on two cores, 0.3 GB took
14.3 s with it and 9.5 s in one task, on one of them."""

_OF_PARTS = frames.BLOCK, frames.USERS
_SMALLEST_CHUNK = 32 * 1024 * 1024
_MOST_CHUNKS = 800

_ARROW_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_BATCH_BYTES = 8 * 1024 * 1024
"""Of blocks that a worker is handed at once; Spark's own default is 64 MB, or none before 4.1."""


def convert(
    spark: SparkSession, found: Sequence[Found], options: Options, *, has_site: bool
) -> dict[Site, Report | So2docsError]:
    """Convert the giants among some dumps into part files.

    Returns:
        Reports, or why there is none. One task has to convert the others: small ones, and those in
        which the id of a post stands in several ranges.
    """
    if not (chosen := _giants(found, options, has_site=has_site)):
        return {}
    started = time.perf_counter()
    with _small_batches(spark), closing(Spread(spark, chosen)) as spread:
        giants, between = spread.giants, time.perf_counter()

        def write(found: Groups) -> Iterator[Row]:
            return parts.write(found, giants)

        frame = joined(spread.blocks, _OF_PARTS, spread.parts, write)
        written: list[tuple[int, Any]] = collected(frame)
    seconds = between - started, time.perf_counter() - between
    done: dict[Site, Report | So2docsError] = {}
    ends: list[tuple[str, set[str] | So2docsError]] = []
    for number, result in enumerate(spread.results):
        site, of_site = chosen[number][0].site, [one for of, one in written if of == number]
        error = next((one for one in (result, *of_site) if isinstance(one, So2docsError)), None)
        if isinstance(result, Report) and error is None:
            done[site] = _report(result, [report for report, _ in of_site], seconds)
            ends.append((site.folder, set().union(*(names for _, names in of_site))))
        elif error is not None:
            done[site] = error
            ends.append((site.folder, error))
    sound(zip(done, run(spark, folders.end, ends), strict=True))
    return done


def _giants(
    found: Sequence[Found], options: Options, *, has_site: bool
) -> list[tuple[Giant, FoundDump]]:
    """The dumps to spread over all executors: they are plain, and their parts stand alone."""
    has_parts = options.recipe is None and options.filters.limit is None
    return [
        (Giant(site, site_options(site, options, has_site=has_site)), dump)
        for site, dump in found
        if has_parts and dump.dumps and dump.size > GIANT_BYTES
    ]


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
    spark: SparkSession, found: Sequence[Found], options: Options, *, schema: bool, has_site: bool
) -> tuple[DataFrame | None, set[Site]]:
    """The documents of the giants among some dumps, and which these are."""
    if not (chosen := _giants(found, options, has_site=has_site)):
        return None, set()
    spread = Spread(spark, chosen)
    for result in spread.results:
        if isinstance(result, So2docsError):
            spread.close()
            raise result
    giants = spread.giants

    def nest(found: Iterator[Any]) -> Iterator[Any]:
        for giant, nested in parts.documents(groups(found), giants):
            yield from rows.batches(giant.site.name, nested, giant.options, schema=schema)

    blocks = by_part(spread.blocks, _OF_PARTS, spread.parts)
    frame = blocks.mapInArrow(nest, rows.columns(options, schema=schema))
    return frame, {giant.site for giant in giants.values()}


class Spread:
    """The blocks of giant dumps and their tables, and what their ranges tell of them.

    Attributes:
        results: For each site, its report so far, what is wrong with it, or None if one task has
            to convert it.
        giants: The sites that can be merged, by their number.
        blocks: A frame with the blocks, and the users, of their parts.
        parts: Number of those.
    """

    def __init__(self, spark: SparkSession, chosen: Sequence[tuple[Giant, FoundDump]]) -> None:
        self._kept: list[DataFrame] = []
        tasks: list[RangeTask] = []
        for number, (giant, found) in enumerate(chosen):
            for name, dump in found.dumps.items():
                table, smallest = TABLES.get(name, POSTS), -(-dump.size // _MOST_CHUNKS)
                size = giant.options.chunk_bytes or max(_SMALLEST_CHUNK, smallest)
                for chunk in dump.chunks(size, (), Path()):
                    tasks.append((number, ChunkTask(chunk, "", giant.options, table)))
        read, told = self._keep(each(spark, ranges.read, tasks))
        told_of = defaultdict[int, list[tuple[ChunkTask, bytes]]](list)
        for (number, task), result in zip(tasks, told, strict=True):
            told_of[number].append((task, result))
        self.results = [_added(*one, told_of[number]) for number, one in enumerate(chosen)]
        good = (number for number, one in enumerate(self.results) if isinstance(one, Report))
        self.giants = {number: chosen[number][0] for number in good}
        self.blocks = self._joined(read.where(read.site.isin(list(self.giants))), tasks)
        self.parts = sum(len(giant.parts) for giant in self.giants.values())

    def close(self) -> None:
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
        users = sum(task.table.name == "users" for _, task in tasks)
        if rows := sum(bool(task.table.kind) for _, task in tasks):

            def find(found: Groups) -> Iterator[Row]:
                return parts.find_questions(found, users=users > 0)

            of_tables = joined(read, (frames.QUESTIONS, frames.ROWS), rows, find)
            if users:  # Twice needed: by parts, and for the users of comments.
                self._keep(of_tables)
            read = read.unionAll(of_tables)
        if not users:
            return read
        named = joined(read, (frames.USERS, frames.WANTED), users, parts.find_users)
        return read.where(read.kind == frames.BLOCK).unionAll(named)


def _added(
    giant: Giant, dump: FoundDump, told: list[tuple[ChunkTask, bytes]]
) -> Report | So2docsError | None:
    """Add up what the ranges of a site tell, in the order of the plain command."""
    posts = dump.dumps[POSTS.name]
    report = Report(posts.path, giant.site.folder, files=0, dump_bytes=posts.size)
    found_parts, is_repeated = set[int](), False
    for name, file in dump.dumps.items():
        tallies, seen = dict[int, ChunkTally](), repeats.SeenIds()
        for task, packed in told:
            if task.table.name != name:
                continue
            found, of_range, peak = ranges.unpacked(packed)
            if isinstance(found, So2docsError):
                if isinstance(found, DumpError):
                    complete_place(found, file, tallies.values(), task.table)
                return found
            tallies[task.chunk.number] = found.tally
            seen.add(found.pages)
            found_parts |= of_range
            report.peak_memory_bytes = max(report.peak_memory_bytes, peak)
            report.core = found.task.options.core
        within = totals.within_chunks(tallies)
        is_repeated |= bool(seen.repeated or (within and name != POSTS.name))
        if name == POSTS.name:
            totals.add_posts(tallies, report)
            giant.first_question_of.update(repeats.first_questions(lambda: (), {}, within))
        else:
            totals.add_table_chunks(TABLES[name], tallies, file.size, report)
    giant.parts.extend(sorted(found_parts))
    return None if is_repeated else report
