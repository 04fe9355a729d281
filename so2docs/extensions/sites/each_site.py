"""Process folders: apply a function for one output or dump to each site.

An error in one site does not stop the processing of other sites. Files that are up to date stay
unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

from so2docs import convert
from so2docs.extensions.sites.batch import convert_all
from so2docs.extensions.sites.outputs import open_new_folder
from so2docs.extensions.sites.tasks import (
    Done,
    SiteResult,
    WhenDone,
    dump_tasks,
    plan_outputs,
    run_sites,
)
from so2docs.plugin import UP_TO_DATE, OptionError, Shown, find_hook
from so2docs.registry import CAPABILITIES

PathLike = str | os.PathLike[str]

_HOOK = "each site "
_ENDINGS = {name: end for entry in CAPABILITIES.values() for name, end in entry.endings.items()}
"""Ends of the names of outputs of several dumps, by name of the function."""
_PLANNED = {
    hook.removeprefix(_HOOK)
    for entry in CAPABILITIES.values()
    for hook in entry.hooks
    if hook.startswith(_HOOK)
}
"""Functions that plan the tasks of the sites themselves."""


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

    Files that are up to date are kept.

    | function | sources | files in `folder` |
    |---|---|---|
    | `convert` | dumps | see `convert_all` |
    | `tables` | dumps | a folder for each site |
    | `inspect` | dumps, outputs, folders of outputs | |
    | `to_sqlite` | dumps | `SITE.db` |
    | `diff` | two folders of outputs, old and new | `SITE.jsonl.gz` |

    `diff` counts all questions of a new site as added. The state of a site without a new output is
    `gone`, or `failed` if `convert_all` failed to convert it to that folder. A site that failed in
    the old folder is `new after failed`. Without a `folder`, changes are only counted. `inspect`
    reads a file that belongs to another dump, such as `stackoverflow.com-Comments.7z`, only with
    that dump.

    Examples:
        >>> so2docs.for_each_site(so2docs.tables, glob.glob("*.7z"), "tables", only="posts")
        >>> so2docs.for_each_site(so2docs.diff, ("2024-04", "2024-07"), "changes")

    Args:
        function: The function.
        sources: Paths of dumps, or two folders of outputs of `convert`.
        folder: Folder for the files, made if it does not exist.
        jobs: Worker processes for all sites together; all cores if None.
        progress: Show the progress of all sites together.
        when_done: Function called with the result of each site as it ends.
        keywords: Other keyword arguments of the function, for each site; for `diff`, also those of
            `Changes.write`.

    Returns:
        The result of each site, in the order of the dumps, or sorted by site. Each `result` is
        that of the function (for `diff` a `Summary`), or None if the
        site failed or is up to date.

    Raises:
        OptionError: An option has a value that is not allowed, or two dumps would have the same
            output.
        OutputError: A folder cannot be read, or has no outputs.
    """
    name = getattr(function, "__name__", "")
    shown: dict[str, Any] = {"progress": progress, "when_done": when_done}
    if function is convert:
        return convert_all(sources, folder or "", jobs=jobs, **shown, **keywords)
    if name not in {*_ENDINGS, *_PLANNED}:
        names = ", ".join(sorted({"convert", *_ENDINGS, *_PLANNED}))
        raise OptionError(f"{function!r} is not for several sites; give one of: {names}")
    if name in _ENDINGS:
        planned = plan_outputs(sources, open_new_folder(folder), _ENDINGS[name])
        tasks = dump_tasks(partial(_make, function), planned, keywords)
    else:
        tasks = find_hook(f"{_HOOK}{name}")(sources, folder, **keywords)
    return run_sites(tasks, jobs, **shown, resumes=folder is not None)


def _make(function: Callable[..., Any], source: str, output: str, **keywords: Any) -> Done:
    result = function(source, output, **keywords)
    return Done("made", output, result) if result.is_new else Done(UP_TO_DATE, output)
