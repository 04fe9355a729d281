"""The public API of the conversion on Spark, to a folder for each site."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, Unpack

from so2docs.errors import ClusterError, DiskFullError, WorkerDiedError
from so2docs.extensions.sites.tasks import SiteResult, SiteState
from so2docs.extensions.spark import folders, sites, stores
from so2docs.extensions.spark.jobs import run
from so2docs.extensions.spark.sites import Dumps, Site, convert_site, raise_or_note
from so2docs.options.keywords import FileKeywords
from so2docs.options.split import Split
from so2docs.plugin import UP_TO_DATE, Report, So2docsError, without_secrets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


PART_BYTES = 128_000_000
"""Maximum bytes of a part file; they are limited because Spark reads a compressed file in one
task."""

LARGE_BYTES = 1_000_000_000
"""Size in bytes above which the task for a dump gets all cores of an executor, if the cluster
supports this. For 1 GB on two cores, one task with both cores took 8.4 s; splitting the dump among
several tasks took 21.3 s."""

_TRANSIENT = (ClusterError, DiskFullError, WorkerDiedError)
"""Errors caused by an executor rather than by a dump, so that another attempt may succeed."""

_GONE = (
    "is gone: no dump of this run has its name; if it was closed or renamed, remove its folder, "
    "because readers of all folders read it too"
)

_THREADS = 8
"""Maximum number of simultaneous Spark jobs, if each site has its own job."""


def convert(
    spark: SparkSession,
    source: Dumps,
    output_dir: str | os.PathLike[str],
    *,
    site_field: str | None = None,
    site: str | None = None,
    force: bool = False,
    update: bool = False,
    on_error: Literal["stop", "skip"] = "stop",
    **keywords: Unpack[FileKeywords],
) -> list[SiteResult]:
    """Convert dumps on Spark, each to a folder of part files.

    The part files of a folder, concatenated, hold the lines that `so2docs.convert` writes. Sites
    that are finished and up to date are left unchanged, so repeating the call after an interruption
    converts only the other sites.

    Args:
        spark: A Spark session, classic or Spark Connect.
        source: Path or URL of a dump in any form that `so2docs.convert` accepts as a path, a
            pattern, or a list of these. Every executor must be able to read them, from a shared
            disk or an object store with an fsspec driver.
        output_dir: Path or URL of a folder that gets a folder for each site, with
            `part-00000.jsonl.gz` and so on, in ascending order of question id, and `_SUCCESS`.
        site_field: Name of a field to add to each document; its value is the site name.
        site: Host name of the site, for attribution; only for a single dump. If None, the name of
            the archive or folder.
        force: Reconvert finished sites.
        update: Reconvert finished sites if their dump or options differ.
        on_error: Action for a site that cannot be converted. `stop`: raise the error; most errors
            are raised after the other dumps are converted. `skip`: leave out the site; its result
            has the error.
        keywords: Keywords of `so2docs.convert`, applied to each dump; with `format`, each part file
            is a complete file.

    Returns:
        The result of each site, sorted by site. The state is `converted`, `up to date`, `failed`,
        or, if `source` is a pattern or a list, `gone`: an earlier run finished the site, and this
        run has no dump of it. The peak memory in a `Report` is that of a task: a Python worker and
        its child processes, without the JVM heap of the executor.

    Raises:
        OptionError: An option has a value that is not allowed.
        DumpError: As in `so2docs.convert`.
        OutputError: The folder of a site was made from another dump or with other options
            (without `update` or `force`), cannot be written, holds other files, or another run
            writes to it.
        DiskFullError: The disk of an executor is full.
        ClusterError: A Spark job failed.
    """
    kwargs = sites.check_options(
        source, site_field=site_field, site=site, on_error=on_error, **keywords
    )
    failures: dict[Site, So2docsError] | None = {} if on_error == "skip" else None
    kwargs["split"] = Split(size=PART_BYTES)
    folder = sites.locate(output_dir)
    sizes = sites.plan(
        sites.patterns(source),
        partial(run, spark),
        folder,
        site_field,
        failures,
        keywords=kwargs,
        force=force,
        update=update,
    )
    results = [_result(s, UP_TO_DATE) for s, size in sizes.items() if size is None]
    pending = {s: size for s, size in sizes.items() if size is not None}
    if sites.is_several(source):
        results += _find_gone(spark, folder, [*sizes, *(failures or {})])
    run_id = uuid.uuid4().hex
    begun = run(spark, folders.begin, [(s.folder, run_id) for s in pending])
    pending = {s: pending[s] for s, _ in raise_or_note(zip(pending, begun, strict=True), failures)}
    reports = _convert_sites(spark, pending, partial(convert_site, run=run_id, keywords=kwargs))
    converted = raise_or_note(((s, reports[s]) for s in pending), failures)
    results += [_result(s, "converted", report) for s, report in converted]
    results += [_result(s, "failed", error=error) for s, error in (failures or {}).items()]
    return sorted(results, key=attrgetter("site"))


def _result(
    site: Site, state: SiteState, report: Report | None = None, error: Exception | None = None
) -> SiteResult:
    return SiteResult(site.name, site.folder, state, report, error, without_secrets(site.path))


def _find_gone(spark: SparkSession, folder: str, found: Sequence[Site]) -> list[SiteResult]:
    """Return a result for each finished site in the output folder without a dump in this run."""
    task = partial(folders.find_finished, names={site.name for site in found})
    [names] = run(spark, task, [folder])
    if isinstance(names, So2docsError):
        raise names
    return [SiteResult(name, stores.join(folder, name), "gone", note=_GONE) for name in names]


def _convert_sites(
    spark: SparkSession,
    sizes: Mapping[Site, int],
    task: Callable[[Site], Report],
) -> dict[Site, Report | So2docsError]:
    """Convert sites in two Spark jobs, one for large and one for small sites.

    Returns:
        The report or the error of each site.
    """
    profile = _make_profile(spark)
    ordered = sites.by_size(sizes)
    large = [site for site in ordered if profile and sizes[site] > LARGE_BYTES]
    small = [site for site in ordered if site not in large]
    run_group = partial(_run_group, spark, task)
    with ThreadPoolExecutor(2) as threads:
        of_large = threads.submit(run_group, large, profile)
        return run_group(small, None) | of_large.result()


def _run_group(
    spark: SparkSession, task: Callable[[Site], Report], group: Sequence[Site], profile: Any
) -> dict[Site, Report | So2docsError]:
    """Run a task for each site in one Spark job; then run sites that an executor failed, alone."""

    def run_together(sites: Sequence[Site]) -> list[Report | So2docsError]:
        try:
            return run(spark, task, sites, profile=profile)
        except ClusterError as error:
            return [error] * len(sites)

    results = dict(zip(group, run_together(group), strict=True))
    # Another executor may have the disk space, memory or network that the first one lacked. If the
    # job finished a site before a dead worker ended it, the task only reads the report.
    again = [site for site, result in results.items() if isinstance(result, _TRANSIENT)]
    with ThreadPoolExecutor(_THREADS) as threads:
        retried = threads.map(lambda site: run_together([site])[0], again)
        return results | dict(zip(again, retried, strict=True))


def _make_profile(spark: SparkSession) -> Any:
    """Make a resource profile that gives a task all cores of an executor; None if unsupported."""
    cores = int(spark.conf.get("spark.executor.cores", "0") or 0)
    task_cores = int(spark.conf.get("spark.task.cpus", "1") or 1)
    # In local mode, Spark rejects profiles.
    if cores <= task_cores or str(spark.conf.get("spark.master", "")).startswith("local"):
        return None
    from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests

    return ResourceProfileBuilder().require(TaskResourceRequests().cpus(cores)).build
