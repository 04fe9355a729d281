"""Compare the outputs in two folders, site by site."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from so2docs.extensions.changes.diff import Changes, ChangesFile
from so2docs.extensions.changes.options import ComparisonOptions, ReplaceOptions
from so2docs.extensions.sites.batch import failures_in
from so2docs.extensions.sites.outputs import (
    open_new_folder,
    outputs_in,
    readable,
)
from so2docs.extensions.sites.tasks import Done, SiteState, SiteTask, input_size
from so2docs.plugin import UP_TO_DATE, OutputError, flag, options_of, read_options

PathLike = str | os.PathLike[str]


def plan_changes(
    folders: tuple[PathLike, PathLike], changes_dir: PathLike | None, **kwargs: Any
) -> list[SiteTask]:
    """Make a task for each site in either folder of outputs."""
    old_dir, new_dir = (os.fspath(folder) for folder in folders)
    names = options_of(ReplaceOptions).keys() & kwargs.keys()
    options = read_options(ReplaceOptions, {name: kwargs.pop(name) for name in names})
    comparison = read_options(ComparisonOptions, kwargs)
    old, new = outputs_in(old_dir), outputs_in(new_dir)
    if not new:
        raise OutputError(
            f"{new_dir}: is a folder without outputs of convert; give the "
            f"{flag('output_dir')} of a conversion"
        )
    failed_before, failures = failures_in(old_dir), failures_in(new_dir)
    folder = None if changes_dir is None else open_new_folder(changes_dir, old_dir, new_dir)
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
