"""Process folders: apply a function for one output or dump to each site.

An error in one site does not stop the processing of other sites. Files that are up to date stay
unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

from so2docs.dump.source import Source
from so2docs.dump.storage import unreadable_output
from so2docs.errors import (
    OptionError,
    OutputError,
    So2docsError,
)
from so2docs.extensions.changes.diff import Changes, ChangesFile, diff
from so2docs.extensions.inspection.inspect import inspect, locate_all
from so2docs.extensions.inspection.output import inspect_output
from so2docs.extensions.options import ComparisonOptions, ReplaceOptions
from so2docs.extensions.sites.batch import failures_in
from so2docs.extensions.sites.outputs import (
    check_holds_outputs,
    is_folder_of_outputs,
    outputs_in,
    readable,
)
from so2docs.extensions.sites.tasks import (
    Done,
    SiteResult,
    SiteState,
    SiteTask,
    WhenDone,
    dump_tasks,
    input_size,
    plan_outputs,
    run_sites,
)
from so2docs.extensions.sqlite.build import find_database, to_sqlite
from so2docs.extensions.tables.tables import tables
from so2docs.options.request import read_options
from so2docs.options.sites import site_from_name, without_date
from so2docs.options.table import options_of
from so2docs.output.new_files import open_folder
from so2docs.output.paths import OutputPaths
from so2docs.output.product import Product
from so2docs.output.provenance import UP_TO_DATE
from so2docs.progress import Shown
from so2docs.reader.reading import is_output, read_start

PathLike = str | os.PathLike[str]


def for_each_site(
    function: Callable[..., Any],
    sources: Any,
    folder: PathLike | None = None,
    *,
    jobs: int | None = None,
    progress: Shown = False,
    when_done: WhenDone | None = None,
    **keywords: Any,
) -> list[SiteResult]:
    """Run a function of so2docs on each of several sites, and continue if one fails.

    For several dumps, `convert_all` calls `convert`. Files that are up to date are kept.

    | function | sources | files in `folder` |
    |---|---|---|
    | `tables` | dumps | a folder for each site |
    | `inspect` | dumps, outputs, folders of outputs | |
    | `to_sqlite` | dumps | `SITE.db` |
    | `diff` | two folders of outputs, old and new | `SITE.jsonl.gz` |

    `diff` counts all questions of a new site as added. The state of a site without a new output is
    `gone`, or `failed` if `convert_all` failed to convert it to that folder. A site that failed in
    the old folder is `new after failed`. Without a `folder`, changes are only counted. `inspect`
    reads a file that belongs to another dump,
    such as `stackoverflow.com-Comments.7z`, only with that dump.

    Examples:
        >>> so2docs.for_each_site(so2docs.tables, glob.glob("*.7z"), "tables", only="posts")
        >>> so2docs.for_each_site(so2docs.diff, ("2024-04", "2024-07"), "changes")

    Args:
        function: The function.
        sources: Paths of dumps, a folder of outputs of `convert`, or two such folders.
        folder: Folder for the files, made if it does not exist.
        jobs: Worker processes for all sites together; all cores if None.
        progress: Show the progress of all sites together.
        when_done: Function called with the result of each site as it ends.
        keywords: Other keyword arguments of the function, for each site; for `diff`, also those of
            `Changes.write`.

    Returns:
        The result of each site, in the order of the dumps, or sorted by site. Each `result` is
        that of the function (for `diff` a `Summary`), or None if the site failed or is up to date.

    Raises:
        OptionError: An option has a value that is not allowed, or two dumps would have the same
            output.
        OutputError: A folder cannot be read, or has no outputs.
    """
    plans: dict[Any, tuple[Callable[..., list[SiteTask]], bool]] = {
        tables: (partial(_plan_dumps, _write_tables, ""), True),
        to_sqlite: (partial(_plan_dumps, _write_database, ".db"), True),
        diff: (_plan_changes, True),
        inspect: (_plan_inspections, False),
    }
    if function not in plans:
        names = ", ".join(function.__name__ for function in plans)
        raise OptionError(f"{function!r} is not for several sites; give one of: {names}")
    plan, writes_files = plans[function]
    if not writes_files and folder is not None:
        raise OptionError(f"{function.__name__} writes no files; leave {os.fspath(folder)} out")
    tasks = plan(sources, *([folder] if writes_files else []), **keywords)
    return run_sites(tasks, jobs, progress=progress, when_done=when_done, resumes=writes_files)


def _plan_changes(
    folders: tuple[PathLike, PathLike], changes_dir: PathLike | None, **kwargs: Any
) -> list[SiteTask]:
    old_dir, new_dir = (os.fspath(folder) for folder in folders)
    names = options_of(ReplaceOptions).keys() & kwargs.keys()
    options = read_options(ReplaceOptions, {name: kwargs.pop(name) for name in names})
    comparison = read_options(ComparisonOptions, kwargs)
    old, new = outputs_in(old_dir), outputs_in(new_dir)
    check_holds_outputs(new_dir, new)
    failed_before, failures = failures_in(old_dir), failures_in(new_dir)
    folder = None if changes_dir is None else _made(changes_dir, old_dir, new_dir)
    tasks = []
    for site in sorted({*old, *new}):
        target = "" if folder is None else os.path.join(folder, f"{site}.jsonl.gz")
        # Without a new output, the error counts; without an old one, the earlier error.
        failure = (failures if site in old else failed_before).get(site)
        pair = old.get(site), new.get(site)
        work = partial(_diff_site, *pair, target, comparison, options, failure=failure)
        size = input_size([*old.get(site, ()), *new.get(site, ())])
        tasks.append(SiteTask(site, target or (old.get(site) or new[site])[0], size, work))
    return tasks


_GONE = (
    "is gone: the new folder has no output of it; if it was closed or renamed, delete its "
    "questions wherever you apply the changes"
)
_STALE = (
    "is new after failed: questions deleted since its last output are not listed; delete its "
    "questions wherever you apply the changes, or compare with the folder of its last output"
)


def _diff_site(
    old: list[str] | None,
    new: list[str] | None,
    target: str,
    comparison: ComparisonOptions,
    options: ReplaceOptions,
    *,
    failure: str | None,
) -> Done:
    """Compare the outputs of one site; None stands for a missing output."""
    if new is None:
        assert old is not None
        if failure is not None:
            raise OutputError(f"no output, because the conversion failed: {failure}")
        return Done("gone", old[0], note=_GONE)
    note = _STALE if old is None and failure is not None else ""
    changes = Changes(None if old is None else readable(old), readable(new), comparison)
    if target:
        product = ChangesFile(changes, target)
        if product.find(force=options.force, update=options.update) is not None:
            return Done(UP_TO_DATE, target, note=note)
        summary = product.build(force=options.force, update=options.update)
    else:
        summary = changes.count()
    output = target or changes.new
    if old is None:
        return Done("new after failed" if note else "new", output, summary, note)
    posts = summary.questions
    state: SiteState = "changed" if posts.added or posts.changed or posts.deleted else "unchanged"
    return Done(state, output, summary)


def _plan_dumps(
    make: Callable[..., Done],
    end: str,
    sources: Iterable[PathLike],
    output_dir: PathLike | None,
    **keywords: Any,
) -> list[SiteTask]:
    return dump_tasks(make, plan_outputs(sources, _made(output_dir), end), keywords)


def _write_tables(source: str, output: str, **kwargs: Any) -> Done:
    report = tables(source, output, **kwargs)
    return Done("made", output, report) if report.is_new else Done(UP_TO_DATE, output)


def _write_database(source: str, output: str, **kwargs: Any) -> Done:
    product = find_database(source, output, **kwargs)
    return _build(product, force=product.options.force, update=product.options.update)


def _plan_inspections(sources: Iterable[PathLike], **keywords: Any) -> list[SiteTask]:
    paths, tasks = [], []
    for source in sources:
        path = os.fspath(source)
        outputs = _outputs_at(path)
        paths += [] if outputs else [path]
        for site, files in outputs.items():
            tasks.append(SiteTask(site, files[0], input_size(files), partial(_count, files)))
    others = _tables_of_others(paths)
    paths = [path for path in paths if os.path.realpath(path) not in others]
    dumps = [(path, site_from_name(path), path) for path in paths]
    return tasks + dump_tasks(_inspect, dumps, keywords)


def _outputs_at(path: str) -> dict[str, list[str]]:
    """Return the outputs at a path, by site; empty for a dump."""
    if is_folder_of_outputs(path):
        return outputs_in(path)
    if os.path.isfile(path) and is_output(path, read_start(path)):
        return {without_date(OutputPaths(path, None).stem): [path]}
    return {}


def _count(paths: list[str]) -> Done:
    path = readable(paths)
    return Done("inspected", path, inspect_output(path))


def _tables_of_others(paths: list[str]) -> set[str]:
    """Return the real paths of files that `inspect` reads with another of these dumps."""
    others: set[str] = set()
    for path in paths:
        with suppress(So2docsError), Source(path) as source:  # `inspect` will raise it again.
            files = set(map(os.path.realpath, locate_all(source).values()))
            others |= files - {os.path.realpath(path)}
    return others


def _inspect(source: str, output: str, **kwargs: Any) -> Done:
    inspection = inspect(source, **kwargs)
    return Done("inspected" if inspection.is_sound else "damaged", output, inspection)


def _build(product: Product[Any], *, force: bool, update: bool) -> Done:
    """Make the product of a site unless it is up to date."""
    if product.find(force=force, update=update) is not None:
        return Done(UP_TO_DATE, product.path)
    return Done("made", product.path, product.build(force=force, update=update))


def _outputs(folder: PathLike) -> dict[str, list[str]]:
    outputs = outputs_in(os.fspath(folder))
    check_holds_outputs(os.fspath(folder), outputs)
    return outputs


def _made(folder: PathLike | None, *read: str) -> str:
    """Make an output folder, and return its path; `read` are the input folders.

    Raises:
        OptionError: The name is empty, or the folder is one of the input folders.
        OutputError: The folder cannot be made.
    """
    path = "" if folder is None else os.fspath(folder)
    if path in ("", "-"):
        raise OptionError("outputs of several sites go to a folder; give its name")
    try:
        open_folder(path)
    except OSError as error:
        raise unreadable_output(path, error) from error
    for other in read:
        if os.path.samefile(path, other):
            raise OptionError(f"{path}: is also an input; choose another folder")
    return path
