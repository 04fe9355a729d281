"""The public API of the conversion on Spark, to a folder for each site or to a data frame."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack

from so2docs.api.sites import SiteResult, summary
from so2docs.errors import (
    ClusterError,
    DiskFullError,
    OptionError,
    So2docsError,
    WorkerDiedError,
    flag,
)
from so2docs.options.keywords import DocumentKeywords, FileKeywords
from so2docs.options.output_form import check_several, output_form, output_suffix
from so2docs.options.request import build_options, validate_keywords
from so2docs.options.sites import checked_host
from so2docs.options.table import Options
from so2docs.output.provenance import UP_TO_DATE
from so2docs.report import Report
from so2docs.spark import folders, jobs, sites
from so2docs.spark.jobs import run
from so2docs.spark.sites import Dumps, Site, convert_site, raise_or_note

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(slots=True)
class SparkReport:
    """The result of a conversion on Spark, by site.

    Attributes:
        sites: Reports of the sites that this run converted, by site name.
        finished: Names of the sites that an earlier run finished and that are up to date.
        failures: Errors of the sites that failed, by site name.
        seconds: Wall time of the whole run.
    """

    sites: dict[str, Report] = field(default_factory=dict)
    finished: list[str] = field(default_factory=list)
    failures: dict[str, So2docsError] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def worker_peak_bytes(self) -> int:
        """Peak resident memory of a task, in bytes: a Python worker and its child processes.

        This excludes the JVM heap of the executor.
        """
        return self.total().peak_memory_bytes

    def total(self, dump: str = "all sites", output: str = "") -> Report:
        """Return the sum of the site reports; for times, memory and processes, the maximum.

        Args:
            dump: Value of `dump` in the returned report.
            output: Value of `output` in the returned report.
        """
        result = Report(dump, output, files=0)
        for report in self.sites.values():
            result += report
            result.recipe = report.recipe
        result.seconds = self.seconds
        return result

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-compatible values."""
        return {
            "sites": {name: report.as_dict() for name, report in self.sites.items()},
            "finished": self.finished,
            "failures": {name: str(error) for name, error in self.failures.items()},
            "seconds": self.seconds,
            "worker_peak_bytes": self.worker_peak_bytes,
        }

    def __str__(self) -> str:
        of_all = self.total()
        results = [SiteResult(name, "", "converted", report) for name, report in self.sites.items()]
        results += [SiteResult(name, "", UP_TO_DATE) for name in self.finished]
        results += [SiteResult(name, "", "failed", None, e) for name, e in self.failures.items()]
        size = of_all.dump_bytes + sum(table.bytes for table in of_all.tables.values())
        rate = size / 1e6 / self.seconds if self.seconds else 0.0
        return "\n".join(
            [
                summary(results),
                *(f"{name} nested: {table}" for name, table in of_all.tables.items()),
                f"{size / 1e6:,.1f} MB to {of_all.output_bytes / 1e6:,.1f} MB in "
                f"{self.seconds:.1f} s ({rate:.0f} MB/s), "
                f"at most {self.worker_peak_bytes / 2**20:.0f} MiB per Python worker",
            ]
        )


PART_BYTES = "128MB"
"""Maximum size of a part file; it is limited because Spark reads a compressed file in one task."""

LARGE_BYTES = 1_000_000_000
"""Size in bytes above which the task for a dump gets all cores of an executor, if the cluster
supports this. For 1 GB on two cores, one task with both cores took 8.4 s; splitting the dump among
several tasks took 21.3 s."""

_TRANSIENT = (ClusterError, DiskFullError, WorkerDiedError)
"""Errors caused by an executor rather than by a dump, so that another attempt may succeed."""

_THREADS = 8
"""Maximum number of simultaneous Spark jobs, if each site has its own job."""

OnError = Literal["stop", "skip"]
Result = TypeVar("Result")


