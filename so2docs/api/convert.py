"""A dump in, documents out, as a file or as an iterator, with the spill between the two passes."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import orjson

from so2docs.dump import storage
from so2docs.dump.opening import STANDARD_INPUT, Catalog, DumpLike
from so2docs.dump.tables import TableFile, find_posts, find_tables, in_reading_order, tables_beside
from so2docs.errors import (
    DumpError,
    OptionError,
    So2docsError,
    SpillError,
    SpillTakenError,
    flag,
    resumable,
)
from so2docs.metadata import card
from so2docs.options.keywords import ConvertKeywords, IteratorKeywords, spell_out
from so2docs.options.output_form import default_output, output_form
from so2docs.options.request import (
    build_options,
    build_run_options,
    tables_to_nest,
    validate_keywords,
)
from so2docs.options.sites import host, site_name
from so2docs.options.table import OF_CONVERT, OF_ITERATOR, Options, OutputForm, RunOptions, Tables
from so2docs.output import retrieval_set
from so2docs.output.new_files import output_lock, temporary_folder, write_file
from so2docs.output.part_files import REPORT, check_own, describe_missing_folder
from so2docs.output.paths import OutputPaths
from so2docs.output.provenance import Provenance
from so2docs.parse.core import choose_core
from so2docs.pipeline.session import Session
from so2docs.progress import log
from so2docs.reader.frames import Framed, in_batches
from so2docs.report import Report
from so2docs.spill import Spill, clear
from so2docs.store.disk import disk_errors


def spill_path(names: OutputPaths) -> Path:
    """The folder of the spill, where the output is a file."""
    return Path(names.work_folder or ".", f"{os.path.basename(names.output)}.spill")


def has_spill(names: OutputPaths) -> bool:
    """Whether an earlier session left a spill to resume from."""
    if names.output == "-":
        return False
    folder = spill_path(names)
    with suppress(OSError):
        folder.rmdir()  # Empty, it is what a kill at the very last step left.
    return folder.exists()


@contextmanager
def opened_spill(
    names: OutputPaths, *, restart: bool = False, is_once: bool = False
) -> Iterator[Spill]:
    """The spill of this output; one of its own for each conversion to standard output.

    What ends the block says whether the same call resumes: there is nothing to resume before the
    first chunk, so that no folder stays. Whoever is done removes the spill.

    Args:
        names: Where the conversion writes.
        restart: Whether what an earlier session left is removed.
        is_once: Whether nothing can be resumed, since the dump can be read only once.

    Raises:
        SpillError: It is in use, or its folder is something else.
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
            clear(folder)  # Damaged, but ours.
    return Spill(folder)


if TYPE_CHECKING:
    from so2docs.types import Question


@spell_out(*OF_CONVERT)
def convert(
    source: DumpLike,
    output: str | os.PathLike[str] | None = None,
    **keywords: Unpack[ConvertKeywords],
) -> Report:
    """Convert a dump into one document per question, with its answers inside.

    An interrupted conversion is resumed when this is called again in the same way, and ends with
    the same bytes.

    Args:
        source: The `Posts.xml` of a Stack Exchange dump, plain or compressed (7z, zip, gzip,
            bzip2, xz, zstd), a folder with one, `-` for standard input, or an open binary file,
            which is left open. What can be read only once cannot be resumed.
        output: File for the documents, in ascending question id; `questions.jsonl.gz` if None (of
            another format, such as `questions.parquet`). Its name says format and compression
            where they are not given. `-` is standard output, uncompressed.
            Beside one file of `jsonl` goes a small `.OUTPUT.index`, with which `open` finds single
            documents.
        keywords: What is kept of the dump, how documents are made of it, in what form files are
            written, and how the conversion runs: `so2docs.options.keywords.ConvertKeywords`.

    Returns:
        Counts, bytes and seconds.

    Raises:
        OptionError: An option has a value that is not allowed.
        DumpError: The dump is truncated, malformed, or changed meanwhile; the error says where.
        StrictError: With `strict`, something would have to be repaired or left out.
        OutputError: The output exists (without `force`) or cannot be written.
        SpillError: The spill is in use, damaged, or was made from something else.
        DiskFullError: There is not enough room.
        WorkerDiedError: A worker process was killed.
    """
    return convert_validated(source, output, validate_keywords(keywords, *OF_CONVERT))


