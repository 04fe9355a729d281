"""Flat typed files of all tables of a dump: `tables`, and a report with counts of every row.

Chunks of a table go to workers, and come back as segments in the order of the dump. A table gets
its name when it is whole, with a record of how it was made next to it: the same call again makes
only what is missing.
"""

from __future__ import annotations

import importlib.util
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, TypeVar, get_args

import orjson

from so2docs._version import __version__
from so2docs.counts import MOST, ChunkTally, Counts
from so2docs.dump.dump import Chunk, slices
from so2docs.dump.kinds import files_with, join_names, members_with, table_prefix
from so2docs.dump.opening import STANDARD_INPUT, Catalog, names_in_folder
from so2docs.dump.storage import sample_hash
from so2docs.dump.stream import AnyDump
from so2docs.dump.tables import TableFile, find_table
from so2docs.errors import ArchiveError, DumpError, OptionError, did_you_mean, flag, resumable
from so2docs.flat.columns import RowSelection, TableColumns, milliseconds, periods, why_stray
from so2docs.flat.writing import ENCODERS, EXTENSIONS, TableWriter, writer_for
from so2docs.options.choices import Core, SplitBy, TableFormat
from so2docs.options.option import choose, names
from so2docs.options.sites import published_host, site_from_name
from so2docs.options.table import OPTIONS
from so2docs.output.compression import GZIP_HEADER, compress, gzip_end
from so2docs.output.new_files import NewFiles, temporary_folder
from so2docs.output.part_files import (
    PART,
    RECORD,
    STRAYS,
    explain_errors,
    part_path,
    remove,
    side_file,
)
from so2docs.output.paths import ExistingOutputError, State
from so2docs.output.provenance import Provenance, input_file, load
from so2docs.output.segments import Segment, store
from so2docs.output.segments import remove as remove_stored
from so2docs.parse import core, rows
from so2docs.parse.core import choose_core
from so2docs.parse.posts import malformed_line, stray_line
from so2docs.pipeline.chunk import parse_slice
from so2docs.pipeline.first_pass import read_to_end
from so2docs.pipeline.worker import peak_memory
from so2docs.pipeline.workers import Workers
from so2docs.progress import Progress
from so2docs.report import Printed, as_size, check_placed, count_jobs, memory_line
from so2docs.schema import DUMP, Table
from so2docs.store.disk import disk_errors

CHUNK_BYTES = 16 * 1024 * 1024
"""XML of a row group: 6 MB of Parquet of posts, or 180,000 votes."""

_SLICE_BYTES = 1024 * 1024
"""Larger than for documents: each slice costs 0.3 ms for the objects of 23 columns."""


@dataclass(frozen=True, slots=True)
class _Request:
    """The options of a call, without the tables.

    Attributes:
        format: Of the files.
        split_by: Whether rows are parted by year or month.
        selection: Which rows are kept.
        skip_malformed: Whether rows that are not XML are strays.
        core: `compiled` or `python`.
        options: What decides the files, as it is recorded.
    """

    format: TableFormat
    split_by: SplitBy | None
    selection: RowSelection
    skip_malformed: bool
    core: Core
    options: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TableTask:
    """A range of a table, and what becomes of it.

    Attributes:
        chunk: The range.
        path: File for the segments.
        table: The table.
        request: The options.
    """

    chunk: Chunk
    path: str
    table: Table
    request: _Request


@dataclass(slots=True)
class TableResult:
    """A range that was read.

    Attributes:
        task: The task.
        segments: The segments, with the positions of their data.
        tally: Counts of rows, filtered rows, and strays by reason.
        misfits: Rows with a value in `Other`.
        strays: The lines of the strays file.
    """

    task: TableTask
    segments: list[Segment] = field(default_factory=list)
    tally: ChunkTally = field(default_factory=ChunkTally)
    misfits: int = 0
    strays: bytes = b""


