"""Find and name dumps, and convert one dump in a Spark task.

For `convert`, executors inspect the dumps, because they are the ones that read them. The data
source inspects them when Spark plans a query.

A task reads a dump in any form, with one worker process for each core of the task
(`spark.task.cpus`, or a resource profile). The spill is on the disk of the executor, so memory does
not grow with the dump.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from so2docs.api.convert import (
    convert_validated,
    describe_request,
    document_session,
    options_for,
)
from so2docs.dump import storage
from so2docs.dump.dump import open_dump
from so2docs.dump.opening import Catalog, file_in_folder
from so2docs.dump.tables import find_tables
from so2docs.errors import ClusterError, DumpError, OptionError, So2docsError, flag, without_secrets
from so2docs.options.output_form import output_form, output_suffix
from so2docs.options.request import build_run_options
from so2docs.options.sites import host, stem, without_date
from so2docs.options.table import Options
from so2docs.output.product import read_provenance
from so2docs.output.provenance import UP_TO_DATE
from so2docs.report import Report
from so2docs.schema import POSTS
from so2docs.spark import folders, jobs

Dumps = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

Run = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
"""Function that applies a function to each task; returns the result or `So2docsError` of each."""

Result = TypeVar("Result")

_STEM = folders.PART.rstrip("-")
_SLASH = re.compile("/")
_HADOOP = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/(?!/)")


@dataclass(frozen=True, slots=True)
class Site:
    """A dump to convert.

    Attributes:
        name: Name of the site.
        path: Path or URL of the dump.
        folder: Folder for the output files; empty for a data frame.
    """

    name: str
    path: str
    folder: str = ""


Size = int | None
"""Approximate size in bytes of a site's posts and tables; None if the site is finished."""

IsFinished = Callable[[Site], bool]
"""Function that tells whether a site's finished folder is up to date."""


def find(patterns: Sequence[str], run: Run, folder: str = "") -> list[Site]:
    """Find the dumps that match paths and patterns, and name each site.

    Args:
        patterns: Paths and patterns.
        run: Function that runs `find_dumps` where the dumps can be read.
        folder: Parent of the folders of the sites; empty for a data frame.
    """
    paths: dict[str, None] = {}
    for matches in run(find_dumps, patterns):
        if isinstance(matches, So2docsError):
            raise matches
        paths |= dict.fromkeys(matches)
    parts = [name.split("/") for name in names(list(paths))]
    return [
        Site("/".join(components), path, storage.join(folder, *components) if folder else "")
        for components, path in zip(parts, paths, strict=True)
    ]


def patterns(source: Dumps) -> list[str]:
    """Return the paths and patterns in `source` as absolute paths or URLs.

    Raises:
        OptionError: The list is empty.
    """
    several = [source] if isinstance(source, str | os.PathLike) else list(source)
    if not several:
        raise OptionError("no dump is given; give a path or a pattern")
    return [locate(pattern) for pattern in several]


def locate(path: str | os.PathLike[str]) -> str:
    """Return an absolute path or a URL, which is valid in any process.

    In a URL without a host, Hadoop writes one slash (`file:/x`), and fsspec needs three.
    """
    name = _HADOOP.sub(r"\1:///", os.fspath(path), count=1)
    return name if storage.is_url(name) else os.path.abspath(name)


def is_several(source: Dumps) -> bool:
    """Whether a source may match several dumps."""
    return not isinstance(source, str | os.PathLike) or storage.is_pattern(os.fspath(source))


def check_on_error(value: str) -> str:
    """Return the value of `on_error`; raise `OptionError` if it is not allowed."""
    if value not in ("stop", "skip"):
        raise OptionError(f"{flag('on_error')} is {value!r}; it must be 'stop' or 'skip'")
    return value


def find_dumps(pattern: str) -> list[str]:
    """Return the paths of the dumps that match a path or a pattern; `DumpError` if none match."""
    paths = storage.expand_pattern(pattern)
    if not paths:
        raise DumpError(
            pattern, "matches no file", advice="quote the pattern, and check its folder"
        )
    return paths


def names(dumps: Sequence[str]) -> list[str]:
    """Name each dump as `site_from_name` does.

    Dumps that would share a name, such as several dates of one site, keep the dates in their names,
    and are distinguished by as many parent folders as necessary. Names are also folders of the
    output, so no name may be a parent of another.

    Raises:
        OptionError: Two dumps cannot be distinguished.
    """
    places = [_place(path) for path in dumps]
    bare_names = Counter(without_date(parts[-1]) for parts in places)
    for parts in places:
        if bare_names[bare := without_date(parts[-1])] == 1:
            parts[-1] = bare
    counts = Counter(parts[-1] for parts in places)
    for depth in range(1, max(map(len, places)) + 1):
        names_ = ["/".join(parts[-(depth if counts[parts[-1]] > 1 else 1) :]) for parts in places]
        above = {name[: slash.start()] for name in names_ for slash in _SLASH.finditer(name)}
        if len(set(names_)) == len(names_) and above.isdisjoint(names_):
            return names_
    shared = next(name for name in names_ if names_.count(name) > 1 or name in above)
    first, second, *_ = (
        dump
        for dump, name in zip(dumps, names_, strict=True)
        if f"{name}/".startswith(f"{shared}/")
    )
    raise OptionError(
        f"{first} and {second} have the same name; convert them one by one, into different folders"
    )


def _place(path: str) -> list[str]:
    """Split the path of a dump into its folders and its name, without extensions or `Posts`."""
    name = (
        without_secrets(path).partition("://")[2] if storage.is_url(path) else os.path.abspath(path)
    )
    *above, file = name.strip("/" + os.sep).replace(os.sep, "/").split("/")
    parts = [*above, stem(file)]
    return [part for part in parts if part not in ("", ".", "..")] or ["posts"]


