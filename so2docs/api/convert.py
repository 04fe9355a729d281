"""Convert a dump to a file or an iterator of documents, with a spill between the two passes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import orjson

from so2docs.api.resolve import options_for
from so2docs.api.spills import has_spill, opened_spill
from so2docs.dump.opening import TableFile
from so2docs.dump.source import DumpLike, Source, open_first
from so2docs.errors import ChangedDumpError, DiskFullError, DumpError, OptionError, explain, flag
from so2docs.options.output_form import default_output, output_form
from so2docs.options.request import build_run_options, read_keywords
from so2docs.options.signatures import spell_out
from so2docs.options.table import OF_CONVERT, TRANSFORM_OPTIONS, Options, RunOptions
from so2docs.output.new_files import write_file
from so2docs.output.part_files import REPORT, check_own
from so2docs.output.paths import OutputOfConversion, OutputPaths
from so2docs.output.provenance import Provenance
from so2docs.parse.opt_outs import OptOuts
from so2docs.pipeline.session import Session
from so2docs.progress import log
from so2docs.registry import find_hook
from so2docs.report import Report
from so2docs.standard_streams import open_standard_output

if TYPE_CHECKING:
    from so2docs.options.keywords import ConvertKeywords


@spell_out(OF_CONVERT)
def convert(
    source: DumpLike,
    output: str | os.PathLike[str] | None = None,
    **keywords: Unpack[ConvertKeywords],
) -> Report:
    """Convert a dump into one document per question, with its answers inside.

    Repeating the call resumes an interrupted conversion, and gives the same bytes as a conversion
    without interruption.

    Args:
        source: The `Posts.xml` of a Stack Exchange dump, plain or compressed (7z, zip, gzip,
            bzip2, xz, zstd), a folder with this file, `-` for standard input, or an open binary
            file, which is left open. If the input can be read only once, such as a pipe, the
            conversion cannot be resumed.
        output: File for the documents, in ascending order of question id. If None,
            `questions.jsonl.gz`, or with the extension of `format` if that is given, such as
            `questions.parquet`. The extension sets format and compression, unless they are given.
            `-` is standard output, uncompressed. A single file in the format `jsonl` gets a small
            index next to it, `.OUTPUT.index`, which `open` uses to find documents.
        keywords: Options for filters, the form of documents and files, and the run:
            `so2docs.options.keywords.ConvertKeywords`.

    Returns:
        A report with the counts, sizes and times of the conversion. If the output is up to date, it
        is not rewritten, and the report contains the counts recorded when it was written.

    Raises:
        OptionError: An option has a value that is not allowed.
        DumpError: The dump is truncated or malformed, or changed while being read. The error gives
            the position.
        StrictError: With `strict`, a row or character would have to be repaired or left out.
        OutputError: The output was made from another input or with other options (without `update`
            or `force`), or cannot be written.
        SpillError: The spill is in use, damaged, or was made from another dump.
        DiskFullError: The disk is full.
        WorkerDiedError: A worker process was killed.
    """
    return convert_validated(source, output, read_keywords(keywords, OF_CONVERT))


def convert_validated(
    dump: DumpLike,
    output: str | os.PathLike[str] | None,
    values: Mapping[str, Any],
    *,
    is_alone: bool = True,
) -> Report:
    """Convert a dump as `convert` does, with converted options.

    If the conversion is not alone, the caller checks and writes the card of the folder.
    """
    path = os.fspath(default_output(values) if output is None else output)
    path = TRANSFORM_OPTIONS.find_output(None if output is None else path, values) or path
    run = build_run_options(values)
    if path == run.report == "-":
        raise OptionError(f"OUTPUT and {flag('report')} cannot both go to standard output")
    begun = time.perf_counter()
    card = find_hook("card") if run.card else None
    with Source(dump) as source:
        check_report(run.report, [source.path, path, *run.tables.values()])
        options = options_for(source, values, output_form(path, values))
        names = OutputPaths.of(path, options, run)
        with _explain_dump_errors(names, options), explain():
            files = _plan(source, options, run, names, card, is_alone=is_alone)

            def finish(report: Report, *, is_found: bool = False) -> None:
                if card is not None:
                    if is_found:
                        card.complete_manifest(report.output)
                    else:
                        card.write_manifest(names, [file.file for file in files])
                    if is_alone:
                        card.describe_folder(card.folder_of_card(names), force=run.force)
                if not is_found:
                    report.seconds = time.perf_counter() - begun
                    is_file = os.path.isfile(report.dump)
                    report.file_bytes = os.path.getsize(report.dump) if is_file else 0
                if not is_found or not _has_report(report, run.report):
                    write_report(run.report, report.as_dict())

            return _run(files, options, run, names, finish)


@contextmanager
def _explain_dump_errors(names: OutputPaths, options: Options) -> Iterator[None]:
    """Add the advice to start over, and save the excerpt unless an opted-out user is in it."""
    try:
        yield
    except DumpError as error:
        if isinstance(error, ChangedDumpError) and has_spill(names):
            error.advice += f", with {flag('restart', True)} if it has changed"
        if error.excerpt and OptOuts(options.filters, None).mentions(error.excerpt):
            error.excerpt = None
        names.save_excerpt(error)
        raise


def _plan(
    source: Source,
    options: Options,
    run: RunOptions,
    names: OutputPaths,
    card: Any,
    *,
    is_alone: bool,
) -> list[TableFile]:
    """Find the files to read, and check that everything can be written."""
    if card is not None:  # Refuse a URL before fetching any of it.
        card.check_sources([source.path, *map(str, run.tables.values())])
    files = source.find_to_convert(options.tables, run.tables)
    read = [file.file for file in files]
    if card is not None:
        card.check_card(names, options, read)
        if is_alone:
            folder = card.folder_of_card(names)
            card.check_folder_of_card(folder, [names.output], read, force=run.force)
    if _is_fresh(files, run, names):
        # Open the first file here, so that an error in it leaves no output folder. A resumed
        # session opens it at the chunk where it continues.
        open_first(files, run.threads, names.work_folder)
    names.make_folders()
    names.check(read)
    return files


def _is_once(files: Iterable[TableFile]) -> bool:
    """Whether an input can be read only once, so that the conversion cannot be resumed."""
    return any(file.file is None for file in files)


def _is_fresh(files: Iterable[TableFile], run: RunOptions, names: OutputPaths) -> bool:
    """Whether the conversion starts over, instead of resuming an earlier session."""
    return run.restart or _is_once(files) or not has_spill(names)


def _run(
    files: list[TableFile],
    options: Options,
    run: RunOptions,
    names: OutputPaths,
    finish: Callable[..., None],
) -> Report:
    """Run both passes unless the output is up to date, and return the report.

    Args:
        files: The tables to read, the posts first.
        options: Options of the conversion.
        run: Options of the run.
        names: Paths of the output.
        finish: Called with the report once the output is complete, before the spill is removed, so
            that a conversion killed in the call can be resumed; or with `is_found` if up to date.
    """
    is_once = _is_once(files)
    output = OutputOfConversion(names, Provenance.of(files, options))
    if _is_fresh(files, run, names):
        existing = output.find(force=run.force, update=run.update)
        if existing is not None:
            output.clean_up()
            finish(existing, is_found=True)
            return existing
    with opened_spill(names, restart=run.restart or is_once, is_once=is_once) as spill:
        with explain():
            output.write = Session(files, spill, options, names, run).run
            report = output.build(force=run.force, update=run.update)
            finish(report)
        # Release the lock first, so that a kill during the removal leaves a valid spill.
        with explain():
            spill.remove()
    return report


def _has_report(report: Report, path: str | None) -> bool:
    """Whether the file at `path` is the report of an earlier call that made the same output."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        values = orjson.loads(Path(path or "").read_bytes())
        names = ("output", "output_bytes", "questions")
        return all(values[name] == getattr(report, name) for name in names)
    return False


def check_report(path: str | None, files: Iterable[str | None]) -> None:
    """Check before the conversion that the report replaces no input, output or other file."""
    if path == "-":
        open_standard_output()  # Fail now if it is closed.
    elif path is not None:
        check_own(path, REPORT, [*filter(None, files)])


def write_report(path: str | None, report: object) -> None:
    """Write a report as JSON; `-` is standard output, and None writes nothing.

    If the disk is full, the report is logged instead, since nothing else has the results.
    """
    if path is None:
        return
    text = json.dumps(report, indent=2) + "\n"
    if path == "-":
        open_standard_output().write(text.encode())
        return
    try:
        write_file(path, text.encode())
    except DiskFullError:
        log.error("%s: the disk is full; this is the report: %s", path, json.dumps(report))
        raise