def convert_validated(
    source: DumpLike,
    output: str | os.PathLike[str] | None,
    kwargs: Mapping[str, Any],
    site_field: tuple[str, str] | None = None,
    *,
    has_manifest: bool = False,
) -> Report:
    """Convert a dump as `convert` does, with validated keywords.

    Args:
        source: The dump.
        output: File for the documents.
        kwargs: The keywords.
        site_field: Name and value of a field to add, where the keywords do not say it.
        has_manifest: Whether the report gets a manifest though it is not written here.
    """
    path = os.fspath(default_output(kwargs) if output is None else output)
    path = retrieval_set.records_path(output, kwargs) or path
    run = build_run_options(kwargs)
    with_manifest = has_manifest or run.report is not None
    if path == run.report == "-":
        raise OptionError(f"OUTPUT and {flag('report')} cannot both go to standard output")
    check_report(run.report, source, path, run.tables)
    begun = time.perf_counter()

    def end(report: Report) -> None:
        report.seconds = time.perf_counter() - begun
        report.file_bytes = os.path.getsize(report.dump) if os.path.isfile(report.dump) else 0
        write_report(run.report, report.as_dict())

    with Catalog() as catalog:
        options = options_for(source, kwargs, output_form(path, kwargs), site_field, catalog)
        recipe = None if options.recipe is None else options.recipe.recipe
        names = OutputPaths(
            path,
            run.work_dir,
            options.form,
            made_of_it=() if recipe is None else recipe.files,
            is_by_site=recipe is not None and recipe.is_by_site,
        )
        try:
            return _run(source, options, run, names, catalog, end=end, with_manifest=with_manifest)
        except DumpError as error:
            names.save_excerpt(error)
            raise


def _run(
    source: DumpLike,
    options: Options,
    run: RunOptions,
    names: OutputPaths,
    catalog: Catalog,
    *,
    end: Callable[[Report], None],
    with_manifest: bool,
) -> Report:
    """Both passes, on the spill of this output, which is removed when all is done."""
    with disk_errors(), open_dump(source, options, run, names, catalog) as inputs:
        posts, tables = inputs
        names.make_folders()
        for file in (read := [posts.file, *(table.file for table in tables.values())]):
            names.check(file)
        if run.card:
            card.check_card(names, options, read, force=run.force)
        is_once = None in read
        is_fresh = run.restart or is_once
        if is_fresh or not has_spill(names):
            provenance = Provenance.of(posts, tables.values(), options)
            names.refuse_existing(provenance, force=run.force)
        with opened_spill(names, restart=is_fresh, is_once=is_once) as spill:
            with disk_errors(), output_lock(names.output):
                session = Session(posts, spill, options, names, run, tables=tables)
                try:
                    report = session.run(force=run.force)
                except BaseException:
                    if is_once:
                        names.remove_temporaries()
                    raise
                if run.card or with_manifest:
                    files = filter(None, read)
                    card.describe(names, options, report, files, with_card=run.card)
                end(report)
            with disk_errors():  # The lock went first: a kill now still leaves a spill.
                if run.keep_spill:
                    spill.put_all({"finished": True, "sealed": None, "checkpoint": None})
                else:
                    spill.remove()
    return report


def options_for(
    source: DumpLike,
    kwargs: Mapping[str, Any],
    form: OutputForm | None = None,
    site_field: tuple[str, str] | None = None,
    catalog: Catalog | None = None,
) -> Options:
    """The options that checked keywords ask for, of a conversion of this dump.

    Raises:
        OptionError: A value is not allowed, or the site is needed and cannot be told.
    """
    site, field = kwargs.get("site"), kwargs.get("site_field")
    if field is not None:
        site_field = field, site_name(source) if site is None else site
    options = build_options(kwargs, form, site_field, core=choose_core(kwargs.get("core", "auto")))
    if options.is_attributed:
        options = replace(options, host=host(source, site))
    elif site is not None and field is None:
        raise OptionError(
            f"{flag('site')} needs {flag('attribution', True)}, {flag('site_field')}, or a "
            "recipe that "
            "writes addresses"
        )
    if options.recipe is None:
        return options
    optional = [name for name in options.recipe.recipe.optional_tables if name not in options.nest]
    if catalog is None:
        with Catalog() as own:
            present = tables_beside(source, optional, own)
    else:
        present = tables_beside(source, optional, catalog)
    for name in sorted({*optional} - {*present}):
        log.warning(
            "recipe %s: records do not contain the %s, which were not found",
            options.recipe.spec,
            name,
        )
    return replace(options, nest=tables_to_nest([*options.nest, *present], {}))


