"""Process several sites in parallel in worker processes, with a table of all results.

A failing site does not stop the others, and files that are up to date are left unchanged. Workers
are reused, because starting a worker and importing its modules takes as long as converting a small
site.
"""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

from so2docs.dump.names import members_with
from so2docs.dump.storage import list_folder
from so2docs.errors import WorkerDiedError, convert_error
from so2docs.output.new_files import clean_up
from so2docs.output.provenance import State
from so2docs.parse.core import choose_core
from so2docs.plugin import (
    POSTS,
    UP_TO_DATE,
    ExistingOutputError,
    OptionError,
    Report,
    Shown,
    So2docsError,
    log,
    on_one_line,
    plural,
    resumable,
    site_from_name,
    without_secrets,
)
from so2docs.processes.pool import Workers, choose_jobs
from so2docs.progress import Progress, about, listen, subject

EXIT_FAILED, EXIT_SOME_FAILED = 1, 3

_SMALL = 128 * 1024 * 1024
"""Maximum size of the input of a small site, in bytes of XML or JSON."""

_PACKED = 5
"""Approximate bytes of XML or JSON per compressed byte."""

_PLAIN = (".xml", ".json", ".jsonl")

_VARIES = re.compile(r"[\d,]*\d|; .*")
"""Matches what differs between messages of one kind: numbers, and advice at the end."""

SiteState = Literal[
    State, "converted", "made", "changed", "unchanged", "new", "new after failed", "gone",
    "counted", "inspected", "damaged", "failed",
]  # fmt: skip
"""What became of a site, or the state of an existing output that was left unchanged."""