def inspect(
    site: Site, *, nest: tuple[str, ...] = (), is_finished: IsFinished | None = None
) -> Size:
    """Check the folder and the dump of a site, and return the size of the dump.

    The start and the end of an uncompressed dump are checked; for a compressed one, only the file
    type is detected.
    """
    present = folders.list_names(site.folder) if site.folder else []
    if folders.SUCCESS in present and is_finished is not None and is_finished(site):
        return None
    try:
        posts = file_in_folder(site.path, POSTS) if os.path.isdir(site.path) else site.path
        with Catalog() as catalog:
            facts = catalog.look(posts)
            # Call `open_dump` for a pipe too: it raises the error for sources that are not files.
            dump = open_dump(posts) if facts.is_plain or not facts.is_file else None
            tables = find_tables(site.path, nest, {}, catalog)
    except DumpError as error:
        folders.save_excerpt(site.folder, error)
        raise
    size = dump.size if dump else facts.expected
    return size + sum(table.size for table in tables.values())


def is_up_to_date(
    site: Site, *, keywords: Mapping[str, Any], site_field: str | None, update: bool
) -> bool:
    """Whether the finished folder of a site was made from this dump with these options.

    Args:
        site: The site.
        keywords: The keywords of the conversion.
        site_field: Name of the field that holds the site name; None without such a field.
        update: Return False for a folder that is not up to date, instead of raising an error.

    Raises:
        ExistingOutputError: The folder was made from another dump or with other options, and
            `update` is false.
    """
    form = output_form(f"{_STEM}{output_suffix(keywords)}", keywords)
    options = options_for(site.path, keywords, form, _make_field(site, site_field))
    folder = folders.SiteFolder(site.folder, describe_request(site.path, options))
    comparison = folder.compare()
    if comparison.state == UP_TO_DATE:
        return True
    if not update:
        folder.refuse(comparison)
    return False


def _make_field(site: Site, name: str | None) -> tuple[str, str] | None:
    return None if name is None else (name, site.name)


def raise_or_note(
    results: Iterable[tuple[Site, Result | So2docsError]],
    failures: dict[str, So2docsError] | None = None,
) -> Iterator[tuple[Site, Result]]:
    """Yield the sites that have a result; collect the errors of the other sites in `failures`.

    Raises:
        So2docsError: A site failed, and `failures` is None or the error is an `OptionError`.
    """
    for site, result in list(results):
        if not isinstance(result, So2docsError):
            yield site, result
            continue
        if isinstance(result, DumpError) and site.folder and result.excerpt is not None:
            result.excerpt_path = storage.join(site.folder, folders.ERROR)
        if failures is None or isinstance(result, OptionError):
            raise result
        failures[site.name] = result


def check_host(site: Site, options: Options) -> None:
    """Raise `OptionError` if attribution needs a site's host name, but it cannot be derived."""
    if not options.is_attributed:
        return
    try:
        host(site.path, options.host)
    except OptionError as error:
        raise OptionError(
            f"{site.path}: the host name of its site cannot be derived; put the dump into a "
            "folder of "
            "that name, such as beer.stackexchange.com/Posts.xml"
        ) from error


def by_size(sites: Iterable[tuple[Site, Size]]) -> list[Site]:
    """Return the sites sorted by size, the largest first, so that no long task starts late."""
    return [site for site, _ in sorted(sites, key=lambda entry: -(entry[1] or 0))]


def convert_site(
    site: Site, *, run: str, keywords: Mapping[str, Any], site_field: str | None
) -> Report:
    """Convert a dump into part files in the folder of its site, and mark the folder as finished.

    Raises:
        So2docsError: As in `so2docs.convert`; the drafts of this attempt have been removed.
    """
    if (finished_report := folders.read_report(site.folder, run)) is not None:
        # An earlier attempt finished the site, but its result was lost.
        return Report.from_dict(finished_report)
    end = output_suffix(keywords)
    try:
        with folders.draft(site.folder, run) as draft, folders.temporary_folder() as work_dir:
            report = convert_validated(
                site.path,
                os.path.join(draft, f"{_STEM}{end}"),
                {**keywords, "jobs": _count_cores(), "work_dir": work_dir},
                _make_field(site, site_field),
            )
            record = read_provenance(report.first_file or report.output)
            files = folders.publish(site.folder, run, draft, report)
        report.output, report.first_file, report.last_file = site.folder, None, None
        if report.strays_path is not None:
            report.strays_path = storage.join(site.folder, report.strays_path)
        folders.finish(site.folder, run, files, report.as_dict(), record)
    except So2docsError as error:
        folders.clear(site.folder, run, error)
        raise
    except OSError as error:
        failure = ClusterError(f"{site.folder}: the executor failed: {error}")
        folders.clear(site.folder, run, failure)
        raise failure from error
    return report


def document_batches(
    site: Site, *, keywords: Mapping[str, Any], typed: bool, site_field: str | None
) -> Iterator[Any]:
    """Convert a dump, and yield its documents in Arrow batches, as `jobs.batches` does.

    Raises:
        So2docsError: As in `so2docs.documents`.
    """
    options = options_for(site.path, keywords, None, _make_field(site, site_field))
    with (
        folders.temporary_folder() as work_dir,
        document_session(
            site.path,
            options,
            build_run_options({**keywords, "jobs": _count_cores(), "work_dir": work_dir}),
        ) as session,
    ):
        documents = (document for batch in session.documents() for document in batch)
        yield from jobs.batches(site.name, documents, options, typed=typed)


def _count_cores() -> int:
    """Return the number of cores that Spark assigns to this task; 1 outside a task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 1 if context is None else context.cpus()