@contextmanager
def open_dump(
    source: DumpLike, options: Options, run: RunOptions, names: OutputPaths, catalog: Catalog
) -> Iterator[tuple[TableFile, dict[str, TableFile]]]:
    """The posts and the tables of a dump; what is read first is open, all is closed at the end."""
    threads, folder = run.threads, names.work_folder
    posts = find_posts(source, catalog, threads=threads, work_dir=folder)
    with closing(posts), ExitStack() as stack:
        table_files = find_tables(source, options.nest, run.tables, catalog)
        for table in table_files.values():
            stack.enter_context(closing(table))
        first, *_ = in_reading_order(posts, table_files.values())
        first.open(threads=threads, work_dir=folder)
        yield posts, table_files


class Documents(Framed):
    """An iterator over nested questions; `report` is complete when it has ended.

    A frame such as `answers.to_pandas()` reads what is left of the documents.

    Attributes:
        provenance: Provenance of the documents; None before all have been read.
        lines: The JSON of what is left of the documents.
    """

    def __init__(self, source: DumpLike, options: Options, run: RunOptions) -> None:
        self._report: Report | None = None
        self.provenance: Provenance | None = None
        self.lines = self._lines(source, options, run)
        self._iterator: Iterator[Question] = map(orjson.loads, self.lines)

    @property
    def report(self) -> Report:
        """Counts, bytes and seconds; a `So2docsError` before all documents have been read."""
        if self._report is None:
            raise So2docsError("the report is not complete; read all documents first")
        return self._report

    def __iter__(self) -> Iterator[Question]:
        return self._iterator

    def __next__(self) -> Question:
        return next(self._iterator)

    def __enter__(self) -> Documents:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _document_batches(self) -> Iterator[list[dict[str, Any]]]:
        return in_batches(self)

    def close(self) -> None:
        """Stop early, and remove the spill."""
        self.lines.close()

    def _lines(
        self, source: DumpLike, options: Options, run: RunOptions
    ) -> Generator[bytes, None, None]:
        with document_session(source, options, run) as session:
            for _, line in chain.from_iterable(session.documents()):
                yield line
            self._report = session.report
            self.provenance = session.provenance.having_read(self._report.dump_bytes).with_counts(
                self._report
            )


@contextmanager
def document_session(source: DumpLike, options: Options, run: RunOptions) -> Iterator[Session]:
    """A session whose documents are to be iterated over, not written; its spill goes with it."""
    names = OutputPaths("-", run.work_dir)
    with (
        disk_errors(),
        Catalog() as catalog,
        open_dump(source, options, run, names, catalog) as (posts, others),
        opened_spill(names) as spill,
    ):
        yield Session(posts, spill, options, names, run, tables=others)


@spell_out(*OF_ITERATOR)
def documents(source: DumpLike, **keywords: Unpack[IteratorKeywords]) -> Documents:
    """Nest the questions of a dump without writing an output.

    Examples:
        >>> with so2docs.documents("Posts.xml", tags="python") as questions:
        ...     for question in questions: ...

    Args:
        source: What `convert` takes: the `Posts.xml` of a Stack Exchange dump, plain or
            compressed, a folder with one, `-` for standard input, or an open binary file.
        keywords: What is kept of the dump, how documents are made of it, and how the conversion
            runs: `so2docs.options.keywords.IteratorKeywords`.

    Returns:
        An iterator over the documents, in ascending question id.

    Raises:
        OptionError: An option has a value that is not allowed.
        DumpError: The dump does not exist. Whatever else is wrong with it is raised, as by
            `convert`, when the iteration starts.
    """
    kwargs = validate_keywords(keywords, *OF_ITERATOR)
    options, run = options_for(source, kwargs), build_run_options(kwargs)
    if isinstance(source, str | os.PathLike) and source != STANDARD_INPUT:
        storage.check_exists(os.fspath(source))
    return Documents(source, options, run)


def check_report(
    path: str | None, source: object, output: str = "", tables: Tables | None = None
) -> None:
    """Refuse a report where none can be, before anything is done; `-` is standard output.

    Raises:
        OutputError: It cannot be written there, or another file is there.
    """
    if path is not None and path != "-":
        sources = source if isinstance(source, list | tuple) else [source]
        read = [os.fspath(dump) for dump in sources if isinstance(dump, str | os.PathLike)]
        others = [output, *(file for file in (tables or {}).values() if file)]
        check_own(path, REPORT, [*read, *filter(None, others)])


def write_report(path: str | None, report: object) -> None:
    """Write a report as JSON, if one was asked for.

    Raises:
        OutputError: It cannot be written.
    """
    if path is None:
        return
    text = json.dumps(report, indent=2) + "\n"
    if path == "-":
        sys.stdout.write(text)
        return
    write_file(path, text.encode())
