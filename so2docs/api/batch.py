"""Several dumps in one go: one output each, named after the site.

Small dumps are converted side by side in worker processes that stay: to start one, and to import
what it needs, takes as long as a small site.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol, TypeVar, Unpack, get_args

import orjson

from so2docs.api.convert import check_report, convert_validated, write_report
from so2docs.errors import OptionError, So2docsError, WorkerDiedError, flag, resumable
from so2docs.options.choices import FORMATS
from so2docs.options.keywords import ConvertKeywords, spell_out
from so2docs.options.option import path
from so2docs.options.output_form import output_form, output_suffix
from so2docs.options.request import build_run_options, find_recipe, validate_keywords
from so2docs.options.sites import site_from_name
from so2docs.options.table import OF_CONVERT
from so2docs.output.paths import UP_TO_DATE, ExistingOutputError, State
from so2docs.pipeline.workers import Workers
from so2docs.progress import Progress, about, collect, log
from so2docs.report import Report

_SMALL = 128 * 1024 * 1024
"""A dump with fewer bytes of XML is converted by one process, where there are others like it."""

_SUMMED = {
    UP_TO_DATE: "up to date",
    "another dump": "made from another dump",
    "other options": "made with other options",
    "unknown": "of unknown origin",
}
_PACKED = 5
"""Bytes of XML for a byte of what is packed, about."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """The result for one of several dumps.

    Attributes:
        source: The dump.
        site: The site's name, from that of the dump.
        output: File for its documents.
        report: Of the conversion; None if there was none.
        error: Why it failed; None if it did not.
        ended: When, in seconds since 1970.
    """

    source: str
    site: str
    output: str
    report: Report | None = None
    error: Exception | None = None
    ended: float = field(default_factory=time.time, compare=False)

    @property
    def state(self) -> str:
        """The state in one word."""
        if isinstance(self.error, ExistingOutputError):
            return self.error.state
        if self.error is not None:
            return "failed"
        return UP_TO_DATE if self.report is None else "converted"

    def __str__(self) -> str:
        if self.error is not None:
            text = str(self.error)
            return text if text.startswith(self.source) else f"{self.source}: {text}"
        if self.report is None:
            return f"{self.output}: is up to date"
        report = self.report
        counts = f"{report.questions:,} questions, {report.answers:,} answers"
        return f"{self.source}: {counts} -> {self.output}"

    def as_dict(self) -> dict[str, Any]:
        """All fields in JSON types."""
        ended = datetime.fromtimestamp(self.ended, UTC).isoformat(timespec="seconds")
        return {
            "source": self.source,
            "site": self.site,
            "output": self.output,
            "state": self.state,
            "ended": ended,
            "converted": None if self.report is None else ended,
            "report": None if self.report is None else self.report.as_dict(),
            "error": None if self.error is None else str(self.error),
        }


@spell_out(*OF_CONVERT)
def convert_all(
    sources: Iterable[str | os.PathLike[str]],
    output_dir: str | os.PathLike[str],
    *,
    update: bool = False,
    when_done: Callable[[Conversion], object] | None = None,
    **keywords: Unpack[ConvertKeywords],
) -> list[Conversion]:
    """Convert several dumps, whether or not one of them fails.

    Small dumps are converted side by side, each by one process; larger ones one after the other,
    each by all processes.

    Outputs that are up to date are left unchanged, so that the same call after an interruption
    resumes with the first that is missing. One that was made from another dump or with other
    options is an error, unless `update` or `force` is given. The report is written
    as each dump ends, and keeps what it said of those that are not converted this time.

    Args:
        sources: The dumps, each in any form that `convert` takes a path of.
        output_dir: Folder for the outputs, `SITE.jsonl.gz` or as the format asks, with recipe `hub`
            `SITE/train.jsonl.gz`; made if it does not exist.
        update: Convert again what was made from another dump, with other options, or does not say
            how it was made; leave what is up to date.
        when_done: Called with each conversion when it has ended, in no order of theirs.
        keywords: As those of `convert`, for each dump.

    Returns:
        What became of each dump, in their order.

    Raises:
        OptionError: Two dumps would have the same output, or an option is not allowed.
    """
    kwargs = validate_keywords(keywords, *OF_CONVERT)
    report_path = path("report", kwargs.pop("report", None))
    end = output_suffix(kwargs)
    form, run = output_form(f"questions{end}", kwargs), build_run_options(kwargs)
    if FORMATS[form.format].ids and kwargs.get("site_field") is None:
        raise OptionError(
            f"{flag('format', form.format)} of several sites needs "
            f"{flag('site_field', 'NAME')}: post ids are unique per site only, and documents "
            "of the same id would replace each other"
        )
    if not os.fspath(output_dir):
        raise OptionError(
            f"{flag('output_dir')} is empty, as an unset variable is; give the name of a folder"
        )
    if kwargs.get("recipe") == "beir":
        raise OptionError(
            f"{flag('recipe', 'beir')} writes a folder for each dump; convert one dump at a time"
        )
    if run.tables:
        raise OptionError(
            f"{flag(next(iter(run.tables)))} applies to one dump; for several, give "
            f"{flag('nest')}, "
            "which reads the tables next to the posts of each"
        )
    choice = find_recipe(kwargs)
    by_site = choice is not None and choice.recipe.is_by_site
    end = f"{os.sep}train{end}" if by_site else end
    planned = _plan([os.fspath(source) for source in sources], os.fspath(output_dir), end)
    if kwargs.get("site") is not None and len(planned) > 1:
        raise OptionError(f"{flag('site')} applies to one dump; convert one dump at a time")
    check_report(report_path, [source for source, _, _ in planned])
    os.makedirs(output_dir, exist_ok=True)
    todo: list[_Site] = []
    results_by_source: dict[str, Conversion] = {}

    def finish(conversion: Conversion) -> None:
        results_by_source[conversion.source] = conversion
        if when_done is not None:
            when_done(conversion)
        if report_path not in (None, "-"):
            with suppress(So2docsError):  # The last one has to be written.
                write_report(
                    report_path, reports_with_earlier(results_by_source.values(), report_path)
                )

    for source, site, output in planned:
        has_manifest = report_path is not None
        todo.append(_Site(source, site, output, _size(source), kwargs, has_manifest, update))
    progress = Progress(shown=bool(kwargs.get("progress")))
    progress.plan(sum(task.size for task in todo))
    small, others = _split_by_size(todo, kwargs)
    with resumable(True):  # Outputs that are complete are not made again.
        with progress:
            if small:
                _convert_small(small, kwargs, progress, finish)
            for task in others:
                with progress.part(task.site, task.size):
                    conversion = _convert(task)
                finish(conversion)
        result = [results_by_source[source] for source, _, _ in planned]
        if report_path is not None:
            write_report(report_path, reports_with_earlier(result, report_path))
    return result


@dataclass(frozen=True, slots=True)
class _Site:
    """A dump to convert.

    Attributes:
        source: The dump.
        site: The site's name.
        output: File for its documents.
        size: Bytes of the dump, as far as they tell how much work it is.
        keywords: Keywords of `convert`, checked.
        has_manifest: Whether the report gets a manifest.
        is_updated: Whether an output that is not up to date is replaced.
    """

    source: str
    site: str
    output: str
    size: int
    keywords: Mapping[str, Any]
    has_manifest: bool
    is_updated: bool


def _convert(task: _Site) -> Conversion:
    """Convert a dump; an error that is not about the options is its result."""
    conversion = Conversion(task.source, task.site, task.output)
    try:
        with about(task.site):
            return replace(conversion, report=_report(task, task.keywords))
    except ExistingOutputError as existing:
        if existing.state == UP_TO_DATE:
            return conversion
        advice = (
            f"{flag('update', True)} converts what changed, {flag('force', True)} all dumps again"
        )
        return replace(conversion, error=existing.with_advice(advice))
    except OptionError:
        raise
    except (So2docsError, OSError) as error:
        return replace(conversion, error=error)


def _report(task: _Site, kwargs: Mapping[str, Any]) -> Report:
    """Convert a dump, over an output that is not up to date where that is asked for."""
    try:
        return convert_validated(task.source, task.output, kwargs, has_manifest=task.has_manifest)
    except ExistingOutputError as existing:
        if not task.is_updated or existing.state == UP_TO_DATE:
            raise
    return _report(replace(task, is_updated=False), {**kwargs, "force": True})


def _convert_small(
    sites: list[_Site],
    kwargs: Mapping[str, Any],
    progress: Progress,
    finish: Callable[[Conversion], object],
) -> None:
    """Convert small dumps side by side, each in one of the worker processes."""
    jobs = min(kwargs.get("jobs") or os.cpu_count() or 1, len(sites))
    alone = [
        replace(task, keywords={**task.keywords, "jobs": 1, "progress": False}) for task in sites
    ]
    total = sum(task.size for task in sites)
    work = closing(side_by_side(_convert, alone, jobs, _died))
    with progress.step(f"{len(sites)} sites", total, total) as bar, work as conversions:
        for task, conversion in conversions:
            finish(conversion)
            bar.update(task.size)


def _died(task: _Site, error: WorkerDiedError) -> Conversion:
    return Conversion(task.source, task.site, task.output, error=error)


class OfSite(Protocol):
    """Work on one of several sites."""

    @property
    def site(self) -> str:
        """The site's name."""


