"""Process folders: apply a function for one output or dump to each site.

An error in one site does not stop the processing of other sites. Files that are up to date stay
unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Unpack

from so2docs.api.batch import read_failures
from so2docs.api.sites import (
    DAMAGED,
    Done,
    SiteResult,
    SiteTask,
    WhenDone,
    input_size,
    plan_outputs,
    run_dumps,
    run_sites,
)
from so2docs.api.tags import TagsFile, tags
from so2docs.changes.compare import Operation
from so2docs.changes.diff import ChangesFile, diff
from so2docs.dump.opening import Catalog
from so2docs.dump.unreadable import unreadable_output
from so2docs.errors import (
    OptionError,
    OutputError,
    So2docsError,
    flag,
)
from so2docs.flat.tables import tables
from so2docs.inspection.inspect import inspect, locate_all
from so2docs.metadata.manifest import Manifest, load, verify
from so2docs.options.choices import ChangesFormat
from so2docs.options.keywords import DatabaseKeywords, TableKeywords, TagsKeywords
from so2docs.options.products import DatabaseOptions
from so2docs.options.request import read_options
from so2docs.options.sites import site_from_name
from so2docs.output.file import Target
from so2docs.output.new_files import NewFiles, temporary_folder
from so2docs.output.part_files import MANIFEST
from so2docs.output.product import Product, read_provenance
from so2docs.output.provenance import UP_TO_DATE
from so2docs.reader.folder import check_holds_outputs, outputs_in, readable
from so2docs.sqlite.build import find_database
from so2docs.statistics.stats import stats

PathLike = str | os.PathLike[str]

NEW, GONE = "new", "gone"


def diff_all(
    old_dir: PathLike,
    new_dir: PathLike,
    changes_dir: PathLike | None = None,
    *,
    only: Iterable[Operation] | str | None = None,
    ignore: Sequence[str] | str | None = None,
    format: ChangesFormat = "changes",  # noqa: A002
    deleted: PathLike | None = None,
    elasticsearch_index: str = "questions",
    site_field: str | None = None,
    report: PathLike | None = None,
    update: bool = False,
    force: bool = False,
    jobs: int | None = None,
    progress: bool = False,
    when_done: WhenDone | None = None,
) -> list[SiteResult]:
    """Compare two folders of outputs, site by site.

    For a new site, all questions count as added. For a site without an output in `new_dir`, no
    changes are written. The state of its result is `gone`, or `failed` if its conversion failed
    according to `report`. Existing changes between the same outputs are kept.

    Args:
        old_dir: Folder of outputs of `convert`; it may be empty.
        new_dir: Folder of the new outputs, to compare with the old ones.
        changes_dir: Folder for the changes, made if it does not exist. A changes file is named
            `SITE.jsonl.gz`, or `SITE.ravendbdump` in the format `ravendb`. If None, changes are
            only counted.
        only: See `diff`.
        ignore: See `diff`.
        format: See `Changes.write`.
        deleted: Folder for the ids of deleted documents, `SITE.jsonl.gz`; required for formats
            that cannot contain deletions.
        elasticsearch_index: See `Changes.write`.
        site_field: See `Changes.write`.
        report: Report of the conversion of the dumps to `new_dir`, which names failed conversions.
        update: Replace changes made from other outputs.
        force: Replace all existing changes.
        jobs: Worker processes; all cores if None.
        progress: Show a progress bar.
        when_done: Function called with the result of each site.

    Returns:
        The result of each site, sorted by site; each `result` is the `Summary` of the changes, or
        None if the site was removed, failed or is up to date.

    Raises:
        OptionError: An option has a value that is not allowed.
        OutputError: A folder cannot be read, or `new_dir` has no outputs.
    """
    old_dir, new_dir = os.fspath(old_dir), os.fspath(new_dir)
    diff("", "", only=only, ignore=ignore).check(format, deleted)
    old, new = outputs_in(old_dir), outputs_in(new_dir)
    check_holds_outputs(new_dir, new)
    failures = {} if report is None else read_failures(os.fspath(report))
    folder, ids = (
        None if path is None else _made(path, old_dir, new_dir) for path in (changes_dir, deleted)
    )
    if folder is not None and ids is not None and os.path.samefile(folder, ids):
        raise OptionError(f"{ids}: is the folder of the changes; give another {flag('deleted')}")
    how: dict[str, Any] = {
        "format": format,
        "elasticsearch_index": elasticsearch_index,
        "site_field": site_field,
        "counted": {"only": only, "ignore": ignore},
        "update": update,
        "force": force,
    }
    end = ".ravendbdump" if format == "ravendb" else ".jsonl.gz"
    tasks = []
    for site in sorted({*old, *new}):
        target = "" if folder is None else os.path.join(folder, site + end)
        removed = None if ids is None else os.path.join(ids, f"{site}.jsonl.gz")
        pair = old.get(site), new.get(site)
        work = partial(
            _diff_site, *pair, target=target, deleted=removed, failure=failures.get(site), **how
        )
        size = input_size([*old.get(site, ()), *new.get(site, ())])
        tasks.append(SiteTask(site, target or (old.get(site) or new[site])[0], size, work))
    return run_sites(tasks, jobs, progress=progress, when_done=when_done)


@contextmanager
def _readable_or_empty(paths: list[str] | None, other: str) -> Iterator[str]:
    """Yield the output of a site; for None, an empty one with the provenance of `other`."""
    if paths is not None:
        yield readable(paths)
        return
    provenance = read_provenance(other)
    with temporary_folder(None) as folder:
        path = os.path.join(folder, "empty.jsonl")
        with NewFiles() as files, Target(files, path, indexed=True) as target:
            target.record = b"" if provenance is None else provenance.to_json()
        yield path


def _diff_site(
    old: list[str] | None,
    new: list[str] | None,
    *,
    target: str,
    failure: str | None,
    counted: dict[str, Any],
    update: bool,
    force: bool,
    **settings: Any,
) -> Done:
    """Compare the outputs of one site for `diff_all`; None stands for a missing output."""
    if new is None:
        assert old is not None
        if failure is not None:
            raise OutputError(f"no output, because the conversion failed: {failure}")
        return GONE, old[0], None
    new_path = readable(new)
    with _readable_or_empty(old, new_path) as old_path:
        changes = diff(old_path, new_path, **counted)
        if target:
            product = ChangesFile(changes, target, **settings)
            if product.find(force=force, update=update) is not None:
                return UP_TO_DATE, target, None
            summary = product.build(force=force, update=update)
        else:
            summary = changes.count()
    if old is None:
        summary.old_path = ""
        return NEW, target or new_path, summary
    posts = summary.questions
    state = "changed" if posts.added or posts.changed or posts.deleted else "unchanged"
    return state, target or new_path, summary


def stats_all(
    folder: PathLike,
    *,
    jobs: int | None = None,
    progress: bool = False,
    when_done: WhenDone | None = None,
) -> list[SiteResult]:
    """Compute the statistics of each output in a folder.

    Args:
        folder: Folder of outputs of `convert`.
        jobs: Worker processes; all cores if None.
        progress: Show a progress bar.
        when_done: Function called with the result of each site.

    Returns:
        The result of each site, sorted by site; each `result` is a `Stats`, or None if the site
        failed.

    Raises:
        OutputError: The folder cannot be read, or has no outputs.
    """
    tasks = [
        SiteTask(site, paths[0], input_size(paths), partial(_count, paths), is_divisible=True)
        for site, paths in _outputs(folder).items()
    ]
    return run_sites(tasks, jobs, progress=progress, when_done=when_done, resumes=False)


def _count(paths: list[str], *, jobs: int | None, progress: bool) -> Done:
    path = readable(paths)
    return "counted", path, stats(path, jobs=jobs, progress=progress)


def verify_all(
    folder: PathLike,
    *,
    jobs: int | None = None,
    progress: bool = False,
    when_done: WhenDone | None = None,
) -> list[SiteResult]:
    """Check each output in a folder against its manifest.

    An output without a manifest counts as failed, and so does a manifest without its output.

    Args:
        folder: Folder of outputs of `convert`.
        jobs: Worker processes; all cores if None.
        progress: Show a progress bar.
        when_done: Function called with the result of each output.

    Returns:
        The result of each output, sorted by name; each `result` is a `Verified`, or None if the
        output failed.

    Raises:
        OutputError: The folder cannot be read, or there are no outputs.
    """
    outputs = _outputs(folder)
    folder = os.fspath(folder)
    manifests = _manifests(folder)
    described = {file for files in manifests.values() for file in files}
    files_by_output = {name: [os.path.join(folder, file) for file in files or [name]]
             for name, files in manifests.items()}  # fmt: skip
    for path in (path for paths in outputs.values() for path in paths):
        if os.path.basename(path) not in described:
            files_by_output.setdefault(os.path.basename(path), [path])
    tasks = []
    for name, paths in sorted(files_by_output.items()):
        path = os.path.join(folder, name)
        tasks.append(SiteTask(name, path, input_size(paths), partial(_verify, path)))
    return run_sites(tasks, jobs, progress=progress, when_done=when_done, resumes=False)


def _manifests(folder: str) -> dict[str, list[str]]:
    """Return the file names in each manifest of a folder, by output; empty if it is damaged."""
    manifests = {}
    for name in sorted(os.listdir(folder)):
        if name.startswith(".") and name.endswith(f".{MANIFEST}"):
            try:
                manifest: Manifest | None = load(os.path.join(folder, name))
            except OutputError:
                manifest = None
            output = name.removeprefix(".").removesuffix(f".{MANIFEST}")
            manifests[output] = [] if manifest is None else [file.name for file in manifest.files]
    return manifests


def _verify(path: str) -> Done:
    return "verified", path, verify(path)


def to_sqlite_all(
    folder: PathLike,
    database_dir: PathLike,
    *,
    when_done: WhenDone | None = None,
    **keywords: Unpack[DatabaseKeywords],
) -> list[SiteResult]:
    """Make an SQLite database of each output in a folder.

    For one database of all sites, use `to_sqlite(folder, database, site_field=...)`. Existing
    databases made from the same outputs are kept.

    Args:
        folder: Folder of outputs of `convert` in JSON lines.
        database_dir: Folder for the databases, `SITE.db`; made if it does not exist.
        when_done: Function called with the result of each site.
        keywords: Keyword arguments of `to_sqlite`; `site` only for a folder with one output.

    Returns:
        The result of each site, sorted by site; each `result` is a `Database`, or None if the site
        failed or is up to date.

    Raises:
        OptionError: An option has a value that is not allowed.
        OutputError: A folder cannot be read, or `folder` has no outputs.
    """
    outputs = _outputs(folder)
    options = read_options(DatabaseOptions, keywords)
    if options.site is not None and len(outputs) > 1:
        raise OptionError(f"{flag('site')} applies to one output; {folder} holds {len(outputs):,}")
    # Several sites run in parallel, with one process for each.
    settings = {**keywords, "progress": False, "jobs": options.jobs if len(outputs) == 1 else 1}
    databases = _made(database_dir)
    tasks = []
    for name, paths in outputs.items():
        target = os.path.join(databases, f"{name}.db")
        work = partial(_make_database, paths, target, settings)
        tasks.append(SiteTask(name, target, input_size(paths), work))
    return run_sites(tasks, options.jobs, progress=options.progress, when_done=when_done)


def _make_database(paths: list[str], target: str, settings: dict[str, Any]) -> Done:
    product = find_database(readable(paths), target, **settings)
    options = product.options
    return _build(product, "made", force=options.force, update=options.update)


def tables_all(
    sources: Iterable[PathLike],
    output_dir: PathLike,
    *,
    when_done: WhenDone | None = None,
    **keywords: Unpack[TableKeywords],
) -> list[SiteResult]:
    """Write the tables of several dumps as flat typed files, and continue if a dump fails.

    Args:
        sources: The dumps, each in any form that `tables` takes.
        output_dir: Folder that gets a folder for each site; made if it does not exist.
        when_done: Function called with the result of each site.
        keywords: Keyword arguments of `tables`, for each dump.

    Returns:
        The results, in the order of the dumps; each `result` is a `TablesReport`, or None if the
        dump failed or is up to date.

    Raises:
        OptionError: Two dumps would have the same folder, or an option is not allowed.
    """
    planned = plan_outputs(sources, _made(output_dir), "")
    return run_dumps(_write_tables, planned, keywords, when_done)


def _write_tables(source: str, output: str, **kwargs: Any) -> Done:
    report = tables(source, output, **kwargs)
    return ("made", output, report) if report.is_new else (UP_TO_DATE, output, None)


def tags_all(
    sources: Iterable[PathLike],
    output_dir: PathLike,
    *,
    update: bool = False,
    force: bool = False,
    when_done: WhenDone | None = None,
    **keywords: Unpack[TagsKeywords],
) -> list[SiteResult]:
    """Write the tags of several dumps with their descriptions, and continue if a dump fails.

    Args:
        sources: The dumps, each in any form that `tags` takes.
        output_dir: Folder for the tags, `SITE.jsonl.gz`; made if it does not exist.
        update: Replace existing tags that were made from other dumps or with other options.
        force: Replace all existing tags.
        when_done: Function called with the result of each site.
        keywords: Keyword arguments of `tags`, for each dump.

    Returns:
        The results, in the order of the dumps; each `result` is a `TagsReport`, or None if the dump
        failed or is up to date.

    Raises:
        OptionError: Two dumps would have the same output, or an option is not allowed.
    """
    planned = plan_outputs(sources, _made(output_dir), ".jsonl.gz")
    kwargs = {**keywords, "update": update, "force": force}
    return run_dumps(_write_tags, planned, kwargs, when_done)


def _write_tags(source: str, output: str, *, update: bool, force: bool, **kwargs: Any) -> Done:
    product = TagsFile(tags(source, **kwargs), output)
    return _build(product, "made", force=force, update=update)


def inspect_all(
    sources: Iterable[PathLike],
    *,
    sha256: bool = False,
    jobs: int | None = None,
    work_dir: PathLike | None = None,
    progress: bool = False,
    when_done: WhenDone | None = None,
) -> list[SiteResult]:
    """Inspect several dumps, and continue if one fails.

    Args:
        sources: The dumps, each in any form that `inspect` takes. A file that belongs to another
            of them, such as `stackoverflow.com-Comments.7z` to `stackoverflow.com-Posts.7z`, is
            only inspected with it.
        sha256: See `inspect`.
        jobs: Worker processes; all cores if None.
        work_dir: Folder for temporary files; None for the system's temporary folder.
        progress: Show a progress bar.
        when_done: Function called with the result of each dump as it ends.

    Returns:
        The results, in the order of the dumps; each `result` is an `Inspection`, or None if the
        dump failed. The state is `damaged` if a table cannot be read to its end or is not
        well-formed XML.

    Raises:
        OptionError: A dump is standard input.
    """
    paths = [os.fspath(source) for source in sources]
    others = _tables_of_others(paths)
    paths = [path for path in paths if os.path.realpath(path) not in others]
    dumps = [(path, site_from_name(path), path) for path in paths]
    kwargs = {"sha256": sha256, "jobs": jobs, "work_dir": work_dir, "progress": progress}
    return run_dumps(_inspect, dumps, kwargs, when_done, resumes=False)


def _tables_of_others(paths: list[str]) -> set[str]:
    """Return the real paths of files that `inspect` reads with another of these dumps."""
    others: set[str] = set()
    with Catalog() as catalog:
        for path in paths:
            with suppress(So2docsError):  # `inspect` will raise it again.
                files = set(map(os.path.realpath, locate_all(path, catalog).values()))
                others |= files - {os.path.realpath(path)}
    return others


def _inspect(source: str, output: str, **kwargs: Any) -> Done:
    inspection = inspect(source, **kwargs)
    return "inspected" if inspection.is_sound else DAMAGED, output, inspection


def _build(product: Product[Any], state: str, *, force: bool, update: bool) -> Done:
    """Make the product of a site unless it is up to date; return `state` if it is made."""
    if product.find(force=force, update=update) is not None:
        return UP_TO_DATE, product.path, None
    return state, product.path, product.build(force=force, update=update)


def _outputs(folder: PathLike) -> dict[str, list[str]]:
    outputs = outputs_in(os.fspath(folder))
    check_holds_outputs(os.fspath(folder), outputs)
    return outputs


def _made(folder: PathLike, *read: str) -> str:
    """Make an output folder, and return its path; `read` are the input folders.

    Raises:
        OptionError: The name is empty, or the folder is one of the input folders.
        OutputError: The folder cannot be made.
    """
    path = os.fspath(folder)
    if path in ("", "-"):
        raise OptionError("outputs of several sites go to a folder; give its name")
    try:
        os.makedirs(path, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise OptionError(f"{path}: is a file; outputs of several sites go to a folder") from None
    except OSError as error:
        raise unreadable_output(path, error) from error
    for other in read:
        if os.path.samefile(path, other):
            raise OptionError(f"{path}: is also an input; choose another folder")
    return path
