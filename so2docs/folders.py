"""Folders of outputs in, folders out: what other commands do with one output, for each site.

A site that fails does not stop the others. What is up to date is left unchanged.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from so2docs.api.batch import SiteRow, side_by_side, site_table
from so2docs.changes.changes_file import ChangeReader, Header, OutputIdentity, write_empty
from so2docs.changes.compare import Operation, Summary
from so2docs.changes.diff import diff
from so2docs.changes.patch import Patched, patch
from so2docs.dump.storage import unreadable_output
from so2docs.errors import (
    OptionError,
    OutputError,
    OutputExistsError,
    OutputNotFoundError,
    So2docsError,
    WorkerDiedError,
    flag,
    resumable,
)
from so2docs.metadata.manifest import Manifest, Verified, load, manifests_of_report, verify
from so2docs.options.choices import ChangesFormat, Search
from so2docs.options.output_form import output_suffix
from so2docs.options.sites import checked_host
from so2docs.output.new_files import clean_up, temporary_folder
from so2docs.output.part_files import MANIFEST
from so2docs.output.paths import OutputPaths, read_provenance
from so2docs.progress import Progress, about, log
from so2docs.reader.folder import check_holds_outputs, outputs_in, readable
from so2docs.sqlite.about import read_about
from so2docs.sqlite.build import Database, to_sqlite
from so2docs.sqlite.sources import open_source
from so2docs.statistics.stats import Stats, stats

PathLike = str | os.PathLike[str]
Outcome = Summary | Patched | Stats | Verified | Database

UP_TO_DATE, NEW, GONE = "up to date", "new", "gone"
_EMPTY = OutputIdentity(0, 0)
_ADVICE = f"{flag('update', True)} makes again what changed, {flag('force', True)} everything"
_LARGE = 64 * 1024 * 1024
"""An output of more bytes is counted by several processes."""


@dataclass(frozen=True, slots=True)
class SiteResult:
    """The result for one site of a folder.

    Attributes:
        site: The site's name, from that of its output.
        output: The file that was made, or that was read if none was.
        state: What was done, in a word or two: `changed`, `unchanged`, `new`, `gone`, `patched`,
            `counted`, `verified`, `made`, `up to date`, `exists` (made of something else, and left
            unchanged) or `failed`.
        result: What the function for one output returns; None if it did not run to its end.
        error: Why it failed; None if it did not.
    """

    site: str
    output: str
    state: str
    result: Outcome | None = None
    error: Exception | None = None

    def __str__(self) -> str:
        if self.error is None:
            return f"{self.output}: {self.state}"
        text = str(self.error)
        return text if self.site in text else f"{self.site}: {text}"

    def as_dict(self) -> dict[str, Any]:
        """All fields in JSON types."""
        return {
            "site": self.site,
            "output": self.output,
            "state": self.state,
            "result": None if self.result is None else self.result.as_dict(),
            "error": None if self.error is None else str(self.error),
        }


WhenDone = Callable[[SiteResult], object]


@dataclass(frozen=True, slots=True)
class _Task:
    """Work on one site.

    Attributes:
        site: The site's name.
        output: The file that it makes, or reads.
        size: Bytes that it reads.
        work: Does it; returns the state, the output and the result.
    """

    site: str
    output: str
    size: int
    work: Callable[[], tuple[str, str, Outcome | None]]


def _do(task: _Task) -> SiteResult:
    try:
        with about(task.site):
            state, output, result = task.work()
    except OutputExistsError as error:
        return SiteResult(task.site, task.output, "exists", error=error)
    except (So2docsError, OSError) as error:
        return SiteResult(task.site, task.output, "failed", error=error)
    return SiteResult(task.site, output, state, result)


def _died(task: _Task, error: WorkerDiedError) -> SiteResult:
    clean_up(task.output)
    return SiteResult(task.site, task.output, "failed", error=error)


def _run(
    tasks: list[_Task], jobs: int | None, *, progress: bool, when_done: WhenDone | None
) -> list[SiteResult]:
    """Do the work on all sites side by side."""
    if not tasks:
        return []
    jobs = min(jobs or os.cpu_count() or 1, len(tasks))
    total = sum(task.size for task in tasks)
    finished_results = []
    progress_bars = Progress(shown=progress)
    progress_bars.plan(total)
    try:
        with (
            resumable(True),
            progress_bars,
            progress_bars.step(f"{len(tasks)} sites", total, total) as bar,
            closing(side_by_side(_do, tasks, jobs, _died)) as results,
        ):
            for task, result in results:
                finished_results.append(result)
                bar.update(task.size)
                if when_done is not None:
                    when_done(result)
    except BaseException:
        for task in tasks[len(finished_results) :]:
            clean_up(task.output)
        raise
    return finished_results


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
    update: bool = False,
    force: bool = False,
    jobs: int | None = None,
    progress: bool = False,
    when_done: WhenDone | None = None,
) -> list[SiteResult]:
    """Compare two folders of outputs, site by site.

    Of a new site, all questions are added. A site that is gone has no changes. Changes between the
    same outputs are not made again.

    Args:
        old_dir: Folder of outputs of `convert`; it may be empty.
        new_dir: Folder of outputs of a later date.
        changes_dir: Folder for the changes, `SITE.jsonl.gz` or as the format asks; made if it does
            not exist. If None, changes are counted only.
        only: As of `diff`.
        ignore: As of `diff`.
        format: As of `Changes.write`.
        deleted: Folder for the ids of deleted documents, `SITE.jsonl.gz`; needed where the
            format cannot say them.
        elasticsearch_index: As of `Changes.write`.
        site_field: As of `Changes.write`.
        update: Replace changes between other outputs.
        force: Replace all changes.
        jobs: Worker processes; all cores if None.
        progress: Show a progress bar.
        when_done: Called with what became of each site.

    Returns:
        What became of each site, in order; each `result` is the `Summary` of what changed.

    Raises:
        OptionError: An option has a value that is not allowed.
        OutputError: A folder cannot be read, or `new_dir` holds no outputs.
    """
    old_dir, new_dir = os.fspath(old_dir), os.fspath(new_dir)
    diff("", "", only=only, ignore=ignore).check(format, deleted)
    old, new = outputs_in(old_dir), outputs_in(new_dir)
    check_holds_outputs(new_dir, new)
    folder, ids = _made(changes_dir, old_dir, new_dir), _made(deleted, old_dir, new_dir)
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
        work = partial(_diff_site, *pair, target=target, deleted=removed, **how)
        size = _size([*old.get(site, ()), *new.get(site, ())])
        tasks.append(_Task(site, target or (old.get(site) or new[site])[0], size, work))
    return _run(tasks, jobs, progress=progress, when_done=when_done)


def _diff_site(
    old: list[str] | None, new: list[str] | None, **how: Any
) -> tuple[str, str, Summary | None]:
    """Compare the outputs of one site, as `diff_all` says."""
    if new is None:
        assert old is not None
        return GONE, old[0], None
    new_path = readable(new)
    if old is not None:
        return _compare(readable(old), new_path, **how)
    with temporary_folder(None) as folder:
        empty = os.path.join(folder, "empty.jsonl")
        provenance = read_provenance(new_path)
        write_empty(empty, b"" if provenance is None else provenance.to_json())
        state, output, summary = _compare(empty, new_path, **how)
    if summary is not None:
        summary.old_path = ""
    return state if summary is None else NEW, output, summary


def _compare(
    old: str,
    new: str,
    *,
    target: str,
    counted: dict[str, Any],
    update: bool,
    force: bool,
    **settings: Any,
) -> tuple[str, str, Summary | None]:
    what = f"is not of changes between {old} and {new}"
    are_between = partial(_are_between, target, old, new)
    if target and _is_current(target, are_between, what, update, force):
        return UP_TO_DATE, target, None
    changes = diff(old, new, **counted)
    if not target:
        summary = changes.count()
    else:
        summary = changes.write(target, force=force or update, **settings)
    posts = summary.questions
    state = "changed" if posts.added or posts.changed or posts.deleted else "unchanged"
    return state, target or new, summary


def _is_current(
    target: str, is_same: Callable[[], bool], what: str, update: bool, force: bool
) -> bool:
    """Whether a file is there already; an error says `what` it is if it is another one."""
    if force or not os.path.exists(target):
        return False
    if is_same():
        return True
    if not update:
        raise OutputExistsError(f"{target}: exists, and {what}; {_ADVICE}")
    return False


def patch_all(
    old_dir: PathLike,
    changes_dir: PathLike,
    new_dir: PathLike,
    *,
    update: bool = False,
    force: bool = False,
    jobs: int | None = None,
    progress: bool = False,
    when_done: WhenDone | None = None,
) -> list[SiteResult]:
    """Apply a folder of changes to a folder of outputs, site by site.

    A site without changes is gone: `diff_all` writes changes of every other one. Outputs that the
    changes make are not made again.

    Args:
        old_dir: Folder of outputs; it may be empty.
        changes_dir: What `diff_all` wrote in the format `changes`.
        new_dir: Folder for the new outputs; made if it does not exist.
        update: Replace outputs that other changes made.
        force: Replace all outputs.
        jobs: Worker processes; all cores if None.
        progress: Show a progress bar.
        when_done: Called with what became of each site.

    Returns:
        What became of each site, in order; each `result` is a `Patched`.

    Raises:
        OptionError: An option has a value that is not allowed.
        OutputError: A folder cannot be read, or `changes_dir` holds no changes.
    """
    old_dir, changes_dir = os.fspath(old_dir), os.fspath(changes_dir)
    old, changes = outputs_in(old_dir), outputs_in(changes_dir)
    check_holds_outputs(changes_dir, changes)
    folder = _made(new_dir, old_dir, changes_dir)
    assert folder is not None
    tasks = []
    for site in sorted({*old, *changes}):
        paths = [*old.get(site, ()), *changes.get(site, ())]
        stem = os.path.join(folder, site)
        work = partial(
            _patch_site, old.get(site), changes.get(site), stem=stem, update=update, force=force
        )
        tasks.append(_Task(site, f"{stem}.jsonl.gz", _size(paths), work))
    return _run(tasks, jobs, progress=progress, when_done=when_done)


def _patch_site(
    old: list[str] | None, changes: list[str] | None, **how: Any
) -> tuple[str, str, Patched | None]:
    """Apply the changes of one site, as `patch_all` says."""
    if changes is None:
        assert old is not None
        log.warning("%s: has no changes, so it is not among the new outputs", old[0])
        return GONE, old[0], None
    path = readable(changes)
    header = ChangeReader(path).header
    if old is not None:
        return _apply(readable(old), path, header, **how)
    if header is None or header.old != _EMPTY:
        raise OutputNotFoundError(
            f"{path}: there is no output that these changes could be applied to; is it in "
            "another folder?"
        )
    with temporary_folder(None) as folder:
        empty = os.path.join(folder, "empty.jsonl")
        write_empty(empty, b"")
        state, output, patched = _apply(empty, path, header, **how)
    return state if patched is None else NEW, output, patched


def _apply(
    old: str, changes: str, header: Header | None, *, stem: str, update: bool, force: bool
) -> tuple[str, str, Patched | None]:
    output = None if header is None else header.new
    if output is None:
        end = OutputPaths(old, None).extensions
    else:
        end = output_suffix({"compression": output.compression})
    target = stem + end

    def is_same() -> bool:
        return output is not None and OutputIdentity.of_file(target) == (output.size, output.tail)

    what = f"is not what {changes} makes"
    if _is_current(target, is_same, what, update, force):
        return UP_TO_DATE, target, None
    return "patched", target, patch(old, changes, target, force=force or update)


def stats_all(
    folder: PathLike,
    *,
    jobs: int | None = None,
    progress: bool = False,
    when_done: WhenDone | None = None,
) -> list[SiteResult]:
    """Count what each output of a folder holds.

    Args:
        folder: Folder of outputs of `convert`.
        jobs: Worker processes; all cores if None.
        progress: Show a progress bar.
        when_done: Called with what became of each site.

    Returns:
        What became of each site, in order; each `result` is a `Stats`.

    Raises:
        OutputError: The folder cannot be read, or holds no outputs.
    """
    outputs = _outputs(folder)
    large = {site for site, paths in outputs.items() if _size(paths) > _LARGE}
    tasks = [
        _Task(site, paths[0], _size(paths), partial(_count, paths, 1))
        for site, paths in outputs.items()
        if site not in large
    ]
    results = _run(tasks, jobs, progress=progress, when_done=when_done)
    tasks = [
        _Task(site, outputs[site][0], _size(outputs[site]), partial(_count, outputs[site], jobs))
        for site in large
    ]
    results += _run(tasks, 1, progress=progress, when_done=when_done)
    return sorted(results, key=lambda result: result.site)


def _count(paths: list[str], jobs: int | None) -> tuple[str, str, Stats]:
    path = readable(paths)
    return "counted", path, stats(path, jobs=jobs)


def verify_all(
    folder: PathLike,
    *,
    report: PathLike | None = None,
    jobs: int | None = None,
    progress: bool = False,
    when_done: WhenDone | None = None,
) -> list[SiteResult]:
    """Check each output of a folder against its manifest, or that of a report.

    An output without a manifest fails, and so does a manifest without its output.

    Args:
        folder: Folder of outputs of `convert`.
        report: File with the report of `convert_all`.
        jobs: Worker processes; all cores if None.
        progress: Show a progress bar.
        when_done: Called with what became of each output.

    Returns:
        What became of each output, in order; each `result` is a `Verified`.

    Raises:
        OutputError: The folder or the report cannot be read, or there are no outputs.
    """
    outputs = _outputs(folder)
    folder = os.fspath(folder)
    report = None if report is None else os.fspath(report)
    manifests = _manifests(folder) if report is None else manifests_of_report(report)
    described = {file for files in manifests.values() for file in files}
    files_by_output = {name: [os.path.join(folder, file) for file in files or [name]]
             for name, files in manifests.items()}  # fmt: skip
    for path in (path for paths in outputs.values() for path in paths):
        if os.path.basename(path) not in described:
            files_by_output.setdefault(os.path.basename(path), [path])
    tasks = []
    for name, paths in sorted(files_by_output.items()):
        path = os.path.join(folder, name)
        tasks.append(_Task(name, path, _size(paths), partial(_verify, path, report)))
    return _run(tasks, jobs, progress=progress, when_done=when_done)


def _manifests(folder: str) -> dict[str, list[str]]:
    """List the outputs of the manifests in a folder, with their files; none for a damaged one."""
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


def _verify(path: str, report: str | None) -> tuple[str, str, Verified]:
    return "verified", path, verify(path, report=report)


def to_sqlite_all(
    folder: PathLike,
    database_dir: PathLike,
    *,
    search: Search = "all",
    stemming: bool = False,
    site: str | None = None,
    update: bool = False,
    force: bool = False,
    jobs: int | None = None,
    progress: bool = False,
    when_done: WhenDone | None = None,
) -> list[SiteResult]:
    """Make an SQLite database of each output of a folder.

    One database of all sites is `to_sqlite(folder, database, site_field=...)`. Databases of the
    same outputs are not made again.

    Args:
        folder: Folder of outputs of `convert` in JSON lines.
        database_dir: Folder for the databases, `SITE.db`; made if it does not exist.
        search: As of `to_sqlite`.
        stemming: As of `to_sqlite`.
        site: As of `to_sqlite`, for a folder with one output.
        update: Replace databases of other outputs, or made with other options.
        force: Replace all databases.
        jobs: Worker processes; all cores if None.
        progress: Show a progress bar.
        when_done: Called with what became of each site.

    Returns:
        What became of each site, in order; each `result` is a `Database`.

    Raises:
        OptionError: An option has a value that is not allowed.
        OutputError: A folder cannot be read, or `folder` holds no outputs.
    """
    outputs = _outputs(folder)
    if site is not None and len(outputs) > 1:
        raise OptionError(f"{flag('site')} applies to one output; {folder} holds {len(outputs):,}")
    settings: dict[str, Any] = {"search": search, "stemming": stemming}
    # Side by side, each is made by one process.
    settings["jobs"] = jobs if len(outputs) == 1 else 1
    settings["site"] = None if site is None else checked_host(site)
    databases = _made(database_dir)
    assert databases is not None
    tasks = []
    for name, paths in outputs.items():
        target = os.path.join(databases, f"{name}.db")
        work = partial(_make_database, paths, target, settings, update, force)
        tasks.append(_Task(name, target, _size(paths), work))
    return _run(tasks, jobs, progress=progress, when_done=when_done)


def _make_database(
    paths: list[str], target: str, settings: dict[str, Any], update: bool, force: bool
) -> tuple[str, str, Database | None]:
    path = readable(paths)

    def is_same() -> bool:
        about = read_about(target)
        requested = settings["search"], settings["stemming"] and settings["search"] != "none"
        if (about.search, about.stemming) != requested:
            return False
        return about.sources == [open_source(path).identity()]

    what = f"was made from another state of {path}"
    if _is_current(target, is_same, what, update, force):
        return UP_TO_DATE, target, None
    return "made", target, to_sqlite(path, target, force=force or update, **settings)


def _outputs(folder: PathLike) -> dict[str, list[str]]:
    outputs = outputs_in(os.fspath(folder))
    check_holds_outputs(os.fspath(folder), outputs)
    return outputs


def _made(folder: PathLike | None, *read: str) -> str | None:
    """Make a folder for what is written.

    Raises:
        OptionError: Its name is empty, or it is one of the folders that are read.
        OutputError: It cannot be made.
    """
    if folder is None:
        return None
    path = os.fspath(folder)
    if path in ("", "-"):
        raise OptionError("outputs of several sites go to a folder; name one")
    try:
        os.makedirs(path, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise OptionError(f"{path}: is a file; outputs of several sites go to a folder") from None
    except OSError as error:
        raise unreadable_output(path, error) from error
    for other in read:
        if os.path.samefile(path, other):
            raise OptionError(f"{path}: is read and written; choose another folder")
    return path


def _size(paths: Iterable[str]) -> int:
    return sum(os.path.getsize(path) for path in paths if os.path.exists(path))


def _are_between(changes: str, old: str, new: str) -> bool:
    """Whether a file has all changes between two outputs."""
    try:
        header = ChangeReader(changes).header
    except OutputError:
        return False
    if header is None or header.new is None:
        return False
    new_identity = OutputIdentity(header.new.size, header.new.tail)
    return (header.old, new_identity) == (OutputIdentity.of_file(old), OutputIdentity.of_file(new))


_COLUMNS: dict[type, tuple[tuple[str, ...], Callable[[Any], tuple[int, ...]]]] = {
    Summary: (
        ("added", "changed", "deleted", "unchanged"),
        lambda r: (r.questions.added, r.questions.changed, r.questions.deleted, r.unchanged),
    ),
    Patched: (
        ("questions", "added", "changed", "deleted"),
        lambda r: (r.documents, r.added, r.changed, r.deleted),
    ),
    Stats: (
        ("questions", "answers", "accepted", "bytes"),
        lambda r: (
            r.questions,
            r.answers or 0,
            r.accepted or 0,
            r.file_bytes,
        ),
    ),
    Verified: (("files", "documents"), lambda r: (r.files, r.documents or 0)),
    Database: (
        ("questions", "answers", "bytes"),
        lambda r: (r.rows["questions"], r.rows["answers"], r.file_bytes),
    ),
}


def summary(results: Sequence[SiteResult]) -> str:
    """A table with a line for each site, one with the totals, and one with the states."""
    kinds = [type(result.result) for result in results if result.result is not None]
    columns, numbers = _COLUMNS[kinds[0]] if kinds else ((), lambda result: ())
    rows: list[SiteRow] = [
        (r.site, r.state, None if r.result is None else numbers(r.result)) for r in results
    ]
    states = Counter(r.state for r in results)
    text = ", ".join(f"{count:,} {state}" for state, count in states.items() if state != "failed")
    text = f"{text}, " if text else ""
    return f"{site_table(columns, rows)}\n{len(results):,} sites: {text}{states['failed']:,} failed"
