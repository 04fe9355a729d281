"""The door to the conversion on Spark: dumps in, a folder a site or one data frame out."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from so2docs.errors import ClusterError, DumpError, OptionError
from so2docs.options.conversion import Options
from so2docs.options.keywords import DocumentKeywords, FileKeywords
from so2docs.options.output_form import ending
from so2docs.options.request import checked, options_of, output_form
from so2docs.posts.core import resolve
from so2docs.sources import storage
from so2docs.spark import folders, plan
from so2docs.spark import schema as schemas
from so2docs.spark.folders import Failures, OnError
from so2docs.spark.gathering import Stock
from so2docs.spark.job import Conversion, open_dumps
from so2docs.spark.plan import Site, Source
from so2docs.spark.report import SparkReport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def convert(
    spark: SparkSession,
    source: Source,
    output_dir: str | os.PathLike[str],
    *,
    site: bool | None = None,
    force: bool = False,
    on_error: OnError = "stop",
    **keywords: Unpack[FileKeywords],
) -> SparkReport:
    """Convert dumps on Spark: a folder of part files for each.

    The part files of a folder, one after the other, hold the lines that `so2docs.convert` writes.
    They are the same for any cluster, and whatever executors are lost on the way.

    Args:
        spark: A session; a classic one, not Spark Connect.
        source: Path or URL of a `Posts.xml`, as it is or compressed, or of a folder with one; a
            pattern; or several of them. Every executor must be able to read them: a shared disk, or
            a store that fsspec has a driver for.
        output_dir: Folder, or URL of one, that gets a folder for each site. In it are
            `part-00000.jsonl.gz` and so on, in ascending question id; `.strays-00000` and
            so on, if there are any; and `_SUCCESS` when all is there.
        site: Give each question an attribute `Site`, after all others and before `Answers`; None:
            where `source` may stand for several dumps.
        force: Overwrite finished folders of these sites; unfinished ones are always overwritten.
        on_error: `stop`: a dump that cannot be converted ends all, before anything is written.
            `skip`: the others are converted, and the report has the error.
        keywords: As those of `so2docs.convert` with these names, for each dump: `format` (each part
            file is whole), `compression`, `index`, `level`, the filters (`limit` counts for each
            dump), `fields`, `without`, `body`, `nest` (tables that stand beside the dump),
            `answers_by`, `skip_malformed`, `strict`, `core`; and `chunk_bytes`, the bytes of a dump
            that one task of the first stage takes.

    Returns:
        Counts, bytes and seconds of each site.

    Raises:
        OptionError: An option has a value that is not allowed.
        DumpError: A dump is truncated, malformed, or changed meanwhile; the error says where.
        StrictError: With `strict`, something would have to be repaired or left out. Where that is
            known only at the end, other folders may stand there unfinished.
        OutputError: A folder of a site exists (without `force`) or cannot be written.
        ClusterError: Spark gave the job up.
    """
    if on_error not in ("stop", "skip"):
        raise OptionError(f"on_error is {on_error!r}; it must be 'stop' or 'skip'")
    started = time.perf_counter()
    options = _options(keywords, FileKeywords)
    failures = Failures(on_error)
    sites = _sites(spark, source, options, failures, folder=os.fspath(output_dir), has_site=site)
    folders.check(sites, force=force)
    begun = time.perf_counter()
    conversion = Conversion(spark, sites)
    stocks = _sound(conversion, failures)
    between = time.perf_counter()
    folders.clear(conversion.sites[number] for number in stocks)
    written = conversion.second_pass(conversion.work(stocks))
    ended = time.perf_counter()
    report = SparkReport(failures=failures.found)
    for number, stock in stocks.items():
        one = conversion.sites[number]
        of_site = [part for part in written if part.site == number]
        if error := folders.refused(one, of_site):
            failures.add(one.name, one.folder, error)
            continue
        done = report.sites[one.name] = folders.finish(one, stock, of_site)
        done.first_pass_seconds, done.second_pass_seconds = between - begun, ended - between
        done.seconds = ended - begun
        done.jobs = spark.sparkContext.defaultParallelism
    peaks = [stock.peak for stock in stocks.values()] + [part.peak for part in written]
    report.worker_peak_bytes = max(peaks, default=0)
    report.seconds = time.perf_counter() - started
    return report


def documents(
    spark: SparkSession,
    source: Source,
    *,
    schema: bool = False,
    site: bool = False,
    **keywords: Unpack[DocumentKeywords],
) -> DataFrame:
    """Nest the questions of dumps, as a data frame.

    The dumps are read when this is called, once, and their posts stay in the shuffle of Spark for
    as long as the data frame is used; nesting happens whenever it is.

    Args:
        spark: A session; a classic one, not Spark Connect.
        source: As in `convert`.
        schema: Typed columns, as `so2docs.spark.schema.question` has them, instead of JSON.
        site: Give each document an attribute `Site`, too.
        keywords: As in `convert`, but for those that say what files are like.

    Returns:
        `Site` (string), `Id` (long) and `Document` (the JSON of the question with its answers), in
        no order; or `Site` and the columns of the schema.

    Raises:
        So2docsError: As `convert` does.
    """
    options = _options(keywords, DocumentKeywords)
    failures = Failures()
    conversion = Conversion(spark, _sites(spark, source, options, failures, has_site=site))
    work = conversion.work(_sound(conversion, failures))

    nested = conversion.documents(work)
    frame = spark.createDataFrame(nested, schemas.documents(), verifySchema=False)
    return schemas.typed(frame, options) if schema else frame


def _options(keywords: Mapping[str, Any], allowed: type) -> Options:
    given = checked(keywords, allowed)
    form = output_form(f"part{ending(given.get('format'), given.get('compression'))}", given)
    # Part files are found by their place among the others; an index of each is no use.
    return options_of(
        given, replace(form, is_looked_up=False), core=resolve(given.get("core", "auto"))
    )


def _sites(
    spark: SparkSession,
    source: Source,
    options: Options,
    failures: Failures,
    *,
    folder: str = "",
    has_site: bool | None = False,
) -> list[Site]:
    """Open the dumps and name them; those that are sound."""
    if not hasattr(spark, "_jsparkSession"):
        raise ClusterError(
            "a classic Spark session is needed, not Spark Connect: run this where the driver is, "
            "such as with spark-submit"
        )
    paths = plan.paths(source)
    if has_site is None:
        has_site = plan.is_pattern(source)
    sites: list[Site] = []
    for name, dump in zip(plan.names(paths), open_dumps(spark, paths, options.nest), strict=True):
        place = storage.join(folder, *name.split("/")) if folder else ""
        if isinstance(dump, DumpError):
            failures.add(name, place, dump)
        else:
            own = replace(options, site_field=("Site", name) if has_site else None)
            sites.append(Site(len(sites), name, dump[0], place, own, dump[1]))
    return sites


def _sound(conversion: Conversion, failures: Failures) -> dict[int, Stock]:
    """Run the first pass; the stocks of the dumps that can be converted."""
    sound: dict[int, Stock] = {}
    for number, stock in conversion.first_pass().items():
        if stock.error is None:
            sound[number] = stock
        else:
            site = conversion.sites[number]
            failures.add(site.name, site.folder, stock.error)
    return sound
