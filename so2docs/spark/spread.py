"""Giant dumps as data frames, seen from the driver: their blocks, by the part that they belong to.

Each range is read by a task and its blocks are kept on the disks of the executors (`persist`); what
the chunks tell is combined, and says whether the files are sound and which parts a site has. Then
tables find the questions of their posts, and parts the users that they name, by ranges of ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from so2docs.errors import So2docsError
from so2docs.options.conversion import Options
from so2docs.passes.totals import within_chunks
from so2docs.posts import repeats
from so2docs.schema import POSTS, TABLES
from so2docs.sources.dump import Dump
from so2docs.spark import frames, ranges
from so2docs.spark.frames import (
    ASKED,
    BLOCK,
    COLUMNS,
    QUESTIONS,
    TOLD,
    USERS,
    WANTED,
)
from so2docs.spark.jobs import RESULT, collected, numbers, pickled, spark_errors, task_rows
from so2docs.spark.looking import FoundDump
from so2docs.spark.parts import Giant
from so2docs.spark.plan import PlannedSite
from so2docs.spark.ranges import RangeTask
from so2docs.spark.summaries import Key, PartSummary, summarize

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TABLES = {POSTS.name: POSTS, **TABLES}
_SMALLEST_CHUNK = 32 * 1024 * 1024
_MOST_CHUNKS = 800

Chosen = tuple[PlannedSite, FoundDump]


class Spread:
    """The blocks of giant dumps and their tables, and what their chunks tell.

    Attributes:
        sites: The given ones.
        giants: The sites that can be merged, by their number among those.
    """

    def __init__(
        self, spark: SparkSession, sites: Sequence[Chosen], options: list[Options]
    ) -> None:
        self.sites = sites
        self._spark, self._options = spark, options
        self._dumps: dict[Key, Dump] = {
            (number, table): dump
            for number, (_, found) in enumerate(sites)
            for table, dump in found.dumps.items()
        }
        self._summaries: dict[Key, PartSummary] = {}
        self._kept: list[DataFrame] = []
        tasks = self._tasks(self._sound(), {POSTS.name})
        posts = self._keep(self._mapped(tasks, ranges.spilled))
        self._blocks = posts.where(posts.kind == BLOCK)
        if options[0].nest:
            self._add_tables(posts, set(options[0].nest))
        self.giants = {
            number: Giant(
                sites[number][0],
                options[number],
                self._first_questions(number),
                {part: order for order, part in enumerate(self._parts(number))},
            )
            for number in self._sound()
        }

    def summary(self, site: int, table: str) -> PartSummary:
        """What the chunks of the posts of a site tell, or those of a table."""
        return self._summaries.get((site, table), PartSummary(_TABLES[table]))

    def error(self, site: int) -> So2docsError | None:
        """The first thing wrong with a site."""
        found = (one.error for key, one in self._summaries.items() if key[0] == site)
        return next((error for error in found if error is not None), None)

    def shuffled(self) -> DataFrame:
        """The blocks of those sites by site and part."""
        count = sum(len(giant.numbers) for giant in self.giants.values())
        blocks = self._blocks.where(self._blocks.site.isin(list(self.giants)))
        blocks = blocks.repartition(max(1, count), "site", "part")
        return blocks.sortWithinPartitions("site", "part", "chunk", "offset")

    def release(self) -> None:
        """Remove the blocks from the disks of the executors."""
        for frame in self._kept:
            frame.unpersist()

    def _add_tables(self, posts: DataFrame, nest: set[str]) -> None:
        """Read the tables of the sites whose posts are sound."""
        users, records = (
            self._tasks(self._sound(), names) for names in ({"users"} & nest, nest - {"users"})
        )
        both = posts.unionAll(self._mapped(records, ranges.asked))
        found = _joined(both, (QUESTIONS, ASKED), len(records), frames.find_questions)
        of_chunk = {(task.site, task.number): task for task in records}

        def read(found: Iterator[Any]) -> Iterator[Any]:
            yield from ranges.with_questions(found, of_chunk)

        by_chunk = found.repartition(max(1, len(records)), "site", "chunk")
        rows = by_chunk.sortWithinPartitions("site", "chunk").mapInArrow(read, COLUMNS)
        tables = self._keep(rows.unionAll(self._mapped(users, ranges.spilled)))
        self._blocks = self._blocks.unionAll(tables.where(tables.kind == BLOCK))
        if users:
            both = posts.unionAll(tables)
            named = _joined(both, (USERS, WANTED), len(users), frames.find_users)
            self._blocks = self._blocks.unionAll(named)

    def _tasks(self, sites: set[int], tables: set[str]) -> list[RangeTask]:
        return [
            RangeTask(site, _TABLES[table], chunk, self._options[site])
            for (site, table), dump in self._dumps.items()
            if site in sites and table in tables
            for chunk in dump.chunks(_chunk_bytes(dump.size, self._options[site]), (), Path())
        ]

    def _mapped(
        self, tasks: list[RangeTask], function: Callable[[RangeTask], Iterator[Any]]
    ) -> DataFrame:
        """What a function makes of each range."""

        def mapped(found: Iterator[Any]) -> Iterator[Any]:
            for number in numbers(found):
                yield from function(tasks[number])

        return task_rows(self._spark, len(tasks)).mapInArrow(mapped, COLUMNS)

    def _keep(self, frame: DataFrame) -> DataFrame:
        """Compute a frame, keep it on disks, and combine what its chunks tell."""
        from pyspark import StorageLevel

        dumps = self._dumps

        def told(found: Iterator[Any]) -> Iterator[Any]:
            yield from pickled(summarize(found, dumps).items())

        with spark_errors():
            self._kept.append(frame.persist(StorageLevel.DISK_ONLY))
        by_site = frame.where(frame.kind == TOLD).repartition(len(self._options), "site")
        self._summaries |= dict(collected(by_site.mapInArrow(told, RESULT)))
        return frame

    def _sound(self) -> set[int]:
        """The sites that can be merged, as far as is known."""
        bad = {
            site
            for (site, _), summary in self._summaries.items()
            if summary.error is not None or summary.is_repeated
        }
        return set(range(len(self._options))) - bad

    def _first_questions(self, site: int) -> dict[int, int]:
        """The questions of post ids that stand under several."""
        within = within_chunks(self.summary(site, POSTS.name).tallies)
        return repeats.first_questions(lambda: (), {}, within)

    def _parts(self, site: int) -> list[int]:
        return sorted(
            set().union(*(one.parts for key, one in self._summaries.items() if key[0] == site))
        )


def _joined(
    both: DataFrame, kinds: tuple[int, int], tasks: int, function: Callable[..., Iterator[Any]]
) -> DataFrame:
    """What a function of `frames` makes of the rows of two kinds, a range of ids at a time."""
    # As many partitions as there are tasks: for a cogroup, Spark would make 200 of however little.
    ranges = both.where(both.kind.isin(list(kinds))).repartition(max(1, tasks), "site", "part")
    return ranges.sortWithinPartitions("site", "part", "kind").mapInArrow(function, COLUMNS)


def _chunk_bytes(size: int, options: Options) -> int:
    return options.chunk_bytes or max(_SMALLEST_CHUNK, -(-size // _MOST_CHUNKS))
