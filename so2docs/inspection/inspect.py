"""A dump, looked into without converting it: one pass over its tables."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from so2docs.counts import Counts
from so2docs.dump.kinds import files_with, members_with
from so2docs.dump.opening import Catalog, SourceFile, file_in_folder, names_in_folder
from so2docs.dump.storage import unreadable_output
from so2docs.dump.tables import TableFile, in_reading_order, table_file
from so2docs.errors import DumpError, OptionError, OutputError
from so2docs.inspection.audit import Audit, Check, ChunkFacts, RowFacts, look
from so2docs.options.sites import site_from_name
from so2docs.output.new_files import temporary_folder
from so2docs.pipeline.workers import Workers
from so2docs.progress import Progress
from so2docs.report import as_size
from so2docs.schema import DUMP, POSTS, Table

_TABLES = [
    replace(table, name=table.root) for table in sorted(DUMP.values(), key=lambda table: table.file)
]
"""All tables that dumps have, nested or not."""

_POSTS = next(table for table in _TABLES if table.file == POSTS.file)
_COMMENT = re.compile(rb"<!--(.*?)-->", re.DOTALL)
_NAMED_DATE = re.compile(r"(?<!\d)(20[012]\d)-?(0[1-9]|1[0-2])(?:-?[0-3]\d)?(?!\d)")
_MOST_MONTHS = 3
"""Rows that end more months than that before the date in a name belong to another release."""


@dataclass(frozen=True, slots=True)
class InspectedFile:
    """A file of a dump.

    Attributes:
        path: The file.
        form: What it is.
        bytes: Its size.
        codecs: What each block of an archive is compressed by, with the number of such blocks.
        members: Bytes of each file in an archive.
        sha256: Its SHA-256 in hexadecimal, if it was asked for.
    """

    path: str
    form: str
    bytes: int
    codecs: dict[str, int] = field(default_factory=dict)
    members: dict[str, int] = field(default_factory=dict)
    sha256: str | None = None


@dataclass(slots=True)
class InspectedTable(RowFacts):
    """A table of a dump, with the facts of all its rows.

    Attributes:
        file: Its name.
        bytes: Bytes of XML.
        encoding: Of its bytes.
        comments: Comments before the first row, such as one on the licence.
        problem: Why it could not be read to its end.
    """

    file: str
    bytes: int
    encoding: str = "utf-8"
    comments: tuple[str, ...] = ()
    problem: str | None = None

    @property
    def is_ordered(self) -> bool:
        """Whether rows are in ascending order of `Id`."""
        return not self.descents

    def as_dict(self) -> dict[str, Any]:
        """All fields in JSON types."""
        return {**Counts.as_dict(self), "is_ordered": self.is_ordered}


@dataclass(frozen=True, slots=True)
class Inspection:
    """The result of inspecting a dump.

    Attributes:
        dump: What was given.
        site: The site, as far as the name tells.
        files: The files that it is in.
        tables: Its tables, by name of the file.
        last_date: The latest date of any row.
        release: Month in which it was probably made: that of the last row.
        remarks: What does not fit together, in words.
        checks: Equalities that hold inside a dump, and where they do not.
    """

    dump: str
    site: str
    files: list[InspectedFile]
    tables: dict[str, InspectedTable]
    last_date: str
    release: str
    remarks: list[str]
    checks: list[Check]

    @property
    def is_sound(self) -> bool:
        """Whether every table could be read to its end, and is XML."""
        return not any(table.problem or table.malformed for table in self.tables.values())

    def as_dict(self) -> dict[str, Any]:
        """All fields in JSON types."""
        tables = {name: table.as_dict() for name, table in self.tables.items()}
        return {**asdict(self), "tables": tables, "is_sound": self.is_sound}

    def __str__(self) -> str:
        lines = [f"{self.dump}: {self.site}, rows until {self.last_date[:10] or 'no date'}"]
        for file in self.files:
            codecs = ", ".join(
                f"{name} in {n:,} block{'s'[: n > 1]}" for name, n in file.codecs.items()
            )
            inside = f", {codecs}" if codecs else ""
            lines.append(f"  {file.path}: {file.form}{inside}, {as_size(file.bytes)}")
            if file.sha256:
                lines.append(f"    SHA-256 {file.sha256}")
        head = ("table", "rows", "bytes", "first date", "last date", "order of Id", "made up")
        rows = [head]
        for name, table in self.tables.items():
            order = "ascending" if table.is_ordered else f"{table.descents:,} descents"
            dates = table.first_date[:10], table.last_date[:10]
            counts = f"{table.rows:,}", as_size(table.bytes)
            rows.append((name, *counts, *dates, order, f"{table.made_up:,}"))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = [text.ljust(width) for text, width in zip(row, widths, strict=True)]
            lines.append(f"  {'  '.join(cells)}".rstrip())
        for check in self.checks:
            result = f"holds for {check.checked:,}"
            if check.differ:
                examples = ", ".join(map(str, check.examples))
                result = f"does not hold for {check.differ:,} of {check.checked:,}: {examples}"
            lines.append(f"  {check.name}: {result}")
        return "\n".join([*lines, *(f"  note: {remark}" for remark in self.remarks)])


def inspect(
    dump: str | os.PathLike[str],
    *,
    sha256: bool = False,
    jobs: int | None = None,
    work_dir: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> Inspection:
    """Find out what a dump is, without converting it: form, tables, dates, and counts that differ.

    Examples:
        >>> print(so2docs.inspect("beer.stackexchange.com.7z"))

    Args:
        dump: An archive or a folder with the tables of a site, or one `Posts.xml`, packed or not.
        sha256: Read the files once more, for their SHA-256.
        jobs: Worker processes; all cores if None.
        work_dir: Folder for temporary files, about 110 bytes a post.
        progress: Show a bar.

    Raises:
        DumpError: It does not exist, or no table of a dump is in it.
    """
    path = os.fspath(dump)
    if path == "-":
        raise OptionError("standard input cannot be inspected; give the name of a file")
    folder = None if work_dir is None else os.fspath(work_dir)
    count = jobs or os.cpu_count() or 1
    with Catalog() as catalog, temporary_folder(folder) as temporary:
        tables = _find(path, catalog)
        files = _files(tables, sha256)
        results: dict[str, InspectedTable] = {}
        bar = Progress(shown=progress)
        bar.plan(sum(table.size for table in tables))
        with closing(Audit(temporary)) as audit, Workers(count) as workers, bar:
            for table in in_reading_order(tables[0], tables[1:]):
                with bar.step(table.table.file, table.size, table.size) as step:
                    results[table.table.file] = _read(table, audit, workers, temporary, step.update)
            checks = (
                audit.checks() if not any(result.problem for result in results.values()) else []
            )
    ordered = {name: results[name] for name in sorted(results)}
    last_date = max((result.last_date for result in ordered.values()), default="")
    remarks = list(_remarks(path, ordered, last_date))
    release = last_date[:7]
    return Inspection(
        path, site_from_name(path), files, ordered, last_date, release, remarks, checks
    )


def load_or_inspect(path: str, *, progress: bool = False) -> list[Any]:
    """Inspections in JSON types: of a dump, or from `FILE.json`, which `--json` printed.

    Raises:
        So2docsError: The file cannot be read or is not JSON, or the dump cannot be inspected.
    """
    if not path.lower().endswith(".json"):
        return [inspect(path, progress=progress).as_dict()]
    try:
        with open(path, "rb") as file:
            values = orjson.loads(file.read())
    except OSError as error:
        raise unreadable_output(path, error) from error
    except orjson.JSONDecodeError as error:
        raise OutputError(f"{path}: is damaged ({error}); inspect the dump again") from None
    return values if isinstance(values, list) else [values]


def _find(path: str, catalog: Catalog) -> list[TableFile]:
    """The tables in an archive, a folder or a file."""
    if not os.path.isdir(path):
        source = catalog.look(path)
        if source.archive() is None:
            return [_table(source, _POSTS)]
        present = [table for table in _TABLES if members_with(table, source.names())]
        files = [_table(source, kind) for kind in present]
    else:
        there = names_in_folder(path)
        present = [table for table in _TABLES if files_with(table, there, "")]
        if not present:
            return _find(file_in_folder(path, POSTS), catalog)
        files = [_table(catalog.look(file_in_folder(path, kind)), kind) for kind in present]
    if not files:
        raise DumpError(path, "holds no table of a dump", advice="give the archive of a site")
    return files


def _table(source: SourceFile, table: Table) -> TableFile:
    is_clear = source.archive() is None
    return table_file(table, source, source.path if is_clear else f"{source.path} ({table.file})")


def _files(tables: list[TableFile], sha256: bool) -> list[InspectedFile]:
    """The files that tables are in."""
    files: dict[str, InspectedFile] = {}
    for table in tables:
        source = table.source
        if source is None or source.path in files:
            continue
        archive, digest = source.archive(), None
        if sha256:
            with source.open() as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
        form = source.kind.name if source.kind else "a plain file" if source.is_plain else "XML"
        codecs = {} if archive is None else archive.codecs()
        members = {entry.name: entry.size for entry in archive.entries} if archive else {}
        size = source.identity.size
        files[source.path] = InspectedFile(source.path, form, size, codecs, members, digest)
    return list(files.values())


def _read(
    table: TableFile, audit: Audit, workers: Workers, folder: str, advance: Callable[[int], object]
) -> InspectedTable:
    """Read a table to its end."""
    result, facts = InspectedTable(table.table.file, table.size), ChunkFacts()
    try:
        with closing(table.open(threads=workers.jobs, work_dir=folder)) as dump:
            result.encoding, result.comments = dump.encoding, _comments(dump.head)
            tasks = (
                (table.table.name, chunk)
                for chunk in dump.chunks(dump.chunk_bytes, (), Path(folder))
            )
            for chunk, part in workers.run(look, tasks):
                audit.add(table.table.name, part)
                facts.check_order(part.first_id)
                facts += part
                dump.progress(chunk)
                advance(chunk.end - chunk.start)
            dump.check_end()
            result.bytes = dump.size
            result.repaired = dump.chunk_end(dump.chunk_bytes or 1).repaired
    except DumpError as error:
        result.problem = str(error)
    result += facts
    return result


def _comments(head: bytes) -> tuple[str, ...]:
    """The comments before the first row."""
    return tuple(text.decode(errors="replace").strip() for text in _COMMENT.findall(head))


def _remarks(path: str, tables: dict[str, InspectedTable], last_date: str) -> Iterator[str]:
    """List contradictions in a dump."""
    for table in tables.values():
        if table.problem:
            yield table.problem
        if table.malformed:
            yield f"{table.file}: {table.malformed:,} rows are not well-formed XML"
    dates_in_path = _NAMED_DATE.findall(path)
    if dates_in_path and last_date:
        year, month = map(int, dates_in_path[-1])
        months = 12 * (year - int(last_date[:4])) + month - int(last_date[5:7])
        if months > _MOST_MONTHS:
            yield (
                f"its name says {year}-{month:02}, and its rows end on {last_date[:10]}: "
                "it is probably an older release"
            )
    if made_up := sum(table.made_up for table in tables.values()):
        yield f"{made_up:,} rows are made up by the publisher: --drop-fabricated leaves them out"
    posts = tables.get("Posts.xml")
    if posts is not None and not posts.is_ordered:
        yield f"posts are not in the order of their ids, first at {posts.first_descent}"
