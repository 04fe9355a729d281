"""Convert a dump to a file or an iterator of documents, with a spill between the two passes."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import orjson

from so2docs.dump.opening import TableFile
from so2docs.dump.source import DumpLike, Source, in_reading_order
from so2docs.errors import (
    ChangedDumpError,
    DumpError,
    OptionError,
    So2docsError,
    SpillError,
    SpillTakenError,
    flag,
    require_packages,
    resumable,
)
from so2docs.options.keywords import ConvertKeywords, IteratorKeywords, spell_out
from so2docs.options.output_form import default_output, output_form, records_path
from so2docs.options.request import (
    build_options,
    build_run_options,
    table_files,
    tables_to_nest,
    validate_keywords,
)
from so2docs.options.sites import checked_host, published_host
from so2docs.options.table import (
    OF_CONVERT,
    OF_ITERATOR,
    Options,
    OutputForm,
    RunOptions,
    taken_by,
)
from so2docs.output.additions import ADDITIONS, Addition
from so2docs.output.new_files import output_lock, temporary_folder, write_file
from so2docs.output.part_files import REPORT, check_own, describe_missing_folder
from so2docs.output.paths import OutputOfConversion, OutputPaths
from so2docs.output.provenance import File, Provenance
from so2docs.parse.core import choose_core
from so2docs.parse.opt_outs import OptOuts
from so2docs.pipeline.session import Session
from so2docs.progress import log
from so2docs.reader.framed import Framed, in_batches
from so2docs.report import Report
from so2docs.schema import TABLES
from so2docs.spill import Spill, clear
from so2docs.store.disk import disk_errors


def spill_path(names: OutputPaths) -> Path:
    """Return the path of the spill folder for an output."""
    return Path(names.work_folder or ".", f"{os.path.basename(names.output)}.spill")


def has_spill(names: OutputPaths) -> bool:
    """Whether an earlier session left a spill to resume from."""
    if names.output == "-":
        return False
    folder = spill_path(names)
    with suppress(OSError):
        folder.rmdir()  # Remove the empty folder that a kill at the very last step leaves.
    return folder.exists()


@contextmanager
def opened_spill(
    names: OutputPaths, *, restart: bool = False, is_once: bool = False
) -> Iterator[Spill]:
    """Open the spill of an output; for standard output, make a temporary spill.

    Errors raised in the block say whether the same call would resume. Before the first chunk is
    committed, there is nothing to resume, so the folder is removed. After success, the caller
    removes the spill.
    """
    parent = names.work_folder
    if parent is not None and not os.path.isdir(parent):
        problem = describe_missing_folder(parent, f"choose another {flag('work_dir')}")
        raise SpillError(f"{parent}: the folder for the spill {problem}")
    if names.output == "-":
        with (
            resumable(False),
            temporary_folder(parent) as folder,
            closing(Spill(folder)) as spill,
        ):
            yield spill
        return
    spill = _open(spill_path(names), restart=restart)
    try:
        yield spill
    except BaseException:
        is_done = spill.is_done(is_once=is_once)
        resumes = not is_once and not is_done and spill.is_begun()
        if not resumes:
            with suppress(OSError):
                spill.remove()
        with resumable(resumes, is_done=is_done):
            raise
    finally:
        spill.close()


def _open(folder: Path, *, restart: bool) -> Spill:
    if restart and folder.exists():
        try:
            Spill(folder).remove()
        except SpillTakenError:
            raise
        except SpillError:
            clear(folder)  # The folder holds a damaged spill, so empty it.
    return Spill(folder)


if TYPE_CHECKING:
    from so2docs.types import Question


@spell_out(taken_by(*OF_CONVERT))
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
    return convert_validated(source, output, validate_keywords(keywords, *OF_CONVERT))


def convert_validated(
    dump: DumpLike,
    output: str | os.PathLike[str] | None,
    kwargs: Mapping[str, Any],
    site_field: tuple[str, str] | None = None,
) -> Report:
    """Convert a dump as `convert` does, with validated keywords and a field for each document."""
    path = os.fspath(default_output(kwargs) if output is None else output)
    path = records_path(output, kwargs) or path
    run = build_run_options(kwargs)
    if path == run.report == "-":
        raise OptionError(f"OUTPUT and {flag('report')} cannot both go to standard output")
    begun = time.perf_counter()
    additions = [ADDITIONS[name] for name in run.additions]
    with Source(dump) as source:
        check_report(run.report, [source.path, path, *run.tables.values()])
        options = options_for(source, kwargs, output_form(path, kwargs), site_field)
        names = OutputPaths.of(path, options, run)
        with _explain_dump_errors(names, options), disk_errors():
            files = _plan(source, options, run, names, additions)

            def finish(report: Report) -> None:
                for addition in additions:
                    addition.write(names, [file.file for file in files])
                report.seconds = time.perf_counter() - begun
                report.file_bytes = (
                    os.path.getsize(report.dump) if os.path.isfile(report.dump) else 0
                )
                write_report(run.report, report.as_dict())

            report = _run(files, options, run, names, finish)
            if not report.is_new:
                for addition in additions:
                    addition.complete(report.output, force=run.force)
                if not _has_report(report, run.report):
                    write_report(run.report, report.as_dict())
    return report


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
    additions: Iterable[Addition],
) -> list[TableFile]:
    """Find the files to read, and check that everything can be written."""
    for addition in additions:  # Refuse a URL before fetching any of it.
        addition.check_sources([source.path, *map(str, run.tables.values())])
    files = source.find_to_convert(options.tables, run.tables)
    read = [file.file for file in files]
    for addition in additions:
        addition.check(names, options, read, force=run.force)
    if _is_fresh(files, run, names):
        # Open the first file here, so that an error in it leaves no output folder. A resumed
        # session opens it at the chunk where it continues.
        open_first(files, run, names)
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
    finish: Callable[[Report], None],
) -> Report:
    """Run both passes unless the output is up to date, and return the report.

    Args:
        files: The tables to read, the posts first.
        options: Options of the conversion.
        run: Options of the run.
        names: Paths of the output.
        finish: Called with the report once the output is complete, before the spill is removed, so
            that a conversion killed in the call can be resumed.
    """
    is_once, replaces = _is_once(files), run.force or run.update
    if _is_fresh(files, run, names):
        output = OutputOfConversion(names, Provenance.of(files, options))
        existing = output.find(force=run.force, update=run.update)
        if existing is not None:
            return existing
        replaces = output.replaces
        if not replaces:
            names.check_side_files()
    with opened_spill(names, restart=run.restart or is_once, is_once=is_once) as spill:
        with disk_errors(), output_lock(names.output):
            session = Session(files, spill, options, names, run)
            try:
                report = session.run(replaces=replaces)
            except BaseException:
                if is_once:
                    names.remove_temporaries()
                raise
            finish(report)
        # Release the lock first, so that a kill during the removal leaves a valid spill.
        with disk_errors():
            if run.keep_spill:
                spill.put_all({"finished": True, "sealed": None, "checkpoint": None})
            else:
                spill.remove()
    return report


def _has_report(report: Report, path: str | None) -> bool:
    """Whether the file at `path` is the report of an earlier call that made the same output."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        values = orjson.loads(Path(path or "").read_bytes())
        names = ("output", "output_bytes", "questions")
        return all(values[name] == getattr(report, name) for name in names)
    return False