def read_chunk(task: TableTask) -> TableResult:
    """Parse a chunk once, and write its rows as segments.

    Raises:
        MalformedDumpError: A row is not XML; lines in it count from the start of the chunk.
        ChangedDumpError: The dump has changed since it was opened.
        OutputError: The file cannot be written.
    """
    import pyarrow as pa

    from so2docs.output.formats.parquet import system_memory

    result, columns = TableResult(task), TableColumns(task.table)
    with system_memory():
        batches, tally = [], result.tally
        for offset, data in slices(task.chunk.dump, task.chunk.start, task.chunk.end, _SLICE_BYTES):
            for batch in _batches(task, columns, result, offset, data):
                rows = task.request.selection.filter(batch, columns)
                tally.filtered += batch.num_rows - rows.num_rows
                result.misfits += rows.num_rows - rows.column(rows.num_columns - 1).null_count
                if rows.num_rows:
                    batches.append(rows)
            tally.lines += core.count_lines(data)
        table = pa.Table.from_batches(batches, columns.schema)
        if batches:
            encoder = ENCODERS[task.request.format](columns.schema)
            split_by = task.request.split_by
            parts = periods(table, columns.date, split_by) if split_by else [("", table)]
            segments = [encoder.segment(part, label) for label, part in parts]
            (result.segments,) = store(task.path, segments)
    return result


def _batches(
    task: TableTask, columns: TableColumns, result: TableResult, offset: int, data: bytes
) -> Iterator[Any]:
    """Yield the record batches of a slice, and count its strays."""
    tally = result.tally
    compiled = columns.parse(data) if task.request.core == "compiled" else None
    if compiled is not None:
        batch, last_id = compiled
        tally.count_rows(batch.num_rows, last_id)
        yield batch
        return
    what = task.table.row

    def reject(at: int, raw: bytes) -> None:
        reason = f"malformed_{what}"
        result.strays += malformed_line(at, raw, reason)
        tally.strays[reason] += 1

    groups = parse_slice(
        task.chunk.dump, tally, offset, data, reject, skip_malformed=task.request.skip_malformed
    )
    for group in groups:
        tally.count_rows(len(group))
        usable = []
        for row in group:
            if reason := why_stray(row, "Id", what):
                result.strays += stray_line(reason, row)
                tally.strays[reason] += 1
            else:
                usable.append(row)
        if usable:
            tally.last_id = rows.row_id(usable[-1])
            yield columns.from_rows(usable)


Task = TypeVar("Task")


@dataclass(frozen=True, slots=True)
class TableReader:
    """Reads tables in chunks, side by side, with progress bars.

    Attributes:
        workers: Where chunks are read.
        progress: The progress bars.
        work: Folder for temporary files.
    """

    workers: Workers
    progress: Progress
    work: str

    @contextmanager
    def open(
        self, file: TableFile, read: Callable[[Task], Any], make_task: Callable[[Chunk], Task]
    ) -> Iterator[tuple[AnyDump, Iterator[Any]]]:
        """Open a table, and read it.

        Args:
            file: The table.
            read: From a task to its result, which has the `task` with its `chunk`, and a `tally`.
            make_task: From a chunk to its task.

        Yields:
            The open table, and the results in the order of the dump.
        """
        tallies: list[ChunkTally] = []
        with closing(file.open(threads=self.workers.jobs, work_dir=self.work)) as dump:
            total, before = dump.progress_total(CHUNK_BYTES, ())
            tasks = map(make_task, dump.chunks(CHUNK_BYTES, (), Path(self.work)))
            label = f"reading {file.table.name}"
            with self.progress.step(label, file.size, total, before) as progress_bar:

                def read_all() -> Iterator[Any]:
                    results = self.workers.run(read, tasks)
                    for result in read_to_end(results, dump, file.table, lambda: tallies):
                        yield result
                        tallies.append(result.tally)
                        progress_bar.update(dump.progress(result.task.chunk))

                yield dump, read_all()


_HEAD = 4096


def find_dump_tables(
    dump: str, only: tuple[str, ...], catalog: Catalog, advice: str = ""
) -> list[TableFile]:
    """Find tables of a dump, in the order in which they are read: each archive from start to end.

    Args:
        dump: A folder, an archive, or the file of a table, with those next to it.
        only: Names of the tables; all that are there if empty.
        catalog: The files that were looked into.
        advice: What to do where a table is missing, if not choosing others.

    Raises:
        DumpError: A requested table is missing, or the dump has no table.
    """
    files: list[TableFile] = []
    for table in DUMP.values():
        if only and table.name not in only:
            continue
        path = _path(dump, table, catalog)
        if path is not None:
            files.append(find_table(table, catalog.look(path)))
        elif only:
            raise _missing(dump, f"has no {table.file}, and none is next to it", catalog, advice)
    if not files:
        raise _missing(dump, "has no table of a Stack Exchange dump", catalog)
    return sorted(files, key=lambda file: file.place)


