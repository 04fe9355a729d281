"""What a Spark task does with a dump: convert it into part files, or yield its documents.

A task reads a dump in whatever form it comes, with as many worker processes as Spark counts cores
for it (`spark.task.cpus`, or those of a resource profile). What is kept between the passes is on
the disk of the executor, so that memory does not grow with the dump.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from so2docs.api.convert import convert_validated, document_session, options_for
from so2docs.dump import storage
from so2docs.errors import ClusterError, So2docsError
from so2docs.options.output_form import output_suffix
from so2docs.options.request import build_run_options
from so2docs.options.table import RunOptions
from so2docs.report import Report
from so2docs.spark import folders, rows
from so2docs.spark.sites import Site

_STEM = folders.PART.rstrip("-")


def convert_site(
    site: Site, *, run: str, keywords: Mapping[str, Any], site_field: str | None
) -> Report:
    """Convert a dump into part files in the folder of its site, and mark that as finished.

    Raises:
        So2docsError: As `so2docs.convert`; nothing of this attempt is left in the folder then.
    """
    if (finished_report := folders.read_report(site.folder, run)) is not None:
        return Report.from_dict(finished_report)  # By an earlier attempt, whose result was lost.
    end = output_suffix(keywords)
    try:
        with folders.draft(site.folder) as draft, folders.temporary_folder() as work_dir:
            report = convert_validated(
                site.path,
                os.path.join(draft, f"{_STEM}{end}"),
                {**keywords, "jobs": _count_cores(), "work_dir": work_dir},
                None if site_field is None else (site_field, site.name),
            )
            files = folders.publish(site.folder, run, draft, report)
        report.output, report.first_file, report.last_file = site.folder, None, None
        if report.strays_path is not None:
            report.strays_path = storage.join(site.folder, report.strays_path)
        folders.finish(site.folder, run, files, report.as_dict())
    except So2docsError as error:
        folders.clear(site.folder, error)
        raise
    except OSError as error:
        failure = ClusterError(f"{site.folder}: the executor failed: {error}")
        folders.clear(site.folder, failure)
        raise failure from error
    return report


def document_batches(
    site: Site, *, keywords: Mapping[str, Any], typed: bool, site_field: str | None
) -> Iterator[Any]:
    """The documents of a dump in Arrow batches, as `rows.batches` makes them.

    Raises:
        So2docsError: As `so2docs.documents`.
    """
    field = None if site_field is None else (site_field, site.name)
    options = options_for(site.path, keywords, None, field)
    with (
        folders.temporary_folder() as work_dir,
        document_session(
            site.path,
            options,
            build_run_options({**keywords, "jobs": _count_cores(), "work_dir": work_dir}),
        ) as session,
    ):
        documents = (document for some in session.documents() for document in some)
        yield from rows.batches(site.name, documents, options, typed=typed)


def _run_options(keywords: Mapping[str, Any], work_dir: str) -> RunOptions:
    return build_run_options({**keywords, "jobs": _count_cores(), "work_dir": work_dir})


def _count_cores() -> int:
    """Cores that Spark counts for this task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 1 if context is None else context.cpus()