def open_first(files: list[TableFile], run: RunOptions, names: OutputPaths) -> None:
    """Open the file that a conversion reads first."""
    in_reading_order(files)[0].open(threads=run.threads, work_dir=names.work_folder)


def options_for(
    source: Source,
    kwargs: Mapping[str, Any],
    form: OutputForm | None = None,
    site_field: tuple[str, str] | None = None,
) -> Options:
    """Build the options of a conversion from validated keywords; look for its host and tables."""
    site, field = kwargs.get("site"), kwargs.get("site_field")
    if field is not None:
        site_field = field, source.site() if site is None else site
    options = build_options(kwargs, form, site_field, core=choose_core(kwargs.get("core", "auto")))
    source.check_exists()
    if options.is_attributed:
        options = replace(options, host=_host(source, site))
    elif options.body == "markdown" or options.filters.as_of is not None:
        known = published_host(site) or source.published_host()
        if site is not None and field is None:
            known = checked_host(site)
        options = replace(options, host=known)
    elif site is not None and field is None:
        raise OptionError(
            f"{flag('site')} needs {flag('attribution', True)}, {flag('site_field')}, "
            f"{flag('body', 'markdown')}, {flag('as_of')}, or a recipe that writes URLs"
        )
    options = _choose_tables(source, kwargs, options)
    if options.recipe is None:
        return options
    optional = [name for name in options.recipe.recipe.optional_tables if name not in options.nest]
    present = source.select_present(optional)
    for name in sorted({*optional} - {*present}):
        log.info(
            "recipe %s: records do not contain the %s, which were not found",
            options.recipe.spec,
            name,
        )
    return replace(options, nest=tables_to_nest([*options.nest, *present], {}))