@dataclass(frozen=True, slots=True)
class SiteResult:
    """The result for one of several sites.

    Attributes:
        site: Name of the site, from the name of its dump or output.
        output: File or folder written; if nothing is written, the file read.
        state: What was done, such as `converted` or `failed`; or, if an existing output was left
            unchanged, its state, such as `up to date` or `other options`.
        result: Return value for the site, such as a `Report`; None if the site failed or was up to
            date.
        error: Error of a failed site; None otherwise.
        source: Path of the dump; empty if the input is an output.
        note: Message for the user about a site that did not fail; usually empty.
    """

    site: str
    output: str
    state: SiteState
    result: Any = None
    error: Exception | None = None
    source: str = ""
    note: str = ""

    def __str__(self) -> str:
        if self.note:
            return f"{self.site}: {self.note}"
        if isinstance(self.result, Report):
            columns = self.result.columns()
            names = [name for name in ("questions", "answers", "records") if name in columns]
            counts = ", ".join(f"{columns[name]:,} {name}" for name in names)
            return f"{self.source}: {counts} -> {self.result.file_names()}"
        if self.error is None:
            return f"{self.output}: is {self.state}"
        text = str(self.error)
        name = self.source or self.site
        is_named = text.startswith(name) if self.source else name in text
        return text if is_named else f"{name}: {text}"

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-compatible values."""
        return {
            "source": self.source,
            "site": self.site,
            "output": self.output,
            "state": self.state,
            "result": None if self.result is None else self.result.as_dict(),
            "error": None if self.error is None else str(self.error),
            "note": self.note,
        }


def exit_code(results: Sequence[SiteResult]) -> int:
    """Return 0 if no site failed and no dump is damaged, 3 if some did or are, and 1 if all."""
    failed = sum(result.error is not None or result.state == "damaged" for result in results)
    if not failed:
        return 0
    return EXIT_FAILED if failed == len(results) else EXIT_SOME_FAILED


WhenDone = Callable[[SiteResult], object]


class Done(NamedTuple):
    """The outcome for a site; the fields are those of `SiteResult`."""

    state: SiteState
    output: str
    result: Any = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class SiteTask:
    """Work on one site.

    Attributes:
        site: Name of the site.
        output: File or folder to write; if nothing is written, the file to read.
        size: Number of bytes to read, from `input_size`.
        work: Function that does the work; workers import it, so it is defined at module level, or
            is a `partial` of such a function.
        source: Path of the dump; empty if the input is an output. If it is set, several processes
            can share the work, which takes the keywords `jobs` and `progress`. An `OptionError`
            then ends all tasks, and the files of a killed worker are kept, to resume its work.
    """

    site: str
    output: str
    size: int
    work: Callable[..., Done]
    source: str = ""

    @property
    def is_small(self) -> bool:
        """Whether one process does the work, while others do the work on other sites."""
        return not self.source or 0 < self.size < _SMALL

    def run(self, jobs: int | None = 1, *, progress: Shown = False) -> SiteResult:
        """Do the work, and return its result; the `error` of the result is set if the work failed.

        Args:
            jobs: Number of processes for a dump; all cores if None.
            progress: Show the progress of the work on a dump.

        Raises:
            OptionError: An option for a dump is not allowed; this ends all tasks.
        """
        keywords = {"jobs": jobs, "progress": progress} if self.source else {}
        try:
            with about(self.site):
                done = self.work(**keywords)
        except ExistingOutputError as error:
            return SiteResult(self.site, self.output, error.state, None, error, self.source)
        except (So2docsError, OSError) as error:
            if self.source and isinstance(error, OptionError):
                raise
            explained = error if isinstance(error, So2docsError) else convert_error(error)
            return SiteResult(self.site, self.output, "failed", None, explained, self.source)
        return SiteResult(
            self.site, done.output, done.state, done.result, source=self.source, note=done.note
        )

    def discard(self) -> None:
        """Remove the files left by a killed worker, unless the work can be resumed."""
        if not self.source:
            clean_up(self.output)


def run_sites(
    tasks: list[SiteTask],
    jobs: int | None,
    *,
    progress: Shown,
    when_done: WhenDone | None,
    resumes: bool = True,
) -> list[SiteResult]:
    """Run a task for each site, and continue if one fails.

    Small tasks run in parallel, each in one process. Then the others run one after the other, each
    with all processes.

    Args:
        tasks: The tasks.
        jobs: Worker processes; all cores if None.
        progress: Show a progress bar.
        when_done: Function called with the result of each task as it ends.
        resumes: Whether the same call would skip tasks that are done, because they write files.

    Returns:
        The results, in the order of the tasks.
    """
    small = [number for number, task in enumerate(tasks) if task.is_small]
    workers = choose_jobs(jobs, 0, len(small))
    if workers == 1:
        small = []
    results: dict[int, SiteResult] = {}

    def finish(number: int, result: SiteResult) -> None:
        results[number] = result
        if when_done is not None:
            when_done(result)

    bars = Progress(shown=progress)
    bars.plan(sum(task.size for task in tasks))
    with resumable(resumes), _warn_by_kind(), bars:
        if small:
            total = sum(tasks[number].size for number in small)
            work = closing(_side_by_side([tasks[number] for number in small], workers))
            try:
                with bars.step(plural(len(small), "site"), total, total) as bar, work as done:
                    for number, result in zip(small, done, strict=True):
                        finish(number, result)
                        bar.update(tasks[number].size)
            except BaseException:
                for number in {*small} - results.keys():
                    tasks[number].discard()
                raise
        for number in sorted({*range(len(tasks))} - results.keys()):
            with bars.step(tasks[number].site, tasks[number].size, None):
                result = tasks[number].run(jobs, progress=progress)
            finish(number, result)
    return [results[number] for number in range(len(tasks))]


@contextmanager
def _warn_by_kind() -> Iterator[None]:
    """If only warnings are logged, log one of each kind at the end, with the number of sites."""
    if log.level < logging.WARNING:
        yield
        return
    kinds: dict[str, list[tuple[str, str]]] = {}

    def take(record: logging.LogRecord) -> bool:
        here = subject.get().removesuffix(": "), record.getMessage()
        site, message = getattr(record, "about", here)
        kinds.setdefault(_VARIES.sub("", message), []).append((site, message))
        return False

    log.addFilter(take)
    try:
        yield
    finally:
        log.removeFilter(take)
        for entries in kinds.values():
            site, message = entries[0]
            count = len(dict(entries))
            log.warning("%s: %s", site if count == 1 else f"{count:,} sites, as {site}", message)


def _side_by_side(tasks: list[SiteTask], jobs: int) -> Generator[SiteResult, None, None]:
    """Yield the results of tasks, in order; log the messages of workers with the site."""
    with Workers(jobs) as workers:
        results = workers.run(_run_quietly, tasks, died=_died)
        for task, (result, messages) in zip(tasks, results, strict=True):
            for level, message in messages:
                # The attribute is for `_warn_by_kind`.
                extra = {"about": (task.site, message)}
                log.log(level, "%s: %s", task.site, message, extra=extra)
            yield result


def _run_quietly(task: SiteTask) -> tuple[SiteResult, list[tuple[int, str]]]:
    """Run a task in a worker; return its result, and the logged messages with their levels."""
    messages: list[tuple[int, str]] = []
    with listen(lambda *message: messages.append(message)):
        return task.run(), messages


def _died(task: SiteTask, error: WorkerDiedError) -> tuple[SiteResult, list[tuple[int, str]]]:
    task.discard()
    return SiteResult(task.site, task.output, "failed", None, error, task.source), []


class Site(NamedTuple):
    """A dump: the name of its site, its path or URL, and the file or folder to write."""

    name: str
    path: str
    output: str


def dump_tasks(
    make: Callable[..., Done], dumps: Iterable[Site], kwargs: Mapping[str, Any]
) -> list[SiteTask]:
    """Make a task for each of several dumps.

    Args:
        make: Function called with a dump, an output and the keywords.
        dumps: The dumps.
        kwargs: The keywords.
    """
    choose_core(kwargs.get("core", "auto"))  # This process explains the choice, workers do not.
    return [
        SiteTask(
            site,
            output,
            input_size([path]),
            partial(make, path, output, **kwargs),
            without_secrets(path),
        )
        for site, path, output in dumps
    ]


def plan_outputs(sources: Iterable[str | os.PathLike[str]], folder: str, end: str) -> list[Site]:
    """Name the site and the output of each dump.

    Args:
        sources: Paths of the dumps.
        folder: Folder for the outputs.
        end: Text to append to the name of the site, such as `.jsonl.gz`.

    Returns:
        The dumps; a source that is listed twice occurs once.

    Raises:
        OptionError: Two dumps would have the same output, or a folder holds several dumps.
    """
    if isinstance(sources, str | os.PathLike):
        raise OptionError(f"{os.fspath(sources)}: is a single path; give a list of paths")
    planned: dict[str, Site] = {}
    for source_like in sources:
        source = os.fspath(source_like)
        if os.path.isdir(source):
            dumps = members_with(POSTS, list_folder(source))
            if len(dumps) > 1:
                pattern = os.path.join(source, f"*{os.path.splitext(dumps[0])[1]}")
                raise OptionError(f"{source}: is a folder of several dumps; list them: {pattern}")
        site = site_from_name(source)
        output = os.path.join(folder, f"{site}{end}")
        other = planned.setdefault(output.lower(), Site(site, source, output))
        if other.path != source:
            raise OptionError(
                f"{source}: would have the same output as {other.path} ({output}); "
                "rename one of them, or convert it separately"
            )
    return list(planned.values())


def input_size(paths: Iterable[str]) -> int:
    """Estimate the bytes of XML or JSON in local files and folders; 0 for anything else."""
    files = []
    for path in paths:
        is_folder = os.path.isdir(path)
        files += [entry.path for entry in os.scandir(path)] if is_folder else [path]
    return sum(
        os.path.getsize(file) * (1 if file.lower().endswith(_PLAIN) else _PACKED)
        for file in files
        if os.path.isfile(file)
    )


def summary(results: Sequence[SiteResult]) -> str:
    """Format a table with a line for each site, the totals, and the number of sites by state.

    Sites that were up to date have no line.
    """
    shown = [result for result in results if result.state != UP_TO_DATE]
    numbers = [{} if result.result is None else result.result.columns() for result in shown]
    names = dict.fromkeys(name for values in numbers for name in values)
    # Move `seconds` to the end; the other columns keep their order.
    columns = sorted(names, key=lambda name: name == "seconds")
    rows: list[tuple[str, ...]] = [("site", "state", *columns)]
    for result, values in zip(shown, numbers, strict=True):
        cells = (_number(values.get(name, 0)) if values else "" for name in columns)
        rows.append((on_one_line(result.site), result.state, *cells))
    totals = (sum(values.get(name, 0) for values in numbers) for name in columns)
    rows.append(("total", "", *map(_number, totals)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join((*map(str.ljust, row[:2], widths), *map(str.rjust, row[2:], widths[2:]))).rstrip()
        for row in rows
    ]
    states = Counter(result.state for result in results if result.error is None)
    counts = [f"{count:,} {state}" for state, count in states.items()]
    counts.append(f"{len(results) - states.total():,} failed")
    end = f"{plural(len(results), 'site')}: {', '.join(counts)}"
    return "\n".join([*lines, end] if shown else [end])


def _number(number: int | float) -> str:
    return f"{number:.1f}" if isinstance(number, float) else f"{number:,}"
