"""Find and name dumps, and convert one dump in a Spark task, with a process for each of its cores.

Executors inspect the dumps, because they are the ones that read them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from so2docs.api.convert import convert_validated
from so2docs.api.resolve import options_for
from so2docs.dump import storage
from so2docs.extensions.sites.tasks import plan_outputs
from so2docs.extensions.spark import folders
from so2docs.options.output_form import check_several, output_form, output_suffix
from so2docs.options.request import build_options, read_keywords
from so2docs.options.sites import checked_host
from so2docs.options.table import Options, OutputForm
from so2docs.plugin import (
    UP_TO_DATE,
    DumpError,
    OptionError,
    Provenance,
    Report,
    So2docsError,
    Source,
    flag,
)
from so2docs.store.disk import disk_errors

Dumps = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

Result = TypeVar("Result")

_STEM = folders.PART.rstrip("-")
_HADOOP = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+:)/(?!/)")


@dataclass(frozen=True, slots=True)
class Site:
    """A dump to convert.

    Attributes:
        name: Name of the site.
        path: Path or URL of the dump.
        folder: Folder for the output files; empty for a data frame.
        field: Name and value of a field to add to each document.
    """

    name: str
    path: str
    folder: str = ""
    field: tuple[str, str] | None = None


def plan(
    patterns: Sequence[str],
    run: Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]],
    folder: str = "",
    site_field: str | None = None,
    failures: dict[Site, So2docsError] | None = None,
    **request: Any,
) -> dict[Site, int | None]:
    """Find, name and inspect the dumps that match paths and patterns.

    Args:
        patterns: Paths and patterns.
        run: Function that runs tasks where the dumps can be read, as `jobs.run` does.
        folder: Parent of the folders of the sites; empty for a data frame.
        site_field: Name of a field to add to each document.
        failures: As in `raise_or_note`.
        request: Keywords of `inspect`, whose results are returned.
    """
    paths: dict[str, None] = {}
    for matches in run(find_dumps, patterns):
        if isinstance(matches, So2docsError):
            raise matches
        paths |= dict.fromkeys(matches)
    sites = [
        Site(name, path, output if folder else "", (site_field, name) if site_field else None)
        for path, name, output in plan_outputs(paths, folder, "")
    ]
    results = run(partial(inspect, **request), sites)
    return dict(raise_or_note(zip(sites, results, strict=True), failures))


def by_size(sizes: Mapping[Site, int | None]) -> list[Site]:
    """Sort sites by size, the largest first, so that no long task starts late."""
    return sorted(sizes, key=lambda site: -(sizes[site] or 0))


def patterns(source: Dumps) -> list[str]:
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


def check_options(
    source: Dumps,
    *,
    site_field: str | None = None,
    site: str | None = None,
    on_error: str = "stop",
    **keywords: Any,
) -> dict[str, Any]:
    """Check the options of `convert` without a Spark session.

    Returns:
        The values of the options of `so2docs.convert`, by keyword.
    """
    if on_error not in ("stop", "skip"):
        raise OptionError(f"{flag('on_error')} is {on_error!r}; it must be 'stop' or 'skip'")
    kwargs = read_keywords(keywords, "documents", "files")
    form = _part_form(kwargs)
    build_options(kwargs, form, core=kwargs.get("core", "auto"))
    if is_several(source):
        check_several(form, site_field)
    if site is None:
        return kwargs
    if is_several(source):
        raise OptionError(f"{flag('site')} applies to one dump; convert one dump at a time")
    checked_host(site)
    return {**kwargs, "site": site}


def is_several(source: Dumps) -> bool:
    """Return whether the source is a list or a pattern."""
    return not isinstance(source, str | os.PathLike) or storage.is_pattern(os.fspath(source))


def find_dumps(pattern: str) -> list[str]:
    """Return the paths of the dumps that match a path or a pattern; `DumpError` if none match."""
    if paths := storage.expand_pattern(pattern):
        return paths
    raise DumpError(pattern, "matches no file", advice="quote the pattern, and check its folder")


def inspect(
    site: Site, *, keywords: Mapping[str, Any], force: bool = False, update: bool = False
) -> int | None:
    """Check the options, the dump and the folder of a site, without reading all of the dump.

    Returns:
        Approximate size in bytes of the posts and tables; None if the folder is up to date.

    Raises:
        ExistingOutputError: The folder was made from another dump or with other options, and
            neither `force` nor `update` is set.
    """
    try:
        with Source(site.path) as source:
            options = _build_options(source, site, keywords)
            files = source.find_to_convert(options.tables, {})
            record = Provenance.of(files, options)
            size = sum(file.size for file in files)
    except DumpError as error:
        folders.save_excerpt(site.folder, error)
        raise
    product = folders.SiteFolder(site.folder, record)
    if site.folder and product.existing_files() and not force:
        comparison = product.compare()
        if comparison.state == UP_TO_DATE:
            folders.remove_leftovers(site.folder)
            return None
        if not update:
            product.refuse(comparison)
    return size


def _build_options(source: Source, site: Site, keywords: Mapping[str, Any]) -> Options:
    return options_for(source, keywords, _part_form(keywords), site.field)


def _part_form(keywords: Mapping[str, Any]) -> OutputForm:
    return output_form(f"{_STEM}{output_suffix(keywords)}", keywords)


def raise_or_note(
    results: Iterable[tuple[Site, Result | So2docsError]],
    failures: dict[Site, So2docsError] | None = None,
) -> Iterator[tuple[Site, Result]]:
    """Yield the sites that have a result; collect the errors of the other sites in `failures`.

    Raises:
        So2docsError: A site failed, and `failures` is None or the error is an `OptionError`.
    """
    for site, result in list(results):
        if not isinstance(result, So2docsError):
            yield site, result
        elif failures is None or isinstance(result, OptionError):
            raise result
        else:
            failures[site] = result


def convert_site(site: Site, *, run: str, keywords: Mapping[str, Any]) -> Report:
    """Convert a dump into part files in the folder of its site, and mark the folder as finished."""
    # Another attempt may have finished the site before this one, or while this one ran.
    if (finished := folders.read_report(site.folder, run)) is not None:
        return finished
    try:
        folders.check_run(site.folder, run)
        with (
            folders.temporary_folder() as work_dir,
            folders.make_draft(site.folder, work_dir) as draft,
            disk_errors(),
        ):
            path = os.path.join(draft, f"{_STEM}{output_suffix(keywords)}")
            report = convert_validated(site.path, path, _run_here(keywords, work_dir), site.field)
            folders.finish(site.folder, run, draft, report)
    except So2docsError as error:
        if (finished := folders.read_report(site.folder, run)) is not None:
            return finished
        folders.check_run(site.folder, run)
        if isinstance(error, DumpError):
            folders.save_excerpt(site.folder, error)
        raise
    return report


def _run_here(keywords: Mapping[str, Any], work_dir: str) -> dict[str, Any]:
    """Add the keywords that depend on the task; outside a task, there is one process."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return {**keywords, "jobs": context.cpus() if context else 1, "work_dir": work_dir}
