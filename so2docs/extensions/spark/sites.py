"""Find and name dumps, and convert one dump in a Spark task, with a process for each of its cores.

Executors inspect the dumps, because they are the ones that read them.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from so2docs.api.resolve import options_for
from so2docs.dump import storage
from so2docs.errors import explain
from so2docs.extensions.sites.tasks import Site
from so2docs.extensions.spark import folders
from so2docs.options.output_form import check_several, output_form, output_suffix
from so2docs.options.request import build_options, read_keywords
from so2docs.options.table import taken_by
from so2docs.plugin import (
    UP_TO_DATE,
    DumpError,
    OptionError,
    Provenance,
    Report,
    So2docsError,
    Source,
    checked_host,
    convert_validated,
    find_hook,
    flag,
)

Dumps = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_STEM = folders.PART.rstrip("-")
_HADOOP = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+:)/(?!/)")


def check_options(source: Dumps, **keywords: Any) -> dict[str, Any]:
    """Check the options of `convert` without a Spark session.

    Returns:
        The values of the options of `so2docs.convert`, by keyword.
    """
    kwargs = read_keywords(keywords, taken_by("documents", "files"))
    form = output_form(_name_output(kwargs), kwargs)
    build_options(kwargs, form, core=kwargs.get("core", "auto"))
    if (site := kwargs.get("site")) is not None:
        checked_host(site)
    if not isinstance(source, str | os.PathLike) or _is_pattern(os.fspath(source)):
        check_several(form, kwargs.get("site_field"))
        if site is not None:
            raise OptionError(f"{flag('site')} applies to one dump; convert one dump at a time")
    return kwargs


def _name_output(keywords: Mapping[str, Any]) -> str:
    return f"{_STEM}{output_suffix(keywords)}"


def locate_dumps(source: Dumps) -> list[str]:
    """Return the paths and patterns in `source` as absolute paths or URLs.

    Raises:
        OptionError: The list is empty.
    """
    several = [source] if isinstance(source, str | os.PathLike) else source
    if not several:
        raise OptionError("no dump is given; give a path or a pattern")
    return [locate(pattern) for pattern in several]


def locate(path: str | os.PathLike[str]) -> str:
    """Return an absolute path or a URL, which is valid in any process.

    In a URL without a host, Hadoop writes one slash (`file:/x`), and fsspec needs three.
    """
    name = os.fspath(path)
    match = _HADOOP.match(name)
    if match and not os.path.isdir(match[1]):  # A folder may be named `ab:`.
        name = f"{match[1]}//{name.removeprefix(match[1])}"
    return name if storage.is_url(name) else os.path.abspath(name)


def find_dumps(pattern: str) -> list[str]:
    """List the dumps that match a pattern, sorted; a path without wildcards matches itself.

    Raises:
        DumpError: No file matches.
    """
    if not _is_pattern(pattern):
        return [pattern]
    is_url = storage.is_url(pattern)
    paths = (
        find_hook("remote files").glob(pattern) if is_url else glob.glob(pattern, recursive=True)
    )
    if not paths:
        raise DumpError(
            pattern, "matches no file", advice="quote the pattern, and check its folder"
        )
    return sorted(paths)


def _is_pattern(path: str) -> bool:
    """Whether a path has wildcards; the query of a file on a web server has none."""
    return glob.has_magic(path) and not storage.is_http(path)


def prepare(
    site: Site, *, run: str, keywords: Mapping[str, Any], force: bool, update: bool
) -> int | None:
    """Check the options, the dump and the folder of a site, and assign the folder to a run.

    Returns:
        Approximate size in bytes of the posts and tables; None if the folder is up to date.

    Raises:
        ExistingOutputError: The folder was made from another dump or with other options, and
            neither `force` nor `update` is set.
    """
    with Source(site.path) as source:
        options = options_for(source, keywords, output_form(_name_output(keywords), keywords))
        files = source.find_to_convert(options.tables, {})
        record = Provenance.of(files, options)
        size = sum(file.size for file in files)
    product = folders.SiteFolder(site.output, record)
    if product.existing_files() and not force:
        comparison = product.compare()
        if comparison.state == UP_TO_DATE:
            folders.remove_leftovers(site.output)
            return None
        if not update:
            product.refuse(comparison)
    folders.begin(site.output, run)
    return size


def convert_site(site: Site, *, run: str, keywords: Mapping[str, Any]) -> Report:
    """Convert a dump into part files in the folder of its site, and mark the folder as finished."""
    # Another attempt may have finished the site before this one, or while this one ran.
    if (finished := folders.read_report(site.output, run)) is not None:
        return finished
    try:
        folders.check_run(site.output, run)
        with (
            folders.temporary_folder() as work_dir,
            folders.make_draft(site.output, work_dir) as draft,
            explain(),
        ):
            path = os.path.join(draft, _name_output(keywords))
            report = convert_validated(site.path, path, _run_here(keywords, work_dir))
            folders.finish(site.output, run, draft, report)
    except So2docsError as error:
        if (finished := folders.read_report(site.output, run)) is not None:
            return finished
        folders.check_run(site.output, run)
        if isinstance(error, DumpError):
            error.excerpt_path = None  # It was in the draft.
        raise
    return report


def _run_here(keywords: Mapping[str, Any], work_dir: str) -> dict[str, Any]:
    """Add the keywords that depend on the task; outside a task, there is one process."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return {**keywords, "jobs": context.cpus() if context else 1, "work_dir": work_dir}