Task = TypeVar("Task", bound=OfSite)
Result = TypeVar("Result")


def side_by_side(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    jobs: int,
    died: Callable[[Task, WorkerDiedError], Result],
) -> Generator[tuple[Task, Result], None, None]:
    """Do the work on several sites, each in one of the worker processes, which stay.

    Args:
        function: A function of a module, so that a worker can import it.
        tasks: What to apply it to.
        jobs: Worker processes; 1 for none.
        died: The result of a task whose worker was killed.

    Yields:
        The tasks and their results, in order. Messages of workers are logged with the site.
    """
    tasks = list(tasks)
    if jobs == 1:
        yield from ((task, function(task)) for task in tasks)
        return

    def lost(task: Task, error: WorkerDiedError) -> tuple[Result, list[tuple[int, str]]]:
        return died(task, error), []

    with Workers(jobs) as workers:
        results = workers.run(partial(_run_quietly, function), tasks, died=lost)
        for task, (result, messages) in zip(tasks, results, strict=True):
            for level, message in messages:
                log.log(level, "%s: %s", task.site, message)
            yield task, result


def _run_quietly(
    function: Callable[[Task], Result], task: Task
) -> tuple[Result, list[tuple[int, str]]]:
    """In a worker: the result of a task, and its messages with their levels."""
    with collect() as messages:
        return function(task), messages


