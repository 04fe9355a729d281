"""The conversion, seen from the driver: two stages with Spark's own shuffle between them.

The first job parses every dump and brings back the tallies; the second finds what the first left
in the shuffle and does not parse again, unless an executor died with its share of it. Only tallies
come to the driver: some hundred bytes a chunk and a part, and post ids that stand more than once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from so2docs.errors import ClusterError, DumpError, So2docsError
from so2docs.passes.first_pass import add_up
from so2docs.report import Report
from so2docs.sources.dump import Dump
from so2docs.spark import plan
from so2docs.spark.finding import posts_of, tables_beside
from so2docs.spark.gathering import GatheredBlocks, Part, Stock, take_stock
from so2docs.spark.joining import to_questions, users_to_parts
from so2docs.spark.nesting import Work, Written, count_documents, documents, write_parts
from so2docs.spark.plan import Layout, Site, Stream
from so2docs.spark.records import Placed, Record
from so2docs.spark.spilling import records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Opened = tuple[Dump | Stream, dict[str, Dump]]


def open_dumps(
    spark: SparkSession, paths: Sequence[str], nest: tuple[str, ...]
) -> list[Opened | DumpError]:
    """Look at each dump, and at the tables beside it, in the executors that will read them."""

    def look(path: str) -> Opened | DumpError:
        try:
            return posts_of(path), tables_beside(path, nest)
        except DumpError as error:
            return error

    with spark_errors():
        return list(spark.sparkContext.parallelize(paths, len(paths)).map(look).collect())


class Conversion:
    """Several dumps on their way through Spark."""

    def __init__(self, spark: SparkSession, sites: Sequence[Site]) -> None:
        self._context = spark.sparkContext
        self.sites = {site.number: site for site in sites}
        self.layout: Layout = plan.layout(sites)
        tasks = [task for site in sites for task in plan.ranges(site)]
        # `shuffled` has what the first stage found; `joined` also what tables add to questions.
        self.shuffled: Any = None
        if tasks:
            spilled = self._context.parallelize(tasks, len(tasks))
            self.shuffled = self._placed(spilled.mapPartitions(records(self.layout)))
        self.joined = self.shuffled

    def _placed(self, rdd: Any) -> Any:
        """Records, each in its partition. What is placed like this is joined without moving."""
        return rdd.partitionBy(self.layout.total, _as_it_is)

    def _only(self, rdd: Any, partitions: Iterable[int]) -> Any:
        """Some partitions of a shuffle, so that nothing reads the others: they have the posts."""
        from pyspark import RDD

        jvm: Any = self._context._jvm
        # A set of Scala's is the function that tells which partitions stay.
        wanted = jvm.PythonUtils.toSeq(list(partitions)).toSet()
        pruned = jvm.org.apache.spark.rdd.PartitionPruningRDD.create(rdd._jrdd.rdd(), wanted)
        return RDD(pruned.toJavaRDD(), self._context, rdd._jrdd_deserializer).values()

    def _join(self, sites: Mapping[int, Site], owners: Mapping[int, dict[int, int]]) -> None:
        """Send the rows of tables, and the users, to the questions that they belong to."""
        layout = self.layout

        def rows(found: Iterable[Record]) -> Iterator[Placed]:
            return to_questions(sites, owners, layout, found)

        def users(found: Iterable[Record]) -> Iterator[Placed]:
            return users_to_parts(sites, layout, found)

        if layout.lookups:
            some = self._only(self.joined, layout.of_posts).mapPartitions(rows)
            self.joined = self.joined.union(self._placed(some))
        if layout.users:
            some = self._only(self.joined, layout.of_users).mapPartitions(users)
            self.joined = self.joined.union(self._placed(some))

    def documents(self, work: Work) -> Any:
        """Name of the site, id and JSON of every question."""

        def nest(found: Iterable[Record]) -> Iterator[tuple[str, int, str]]:
            return documents(work, found)

        if self.joined is None:
            return self._context.emptyRDD()
        return self._only(self.joined, range(self.layout.partitions)).mapPartitions(nest)

    def first_pass(self) -> dict[int, Stock]:
        """Parse every dump, once; what is found by the number of the site."""
        sites = self.sites

        def stock(found: Iterable[Record]) -> Iterator[Stock]:
            yield take_stock(sites, found)

        stocks = self._run(self.shuffled, stock, self.layout.of_sites)
        found = {stock.site: stock for stock in stocks if stock.site >= 0}
        return {number: found.get(number, Stock(number)) for number in sites}

    def work(self, stocks: dict[int, Stock]) -> Work:
        """What the second pass has to know of the sites whose stock is given."""
        sites = {number: self.sites[number] for number in stocks}
        numbers = {
            (number, part): order
            for number, stock in stocks.items()
            for order, part in enumerate(sorted(stock.parts))
        }
        owners = self._owners(stocks)
        if self.shuffled is not None:
            self._join(sites, owners)
        work = Work(sites, owners, numbers)
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

        counts = dict(self._run(self.shuffled, count, range(self.layout.partitions)))
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
            places = self._run(self.shuffled, first_questions, range(self.layout.partitions))
            for (site, post_id), place in places:
                first[site][post_id] = min(place, first[site].get(post_id, place))
        owners = {}
        for number, stock in stocks.items():
            within = add_up(stock.of_posts, Report("", ""))
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

        partitions = [*range(self.layout.partitions), *self.layout.of_sites]
        return self._run(self.joined, write, partitions)

    def _run(self, rdd: Any, function: Any, partitions: Iterable[int]) -> list[Any]:
        if rdd is None:
            return []
        with spark_errors():
            return list(self._context.runJob(rdd.values(), function, list(partitions)))


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