def _host(source: Source, requested: str | None) -> str:
    """Return the requested host, or the host in the name of the dump."""
    if requested is not None:
        return checked_host(requested)
    if published := source.published_host():
        return published
    raise OptionError(
        f"the host name of the site cannot be derived from {source.site()!r}; "
        f"give it, as in {flag('site', 'beer.stackexchange.com')}, or put the dump into a folder "
        "of that name"
    )


def _choose_tables(source: Source, kwargs: Mapping[str, Any], options: Options) -> Options:
    """Add the tables to restore a date from; leave out missing tables with `if_present`."""
    for_state = _tables_for_state(options)
    if options.if_present:
        required = {*table_files(kwargs), *(options.recipe.recipe.tables if options.recipe else ())}
        wanted = [
            name
            for name in (*options.nest, *for_state)
            if not {name, TABLES[name].file_option} & required
        ]
        missing = {*wanted} - {*source.select_present(wanted)}
        missing |= {name for name in options.nest if TABLES[name].needs in missing}
        for name in sorted(missing):
            if name in options.nest:
                log.warning("the dump has no %s; they are not nested", name)
            else:
                log.warning("the dump has no %s; %s", TABLES[name].file, _WITHOUT[name])
        nest = tuple(name for name in options.nest if name not in missing)
        for_state = [name for name in for_state if name not in missing]
        options = replace(options, nest=nest, if_present=tuple(sorted(missing)))
    elif for_state:
        for name in sorted({*for_state} - {*source.select_present(for_state)}):
            raise OptionError(
                f"{flag('as_of')} needs {TABLES[name].file}, which is neither in the dump nor next "
                f"to it; name its file with {flag('tables', {TABLES[name].file_option: 'FILE'})}, "
                f"or add {flag('if_present', True)}: then {_WITHOUT[name]}"
            )
    if options.filters.as_of is not None:
        read = {TABLES[name].file for name in (*options.nest, *for_state)}
        if not options.restores_markdown and TABLES["history"].file in read:
            require_packages(f"HTML of bodies restored by {flag('as_of')}", "cmarkgfm")
        counted = [] if "comments" in options.nest else ["comments"]
        for_state += source.select_present(counted)
        options = replace(options, for_state=tuple(for_state))
    return options


_WITHOUT = {
    "history": "posts edited after the date become strays",
    "votes": "Score and AcceptedAnswerId are left out",
}
"""Consequences of missing tables that are needed to restore the state of a date."""


def _tables_for_state(options: Options) -> list[str]:
    """List the tables that are needed to restore the state of a date, and are not nested."""
    if options.filters.as_of is None:
        return []
    nested = {TABLES[name].file for name in options.nest}
    return [name for name in _WITHOUT if TABLES[name].file not in nested]


