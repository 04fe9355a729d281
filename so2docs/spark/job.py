"""The conversion, seen from the driver: two stages with Spark's own shuffle between them.

The first job parses every dump and brings back the tallies; the second finds what the first left
in the shuffle and does not parse again, unless an executor died with its share of it. Only tallies
come to the driver: some hundred bytes a chunk and a part, and post ids that stand more than once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from so2docs.dump import Dump, open_dump
from so2docs.errors import ClusterError, DumpError, So2docsError
from so2docs.first_pass import add_up
from so2docs.report import Report
from so2docs.spark import plan
from so2docs.spark.gathering import GatheredBlocks, Part, Stock, take_stock
from so2docs.spark.nesting import Work, Written, count_documents, write_parts
from so2docs.spark.plan import Layout, Site
from so2docs.spark.spilling import Record, records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_dumps(spark: SparkSession, paths: Sequence[str]) -> list[Dump | DumpError]:
    """Look at the head and the tail of each dump, in the executors that will read it."""
    with spark_errors():
        rdd = spark.sparkContext.parallelize(paths, len(paths))
        return list(rdd.map(_open).collect())


def _open(path: str) -> Dump | DumpError:
    try:
        return open_dump(path)
    except DumpError as error:
        return error


class Conversion:
    """Several dumps on their way through Spark."""

    def __init__(self, spark: SparkSession, sites: Sequence[Site]) -> None:
        self._context = spark.sparkContext
        self.sites = {site.number: site for site in sites}
        self.layout: Layout = plan.layout(site.dump.size for site in sites)
        tasks = [task for site in sites for task in plan.ranges(site)]
        if tasks:
            spilled = self._context.parallelize(tasks, len(tasks)).mapPartitions(
                records(self.layout)
            )
            self.shuffled: Any = spilled.partitionBy(self.layout.total, _as_it_is).values()
        else:
            self.shuffled = self._context.emptyRDD()

    def first_pass(self) -> dict[int, Stock]:
        """Parse every dump, once; what is found by the number of the site."""
        sites = self.sites

        def stock(found: Iterable[Record]) -> Iterator[Stock]:
            yield take_stock(sites, found)

        tallies = range(self.layout.partitions, self.layout.total)
        stocks = self._run(stock, tallies) if self._has_tasks() else []
        found = {stock.site: stock for stock in stocks if stock.site >= 0}
        return {number: found.get(number, Stock(number)) for number in sites}

    def _has_tasks(self) -> bool:
        return bool(self.shuffled.getNumPartitions())

    def work(self, stocks: dict[int, Stock]) -> Work:
        """What the second pass has to know of the sites whose stock is given."""
        sites = {number: self.sites[number] for number in stocks}
        numbers = {
            (number, part): order
            for number, stock in stocks.items()
            for order, part in enumerate(sorted(stock.parts))
        }
        work = Work(sites, self._owners(stocks), numbers)
        return replace(work, limits=self._limits(work))

    def _limits(self, work: Work) -> dict[Part, int]:
        """Most documents of each part, where there is a limit: what those before it leave."""
        limits = {
            number: site.options.filters.limit
            for number, site in work.sites.items()
            if site.options.filters.limit is not None
        }
        if not limits:
            return {}

        def count(found: Iterable[Record]) -> Iterator[tuple[Part, int]]:
            return count_documents(work, found)

        counts = dict(self._run(count, range(self.layout.partitions)))
        found: dict[Part, int] = {}
        for part in sorted(work.numbers):
            left = found[part] = limits[part[0]]
            limits[part[0]] = left - min(left, counts.get(part, 0))
        return found

    def _owners(self, stocks: dict[int, Stock]) -> dict[int, dict[int, int]]:
        """Which question each post keeps that stands under several."""
        repeated = {number: stock.repeated for number, stock in stocks.items() if stock.repeated}
        sites = {number: self.sites[number] for number in repeated}
        first: dict[int, dict[int, tuple[int, int]]] = {number: {} for number in stocks}

        def first_questions(found: Iterable[Record]) -> Iterator[Any]:
            with GatheredBlocks(found, sites) as blocks:
                yield from blocks.first_questions(repeated).items()

        if repeated:
            for (site, post_id), place in self._run(first_questions, range(self.layout.partitions)):
                first[site][post_id] = min(place, first[site].get(post_id, place))
        owners = {}
        for number, stock in stocks.items():
            within = add_up(stock.tallies, Report("", ""))
            owners[number] = {
                post_id: question_id
                for _, of_one in sorted(within.items(), reverse=True)
                for post_id, question_id in of_one.items()
            }
            for post_id, (chunk, question_id) in first[number].items():
                of_chunk = within.get(chunk, {})
                owners[number][post_id] = of_chunk.get(post_id, question_id)
        return owners

    def second_pass(self, work: Work) -> list[Written]:
        """Nest every part and write its files."""

        def write(found: Iterable[Record]) -> Iterator[Written]:
            return write_parts(work, found)

        return self._run(write, range(self.layout.total)) if self._has_tasks() else []

    def _run(self, function: Any, partitions: Iterable[int]) -> list[Any]:
        with spark_errors():
            return list(self._context.runJob(self.shuffled, function, list(partitions)))


def _as_it_is(partition: int) -> int:
    return partition


@contextmanager
def spark_errors() -> Iterator[None]:
    """Say in one line why Spark gave a job up."""
    try:
        yield
    except So2docsError:
        raise
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("py4j", "pyspark"):
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
