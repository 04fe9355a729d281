"""Write all tables of a dump as flat typed files, with a report that accounts for every row.

Workers convert chunks of a table to segments, which are joined in the order of the dump. A complete
table is renamed to its final path, and its provenance is written next to it. Repeating the call
writes only the missing tables.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, get_args

from so2docs.counts import MOST, Counts, plural
from so2docs.dump.dump import Chunk
from so2docs.dump.opening import STANDARD_INPUT, Catalog
from so2docs.dump.tables import TableFile, find_dump_tables
from so2docs.errors import OptionError, did_you_mean, flag, require_packages, resumable
from so2docs.flat.columns import BatchVisitor, RowSelection, TableColumns, milliseconds, periods
from so2docs.flat.part import Choice, find_part
from so2docs.flat.sql import DIALECTS, LOAD_SQL, SCRIPT, Dialect, definitions
from so2docs.flat.writing import ENCODERS, EXTENSIONS, LEVEL, TableWriter, writer_for
from so2docs.options.choices import (
    DATABASE_ENDINGS,
    UNCOMPRESSED,
    Core,
    SplitBy,
    SqlSystem,
    TableFormat,
    split_compression,
)
from so2docs.options.option import choose, contradiction, names
from so2docs.options.sites import published_host, site_from_name
from so2docs.options.table import OPTIONS
from so2docs.output.compression import SEGMENT_BYTES, compress
from so2docs.output.file import Output
from so2docs.output.new_files import (
    NewFiles,
    clean_up,
    new_folder,
    remove_empty_folders,
    temporary_folder,
    write_file,
)
from so2docs.output.part_files import (
    PART,
    STRAYS,
    check_own,
    remove,
    side_file,
)
from so2docs.output.product import Product
from so2docs.output.provenance import File, Provenance, make_record
from so2docs.output.segments import Segment, store
from so2docs.output.segments import remove as remove_stored
from so2docs.parse.core import choose_core
from so2docs.processes.worker import peak_memory
from so2docs.report import Printed, as_size, check_placed, memory_line
from so2docs.scan.chunk import ChunkResult
from so2docs.scan.table import LARGE_CHUNK_BYTES, TableReader, start_reader
from so2docs.schema import DUMP, Table
from so2docs.store.disk import disk_errors


@dataclass(frozen=True, slots=True)
class _Request:
    """The options of a call of `tables`, except the names of the tables.

    Attributes:
        format: Format of the files.
        split_by: `year` or `month` for a file for each period; None for a single file.
        selection: Filter of the rows.
        choice: Filters of the part to write; without filters, the whole dump is written.
        skip_malformed: Whether malformed rows are strays, instead of errors.
        core: `compiled` or `python`.
        dialect: The database system that loads the files; None if unknown.
        options: Values for the provenance: all options that affect the content of the files.
    """

    format: TableFormat
    split_by: SplitBy | None
    selection: RowSelection
    choice: Choice
    skip_malformed: bool
    core: Core
    dialect: Dialect | None
    options: dict[str, Any]


class ColumnsVisitor(BatchVisitor):
    """Converts the rows of a chunk to segments of a file.

    Args:
        table: Table of the chunk.
        request: The options.
        path: File for the segments.
    """

    def __init__(self, table: Table, request: _Request, path: str) -> None:
        super().__init__(table, request.core, skip_malformed=request.skip_malformed)
        self._request, self._path = request, path
        self._misfits = 0
        self._stray_lines = bytearray()
        self._segments: list[Segment] = []
        self._strays: list[Segment] = []

    def leave_out(self, reason: str, line: bytes) -> None:
        """Count a stray, and add its line to the strays file."""
        self.tally.strays[reason] += 1
        self._stray_lines += line
        if len(self._stray_lines) >= SEGMENT_BYTES:
            self._compress_strays()

    def _compress_strays(self) -> None:
        if self._stray_lines:
            self._strays.append(compress(bytes(self._stray_lines), "gzip", LEVEL))
            self._stray_lines.clear()

    def finish(self) -> None:
        """Filter and encode the rows of the chunk, and write the segments to the file."""
        self._compress_strays()
        segments: list[Segment] = []
        rows, request = self.rows(), self._request
        kept = request.selection.filter(rows, self.columns)
        self.tally.filtered += rows.num_rows - kept.num_rows
        self._misfits += kept.num_rows - kept.column(kept.num_columns - 1).null_count
        if kept.num_rows:
            encoder = ENCODERS[request.format](self.columns.schema, request.dialect)
            parts: Iterable[tuple[str, Any]] = [("", kept)]
            if request.split_by:
                parts = periods(kept, self.columns.date, request.split_by)
            segments = [encoder.encode(part)._replace(label=label) for label, part in parts]
        if segments or self._strays:
            self._segments, self._strays = store(self._path, segments, self._strays)

    def result(self) -> tuple[list[Segment], list[Segment], int]:
        """Return the segments of the table, those of the strays file, and the number of misfits."""
        return self._segments, self._strays, self._misfits


@contextmanager
def open_columns(table: Table, request: _Request, path: str) -> Iterator[ColumnsVisitor]:
    """Open the visitor of a chunk; leaving the context writes the segments.

    Raises:
        OutputError: The file cannot be written.
    """
    from so2docs.output.formats.arrow import system_memory

    with system_memory():
        yield (visitor := ColumnsVisitor(table, request, path))
        visitor.finish()


@dataclass(slots=True)
class FlatTable(Counts):
    """Counts of a table; `rows` is the sum of `written`, `filtered` and all `strays`.

    Attributes:
        name: Name of the table.
        path: File, folder or database of the table.
        rows: Number of rows in the dump.
        written: Number of rows written.
        filtered: Number of rows excluded by a filter.
        strays: Number of rows without a usable `Id`, and of malformed rows, by reason.
        misfits: Number of rows with a value in `Other`.
        repaired_characters: Number of characters replaced by U+FFFD.
        files: Number of files; 1 for a database, which contains all tables.
        bytes: Total size of the files in bytes.
        is_new: Whether this call wrote the table.
    """

    name: str
    path: str
    rows: int = 0
    written: int = 0
    filtered: int = 0
    strays: Counter[str] = field(default_factory=Counter)
    misfits: int = 0
    repaired_characters: int = 0
    files: int = 0
    bytes: int = 0
    is_new: bool = True

    @property
    def unaccounted(self) -> int:
        """Rows not accounted for; always 0."""
        return self.rows - self.written - self.filtered - self.strays.total()

    def __str__(self) -> str:
        parts = [plural(self.written, "row")]
        if self.filtered:
            parts.append(f"{self.filtered:,} filtered")
        parts += [f"{count:,} {reason}" for reason, count in sorted(self.strays.items())]
        if self.misfits:
            parts.append(f"{self.misfits:,} with values in Other")
        state = "" if self.is_new else ", up to date"
        files = f" in {self.files:,} files" if self.files > 1 else ""
        return f"{', '.join(parts)} -> {self.path}{files} ({as_size(self.bytes)}{state})"


@dataclass(slots=True, repr=False)
class TablesReport(Printed, Mapping[str, FlatTable]):
    """The tables of a dump by name, in the order in which they are read.

    Attributes:
        folder: Folder of the tables.
        tables: Counts of each table, by name.
        jobs: Number of worker processes.
        seconds: Wall time in seconds.
        peak_memory_bytes: Peak resident memory, summed over all processes.
    """

    folder: str
    tables: dict[str, FlatTable] = field(default_factory=dict)
    jobs: int = field(default=1, metadata=MOST)
    seconds: float = field(default=0.0, metadata=MOST)
    peak_memory_bytes: int = field(default=0, metadata=MOST)

    def __getitem__(self, name: str) -> FlatTable:
        return self.tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    @property
    def is_new(self) -> bool:
        """Whether this call wrote any table."""
        return any(table.is_new for table in self.tables.values())

    def columns(self) -> dict[str, int | float]:
        """Return this dump's row of a table of several sites."""
        tables = self.tables.values()
        numbers = {name: sum(getattr(table, name) for table in tables) for name in _SUMMED}
        return {"tables": len(tables), **numbers, "seconds": self.seconds}

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield a line for each table, then wall time and memory."""
        for name, table in self.tables.items():
            yield name, str(table)
        yield "time", f"{self.seconds:.2f} s ({plural(self.jobs, 'job')})"
        yield memory_line(self.peak_memory_bytes)


_SUMMED = ("rows", "written", "bytes")
_TABLES_VERSION = 1
"""Version of the columns. Increase it when the same dump would give other files."""

_DATABASES: dict[TableFormat, str] = {"sqlite": "tables.db", "duckdb": "tables.duckdb"}
_FILE_ENDINGS = (*UNCOMPRESSED, *DATABASE_ENDINGS, ".csv", ".duckdb", ".parquet")
_SYNONYMS = {"postgresql": "postgres", "mariadb": "mysql", "mssql": "sqlserver"}
_CHOICE = ("tags", "all_tags", "keep_users", "keep_posts")
_SHARED = ("since", "until", "tags", "all_tags", "keep_users", "keep_posts", "split_by")
"""Options shared with `convert` that affect the content of the files."""


class _TableFiles(Product[list[FlatTable]]):
    """The product for a file, a folder or a database with one or more tables.

    Args:
        path: Name of the file. A split table has no file of this name, but its side files are
            named after it.
        provenance: Provenance to record.
        files: Tables of the input that go into the file.
        is_split: Whether the table gets a file for each period.

    Attributes:
        results: Counts of an earlier run, if its files are up to date.
        run: Writes the tables; None until then.
    """

    noun = "folder"

    def __init__(
        self, path: str, provenance: Provenance, files: list[TableFile], *, is_split: bool = False
    ) -> None:
        super().__init__(path, provenance, [file.file for file in files])
        self.files = files
        self.is_split = is_split
        self.results: list[FlatTable] | None = None
        self.run: _Run | None = None

    @property
    def name(self) -> str:
        """Path for messages: the file, or the folder of a split table."""
        return self.split_folder if self.is_split else self.path

    @property
    def split_folder(self) -> str:
        """The folder with the files of a split table."""
        return os.path.join(os.path.dirname(self.path), self.files[0].table.stem)

    def existing_files(self, end: str = "") -> list[str]:
        """List the existing files of the table, split or not, whose names end in `end`."""
        name = os.path.basename(self.path) + end
        folder = Path(self.split_folder)
        split = [folder / name, *folder.glob(f"*=*/**/{name}")]
        return sorted(filter(os.path.isfile, [self.path + end, *map(str, split)]))

    def load(self, records: list[Provenance]) -> list[FlatTable]:
        """Return the recorded counts of each table from an earlier run."""
        tables = records[0].counts["tables"]
        if [table["name"] for table in tables] != [file.table.name for file in self.files]:
            raise ValueError("the record is about other tables")
        facts = {"path": self.name, "is_new": False}
        return [FlatTable.from_dict(table | facts) for table in tables]

    def make(self, files: NewFiles) -> list[FlatTable]:
        """Write the tables, and return their counts; the files of an earlier run are removed."""
        assert self.run is not None
        files.outdate(*self.existing_files(), _strays_path(self.path))
        for path in self.existing_files(PART):
            remove(path)
        return self.run.write(self, files)

    def counts(self, result: list[FlatTable]) -> dict[str, Any]:
        """Return the counts of each table, without its path, which depends on the call."""
        tables = [table.as_dict() for table in result]
        return {"tables": [{k: v for k, v in table.items() if k != "path"} for table in tables]}


def tables(
    dump: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    only: str | Iterable[str] = (),
    format: TableFormat = "parquet",  # noqa: A002 - same name as in `convert`.
    load: SqlSystem | None = None,
    split_by: SplitBy | None = None,
    since: str | date | None = None,
    until: str | date | None = None,
    tags: str | Iterable[str] = (),
    all_tags: bool = False,
    keep_users: str | os.PathLike[str] | Iterable[int] | None = None,
    keep_posts: str | os.PathLike[str] | Iterable[int] | None = None,
    skip_malformed: bool = False,
    update: bool = False,
    force: bool = False,
    jobs: int | None = None,
    core: Core = "auto",
    work_dir: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> TablesReport:
    """Write the tables of a dump as flat typed files, one row for each row of the dump.

    Rows keep the order of the dump. Every table has a column for each attribute that was ever
    published, and `Other`: a JSON object of the attributes that have no column or do not fit the
    type of their column. Integers have 64 bits, dates are timestamps in UTC, tags are lists. Tables
    that are up to date are not rewritten, so repeating the call after an interruption resumes it.

    Examples:
        >>> so2docs.tables("beer.stackexchange.com.7z", "beer", only="posts,votes")

    Args:
        dump: An archive or a folder with the tables, or the file of one table with the others next
            to it. An archive is decompressed once.
        folder: Folder of the files, such as `Posts.parquet`; made if it does not exist.
        only: Names of tables, such as `posts,votes`; all tables of the dump if empty.
        format: `parquet`, `csv` or `jsonl` (gzip), or one database with all tables: `sqlite` or
            `duckdb`.
        load: Also write `load.sql`, a script that creates the tables with keys and indexes in
            `postgres`, `mysql` (also MariaDB), `sqlserver` or `clickhouse`, and loads the files.
            Only for the format `csv`.
        split_by: Write a Hive-partitioned folder with a file for each `year` or `month`:
            `Posts/year=2019/Posts.parquet`.
        since: Keep rows from this date (UTC) or later; tables without dates are kept whole. With
            `tags`, `keep_users` or `keep_posts`, the date of the question decides.
        until: Keep rows from before this date.
        tags: Keep the part of the site that belongs to questions with any of these tags or patterns
            such as `tensorflow*`: the questions, their answers, the rows of these posts in other
            tables, and the users, badges, tags and tag wikis of these rows. Links are kept if both
            posts are. `Posts.xml` must be in the dump.
        all_tags: Require all of the tags, not just one of them.
        keep_users: Keep the part of the site that belongs to questions asked or answered by these
            users: ids separated by commas, or a file with one id per line.
        keep_posts: Keep the part of the site that belongs to these questions, or to the questions
            of these answers.
        skip_malformed: Count malformed rows as strays, instead of failing.
        update: Replace tables made from another input or with other options.
        force: Overwrite existing files.
        jobs: Number of worker processes. If None, all cores, or one process for a small dump.
        core: Parser of the rows, `compiled` or `python`; the files are the same.
        work_dir: Folder for temporary files; `folder` if None.
        progress: Show progress bars.

    Returns:
        A report with the path and the row counts of each table.

    Raises:
        OptionError: An option has a value that is not allowed, or a package is missing.
        DumpError: A table is missing, truncated, malformed, or changed while being read.
        OutputError: An existing file is not up to date, or a file cannot be written.
    """
    begun = time.perf_counter()
    source, where = os.fspath(dump), os.fspath(folder)
    if source == STANDARD_INPUT:
        raise OptionError("tables are read from files; give an archive, a folder or a file")
    _check_is_folder(where)
    table_names = _chosen(only)
    form = choose("format", format, get_args(TableFormat), {"db": "sqlite", "ndjson": "jsonl"})
    dialect = None if load is None else DIALECTS[choose("load", load, DIALECTS, _SYNONYMS)]
    kwargs = {
        "since": since,
        "until": until,
        "tags": tags,
        "all_tags": all_tags,
        "keep_users": keep_users,
        "keep_posts": keep_posts,
        "split_by": split_by,
        "skip_malformed": skip_malformed,
        "jobs": jobs,
        "work_dir": work_dir,
    }
    values = {
        name: OPTIONS[name].read(OPTIONS[name].check(value)) for name, value in kwargs.items()
    }
    request = _request(form, values, table_names, core, dialect)
    script = os.path.join(where, LOAD_SQL)
    if dialect is not None and os.path.exists(script) and not force:
        check_own(script, SCRIPT)
    report = TablesReport(where)
    # Files can be resumed, since a repeated call skips complete tables; a database cannot, since it
    # is renamed only after its last table.
    with disk_errors(), resumable(lambda: bool(report)), Catalog() as catalog:
        files = find_dump_tables(source, table_names, catalog)
        every = find_dump_tables(source, (), catalog) if request.choice else None
        if every is not None and "posts" not in {file.table.name for file in every}:
            find_dump_tables(source, ("posts",), catalog)  # Raises the error for missing posts.
        targets = _targets(source, where, files, request, every)
        for target in targets:
            target.results = target.find(force=force, update=update)
            if target.results is not None:
                clean_up(target.path, target.existing_files(PART))
        pending = [file for target in targets if target.results is None for file in target.files]
        with (
            new_folder(where),
            temporary_folder(values["work_dir"] or where) as work,
            start_reader(pending, work, jobs=values["jobs"], progress=progress) as reader,
        ):
            report.jobs = reader.workers.jobs
            selections = {}
            if pending and every is not None:
                selections = find_part(
                    source,
                    request.choice,
                    present=[file.table.name for file in every],
                    written=[file.table.name for file in pending],
                    reader=reader,
                    work=work,
                    chunk_bytes=LARGE_CHUNK_BYTES,
                    core=request.core,
                    skip_malformed=request.skip_malformed,
                )
            run = _Run(request, selections, reader, work)
            for target in targets:
                results = target.results
                if results is None:
                    target.run = run
                    results = target.build(force=force, update=update)
                    remove_empty_folders(folder for folder, _, _ in os.walk(target.split_folder))
                report.tables |= {table.name: table for table in results}
            if dialect is not None:
                loaded = [table for table in DUMP.values() if table.name in report]
                write_file(script, definitions(loaded, dialect, load=True).encode())
            report.peak_memory_bytes = peak_memory() + sum(reader.workers.peaks.values())
    report.seconds = time.perf_counter() - begun
    return report


def _check_is_folder(path: str) -> None:
    """Refuse a path that names standard output or a file."""
    name, _ = split_compression(path)
    if os.path.isdir(path) or not (path == "-" or name.endswith(_FILE_ENDINGS)):
        return
    raise OptionError(
        f"{path}: is the name of {'standard output' if path == '-' else 'a file'}, but tables are "
        f"written to a folder; give the name of a folder, and choose the format of the files with "
        f"{flag('format')}"
    )


def _chosen(only: str | Iterable[str]) -> tuple[str, ...]:
    """Return the names of the tables in `only`, given by table or file name; empty for all."""
    by_any_name = {table.stem.lower(): table.name for table in DUMP.values()}
    table_names = []
    for name in names("only", only):
        name_in_dump = by_any_name.get(name.lower(), name.lower())
        if name_in_dump not in DUMP:
            raise OptionError(
                f"{flag('only')} is {name!r}; it must be one or more of: {', '.join(DUMP)}"
                + did_you_mean(name, DUMP)
            )
        table_names.append(name_in_dump)
    return tuple(table_names)


def _request(
    form: TableFormat,
    values: dict[str, Any],
    table_names: tuple[str, ...],
    core: Core,
    dialect: Dialect | None,
) -> _Request:
    needed = ("pyarrow", "duckdb") if form == "duckdb" else ("pyarrow",)
    require_packages(flag("format", form), *needed)
    if values["split_by"] is not None and form in _DATABASES:
        raise OptionError(
            f"{flag('split_by', values['split_by'])} contradicts {flag('format', form)}, which is "
            "one file"
        )
    if dialect is not None:
        _check_loaded(form, values["split_by"], dialect)
    limits = {
        name: None if values[name] is None else milliseconds(_with_time(values[name]))
        for name in ("since", "until")
    }
    dates = RowSelection(limits["since"], limits["until"])
    choice = Choice(*(dates, *(values[name] for name in _CHOICE)))
    options = {"format": form, "skip_malformed": values["skip_malformed"]}
    for name in _SHARED:
        remember = OPTIONS[name].remember or (lambda value: value)
        options[name] = remember(values[name])
    options["tags"] = list(values["tags"])
    if dialect is not None:
        options["load"] = dialect.name
    return _Request(
        form,
        values["split_by"],
        dates,
        choice,
        values["skip_malformed"],
        choose_core(core),
        dialect,
        options,
    )


def _check_loaded(form: TableFormat, split_by: SplitBy | None, dialect: Dialect) -> None:
    """Refuse a format or a split whose files the script of `load` could not load."""
    if form != "csv":
        raise OptionError(f"{flag('load')} loads CSV; add {flag('format', 'csv')}")
    if split_by is not None:
        raise contradiction("load", "split_by")
    import pyarrow
    from pyarrow.csv import WriteOptions

    if dialect.null and not hasattr(WriteOptions, "null_string"):
        raise OptionError(
            f"{flag('load', dialect.name)} needs a newer pyarrow than {pyarrow.__version__}; "
            "install it with: pip install --upgrade pyarrow"
        )


def _with_time(text: str) -> str:
    """Convert a day, or a time without seconds, to a date and time in the dump's format."""
    day, _, hours = text.partition("T")
    return f"{day}T{hours or '00:00:00'}" + (":00" if len(hours) == len("12:00") else "")


