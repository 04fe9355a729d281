"""Write all tables of a dump as flat typed files, with a report that accounts for every row.

Workers convert chunks of a table to segments, which are joined in the order of the dump. A complete
table is renamed to its final path, and its provenance is written next to it. Repeating the call
writes only the missing tables.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from so2docs.counts import ChunkTally
from so2docs.dump.opening import TableFile
from so2docs.errors import explain
from so2docs.extensions.tables.columns import LARGE_CHUNK_BYTES, TableColumns
from so2docs.extensions.tables.options import RowOptions, SomeTables, TableOptions
from so2docs.extensions.tables.report import FlatTable, TablesReport
from so2docs.extensions.tables.selection import RowSelection
from so2docs.extensions.tables.sql import LOAD_SQL, SCRIPT, loading_script
from so2docs.extensions.tables.sqlite_writer import SqliteWriter
from so2docs.extensions.tables.visitors import ColumnsVisitor, OpenEncoder
from so2docs.extensions.tables.writing import (
    ENCODERS,
    EXTENSIONS,
    WITHOUT_PYARROW,
    CsvEncoder,
    FileWriter,
)
from so2docs.output.new_files import new_folder, temporary_folder, write_file
from so2docs.output.part_files import STRAYS, check_own, side_file
from so2docs.output.segments import Segment
from so2docs.output.segments import remove as remove_stored
from so2docs.parse.core import choose_core
from so2docs.plugin import (
    DUMP,
    POSTS,
    File,
    NewFiles,
    OptionError,
    Output,
    Product,
    Provenance,
    Source,
    flag,
    make_record,
    options_of,
    peak_memory,
    read_options,
    require_packages,
    resumable,
    spell_out,
)
from so2docs.report import check_placed
from so2docs.scan.table import OpenVisitor, TableReader, start_reader

if TYPE_CHECKING:
    from so2docs.extensions.keywords import TableKeywords
    from so2docs.extensions.tables.restored import RestoredPosts

_TABLES_VERSION = 1
"""Version of the columns. Increase it when the same dump would give other files."""

OpenWriter = Callable[[NewFiles, str], FileWriter | SqliteWriter]
"""Opens the writer of a file, given the new files and its path."""


class TableFiles(Product[list[FlatTable]]):
    """The product for a file with a table, or for a database with all tables.

    Args:
        path: Name of the file.
        provenance: Provenance to record.
        files: Tables of the input that go into the file.
        open_writer: Opens the writer of the file.

    Attributes:
        results: Counts of an earlier run, if its files are up to date.
        run: Writes the tables; set before they are made.
    """

    noun = "folder"
    run: TableRun

    def __init__(
        self,
        path: str,
        provenance: Provenance,
        files: list[TableFile],
        open_writer: OpenWriter,
    ) -> None:
        super().__init__(path, provenance, [file.file for file in files])
        self.files, self._open_writer = files, open_writer
        self.results: list[FlatTable] | None = None

    def load(self, record: Provenance) -> list[FlatTable]:
        """Return the recorded counts of each table from an earlier run."""
        tables = record.counts["tables"]
        if [table["name"] for table in tables] != [file.table.name for file in self.files]:
            raise ValueError("the record is about other tables")
        facts = {"path": self.path, "is_new": False}
        return [FlatTable.from_dict(table | facts) for table in tables]

    def make(self, files: NewFiles) -> list[FlatTable]:
        """Write the tables, and return their counts; the files of an earlier run are removed."""
        strays_path = side_file(self.path, f"{STRAYS}.gz")
        files.outdate(self.path, strays_path)
        strays = Output(files, strays_path, "gzip")
        results = [FlatTable(file.table.name, self.path) for file in self.files]
        with closing(self._open_writer(files, self.path)) as writer:
            for file, table in zip(self.files, results, strict=True):
                writer.begin(TableColumns(file.table))
                for segments, stray_segments in self.run.read(file, table, writer.open_encoder):
                    for segment in segments:
                        writer.append(segment)
                    for segment in stray_segments:
                        strays.append(segment)
            if strays.journal.count:
                strays.seal()
            size = writer.finish()
            for table in results:
                table.bytes = size
                table.repeated = writer.repeated[table.name]
                table.written -= table.repeated
        return results

    def counts(self, result: list[FlatTable]) -> dict[str, Any]:
        """Return the counts of each table, without its path, which depends on the call."""
        tables = [table.as_dict() for table in result]
        return {"tables": [{k: v for k, v in table.items() if k != "path"} for table in tables]}


@spell_out(options_of(TableOptions))
def tables(
    dump: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    **keywords: Unpack[TableKeywords],
) -> TablesReport:
    """Write the tables of a dump as flat typed files, one row for each row of the dump.

    Rows keep the order of the dump. Every table has a column for each attribute that was ever
    published, and `Other`: a JSON object of the attributes that have no column or do not fit the
    type of their column. Integers have 64 bits, dates are timestamps in UTC, tags are lists. Tables
    that are up to date are not rewritten, so repeating the call after an interruption resumes it.

    Examples:
        >>> so2docs.tables("sample.stackexchange.com.7z", "sample", only="posts,votes")

    Args:
        dump: An archive or a folder with the tables, or the file of one table with the others next
            to it. An archive is decompressed once.
        folder: Folder of the files, such as `Posts.parquet`; made if it does not exist.
        keywords: Options: `so2docs.extensions.keywords.TableKeywords`.

    Returns:
        A report with the path and the row counts of each table.

    Raises:
        OptionError: An option has a value that is not allowed, or a package is missing.
        DumpError: A table is missing, truncated, malformed, or changed while being read.
        OutputError: An existing file is not up to date, or a file cannot be written.
    """
    source, where = Source(dump), os.fspath(folder)
    source.check_named("tables are read")
    if where == "-":
        raise OptionError("-: is standard output, not a folder; choose another folder")
    options = read_options(TableOptions, keywords)
    if options.format == "arrow":
        raise OptionError(
            f"{flag('format', 'arrow')} is for one table on standard output; give - in place of "
            "the folder, or in Python, call so2docs.rows"
        )
    if options.format not in WITHOUT_PYARROW:
        require_packages(flag("format", options.format), "pyarrow", extra="parquet")
    if options.load == "mysql":
        _check_pyarrow()
    script = os.path.join(where, LOAD_SQL)
    if options.load is not None and os.path.exists(script) and not options.force:
        check_own(script, SCRIPT)
    with explain(), source:
        files, read_first = find_files(source, options, options.only)
        targets = _targets(source, where, files, options, read_first)
        with new_folder(where):
            report = write_tables(source, targets, options, where)
            if options.load is not None:
                loaded = [table for table in DUMP.values() if table.name in report]
                write_file(script, "\n".join(loading_script(loaded, options.load)).encode())
    return report


def write_tables(
    source: Source, targets: Sequence[TableFiles], options: SomeTables, folder: str
) -> TablesReport:
    """Write those files that are not up to date.

    Args:
        source: The dump.
        targets: The files.
        options: The options.
        folder: Folder of the files, and for temporary files, unless the options have one.
    """
    begun, report = time.perf_counter(), TablesReport(folder)

    def build(target: TableFiles, run: TableRun, reader: TableReader) -> None:
        target.run = replace(run, reader=reader)
        target.results = target.build(force=options.force, update=options.update)

    # A repeated call skips files that are complete, of which a database is one.
    with resumable(lambda: len(targets) > 1 and bool(report)):
        for target in targets:
            target.results = target.find(force=options.force, update=options.update)
            if target.results is not None:
                target.clean_up()
        pending = [file for target in targets if target.results is None for file in target.files]
        with open_run(source, options, pending, folder) as run:
            report.jobs = run.reader.workers.jobs
            try:
                missing = [target for target in targets if target.results is None]
                run.reader.read_tables(
                    [(target.files[0], partial(build, target, run)) for target in missing]
                )
            finally:
                for target in targets:
                    report.tables |= {table.name: table for table in target.results or ()}
            report.peak_memory_bytes = peak_memory() + sum(run.reader.workers.peaks.values())
    report.seconds = time.perf_counter() - begun
    return report


def find_files(
    source: Source, options: RowOptions, only: Sequence[str]
) -> tuple[list[TableFile], list[TableFile]]:
    """Find the tables to write, and those to read before for filters or the date."""
    files = source.find_tables(only)
    if options.has_part or options.as_of is not None:
        return files, source.find_tables()
    return files, source.find_tables(["posts"]) if options.has_drops else []


@contextmanager
def open_run(
    source: Source, options: RowOptions, pending: list[TableFile], folder: str | None = None
) -> Iterator[TableRun]:
    """Start workers to read tables, and find the rows to keep.

    Args:
        source: The dump.
        options: The options.
        pending: Tables to read.
        folder: Folder for temporary files, unless the options have one.
    """
    progress = options.progress
    # For workers, which may be unable to import a function that shows progress.
    options = replace(options, core=choose_core(options.core), progress=False)
    with (
        temporary_folder(options.work_dir or folder) as work,
        start_reader(pending, work, jobs=options.jobs, progress=progress) as reader,
    ):
        restored = selected = None
        writes_posts = any(file.table == POSTS for file in pending)
        if options.as_of is not None and (writes_posts or (pending and options.has_part)):
            # Imported here, because only tables of a date need a conversion.
            from so2docs.extensions.tables.restored import restore_posts

            restored = selected = restore_posts(source.path, options, work)
            if options.max_body is not None and options.body != "html":  # It limits the HTML.
                selected = restore_posts(source.path, replace(options, body="html"), work)
        written = [file.table.name for file in pending]
        selections = dict.fromkeys(written, RowSelection.of_dates(options))
        if written and (options.has_part or options.has_drops):
            # Imported here, because importing Arrow's functions takes 0.2 s.
            from so2docs.extensions.tables.part import Scanner, select_rows

            scanner = Scanner(source, options, reader, work, selected)
            selections |= select_rows(scanner, written)
        yield TableRun(options, selections, reader, work, restored, source.published_host())


def _check_pyarrow() -> None:
    """Raise `OptionError` if pyarrow cannot write the files for MySQL."""
    import pyarrow
    from pyarrow.csv import WriteOptions

    if not hasattr(WriteOptions, "null_string"):
        raise OptionError(
            f"{flag('load', 'mysql')} needs a newer pyarrow than {pyarrow.__version__}; "
            "install it with: pip install --upgrade pyarrow"
        )


def _targets(
    source: Source,
    where: str,
    files: list[TableFile],
    options: TableOptions,
    read_first: list[TableFile],
) -> list[TableFiles]:
    """List the files to write, and the tables that go into each."""
    site = source.published_host()

    def make_target(name: str, files: list[TableFile], open_writer: OpenWriter) -> TableFiles:
        inputs = list_inputs(read_first, files)
        record = make_record("tables", _TABLES_VERSION, options, inputs, site)
        return TableFiles(os.path.join(where, name), record, files, open_writer)

    if options.format == "sqlite":
        return [make_target("tables.db", files, SqliteWriter)]
    open_encoder: OpenEncoder = ENCODERS[options.format]
    if options.load == "mysql":
        open_encoder = partial(CsvEncoder, is_for_mysql=True)
    end, open_writer = EXTENSIONS[options.format], partial(FileWriter, open_encoder)
    return [make_target(f"{file.table.stem}{end}", [file], open_writer) for file in files]


def list_inputs(read_first: list[TableFile], files: list[TableFile]) -> list[File]:
    """List the tables that are read, each once, for the record of a product."""
    return [*{file.table.name: File.of_table(file) for file in (*read_first, *files)}.values()]


@dataclass(frozen=True, slots=True)
class TableRun:
    """Reads tables for their files.

    Attributes:
        options: The options.
        selections: Filter of the rows of each table, by name.
        reader: Reader of the tables.
        work: Folder for temporary files.
        restored: The posts of a date, in place of those of the dump.
        host: Host of the site; None if unknown.
    """

    options: RowOptions
    selections: dict[str, RowSelection]
    reader: TableReader
    work: str
    restored: RestoredPosts | None
    host: str | None

    def read(
        self, file: TableFile, table: FlatTable, open_encoder: OpenEncoder
    ) -> Iterator[tuple[list[Segment], list[Segment]]]:
        """Yield the segments of a table and those of its strays, chunk by chunk, and count rows.

        The segments are removed after use.

        Raises:
            InternalError: Rows were lost.
        """

        def visit(number: int) -> OpenVisitor:
            path = os.path.join(self.work, f"{file.table.name}-{number}")
            settings = self.options, self.selections[table.name], self.host, open_encoder
            return partial(ColumnsVisitor, file.table, *settings, path=path)

        for tally, (segments, strays, written, misfits) in self._results(file, table, visit):
            yield segments, strays
            remove_stored(segments, strays)
            table += tally
            table.misfits += misfits
            table.written += written
        check_placed(file.name, table.rows, table.rows - table.unaccounted)

    def _results(
        self, file: TableFile, table: FlatTable, visit: Callable[[int], OpenVisitor]
    ) -> Iterator[tuple[ChunkTally, Any]]:
        """Yield the counts and the result of each chunk of a table."""
        if self.restored is not None and file.table == POSTS:
            table.rows = table.filtered = self.restored.left_out
            yield from self.restored.read(self.reader, visit)
            return
        opened = self.reader.open(
            file, lambda chunk: visit(chunk.number), self.work, LARGE_CHUNK_BYTES
        )
        with opened as (dump, results):
            for result in results:
                yield result.tally, result.value
            table.repaired_characters += dump.repaired