def _path(dump: str, table: Table, catalog: Catalog) -> str | None:
    """The file that a table is in."""
    if os.path.isdir(dump):
        return _in_folder(dump, table, catalog)
    source = catalog.look(dump)
    if source.archive() is not None:
        if members_with(table, source.names()):
            return dump
    elif table_prefix(table, os.path.basename(dump)) is not None or _has_root(dump, table, catalog):
        return dump
    folder = os.path.dirname(dump) or "."
    names = [table_prefix(other, os.path.basename(dump)) for other in DUMP.values()]
    for prefix in {name for name in names if name is not None}:
        near = files_with(table, names_in_folder(folder), prefix)
        if len(near) > 1:
            raise _unclear(folder, table, near)
        if near:
            return os.path.join(folder, near[0])
    return None


def _has_root(path: str, table: Table, catalog: Catalog) -> bool:
    """Whether a plain file, of whatever name, starts with the root element of a table."""
    source = catalog.look(path)
    if not source.is_plain:
        return False
    with source.open() as file:
        return re.search(rb"<%b[\s/>]" % table.root.encode(), file.read(_HEAD)) is not None


def _in_folder(folder: str, table: Table, catalog: Catalog) -> str | None:
    names = members_with(table, names_in_folder(folder))
    if len(names) > 1:
        raise _unclear(folder, table, names)
    if not names:
        return None
    path = os.path.join(folder, names[0])
    source = catalog.look(path)
    return path if source.archive() is None or members_with(table, source.names()) else None


def _unclear(folder: str, table: Table, names: list[str]) -> DumpError:
    return ArchiveError(
        folder,
        f"holds several files with {table.name}: {join_names(names)}",
        advice="name the archive of one dump",
    )


def _missing(dump: str, problem: str, catalog: Catalog, advice: str = "") -> DumpError:
    if os.path.isdir(dump):
        names = names_in_folder(dump)
    elif catalog.look(dump).archive() is None:
        return DumpError(dump, problem, advice="give a file such as Posts.xml, or the folder of it")
    else:
        names = catalog.look(dump).names()
    advice = advice or f"choose tables with {flag('only')}"
    return ArchiveError(dump, f"{problem}; it holds {join_names(names)}", advice=advice)


@dataclass(slots=True)
class FlatTable(Counts):
    """A table that was written, or is up to date: `rows = written + filtered + strays`.

    Attributes:
        name: Which.
        path: Its file, folder or database.
        rows: Rows of the dump.
        written: Rows in the file.
        filtered: Rows that were left out on purpose.
        strays: Rows without a usable `Id`, and those that are not XML, by reason.
        misfits: Rows with something in `Other`.
        repaired_characters: Characters replaced by U+FFFD.
        files: Number of files; that of a database holds all tables.
        bytes: Their size.
        is_new: Whether it was written now.
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
        """Rows of which nobody knows what became of them: none."""
        return self.rows - self.written - self.filtered - self.strays.total()

    def __str__(self) -> str:
        parts = [f"{self.written:,} rows"]
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
    """The tables of a dump by name, in the order in which they were read.

    Attributes:
        folder: Where they are.
        tables: Each by its name.
        jobs: Worker processes.
        seconds: Wall time.
        peak_memory_bytes: Most resident memory of all processes together.
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

    def lines(self) -> Iterator[tuple[str, str]]:
        """Each table, seconds and memory."""
        for name, table in self.tables.items():
            yield name, str(table)
        yield "time", f"{self.seconds:.2f} s ({count_jobs(self.jobs)})"
        yield memory_line(self.peak_memory_bytes)


_TABLES_VERSION = 1
"""Of the columns and their types; a change of what the same dump becomes makes it one more."""

_DATABASES: dict[TableFormat, str] = {"sqlite": "tables.db", "duckdb": "tables.duckdb"}
_WORTH_A_PROCESS = 32 * 1024 * 1024
_NEEDS: dict[str, str] = {"duckdb": "duckdb"}
_SHARED = ("since", "until", "tags", "all_tags", "split_by", "skip_malformed")
"""Options of a conversion that decide what is written here, too."""