def convert(
    spark: SparkSession,
    source: Dumps,
    output_dir: str | os.PathLike[str],
    *,
    site_field: str | None = None,
    site: str | None = None,
    force: bool = False,
    update: bool = False,
    on_error: OnError = "stop",
    **keywords: Unpack[FileKeywords],
) -> SparkReport:
    """Convert dumps on Spark, each to a folder of part files.

    The part files of a folder, concatenated, hold the lines that `so2docs.convert` writes. They are
    the same for any cluster, even if executors are lost. Sites that are finished and up to date are
    left unchanged, so repeating the call after an interruption, or after a dump was repaired,
    converts only the other sites.

    Args:
        spark: A Spark session, classic or Spark Connect.
        source: Path or URL of a dump in any form that `so2docs.convert` accepts as a path, a
            pattern, or a list of these. Every executor must be able to read them, from a shared
            disk or an object store with an fsspec driver.
        output_dir: Path or URL of a folder that gets a folder for each site, with
            `part-00000.jsonl.gz` and so on, in ascending order of question id; `.strays-00000.gz`,
            if there are strays; and finally `_SUCCESS`, which lists the files.
        site_field: Name of a field to add to each document; its value is the site name.
        site: Host name of the site, for attribution; only for a single dump. If None, the name of
            the archive or folder.
        force: Reconvert finished sites.
        update: Reconvert finished sites if their dump or options differ.
        on_error: Action for a site that cannot be converted. `stop`: raise the error. Errors at
            the start or end of a dump are raised before any conversion, all other errors after the
            other dumps are converted. `skip`: leave out the site, and add its error to `failures`
            of the report.
        keywords: Keywords of `so2docs.convert` for each dump: `format` (each part file is a
            complete file), `compression`, `elasticsearch_index`, `level`, the filters (`limit`
            applies to each dump), `fields`, `without`, `body`, `nest` (tables in the archive or
            folder of the dump), `answers_by`, `skip_malformed`, `strict`, `core`; and
            `chunk_bytes`.

    Returns:
        A report with the counts, sizes and times of each site.

    Raises:
        OptionError: An option has a value that is not allowed.
        DumpError: A dump is truncated or malformed, or changed while being read; the error gives
            the position.
        StrictError: With `strict`, a row or character would have to be repaired or left out.
        OutputError: The folder of a site was made from another dump or with other options
            (without `update` or `force`), cannot be written, holds other files, or another run
            writes to it.
        DiskFullError: The disk of an executor is full.
        ClusterError: A Spark job failed.
    """
    begun_at = time.perf_counter()
    kwargs, options = check_options(
        source, site_field=site_field, site=site, on_error=on_error, **keywords
    )
    report = SparkReport()
    failures = report.failures if on_error == "skip" else None
    folder, patterns = sites.locate(output_dir), sites.patterns(source)
    kwargs["split"] = PART_BYTES
    is_finished = partial(
        sites.is_up_to_date, keywords=kwargs, site_field=site_field, update=update
    )
    found_sites = sites.find(patterns, partial(run, spark), folder)
    inspect = partial(sites.inspect, nest=options.nest, is_finished=None if force else is_finished)
    results = zip(found_sites, run(spark, inspect, found_sites), strict=True)
    sizes = dict(raise_or_note(results, failures))
    for s in sizes:  # Raise errors before converting anything.
        sites.check_host(s, options)
    report.finished = [s.name for s, size in sizes.items() if size is None]
    pending = {s: size for s, size in sizes.items() if size is not None}
    run_id = uuid.uuid4().hex
    begun = run(spark, folders.begin, [(s.folder, run_id) for s in pending])
    pending = {s: pending[s] for s, _ in raise_or_note(zip(pending, begun, strict=True), failures)}
    task = partial(convert_site, run=run_id, keywords=kwargs, site_field=site_field)
    reports = _convert_sites(spark, pending, task)
    converted = raise_or_note(((s, reports[s]) for s in pending), failures)
    report.sites = {s.name: result for s, result in converted}
    report.seconds = time.perf_counter() - begun_at
    return report


def check_options(
    source: Dumps,
    *,
    site_field: str | None = None,
    site: str | None = None,
    on_error: str = "stop",
    **keywords: Any,
) -> tuple[dict[str, Any], Options]:
    """Check the options of `convert`; this needs no Spark session.

    Returns:
        The validated keywords, and the options for converting each dump.

    Raises:
        OptionError: An option has a value that is not allowed.
    """
    sites.check_on_error(on_error)
    kwargs: dict[str, Any] = validate_keywords(keywords, "documents", "files")
    options = _make_options(kwargs)
    if sites.is_several(source):
        check_several(options.form, site_field)
    if site is None:
        return kwargs, options
    if sites.is_several(source):
        raise OptionError(f"{flag('site')} applies to one dump; convert one dump at a time")
    if not options.is_attributed and options.body != "markdown":
        raise OptionError(
            f"{flag('site')} needs {flag('attribution', True)}, {flag('body', 'markdown')}, or "
            "a recipe that writes URLs"
        )
    return {**kwargs, "site": site}, replace(options, host=checked_host(site))


