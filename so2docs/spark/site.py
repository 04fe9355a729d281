"""A site a task, in an executor: `so2docs.convert` into part files, or its documents.

One task of Spark's reads a dump in whatever form it comes, with as many worker processes as Spark
counts cores for it (`spark.task.cpus`; one process and no others for one core). What is kept
between the passes stands on the disk of the executor, so that memory does not grow with the dump.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from so2docs.conversion import convert, nested, options_for
from so2docs.errors import DumpError
from so2docs.options.output_form import ending
from so2docs.output.paths import Names
from so2docs.report import Report
from so2docs.sources import storage
from so2docs.spark import folders, rows
from so2docs.spark.sites import Site

_STEM = folders.PART.rstrip("-")


def convert_site(site: Site, *, keywords: Mapping[str, Any], has_site: bool) -> Report:
    """Convert a dump into part files in the folder of its site, and mark that as finished."""
    end = ending(keywords.get("format"), keywords.get("compression"))
    with folders.draft(site.folder) as draft, folders.temporary_folder() as work_dir:
        try:
            report = convert(
                site.path,
                os.path.join(draft, f"{_STEM}{end}"),
                site_field=("Site", site.name) if has_site else None,
                jobs=_cores(),
                work_dir=work_dir,
                **keywords,
            )
        except DumpError as error:
            folders.save_excerpt(site.folder, error)
            raise
        names = folders.publish(site.folder, draft, report)
    folders.finish(site.folder, names)
    report.output, report.first_file, report.last_file = site.folder, None, None
    if report.strays_path is not None:
        report.strays_path = storage.join(site.folder, report.strays_path)
    return report


def document_batches(
    site: Site, *, keywords: Mapping[str, Any], schema: bool, has_site: bool
) -> Iterator[Any]:
    """The documents of a dump in Arrow batches, as `rows.batches` makes them."""
    site_field = ("Site", site.name) if has_site or schema else None
    options = options_for(site.path, {**keywords, "jobs": _cores()}, None, site_field)
    with (
        folders.temporary_folder() as work_dir,
        nested(site.path, Names("-", work_dir), options, {}) as session,
    ):
        documents = (document for some in session.documents() for document in some)
        yield from rows.batches(site.name, documents, options, schema=schema)


def _cores() -> int:
    """Cores that Spark counts for this task: `spark.task.cpus`."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 1 if context is None else context.cpus()