def _targets(
    source: str,
    where: str,
    files: list[TableFile],
    request: _Request,
    read_for_part: list[TableFile] | None,
) -> list[_TableFiles]:
    """List the files to write, and the tables that go into each."""
    site = published_host(site_from_name(source))

    def record_provenance(files: list[TableFile]) -> Provenance:
        read = map(File.of_table, files if read_for_part is None else read_for_part)
        return make_record("tables", _TABLES_VERSION, request.options, read, site)

    if request.format in _DATABASES:
        path = os.path.join(where, _DATABASES[request.format])
        return [_TableFiles(path, record_provenance(files), files)]
    targets = []
    for file in files:
        name = file.table.stem + EXTENSIONS[request.format]
        is_split = request.split_by is not None and TableColumns(file.table).date is not None
        path = os.path.join(where, name)
        targets.append(_TableFiles(path, record_provenance([file]), [file], is_split=is_split))
    return targets


class _Run:
    """Reads tables and writes their files.

    Args:
        request: The options.
        selections: Filter of the rows of each table of a part; empty for the whole dump.
        reader: Reader of the tables.
        work: Folder for temporary files.
    """

    def __init__(
        self,
        request: _Request,
        selections: dict[str, RowSelection],
        reader: TableReader,
        work: str,
    ) -> None:
        self._work = work
        self._request = request
        self._selections = selections
        self._reader = reader

    def write(self, target: _TableFiles, files: NewFiles) -> list[FlatTable]:
        """Write the tables of a target under temporary names, and return their counts."""
        strays = Output(_strays_path(target.path), "gzip")
        path = target.path
        if target.is_split:
            path = os.path.join(target.split_folder, os.path.basename(path))
        writer = writer_for(path, self._request.format, self._request.dialect)
        try:
            results = [self._read(file, writer, strays, target.name) for file in target.files]
            files_written = writer.finish()
            for table in results:
                table.files = len(files_written)
                table.bytes = sum(file.size for file in files_written.values())
            if strays.journal.count:
                files.add(strays.path, strays.seal())
            for path, complete in files_written.items():
                files.add(path, complete)
        except BaseException:
            strays.discard()
            writer.discard()
            raise
        return results

    def _read(self, file: TableFile, writer: TableWriter, strays: Output, path: str) -> FlatTable:
        """Read a whole table, pass its segments to the writer, and return the counts.

        Raises:
            InternalError: Rows were lost.
        """
        table = FlatTable(file.table.name, path)
        writer.begin(TableColumns(file.table))
        selection = self._selections.get(table.name, self._request.selection)
        request = replace(self._request, selection=selection)

        def visit(chunk: Chunk) -> partial[Any]:
            stored = os.path.join(self._work, f"{file.table.name}-{chunk.number}")
            return partial(open_columns, file.table, request, stored)

        with self._reader.open(file, visit, self._work, LARGE_CHUNK_BYTES) as (dump, results):
            for result in results:
                self._append(result, writer, strays, table)
            table.repaired_characters += dump.chunk_end(LARGE_CHUNK_BYTES).repaired
        check_placed(file.name, table.rows, table.rows - table.unaccounted)
        return table

    def _append(
        self, result: ChunkResult, writer: TableWriter, strays: Output, table: FlatTable
    ) -> None:
        segments, stray_segments, misfits = result.value
        for segment in segments:
            writer.append(segment)
        for segment in stray_segments:
            strays.append(segment)
        remove_stored(segments, stray_segments)
        table += result.tally
        table.misfits += misfits
        table.written += sum(segment.documents for segment in segments)


def _strays_path(path: str) -> str:
    """Return the path of the side file with the strays of a table."""
    return side_file(path, f"{STRAYS}.gz")