def documents(
    spark: SparkSession,
    source: Dumps,
    *,
    typed: bool = False,
    site_field: str | None = None,
    site: str | None = None,
    on_error: OnError | None = None,
    **keywords: Unpack[DocumentKeywords],
) -> DataFrame:
    """Make a data frame of the documents of dumps.

    Evaluation is lazy: each action on the frame reads the dumps again, unless `cache()` is called.

    Args:
        spark: A Spark session, classic or Spark Connect.
        source: As in `convert`.
        typed: Make typed columns, as in `--format parquet`, instead of JSON.
        site_field: As in `convert`; not needed for typed columns, which always include `Site`.
        site: As in `convert`.
        on_error: Treatment of a damaged dump. `stop`: actions on the data frame fail. `skip`: the
            dump's questions are left out, and the error is written to the Spark log. If None:
            `skip` if `spark.sql.files.ignoreCorruptFiles` is set, and `stop` otherwise.
        keywords: As in `convert`, except the keywords for output files.

    Returns:
        `Site` (string), `Id` (long) and `Document` (the JSON of the question with its answers),
        unordered; or, with `typed`, the columns of `--format parquet` and `Site`.

    Raises:
        OptionError: An option has a value that is not allowed. Errors of a dump are raised by
            Spark, with the message of `convert`, when the frame is used.
    """
    from so2docs.spark.data_source import Questions, to_texts

    kwargs = validate_keywords(keywords, "documents")
    jobs.columns(_make_options(kwargs), typed=typed)
    settings = {
        "typed": typed,
        "site_field": site_field,
        "site": site,
        "on_error": on_error and sites.check_on_error(on_error),
        "ignoreCorruptFiles": spark.conf.get("spark.sql.files.ignoreCorruptFiles", "false"),
    }
    spark.dataSource.register(Questions)
    reader = spark.read.format(Questions.name()).options(**to_texts({**kwargs, **settings}))
    return reader.load(sites.patterns(source))


def _make_options(kwargs: Mapping[str, Any]) -> Options:
    form = output_form(f"part{output_suffix(kwargs)}", kwargs)
    # Let each executor choose between the compiled core and the Python core.
    return build_options(kwargs, form, core=kwargs.get("core", "auto"))


def _convert_sites(
    spark: SparkSession,
    sizes: Mapping[Site, int],
    task: Callable[[Site], Report],
) -> dict[Site, Report | So2docsError]:
    """Convert sites in two Spark jobs, one for large and one for small sites.

    Sites that fail because of an executor are tried once more.

    Returns:
        The report or the error of each site.
    """
    profile = _make_profile(spark)
    ordered = sites.by_size(sizes.items())
    large = [site for site in ordered if profile and sizes[site] > LARGE_BYTES]
    groups = [(large, profile), ([site for site in ordered if site not in large], None)]
    results: dict[Site, Report | So2docsError] = {}
    with ThreadPoolExecutor(len(groups)) as threads:
        jobs = [threads.submit(_run_job, spark, task, *group) for group in groups]
        for job in jobs:
            results |= job.result()
    # Retry these sites, because another executor may have the disk space, memory or network that
    # the first one lacked.
    again = [site for site, result in results.items() if isinstance(result, _TRANSIENT)]
    return results | _run_job(spark, task, again, None)


def _run_job(
    spark: SparkSession,
    task: Callable[[Site], Report],
    group: Sequence[Site],
    profile: Any,
) -> dict[Site, Report | So2docsError]:
    """Run a task for each site in one Spark job; return the report or error of each site.

    If a dead worker ends the job, each site is run again in its own job.
    """
    try:
        return dict(zip(group, run(spark, task, group, profile=profile), strict=True))
    except ClusterError as error:
        if len(group) == 1:
            return {group[0]: error}

    def run_alone(site: Site) -> Report | So2docsError:
        # If the job already finished the site, the task only reads the report.
        return _run_job(spark, task, [site], profile)[site]

    with ThreadPoolExecutor(_THREADS) as threads:
        return dict(zip(group, threads.map(run_alone, group), strict=True))


def _make_profile(spark: SparkSession) -> Any:
    """Make a resource profile that gives a task all cores of an executor; None if unsupported."""
    cores = int(spark.conf.get("spark.executor.cores", "0") or 0)
    task_cores = int(spark.conf.get("spark.task.cpus", "1") or 1)
    # In local mode, Spark rejects profiles.
    if cores <= task_cores or str(spark.conf.get("spark.master", "")).startswith("local"):
        return None
    from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests

    return ResourceProfileBuilder().require(TaskResourceRequests().cpus(cores)).build
