"""The door to the conversion on Spark: dumps in, a folder a site or one data frame out."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack

from so2docs.errors import DumpError, OptionError, flag
from so2docs.options.choices import FORMATS
from so2docs.options.conversion import Options
from so2docs.options.keywords import DocumentKeywords, FileKeywords
from so2docs.options.output_form import ending
from so2docs.options.request import checked, options_of, output_form
from so2docs.spark import folders, giants, rows, sites
from so2docs.spark.frames import of_tasks, run
from so2docs.spark.report import SparkReport
from so2docs.spark.site import convert_site, document_batches
from so2docs.spark.sites import Dumps, Found

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PART_BYTES = "128MB"
"""Most bytes of a part file: Spark reads one with one task if it is compressed."""

OnError = Literal["stop", "skip"]


def convert(
    spark: SparkSession,
    source: Dumps,
    output_dir: str | os.PathLike[str],
    *,
    site: bool | None = None,
    force: bool = False,
    on_error: OnError = "stop",
    **keywords: Unpack[FileKeywords],
) -> SparkReport:
    """Convert dumps on Spark: a folder of part files for each.

    The part files of a folder, one after the other, hold the lines that `so2docs.convert` writes.
    They are the same for any cluster, and whatever executors are lost on the way. Sites that are
    finished are left as they are, so that the same call after an interruption, or after a dump
    was mended, converts the others.

    Args:
        spark: A session, classic or of Spark Connect.
        source: Path or URL of a `Posts.xml`, as it is or compressed, or of a folder with one; a
            pattern; or several of them. Every executor must be able to read them: a shared disk, or
            a store that fsspec has a driver for.
        output_dir: Folder, or URL of one, that gets a folder for each site. In it are
            `part-00000.jsonl.gz` and so on, in ascending question id; `.strays-00000` and
            so on, if there are any; and `_SUCCESS` when all is there.
        site: Give each question an attribute `Site`, after all others and before `Answers`; None:
            where `source` may stand for several dumps.
        force: Convert finished sites again.
        on_error: What to do with a dump that cannot be converted. `stop`: raise the error, before
            anything is converted if it is seen at the head or the tail of the dump, else when the
            other dumps are converted. `skip`: leave it out; the report has the error.
        keywords: As those of `so2docs.convert` with these names, for each dump: `format` (each part
            file is whole), `compression`, `index`, `level`, the filters (`limit` counts for each
            dump), `fields`, `without`, `body`, `nest` (tables that stand beside the dump),
            `answers_by`, `skip_malformed`, `strict`, `core`; and `chunk_bytes`.

    Returns:
        Counts, bytes and seconds of each site.

    Raises:
        OptionError: An option has a value that is not allowed.
        DumpError: A dump is truncated, malformed, or changed meanwhile; the error says where.
        StrictError: With `strict`, something would have to be repaired or left out.
        OutputError: A folder of a site cannot be written, or holds other files.
        ClusterError: Spark gave the job up.
    """
    if on_error not in ("stop", "skip"):
        raise OptionError(f"on_error is {on_error!r}; it must be 'stop' or 'skip'")
    started = time.perf_counter()
    given = checked(keywords, FileKeywords)
    options = _options(given)
    has_site = sites.is_several(source) if site is None else site
    if FORMATS[options.form.format].ids and sites.is_several(source) and not has_site:
        raise OptionError(
            f"{flag('format', options.form.format)} of several sites needs their names "
            f"({flag('site', True)}): post ids are unique per site only, and documents of the "
            "same id would replace each other"
        )
    report = SparkReport()
    failures = report.failures if on_error == "skip" else None
    looked = _look(spark, source, options, failures, folder=sites.located(output_dir), force=force)
    report.finished = [one.name for one, found in looked if found.is_finished]
    left = [(one, found) for one, found in looked if not found.is_finished]
    begun = [one for one, found in left if found.is_begun]
    sites.sound(zip(begun, run(spark, folders.begin, [one.folder for one in begun]), strict=True))
    done = giants.convert(spark, left, options, has_site=has_site)
    task = partial(convert_site, keywords={**given, "split": PART_BYTES}, has_site=has_site)
    small = [one for one in sites.by_size(left) if one not in done]
    done |= dict(zip(small, run(spark, task, small), strict=True))
    converted = sites.sound(((one, done[one]) for one, _ in left), failures)
    report.sites = {one.name: found for one, found in converted}
    report.seconds = time.perf_counter() - started
    return report


def documents(
    spark: SparkSession,
    source: Dumps,
    *,
    schema: bool = False,
    site: bool = False,
    **keywords: Unpack[DocumentKeywords],
) -> DataFrame:
    """Nest the questions of dumps, as a data frame.

    The dumps are looked at when this is called, and read whenever the data frame is used; `cache()`
    keeps its rows.

    Args:
        spark: A session, classic or of Spark Connect.
        source: As in `convert`.
        schema: Typed columns, as those of `--format parquet`, instead of JSON.
        site: Give each document an attribute `Site`, too.
        keywords: As in `convert`, but for those that say what files are like.

    Returns:
        `Site` (string), `Id` (long) and `Document` (the JSON of the question with its answers), in
        no order; or `Site` and the columns of the schema.

    Raises:
        So2docsError: As `convert` does, for what is seen at the head or the tail of a dump. What
            is found inside is an error of Spark's that has the message, when the frame is used.
    """
    given = checked(keywords, DocumentKeywords)
    options = _options(given)
    looked = _look(spark, source, options)
    frame, spread = giants.documents(spark, looked, options, schema=schema, has_site=site or schema)
    small = [one for one in sites.by_size(looked) if one not in spread]

    batches = partial(document_batches, keywords=given, schema=schema, has_site=site)
    of_small = of_tasks(spark, batches, small, rows.columns(options, schema=schema))
    return of_small if frame is None else of_small.unionAll(frame)


def _options(given: Mapping[str, Any]) -> Options:
    end = ending(given.get("format"), given.get("compression"))
    form = output_form(f"part{end}", given)
    # An executor knows which core it has.
    return options_of(given, form, core=given.get("core", "auto"))


def _look(
    spark: SparkSession,
    source: Dumps,
    options: Options,
    failures: dict[str, DumpError] | None = None,
    **where: Any,
) -> list[Found]:
    """Find the dumps and look at each; those that look sound."""
    given = sites.patterns(source)
    looked = sites.sound(
        sites.find(given, partial(run, spark), nest=options.nest, **where), failures
    )
    for one, _ in looked:  # Before anything is converted.
        sites.site_options(one, options)
    return looked