@dataclass(slots=True)
class _Target:
    """A file, a folder or a database, and the tables that go into it.

    Attributes:
        path: The file; of a split table, its name in each folder below this one.
        files: The tables.
        provenance: The input and options it is made from.
        is_split: Whether there is a file for each period.
        results: The tables of an earlier run, if its files are up to date.
    """

    path: str
    files: list[TableFile]
    provenance: Provenance
    is_split: bool = False
    results: list[FlatTable] | None = None

    @property
    def name(self) -> str:
        """Path to show to users: the file, or the folder of a split table."""
        return os.path.dirname(self.path) if self.is_split else self.path

    @property
    def record(self) -> str:
        """The side file with the provenance."""
        return side_file(self.path, RECORD)


def tables(
    dump: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    only: str | Iterable[str] = (),
    format: TableFormat = "parquet",  # noqa: A002 - as that of `convert`.
    split_by: SplitBy | None = None,
    since: str | date | None = None,
    until: str | date | None = None,
    tags: str | Iterable[str] = (),
    all_tags: bool = False,
    skip_malformed: bool = False,
    update: bool = False,
    force: bool = False,
    jobs: int | None = None,
    core: Core = "auto",
    work_dir: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> TablesReport:
    """Write the tables of a dump as flat typed files, a row for each row, in the order of the dump.

    Columns are the attributes of the table that were ever published, whether or not a row has them,
    and `Other`: a JSON object with what has no column, or not the type of its column. Integers have
    64 bits, dates are timestamps in UTC, tags are lists. A table that is up to date is not written
    again, so that the same call after an interruption writes what is missing.

    Examples:
        >>> so2docs.tables("beer.stackexchange.com.7z", "beer", only="posts,votes")

    Args:
        dump: An archive or a folder with the tables, or the file of one table, with those next to
            it; an archive is decompressed once.
        folder: Where the files go, `Posts.parquet` and so on; made if it does not exist.
        only: Names of tables, such as `posts,votes`; all that are there if empty.
        format: `parquet`, `csv` or `jsonl` (gzip), or one database with all tables: `sqlite` or
            `duckdb`.
        split_by: Write a folder of files by `year` or `month` of the rows, in the layout of Hive:
            `Posts/year=2019/Posts.parquet`.
        since: Keep rows of this date (UTC) or later, in tables whose rows have a date.
        until: Keep rows of dates before this.
        tags: Keep posts that have any of these tags themselves; answers have none.
        all_tags: Keep posts with all of the tags, instead of any.
        skip_malformed: Put rows that are not well-formed XML with the strays, instead of failing.
        update: Write again what was made from another dump or with other options.
        force: Overwrite whatever is there.
        jobs: Worker processes; all cores if None, and one where the dump is small.
        core: What parses the rows; the files are the same.
        work_dir: Folder for temporary files; `folder` if None.
        progress: Show progress bars.

    Returns:
        Counts of the rows of each table, and where it is.

    Raises:
        OptionError: An option has a value that is not allowed, or a package is missing.
        DumpError: A table is missing, truncated, malformed, or changed meanwhile.
        OutputError: A file exists that is not up to date, or cannot be written.
    """
    begun = time.perf_counter()
    source, where = os.fspath(dump), os.fspath(folder)
    if source == STANDARD_INPUT:
        raise OptionError("tables are read from files; give an archive, a folder or a file")
    table_names = _chosen(only)
    form = choose("format", format, get_args(TableFormat), {"db": "sqlite", "ndjson": "jsonl"})
    kwargs = {
        "since": since,
        "until": until,
        "tags": tags,
        "all_tags": all_tags,
        "split_by": split_by,
        "skip_malformed": skip_malformed,
        "jobs": jobs,
        "work_dir": work_dir,
    }
    values = {
        name: OPTIONS[name].read(OPTIONS[name].check(value)) for name, value in kwargs.items()
    }
    request = _request(form, values, table_names, core)
    with explain_errors(where):
        os.makedirs(where, exist_ok=True)
    report = TablesReport(where)
    # Tables that are complete are not written again; a database has its name with the last one.
    with disk_errors(), resumable(form not in _DATABASES), Catalog() as catalog:
        files = find_dump_tables(source, table_names, catalog)
        targets = _targets(source, where, files, request)
        for target in targets:
            target.results = _check(target, force=force, update=update)
        pending = [file for target in targets if target.results is None for file in target.files]
        size = sum(file.size for file in pending)
        report.jobs = values["jobs"] or (1 if size < _WORTH_A_PROCESS else os.cpu_count() or 1)
        progress_bars = Progress(shown=progress)
        progress_bars.plan(size)
        with (
            temporary_folder(values["work_dir"] or where) as work,
            Workers(report.jobs) as workers,
            progress_bars,
        ):
            run = _Run(request, TableReader(workers, progress_bars, work))
            for target in targets:
                results = target.results
                if results is None:
                    results = run.write(target)
                report.tables |= {table.name: table for table in results}
            report.peak_memory_bytes = peak_memory() + sum(workers.peaks.values())
    report.seconds = time.perf_counter() - begun
    return report


def _chosen(only: str | Iterable[str]) -> tuple[str, ...]:
    """The tables that are asked for."""
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
    form: TableFormat, values: dict[str, Any], table_names: tuple[str, ...], core: Core
) -> _Request:
    package = _NEEDS.get(form)
    for name in filter(None, ("pyarrow", package)):
        if importlib.util.find_spec(name) is None:
            raise OptionError(
                f"{flag('format', form)} needs {name}; install it with: pip install {name}"
            )
    if values["split_by"] is not None and form in _DATABASES:
        raise OptionError(
            f"{flag('split_by', values['split_by'])} contradicts {flag('format', form)}, which is "
            "one file"
        )
    if values["tags"] and table_names and "posts" not in table_names:
        raise OptionError(
            f"{flag('tags')} is for posts, which {flag('only')} leaves out; name posts in it, too"
        )
    limits = {
        name: None if values[name] is None else milliseconds(_with_time(values[name]))
        for name in ("since", "until")
    }
    selection = RowSelection(**limits, tags=values["tags"], all_tags=values["all_tags"])
    options = {"format": form, **{name: values[name] for name in _SHARED}}
    options["tags"] = list(values["tags"])
    return _Request(
        form,
        values["split_by"],
        selection,
        values["skip_malformed"],
        choose_core(core),
        options,
    )