def _split_by_size(
    sites: list[_Site], kwargs: Mapping[str, Any]
) -> tuple[list[_Site], list[_Site]]:
    """The dumps that are so small that each is converted by one process, and the others."""
    # A function may be one that no other process can import.
    is_plain = isinstance(kwargs.get("recipe"), str | None)
    small = [task for task in sites if 0 < task.size < _SMALL]
    if not is_plain or len(small) < 2 or kwargs.get("jobs") == 1 or os.cpu_count() == 1:
        return [], sites
    return small, [task for task in sites if not 0 < task.size < _SMALL]


def _size(source: str) -> int:
    """Bytes of a dump, about, of XML; 0 for what is not a file or a folder of this system."""
    paths = [source]
    if os.path.isdir(source):
        paths = [entry.path for entry in os.scandir(source) if entry.is_file()]
    sizes = [
        os.path.getsize(path) * (1 if path.lower().endswith(".xml") else _PACKED)
        for path in paths
        if os.path.isfile(path)
    ]
    return sum(sizes)


def _plan(sources: list[str], folder: str, end: str) -> list[tuple[str, str, str]]:
    """Source, site and output of each dump, or an `OptionError` if two would be the same."""
    planned: dict[str, tuple[str, str, str]] = {}
    for source in sources:
        site = site_from_name(source)
        output = os.path.join(folder, f"{site}{end}")
        other = planned.setdefault(output.lower(), (source, site, output))
        if other[0] != source:
            raise OptionError(
                f"{source}: has the same output as {other[0]} ({output}); "
                "rename one of them, or convert it on its own"
            )
    return list(planned.values())


