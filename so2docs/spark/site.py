"""A site a task, in an executor: `so2docs.convert` into part files, or its documents.

One task of Spark's reads a dump in whatever form it comes, with as many worker processes as Spark
counts cores for it (`spark.task.cpus`; one process and no others for one core). What is kept
between the passes stands on the disk of the executor, so that memory does not grow with the dump.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from so2docs.conversion import convert, nested, options_for
from so2docs.errors import DumpError
from so2docs.options.output_form import ending
from so2docs.output.paths import Names
from so2docs.report import Report
from so2docs.sources import storage
from so2docs.spark import folders, rows
from so2docs.spark.jobs import cores
from so2docs.spark.plan import PlannedSite

_STEM = folders.PART.rstrip("-")


@dataclass(frozen=True, slots=True)
class SiteTask:
    """A site to convert.

    Attributes:
        site: The site.
        keywords: Those of `so2docs.convert`, with the size to split files by.
        has_site: Whether each question gets an attribute `Site`.
    """

    site: PlannedSite
    keywords: Mapping[str, Any]
    has_site: bool


def convert_site(task: SiteTask) -> Report:
    """Convert a dump into part files in the folder of its site, and mark that as finished.

    Raises:
        So2docsError: As `so2docs.convert` does.
    """
    site, keywords = task.site, task.keywords
    end = ending(keywords.get("format"), keywords.get("compression"))
    with folders.draft(site.folder) as draft, folders.temporary_folder() as work_dir:
        try:
            report = convert(
                site.path,
                os.path.join(draft, f"{_STEM}{end}"),
                site_field=("Site", site.name) if task.has_site else None,
                jobs=cores(),
                work_dir=work_dir,
                **keywords,
            )
        except DumpError as error:
            folders.save_excerpt(site.folder, error)
            raise
        made = _made(draft, report)
        folders.publish(site.folder, made)
    folders.finish(site.folder, set(made))
    report.output, report.first_file, report.last_file = site.folder, None, None
    if report.strays_path is not None:
        report.strays_path = storage.join(site.folder, report.strays_path)
    return report


def _made(draft: str, report: Report) -> dict[str, str]:
    """The files to publish, by their names; the side file gets one that is not data to readers."""
    made = {}
    for name in sorted(os.listdir(draft)):
        if name.startswith(folders.PART) and report.questions:
            made[name] = os.path.join(draft, name)
    if not report.questions:
        report.files = report.output_bytes = 0
    if report.strays_path is not None:
        name = f"{folders.STRAYS}-00000"
        made[name] = report.strays_path
        report.strays_path = name
    return made


def document_batches(
    site: PlannedSite, keywords: Mapping[str, Any], *, schema: bool, has_site: bool
) -> Iterator[Any]:
    """The documents of a dump in Arrow batches, as `rows.batches` makes them.

    Args:
        site: The site.
        keywords: Those of `so2docs.documents`.
        schema: Whether documents are in columns, or JSON.
        has_site: Whether each has an attribute `Site`, which columns always have.

    Raises:
        So2docsError: As `so2docs.documents` does.
    """
    site_field = ("Site", site.name) if has_site or schema else None
    options = options_for(site.path, {**keywords, "jobs": cores()}, None, site_field)
    with (
        folders.temporary_folder() as work_dir,
        nested(site.path, Names("-", work_dir), options, {}) as session,
    ):
        documents = (document for some in session.documents() for document in some)
        yield from rows.batches(site.name, documents, options, schema=schema)