def _with_time(text: str) -> str:
    """A day or a time with minutes in the form of the dump."""
    day, _, hours = text.partition("T")
    return f"{day}T{hours or '00:00:00'}" + (":00" if len(hours) == len("12:00") else "")


def _targets(source: str, where: str, files: list[TableFile], request: _Request) -> list[_Target]:
    """List the files to write, and the tables that go into each."""
    site = published_host(site_from_name(source))

    def record_provenance(files: list[TableFile]) -> Provenance:
        options = request.options
        if not any(file.table.name == "posts" for file in files):
            options = options | {"tags": [], "all_tags": False}
        inputs = tuple(input_file(file) for file in files)
        return Provenance(__version__, _TABLES_VERSION, options, inputs, site, {})

    if request.format in _DATABASES:
        path = os.path.join(where, _DATABASES[request.format])
        return [_Target(path, files, record_provenance(files))]
    targets = []
    for file in files:
        name = file.table.stem + EXTENSIONS[request.format]
        is_split = request.split_by is not None and TableColumns(file.table).date is not None
        path = os.path.join(where, *([file.table.stem] if is_split else []), name)
        targets.append(_Target(path, [file], record_provenance([file]), is_split))
    return targets


def _check(target: _Target, *, force: bool, update: bool) -> list[FlatTable] | None:
    """Return the tables of an earlier run if its files are up to date, else None.

    Raises:
        ExistingOutputError: The files are from another dump or other options.
    """
    if force:
        return None
    existing = _earlier_files(target.path)
    if not existing:
        return None
    state: State = "unknown"
    reason = " and does not say how it was made"
    record = _read_record(target.record)
    if record is not None:
        provenance, files, results = record
        difference = provenance.difference(target.provenance)
        folder = os.path.dirname(target.path)
        recorded_fingerprints = [files.get(os.path.relpath(path, folder)) for path in existing]
        if difference is None and recorded_fingerprints == list(map(_fingerprint, existing)):
            # Fewer if the process was killed while it gave them their names.
            return results if len(existing) == len(files) else None
        state = "other options"
        reason = ", and is not what was written"
        if difference is not None:
            state = "another dump" if difference.is_dump else "other options"
            reason = f", made {difference.reason}"
    if update:
        return None
    advice = (
        f"choose another folder, write it again with {flag('update', True)}, or overwrite with "
        f"{flag('force', True)}"
    )
    raise ExistingOutputError(f"{existing[0]}: exists{reason}", state, advice)


