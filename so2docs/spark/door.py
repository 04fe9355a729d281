"""The door to the conversion on Spark: dumps in, a folder a site or one data frame out."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Unpack

from so2docs.errors import DumpError, OptionError, So2docsError
from so2docs.options.choices import FORMATS
from so2docs.options.conversion import Options
from so2docs.options.keywords import DocumentKeywords, FileKeywords
from so2docs.options.output_form import ending
from so2docs.options.request import checked, options_of, output_form
from so2docs.options.sites import host
from so2docs.report import Report
from so2docs.sources import storage
from so2docs.spark import folders, giants, looking, plan, rows
from so2docs.spark.frames import numbers, run, task_rows
from so2docs.spark.looking import FoundDump, LookTask
from so2docs.spark.plan import Dumps, PlannedSite
from so2docs.spark.report import SparkReport
from so2docs.spark.site import SiteTask, convert_site, document_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    has_site = plan.is_several(source) if site is None else site
    if FORMATS[options.form.format].ids and plan.is_several(source) and not has_site:
        raise OptionError(
            f"--format {options.form.format} of several sites needs their names (site=True, not "
            "--no-site): post ids are unique per site only, and documents of the same id would "
            "replace each other"
        )
    report = SparkReport()
    failures = _Failures(on_error, report.failures)
    looked = _look(spark, source, options, failures, folder=os.fspath(output_dir), force=force)
    report.finished = [one.name for one, found in looked if found.is_finished]
    left = [(one, found) for one, found in looked if not found.is_finished]
    begun = [one.folder for one, found in left if found.is_begun]
    for answer in run(spark, folders.begin, begun):
        _value(answer)
    spread = [item for item in left if giants.is_giant(item[1], options)]
    own = _of_sites(options, spread, has_site=has_site)
    done: dict[PlannedSite, Report | So2docsError | None] = {
        one: result
        for (one, _), result in zip(spread, giants.convert(spark, spread, own), strict=True)
    }
    tasks = [
        SiteTask(one, {**given, "split": PART_BYTES}, has_site)
        # The longest first, so that none is left for the end.
        for one, _ in sorted(left, key=lambda item: -item[1].size)
        if done.get(one) is None
    ]
    for task, result in zip(tasks, run(spark, convert_site, tasks), strict=True):
        done[task.site] = result
    for one, _ in left:
        converted = done[one]
        failures.check(one, converted)
        if isinstance(converted, Report):
            report.sites[one.name] = converted
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
    looked = _look(spark, source, options, _Failures("stop", {}))
    looked.sort(key=lambda item: -item[1].size)
    spread = [item for item in looked if giants.is_giant(item[1], options)]
    chosen = _of_sites(options, spread, has_site=site or schema)
    frame, repeated = giants.documents(spark, spread, chosen, schema=schema)
    small = [one for one, found in looked if (one, found) not in spread or (one, found) in repeated]

    def batches(found: Iterator[Any]) -> Iterator[Any]:
        for number in numbers(found):
            yield from document_batches(small[number], given, schema=schema, has_site=site)

    columns = rows.columns(options, schema=schema)
    of_small = task_rows(spark, len(small)).mapInArrow(batches, columns)
    return of_small if frame is None else of_small.unionAll(frame)


@dataclass(slots=True)
class _Failures:
    """Dumps that cannot be converted: the first ends all, or each is noted.

    Attributes:
        on_error: Which of both.
        found: The errors by the name of the site.
    """

    on_error: OnError
    found: dict[str, DumpError] = field(default_factory=dict)

    def check(self, site: PlannedSite, result: object) -> None:
        """Raise the error that a task ended with, or note it."""
        if not isinstance(result, So2docsError):
            return
        if isinstance(result, DumpError) and site.folder and result.excerpt is not None:
            result.excerpt_path = storage.join(site.folder, folders.ERROR)
        if not isinstance(result, DumpError) or self.on_error == "stop":
            raise result
        self.found[site.name] = result


def _of_sites(
    options: Options, sites: Sequence[tuple[PlannedSite, Any]], *, has_site: bool
) -> list[Options]:
    """The options of each site."""
    found = [rows.with_site(options, one.name) if has_site else options for one, _ in sites]
    if not options.is_attributed:
        return found
    return [replace(own, host=_host(one)) for own, (one, _) in zip(found, sites, strict=True)]


def _host(site: PlannedSite) -> str:
    try:
        return host(site.path, None)
    except OptionError as error:
        raise OptionError(
            f"{site.path}: the host name of its site cannot be told; put the dump into a folder of "
            "that name, such as beer.stackexchange.com/Posts.xml"
        ) from error


def _options(given: Mapping[str, Any]) -> Options:
    end = ending(given.get("format"), given.get("compression"))
    form = output_form(f"part{end}", given)
    # An executor knows which core it has.
    return options_of(given, form, core=given.get("core", "auto"))


def _value(result: Any) -> Any:
    if isinstance(result, So2docsError):
        raise result
    return result


def _look(
    spark: SparkSession,
    source: Dumps,
    options: Options,
    failures: _Failures,
    *,
    folder: str = "",
    force: bool = False,
) -> list[tuple[PlannedSite, FoundDump]]:
    """Find the dumps, name them, and look at each; those that look sound."""
    given = plan.patterns(source)
    paths = [path for found in run(spark, looking.matching, given) for path in _value(found)]
    sites = plan.sites(list(dict.fromkeys(paths)), folder and plan.located(folder))
    tasks = [LookTask(site, options.nest, force) for site in sites]
    looked: list[tuple[PlannedSite, FoundDump]] = []
    for site, result in zip(sites, run(spark, looking.look, tasks), strict=True):
        failures.check(site, result)
        if isinstance(result, FoundDump):
            looked.append((site, result))
            if options.is_attributed:
                _host(site)  # Before anything is converted.
    return looked
