"""Several dumps in one go: one output each, named after the site."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Unpack

from so2docs.conversion import convert, work_folder
from so2docs.errors import OptionError, So2docsError, flag, shown
from so2docs.options.choices import FORMATS
from so2docs.options.keywords import ConvertKeywords
from so2docs.options.output_form import ending
from so2docs.options.request import output_form
from so2docs.options.signatures import spelled_out
from so2docs.options.sites import site_of
from so2docs.output.paths import Names
from so2docs.passes.spill_folder import has_sealed_spill
from so2docs.progress import about
from so2docs.report import Report


@dataclass(frozen=True, slots=True)
class Conversion:
    """What became of one of several dumps.

    Attributes:
        source: The dump.
        site: The site's name, from that of the dump.
        output: File for its documents.
        report: Of the conversion; None if there was none.
        error: Why it failed; None if it did not.
    """

    source: str
    site: str
    output: str
    report: Report | None = None
    error: Exception | None = None

    def __str__(self) -> str:
        if self.error is not None:
            text = str(self.error)
            return text if text.startswith(self.source) else f"{self.source}: {text}"
        if self.report is None:
            advice = shown(f"{flag('force', True)} converts {self.source} again")
            return f"{self.output}: exists, left as it is; {advice}"
        report = self.report
        counts = f"{report.questions:,} questions, {report.answers:,} answers"
        return f"{self.source}: {counts} -> {self.output}"

    def as_dict(self) -> dict[str, Any]:
        """All fields in JSON types."""
        return {
            "source": self.source,
            "site": self.site,
            "output": self.output,
            "report": None if self.report is None else self.report.as_dict(),
            "error": None if self.error is None else str(self.error),
        }


@spelled_out
def convert_all(
    sources: Iterable[str | os.PathLike[str]],
    output_dir: str | os.PathLike[str],
    *,
    site_field: str | None = None,
    when_done: Callable[[Conversion], object] | None = None,
    **keywords: Unpack[ConvertKeywords],
) -> list[Conversion]:
    """Convert dump after dump, whether or not one of them fails.

    Outputs that exist are left as they are, so that the same call after an interruption resumes
    with the first that is missing.

    Args:
        sources: The dumps, each in any form that `convert` takes a path of.
        output_dir: Folder for the outputs, `SITE.jsonl.gz` or as the format asks; made if it does
            not exist.
        site_field: Name of a field to add to each document, with the name of the site.
        when_done: Called with each conversion as soon as it has ended.
        keywords: As those of `convert`, for each dump.

    Returns:
        What became of each dump, in their order.

    Raises:
        OptionError: Two dumps would have the same output, or an option is not allowed.
    """
    end = ending(keywords.get("format"), keywords.get("compression"))
    form = output_form(f"questions{end}", keywords)
    force = keywords.get("force", False)
    if FORMATS[form.format].ids and site_field is None:
        raise OptionError(
            f"{flag('format', form.format)} of several sites needs "
            f"{flag('site_field', 'NAME')}: post ids are unique per site only, and documents "
            "of the same id would replace each other"
        )
    if not os.fspath(output_dir):
        raise OptionError(f"{flag('output_dir')} is empty, as an unset variable is; give a folder")
    if keywords.get("recipe") == "beir":
        raise OptionError(
            f"{flag('recipe', 'beir')} is a folder of its own; convert each dump alone"
        )
    planned = _plan([os.fspath(source) for source in sources], os.fspath(output_dir), end)
    if keywords.get("site") is not None and len(planned) > 1:
        raise OptionError(f"{flag('site')} is of one dump; convert it alone")
    os.makedirs(output_dir, exist_ok=True)
    done: list[Conversion] = []
    for source, site, output in planned:
        report, failure = None, None
        names = Names(output, work_folder(keywords), form)
        if force or not names.earlier_files() or has_sealed_spill(names):
            field = None if site_field is None else (site_field, site)
            try:
                with about(site):
                    report = convert(source, output, site_field=field, **keywords)
            except OptionError:
                raise
            except (So2docsError, OSError) as error:
                failure = error
        done.append(Conversion(source, site, output, report, failure))
        if when_done is not None:
            when_done(done[-1])
    return done


def _plan(sources: list[str], folder: str, end: str) -> list[tuple[str, str, str]]:
    """Source, site and output of each dump, or an `OptionError` if two would be the same."""
    planned: dict[str, tuple[str, str, str]] = {}
    for source in sources:
        site = site_of(source)
        output = os.path.join(folder, f"{site}{end}")
        other = planned.setdefault(output.lower(), (source, site, output))
        if other[0] != source:
            raise OptionError(
                f"{source}: would have the same output as {other[0]} ({output}); "
                "convert one of them alone"
            )
    return list(planned.values())


def summary(done: list[Conversion]) -> str:
    """A table with a line for each dump, and their number."""
    width = max(len("site"), *(len(conversion.site) for conversion in done))
    lines = [f"{'site':<{width}} {'questions':>12} {'answers':>12} {'strays':>9} {'seconds':>9}"]
    for conversion in done:
        report = conversion.report
        what = f"{'existed' if conversion.error is None else 'failed':>12}"
        if report is not None:
            strays = sum(report.all_strays().values())
            what = f"{report.questions:>12,} {report.answers:>12,} {strays:>9,}"
            what += f" {report.seconds:>9.1f}"
        lines.append(f"{conversion.site:<{width}} {what}")
    failed = sum(conversion.error is not None for conversion in done)
    converted = sum(conversion.report is not None for conversion in done)
    lines.append(f"{converted} of {len(done)} dumps converted, {failed} failed")
    return "\n".join(lines)
