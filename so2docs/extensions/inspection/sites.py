"""Inspect several dumps and outputs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Any

from so2docs.extensions.inspection.inspect import inspect, locate_all
from so2docs.extensions.inspection.output import inspect_output
from so2docs.extensions.sites.outputs import is_folder_of_outputs, outputs_in, readable
from so2docs.extensions.sites.tasks import Done, Site, SiteTask, dump_tasks, input_size
from so2docs.output.paths import OutputPaths
from so2docs.plugin import (
    OptionError,
    So2docsError,
    Source,
    is_output,
    read_start,
    site_from_name,
    without_date,
)

PathLike = str | os.PathLike[str]


def plan_inspections(
    sources: Iterable[PathLike], folder: PathLike | None, **keywords: Any
) -> list[SiteTask]:
    """Make a task for each dump and for each output, also those in folders of outputs."""
    if folder is not None:
        raise OptionError(f"inspect writes no files; leave {os.fspath(folder)} out")
    paths, tasks = [], []
    for source in sources:
        path = os.fspath(source)
        outputs = _outputs_at(path)
        paths += [] if outputs else [path]
        for site, files in outputs.items():
            tasks.append(SiteTask(site, files[0], input_size(files), partial(_count, files)))
    others = _tables_of_others(paths)
    paths = [path for path in paths if os.path.realpath(path) not in others]
    dumps = [Site(site_from_name(path), path, path) for path in paths]
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
