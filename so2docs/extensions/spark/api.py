"""The public API of the conversion on Spark, to a folder for each site."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Unpack

from so2docs.errors import ClusterError, DiskFullError, WorkerDiedError
from so2docs.extensions.sites.tasks import Site, SiteResult, SiteState, plan_outputs
from so2docs.extensions.spark.jobs import run
from so2docs.extensions.spark.sites import (
    Dumps,
    check_options,
    convert_site,
    find_dumps,
    locate,
    locate_dumps,
    prepare,
)
from so2docs.options.keywords import FileKeywords
from so2docs.options.split import Split
from so2docs.plugin import (
    UP_TO_DATE,
    ExistingOutputError,
    OptionError,
    Report,
    So2docsError,
    without_secrets,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PART_BYTES = 128_000_000
"""Maximum bytes of a part file; they are limited because Spark reads a compressed file in one
task."""

_TRANSIENT = (ClusterError, DiskFullError, WorkerDiedError)
"""Errors caused by an executor rather than by a dump, so that another attempt may succeed."""

_THREADS = 8
"""Maximum number of simultaneous Spark jobs of one site each."""


def convert(
    spark: SparkSession,
    source: Dumps,
    output_dir: str | os.PathLike[str],
    *,
    force: bool = False,
    update: bool = False,
    **keywords: Unpack[FileKeywords],
) -> list[SiteResult]:
    """Convert dumps on Spark, each to a folder of part files, and continue if one of them fails.

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
        force: Reconvert finished sites.
        update: Reconvert finished sites if their dump or options differ.
        keywords: Keywords of `so2docs.convert`, applied to each dump; with `format`, each part file
            is a complete file.

    Returns:
        The result of each site, sorted by site. The state is `converted`, `up to date` or
        `failed`; a result that failed has the error. The peak memory in a `Report` is that of a
        task: a Python worker and its child processes, without the JVM heap of the executor.

    Raises:
        OptionError: An option has a value that is not allowed.
        DumpError: A path or pattern matches no dump.
        ClusterError: Spark cannot look for the dumps.
    """
    kwargs = {**check_options(source, **keywords), "split": Split(size=PART_BYTES)}
    paths = list[str]()
    for matches in run(spark, find_dumps, locate_dumps(source)):
        if isinstance(matches, So2docsError):
            raise matches
        paths += matches
    sites = plan_outputs(paths, locate(output_dir), "")
    run_id = uuid.uuid4().hex
    task = partial(prepare, run=run_id, keywords=kwargs, force=force, update=update)
    outcomes: dict[Site, Any] = dict(zip(sites, run(spark, task, sites), strict=True))
    for outcome in outcomes.values():
        if isinstance(outcome, OptionError):
            raise outcome
    sizes = {site: size for site, size in outcomes.items() if isinstance(size, int)}
    # The largest first, so that no long task starts late.
    pending = sorted(sizes, key=lambda site: -sizes[site])
    outcomes |= _convert_sites(spark, pending, partial(convert_site, run=run_id, keywords=kwargs))
    results = [_result(site, outcome) for site, outcome in outcomes.items()]
    return sorted(results, key=attrgetter("site"))


def _result(site: Site, outcome: Report | So2docsError | None) -> SiteResult:
    source = without_secrets(site.path)
    if isinstance(outcome, So2docsError):
        state: SiteState = outcome.state if isinstance(outcome, ExistingOutputError) else "failed"
        return SiteResult(site.name, site.output, state, None, outcome, source)
    state = UP_TO_DATE if outcome is None else "converted"
    return SiteResult(site.name, site.output, state, outcome, source=source)


def _convert_sites(
    spark: SparkSession, sites: Sequence[Site], task: Callable[[Site], Report]
) -> dict[Site, Report | So2docsError]:
    """Run a task for each site in one Spark job; then run sites that an executor failed, alone."""

    def run_together(sites: Sequence[Site]) -> list[Report | So2docsError]:
        try:
            return run(spark, task, sites)
        except ClusterError as error:
            return [error] * len(sites)

    results = dict(zip(sites, run_together(sites), strict=True))
    # Another executor may have the disk space, memory or network that the first one lacked. If the
    # job finished a site before a dead worker ended it, the task only reads the report.
    again = [site for site, result in results.items() if isinstance(result, _TRANSIENT)]
    with ThreadPoolExecutor(_THREADS) as threads:
        retried = threads.map(lambda site: run_together([site])[0], again)
        return results | dict(zip(again, retried, strict=True))
