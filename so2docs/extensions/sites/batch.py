"""Convert several dumps, each to an output named after its site."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Unpack

from so2docs.extensions.sites.tasks import (
    Done,
    SiteResult,
    WhenDone,
    dump_tasks,
    plan_outputs,
    run_sites,
)
from so2docs.options.output_form import check_several, output_form, output_suffix
from so2docs.options.request import build_run_options, read_keywords
from so2docs.options.table import OF_CONVERT, TRANSFORM_OPTIONS
from so2docs.output.new_files import open_folder, write_file
from so2docs.output.part_files import FAILED, side_file
from so2docs.output.paths import OutputPaths
from so2docs.plugin import (
    UP_TO_DATE,
    OptionError,
    check_report,
    convert_validated,
    find_hook,
    flag,
    spell_out,
    without_date,
    write_report,
)

if TYPE_CHECKING:
    from so2docs.options.keywords import ConvertKeywords


@spell_out(OF_CONVERT)
def convert_all(
    sources: Iterable[str | os.PathLike[str]],
    output_dir: str | os.PathLike[str],
    *,
    when_done: WhenDone | None = None,
    **keywords: Unpack[ConvertKeywords],
) -> list[SiteResult]:
    """Convert several dumps, and continue if one of them fails.

    Small dumps are converted in parallel, each by one process. Large dumps are converted one after
    the other, each by all processes.

    Outputs that are up to date are left unchanged, so repeating the call after an interruption
    continues with the first missing output. A dump fails if its output exists but was made from
    another input or with other options, unless `update` or `force` is given. After an
    interruption, the report lists the dumps that are done.

    Args:
        sources: Paths of the dumps, in any form supported by `convert`.
        output_dir: Folder for the outputs, made if it does not exist. The outputs are
            named after the site and the format, such as `SITE.jsonl.gz`; with the recipe `hub`,
            such as `SITE/train-00000-of-00001.jsonl.gz`.
        when_done: Function called with the result of each conversion as it ends, in any order.
        keywords: Keywords of `convert`, for each dump.

    Returns:
        The result of each dump, in the order of the dumps.

    Raises:
        OptionError: Two dumps would have the same output, or an option is not allowed.
    """
    kwargs = read_keywords(keywords, OF_CONVERT)
    report_path = kwargs.pop("report", None)
    end = output_suffix(kwargs)
    form, run = output_form(f"questions{end}", kwargs), build_run_options(kwargs)
    check_several(form, kwargs.get("site_field"))
    if not (folder := os.fspath(output_dir)):
        raise OptionError(
            f"{flag('output_dir')} is empty, perhaps from an unset variable; give the name of a "
            "folder"
        )
    if run.tables:
        raise OptionError(
            f"{flag(next(iter(run.tables)))} applies to one dump; for several, give "
            f"{flag('nest')}, "
            "which reads the tables next to the posts of each dump"
        )
    transform = TRANSFORM_OPTIONS.of(kwargs).transform
    if transform.files:
        raise OptionError(
            f"{flag('recipe', transform.name)} cannot be used with several dumps; convert one at a "
            "time"
        )
    end = f"{os.sep}train{end}" if transform.is_by_site else end
    planned = plan_outputs(sources, folder, end)
    if kwargs.get("site") is not None and len(planned) > 1:
        raise OptionError(f"{flag('site')} applies to one dump; convert one dump at a time")
    read, outputs = [site.path for site in planned], [site.output for site in planned]
    check_report(report_path, read)
    card = find_hook("card") if run.card else None
    if card is not None:
        card.check_folder_of_card(folder, outputs, read, force=run.force)
    open_folder(folder)
    done: list[SiteResult] = []

    def finish(result: SiteResult) -> None:
        _record_failure(result)
        done.append(result)
        if when_done is not None:
            when_done(result)

    jobs, progress = kwargs.pop("jobs", None), kwargs.pop("progress", False)
    tasks = dump_tasks(_convert, planned, kwargs)
    try:
        done = run_sites(tasks, jobs, progress=progress, when_done=finish)
        if card is not None and any(result.error is None for result in done):
            card.describe_folder(folder, force=run.force)
    finally:
        write_report(report_path, [result.as_dict() for result in done])
    return done


def _convert(source: str, output: str, **kwargs: Any) -> Done:
    report = convert_validated(source, output, kwargs, is_alone=False)
    return Done("converted", output, report) if report.is_new else Done(UP_TO_DATE, output)


def _record_failure(result: SiteResult) -> None:
    """Write the error of a site without an output next to where its output would be.

    A later comparison of the folder thus tells a site that failed from one without a dump.
    """
    path = side_file(result.output, FAILED)
    with suppress(OSError):  # The disk may be full; the error itself is reported in any case.
        if result.state == "failed" and not os.path.exists(result.output):
            write_file(path, f"{result.error}\n".encode())
        elif os.path.exists(path):
            os.remove(path)


def failures_in(folder: str) -> dict[str, str]:
    """Read the errors of the sites in a folder whose conversion failed, by site."""
    failures = {}
    for name in os.listdir(folder):
        if name.startswith(".") and name.endswith(f".{FAILED}"):
            stem = OutputPaths(name.removeprefix(".").removesuffix(f".{FAILED}"), None).stem
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                failures[without_date(stem)] = file.read().strip()
    return failures