def _fingerprint(path: str) -> list[Any]:
    """Size of a file, and a hash of its bytes at 17 places."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        return [size, sample_hash(file, size)]


def _read_record(path: str) -> tuple[Provenance, dict[str, list[Any]], list[FlatTable]] | None:
    """Read a side file; None if it is missing or damaged."""
    try:
        values = orjson.loads(Path(path).read_bytes())
        provenance = load(orjson.dumps(values["provenance"]))
        results = [FlatTable.from_dict(table | {"is_new": False}) for table in values["tables"]]
        return None if provenance is None else (provenance, values["files"], results)
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
        return None


def _earlier_files(path: str, end: str = "") -> list[str]:
    """Files of a target that exist: the one of this name, or those below its folder."""
    folder, name = os.path.split(path + end)
    split = Path(folder).glob(f"*=*/**/{name}")
    return sorted([*filter(os.path.isfile, [path + end]), *map(str, split)])


class _Run:
    """Reads tables and writes what they become.

    Args:
        request: What is asked for.
        reader: Reads the tables.
    """

    def __init__(self, request: _Request, reader: TableReader) -> None:
        self._request = request
        self._reader = reader
        self._strays: list[bytes] = []

    def write(self, target: _Target) -> list[FlatTable]:
        """Write the tables of a target; all of its files get their names, or none."""
        parent = os.path.dirname(target.path)
        is_new_folder = not os.path.isdir(parent)
        os.makedirs(parent, exist_ok=True)
        try:
            with NewFiles() as files:
                files.claim(target.path, [file.file for file in target.files], force=True)
                files.outdate(*_earlier_files(target.path), side_file(target.path, STRAYS))
                for path in _earlier_files(target.path, PART):
                    remove(path)
                return self._write(target, files)
        except BaseException:
            if is_new_folder:
                with suppress(OSError):
                    os.rmdir(parent)
            raise

    def _write(self, target: _Target, files: NewFiles) -> list[FlatTable]:
        self._strays = []
        writer = writer_for(target.path, self._request.format)
        try:
            results = [self._read(file, writer, target.name) for file in target.files]
            files_written = writer.finish()
        except BaseException:
            writer.discard()
            raise
        parent = os.path.dirname(target.path)
        size = sum(part.size for part in files_written.values())
        fingerprints = {
            os.path.relpath(name, parent): _fingerprint(part_path(name)) for name in files_written
        }
        for table in results:
            table.files, table.bytes = len(files_written), size
        tables = [table.as_dict() for table in results]
        about = {"provenance": target.provenance.as_dict(), "files": fingerprints, "tables": tables}
        # Before the files: what is there when this process is killed is known by it.
        files.write(target.record, orjson.dumps(about, option=orjson.OPT_INDENT_2))
        if self._strays:
            files.write(side_file(target.path, STRAYS), _gzip(b"".join(self._strays)))
        for path, complete in files_written.items():
            files.add(path, complete)
        return results

    def _read(self, file: TableFile, writer: TableWriter, path: str) -> FlatTable:
        """Read a table to its end, and hand its segments to the writer.

        Raises:
            InternalError: Rows were lost on the way.
        """
        table = FlatTable(file.table.name, path)
        writer.begin(TableColumns(file.table))

        def make_task(chunk: Chunk) -> TableTask:
            stored = os.path.join(self._reader.work, f"{file.table.name}-{chunk.number}")
            return TableTask(chunk, stored, file.table, self._request)

        with self._reader.open(file, read_chunk, make_task) as (dump, results):
            for result in results:
                self._append(result, writer, table)
            table.repaired_characters += dump.chunk_end(CHUNK_BYTES).repaired
        check_placed(file.name, table.rows, table.rows - table.unaccounted)
        return table

    def _append(self, result: TableResult, writer: TableWriter, table: FlatTable) -> None:
        for segment in result.segments:
            writer.append(segment)
        remove_stored(result.segments)
        table += result.tally
        table.misfits += result.misfits
        table.written += sum(segment.documents for segment in result.segments)
        if result.strays:
            self._strays.append(result.strays)


def _gzip(data: bytes) -> bytes:
    segment = compress(data, "gzip", 2)
    return GZIP_HEADER + segment.data + gzip_end(segment.crc, segment.raw_size)