def reports_with_earlier(conversions: Iterable[Conversion], path: str) -> list[dict[str, Any]]:
    """List the results of all dumps, with those of an earlier report for dumps not converted now.

    Args:
        conversions: The conversions.
        path: The earlier report, if there is one. What it says of an output counts while the files
            have the sizes that it says. Dumps that are in it alone come last.
    """
    now = [conversion.as_dict() for conversion in conversions]
    earlier = {_key(entry): entry for entry in _earlier_entries(path)}
    for entry in now:
        before = earlier.pop(_key(entry), None)
        if entry["report"] is None and before is not None and _is_in_place(before):
            entry["report"], entry["converted"] = before["report"], before["converted"]
    return [*now, *earlier.values()]


def _key(entry: dict[str, Any]) -> str:
    return os.path.abspath(str(entry["output"]))


def _earlier_entries(path: str) -> list[dict[str, Any]]:
    """Read the entries of a report of several conversions; none if it is missing or damaged."""
    try:
        with open(path, "rb") as file:
            values = orjson.loads(file.read())
    except (OSError, ValueError):
        return []
    entries = values if isinstance(values, list) else []
    return [
        entry
        for entry in entries
        if isinstance(entry, dict) and isinstance(entry.get("output"), str) and "converted" in entry
    ]


def _is_in_place(entry: dict[str, Any]) -> bool:
    """Whether the files of an output still have the sizes that its report says."""
    folder = os.path.dirname(entry["output"])
    try:
        files = entry["report"]["manifest"]["files"]
        sizes = [os.path.getsize(os.path.join(folder, file["name"])) for file in files]
        return sizes == [file["bytes"] for file in files]
    except (OSError, KeyError, TypeError):
        return False


def summary(conversions: list[Conversion]) -> str:
    """A table with a line for each dump, and one with the totals."""
    rows: list[SiteRow] = []
    for conversion in conversions:
        report, numbers = conversion.report, None
        if report is not None:
            strays = sum(report.strays.values())
            numbers = (report.questions, report.answers, strays, report.seconds)
        rows.append((conversion.site, conversion.state, numbers))
    states = Counter(conversion.state for conversion in conversions)
    text = f"{states['converted']:,} of {len(conversions):,} dumps converted"
    for state in (UP_TO_DATE, *(name for name in get_args(State) if name != UP_TO_DATE)):
        text += f", {states[state]:,} {_SUMMED[state]}" if states[state] else ""
    table = site_table(("questions", "answers", "strays", "seconds"), rows)
    return f"{table}\n{text}, {states['failed']:,} failed"


SiteRow = tuple[str, str, Sequence[int | float] | None]
"""A site, its state, and its numbers, if there are any."""


def site_table(columns: Sequence[str], rows: Iterable[SiteRow]) -> str:
    """A table with a line for each site, and one with the totals.

    Args:
        columns: What the numbers are called.
        rows: The sites.
    """
    lines: list[tuple[str, ...]] = [("site", "state", *columns)]
    totals: list[int | float] = [0] * len(columns)
    for site, state, numbers in rows:
        lines.append((site, state, *_texts(numbers, len(columns))))
        if numbers is not None:
            totals = [total + number for total, number in zip(totals, numbers, strict=True)]
    lines.append(("total", "", *_texts(totals, len(columns))))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            text.ljust(width) if number < 2 else text.rjust(width)
            for number, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _texts(numbers: Sequence[int | float] | None, columns: int) -> list[str]:
    if numbers is None:
        return [""] * columns
    return [f"{n:.1f}" if isinstance(n, float) else f"{n:,}" for n in numbers]