def find_input(source: Source, nest: Iterable[str]) -> list[File]:
    """Identify the files that a conversion would read: the posts, then the nested tables."""
    if source.is_stream:
        return [File.read_once("posts", "")]
    files = source.find_to_convert(tables_to_nest(nest, {}), {})
    return [File.of_table(file) for file in files]


class Documents(Framed, AbstractContextManager["Documents"]):
    """An iterator over documents; `report` is available after the last one.

    A frame such as `answers.to_pandas()` reads the remaining documents.

    Attributes:
        provenance: Provenance of the documents; None until all documents are read.
        lines: Iterator over the remaining documents as JSON.
    """

    def __init__(self, source: Source, options: Options, run: RunOptions) -> None:
        self.path = source.name
        self._report: Report | None = None
        self.provenance: Provenance | None = None
        self.lines = self._lines(source, options, run)
        self._iterator: Iterator[Question] = map(orjson.loads, self.lines)

    @property
    def report(self) -> Report:
        """The counts, sizes and times of the conversion.

        Raises:
            So2docsError: Not all documents have been read yet.
        """
        if self._report is None:
            raise So2docsError("the report is not complete; read all documents first")
        return self._report

    def __iter__(self) -> Iterator[Question]:
        return self._iterator

    def __next__(self) -> Question:
        return next(self._iterator)

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _document_batches(self) -> Iterator[list[dict[str, Any]]]:
        return in_batches(self)

    def close(self) -> None:
        """Stop the iteration and remove the temporary spill."""
        self.lines.close()

    def _lines(
        self, source: Source, options: Options, run: RunOptions
    ) -> Generator[bytes, None, None]:
        with document_session(source, options, run) as session:
            for _, line in chain.from_iterable(session.documents()):
                yield line
            self._report = session.report
            self.provenance = session.provenance.having_read(self._report.dump_bytes).with_counts(
                self._report
            )


@contextmanager
def document_session(source: Source, options: Options, run: RunOptions) -> Iterator[Session]:
    """Open a session, with a temporary spill, that yields documents instead of writing them."""
    names = OutputPaths("-", run.work_dir)
    with disk_errors(), source:
        files = source.find_to_convert(options.tables, run.tables)
        open_first(files, run, names)
        with opened_spill(names) as spill:
            yield Session(files, spill, options, names, run)


@spell_out(taken_by(*OF_ITERATOR))
def documents(source: DumpLike, **keywords: Unpack[IteratorKeywords]) -> Documents:
    """Iterate over the documents of a dump without writing an output.

    Examples:
        >>> with so2docs.documents("Posts.xml", tags="python") as questions:
        ...     for question in questions: ...

    Args:
        source: A dump as for `convert`: the `Posts.xml` of a Stack Exchange dump, plain or
            compressed, a folder with this file, `-` for standard input, or an open binary file.
        keywords: Options for filters, the form of documents, and the run:
            `so2docs.options.keywords.IteratorKeywords`.

    Returns:
        An iterator over the documents, in ascending order of question id.

    Raises:
        OptionError: An option has a value that is not allowed.
        DumpError: The dump does not exist. The other errors that `convert` raises are raised while
            iterating.
    """
    kwargs = validate_keywords(keywords, *OF_ITERATOR)
    with Source(source) as dump:
        return Documents(dump, options_for(dump, kwargs), build_run_options(kwargs))


def check_report(path: str | None, files: Iterable[str | None]) -> None:
    """Check before the conversion that the report replaces no input, output or other file."""
    if path is not None and path != "-":
        check_own(path, REPORT, [*filter(None, files)])


def write_report(path: str | None, report: object) -> None:
    """Write a report as JSON; `-` is standard output, and None writes nothing."""
    if path is None:
        return
    text = json.dumps(report, indent=2) + "\n"
    if path == "-":
        sys.stdout.write(text)
        return
    write_file(path, text.encode())
