"""Inspect a dump without converting it, in one pass over its tables."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any

from so2docs.dump.opening import TableFile
from so2docs.extensions.inspection.facts import FactsVisitor, RowFacts
from so2docs.output.new_files import temporary_folder
from so2docs.parse.core import choose_core
from so2docs.plugin import (
    DUMP,
    POSTS,
    Counts,
    DumpError,
    Source,
    on_one_line,
    plural,
    site_from_name,
    without_secrets,
)
from so2docs.report import as_size
from so2docs.scan.table import TableReader, start_reader

_TABLES = {table.file: table for table in sorted(DUMP.values(), key=attrgetter("file"))}
"""All tables of dumps, nested or not, by file name."""

_QUARTERS_SINCE = "2024-03-01"
"""First day of the period in which each release ends with a quarter:
https://meta.stackexchange.com/q/398279."""

_LICENSE_FILE = "license.txt"
"""Name of the licence file in archives since the release of 2024-06-30."""

_MOST_LICENSE = 64 * 1024
_FIRST_WITH_LICENSE_FILE = "2024-06-30"

_NAMED_DATE = re.compile(r"(?<!\d)(20[012]\d)-?(0[1-9]|1[0-2])(?:-?[0-3]\d)?(?!\d)")
_MOST_MONTHS = 3
"""Maximum months from the last row to the date in a name; more suggest an older release."""


@dataclass(frozen=True, slots=True)
class InspectedFile:
    """A file of a dump.

    Attributes:
        path: Path of the file.
        form: Type of the file.
        bytes: Size of the file in bytes.
        members: Size of each file in an archive.
        license: Text of the `license.txt` in an archive, or next to an unpacked table; None if it
            is missing.
    """

    path: str
    form: str
    bytes: int
    members: dict[str, int] = field(default_factory=dict)
    license: str | None = None


@dataclass(slots=True)
class InspectedTable(RowFacts):
    """A table of a dump, with facts about all its rows.

    Attributes:
        file: Name of the file.
        bytes: Size of the XML.
        encoding: Encoding of the XML.
        problem: Error that stopped the reading; None if the whole table was read.
    """

    file: str
    bytes: int
    encoding: str = "utf-8"
    problem: str | None = None

    @property
    def is_ordered(self) -> bool:
        """Whether rows are in ascending order of `Id`."""
        return not self.descents

    @property
    def lacks(self) -> list[str]:
        """Known columns that no row has; empty for a table without rows."""
        known = _TABLES[self.file].attributes if self.rows else ()
        return [name for name in known if name not in self.columns]

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-compatible values; unknown ones are None."""
        dates = {"first_date": self.first_date or None, "last_date": self.last_date or None}
        others = {"is_ordered": self.is_ordered, "lacks": self.lacks}
        values = {**Counts.as_dict(self), **dates, **others}
        if self.problem is not None:
            values |= dict.fromkeys([*RowFacts().as_dict(), *others])
        return values

    def cells(self) -> tuple[str, ...]:
        """Return the cells for a line of text after the name; empty where nothing is known."""
        if self.problem is not None:
            return ("cannot be read", as_size(self.bytes), "", "", "", "")
        order = "ascending" if self.is_ordered else plural(self.descents, "descent")
        dates = self.first_date[:10], self.last_date[:10]
        return (f"{self.rows:,}", as_size(self.bytes), *dates, order, f"{self.made_up:,}")


@dataclass(frozen=True, slots=True)
class Inspection:
    """The result of inspecting a dump.

    Attributes:
        dump: Path of the dump.
        site: Site, judging by the name of the dump.
        files: Files of the dump.
        tables: Tables by file name.
        last_date: Latest date of any row not made up by the publisher.
        release: Probable release: the last day of a quarter, or, for releases until early 2024, the
            month of the last row.
        remarks: Messages about contradictions in the dump, and rows that are not well-formed.
    """

    dump: str
    site: str
    files: list[InspectedFile]
    tables: dict[str, InspectedTable]
    last_date: str
    release: str
    remarks: list[str]

    @property
    def is_sound(self) -> bool:
        """Whether every table could be read completely and is well-formed XML."""
        return not any(table.problem or table.malformed for table in self.tables.values())

    def columns(self) -> dict[str, int | float]:
        """Return the numbers for this site's row in a table of sites, by column name."""
        tables = self.tables.values()
        sums = {name: sum(getattr(table, name) for table in tables) for name in ("rows", "bytes")}
        return {"tables": len(tables), **sums}

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-compatible values."""
        tables = {name: table.as_dict() for name, table in self.tables.items()}
        dates = {"last_date": self.last_date or None, "release": self.release or None}
        return {**asdict(self), **dates, "tables": tables, "is_sound": self.is_sound}

    def __str__(self) -> str:
        lines = [on_one_line(f"{self.dump}: {self.site}")]
        lines[0] += f", rows until {self.last_date[:10]}" if self.last_date else ""
        lines[0] += f", probably the release of {self.release}" if self.release else ""
        for file in self.files:
            path = on_one_line(file.path)
            lines.append(f"  {path}: {file.form}, {as_size(file.bytes)}")
        head = ("table", "rows", "bytes", "first date", "last date", "order of Id", "made up")
        rows = [head, *((name, *table.cells()) for name, table in self.tables.items())]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = [text.ljust(width) for text, width in zip(row, widths, strict=True)]
            lines.append(f"  {'  '.join(cells)}".rstrip())
        for name, table in self.tables.items():
            if table.lacks:
                lines.append(f"  {name}: no row has {', '.join(table.lacks)}")
        return "\n".join([*lines, *(f"  note: {on_one_line(remark)}" for remark in self.remarks)])


def inspect(
    dump: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    work_dir: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> Inspection:
    """Inspect a dump without converting it: form, tables, dates and columns.

    Examples:
        >>> print(so2docs.inspect("sample.stackexchange.com.7z"))

    Args:
        dump: An archive or a folder with the tables of a site; or the file of its posts, plain or
            compressed, with the tables next to it; or the file of another table, without them.
        jobs: Worker processes; all cores if None, but one for a small dump.
        work_dir: Folder for temporary files.
        progress: Show a progress bar.

    Raises:
        DumpError: The dump does not exist, or has no table.
    """
    source = Source(dump)
    source.check_named("tables are inspected")
    folder = None if work_dir is None else os.fspath(work_dir)
    with source, temporary_folder(folder) as temporary:
        tables = _find(source)
        remarks: list[str] = []
        files = _files(tables, remarks)
        with start_reader(tables, temporary, jobs=jobs, progress=progress) as reader:
            results = {table.table.file: _read(table, reader, temporary) for table in tables}
    ordered = {name: results[name] for name in sorted(results)}
    last_date = max((result.last_date for result in ordered.values()), default="")
    is_licensed = any(file.license is not None for file in files)
    release = _release_of(last_date, has_license_file=is_licensed)
    is_archive = any(file.members for file in files)
    # Of the release of 2024-06-30, only some archives have the file.
    if is_archive and release > _FIRST_WITH_LICENSE_FILE and not is_licensed:
        remarks.append(f"the dump has no {_LICENSE_FILE}, which archives of this release have")
    name = without_secrets(source.path)
    remarks.extend(_remarks(name, ordered, last_date))
    return Inspection(name, site_from_name(name), files, ordered, last_date, release, remarks)


def _find(source: Source) -> list[TableFile]:
    """Find the tables of a dump, without opening them; return them in reading order."""
    files = []
    for name, path in locate_all(source).items():
        file = source.look(path)
        label = file.name if file.archive() is None else f"{file.name} ({name})"
        files.append(TableFile.of(_TABLES[name], file, label))
    if not files:
        raise source.missing("holds no table of a dump", "give the archive of a site")
    return sorted(files, key=attrgetter("place"))


def locate_all(source: Source) -> dict[str, str]:
    """Return the paths of the tables to inspect, by the name of their file in a dump.

    With the file of posts, these include the tables next to it; with the file of another table,
    only the tables in this file. A file that is neither is read as posts, without the tables next
    to it, which belong to another dump.
    """
    located = {table.file: source.locate(table) for table in _TABLES.values()}
    paths = {name: found for name, found in located.items() if found is not None}
    path = source.path
    if path not in paths.values():
        if not source.is_folder and source.look(path).archive() is None:
            if source.look(path).is_plain and not source.look(path).has_root(POSTS.root):
                paths.clear()
            paths[POSTS.file] = path  # A conversion reads any other file as posts.
    elif paths.get(POSTS.file) != path:
        paths = {name: found for name, found in paths.items() if found == path}
    return paths


def _files(tables: list[TableFile], remarks: list[str]) -> list[InspectedFile]:
    """Describe the files of the tables; add errors in reading `license.txt` to the remarks."""
    files: dict[str, InspectedFile] = {}
    for table in tables:
        source = table.source
        if source.path in files:
            continue
        archive = source.archive()
        form = source.kind.name if source.kind else "a plain file" if source.is_plain else "XML"
        members = {entry.name: entry.size for entry in archive.entries} if archive else {}
        license_text = None
        try:
            license_text = _read_license(table)
        except DumpError as error:
            remarks.append(str(error))
        files[source.path] = InspectedFile(
            source.name, form, source.identity.size, members, license_text
        )
    return list(files.values())


def _read_license(table: TableFile) -> str | None:
    """Read `license.txt` in an archive or next to an uncompressed table; None if missing."""
    source = table.source
    archive = source.archive()
    if archive is None:
        path = os.path.join(os.path.dirname(source.path), _LICENSE_FILE)
        if not source.is_plain or not os.path.isfile(path):
            return None
        with Source(path).look(path).open() as file:
            data = file.read(_MOST_LICENSE)
    else:
        entries = {os.path.basename(entry.name).lower(): entry for entry in archive.entries}
        if _LICENSE_FILE not in entries:
            return None
        data = archive.read_start(entries[_LICENSE_FILE], _MOST_LICENSE)
    return data.decode("utf-8-sig", "replace").strip()


def _read(table: TableFile, reader: TableReader, folder: str) -> InspectedTable:
    """Read a whole table and collect its facts; a `DumpError` becomes its `problem`."""
    result = InspectedTable(table.table.file, table.size)
    try:
        visitor = partial(FactsVisitor, table.table, choose_core("auto"))
        with reader.open(table, lambda _: visitor, folder) as (dump, results):
            result.encoding = dump.encoding
            for chunk in results:
                result.check_order(chunk.value.first_id)
                result += chunk.value
            result.bytes = dump.size
            result.repaired += dump.repaired
    except DumpError as error:
        result.problem = str(error)
    return result


def _remarks(path: str, tables: dict[str, InspectedTable], last_date: str) -> Iterator[str]:
    """List contradictions in a dump, and rows that are not well-formed."""
    for table in tables.values():
        if table.malformed:
            yield f"{table.file}: {plural(table.malformed, 'row')} of malformed XML"
        if table.misfit_dates:
            yield f"{table.file}: {plural(table.misfit_dates, 'value')} in place of a date"
    dates_in_path = _NAMED_DATE.findall(path)
    if dates_in_path and last_date:
        year, month = map(int, dates_in_path[-1])
        months = 12 * (year - int(last_date[:4])) + month - int(last_date[5:7])
        if months > _MOST_MONTHS:
            yield (
                f"the name says {year}-{month:02}, but the rows end on {last_date[:10]}: "
                "this is probably an older release"
            )
    if made_up := sum(table.made_up for table in tables.values()):
        rows = plural(made_up, "row")
        yield f"{rows} made up by the publisher; --drop-fabricated leaves out such rows"
    posts = tables.get("Posts.xml")
    if posts is not None and not posts.is_ordered:
        yield f"posts are not in order of id; the first post out of order is {posts.first_descent}"


def _release_of(last_date: str, *, has_license_file: bool) -> str:
    """Estimate the release of a dump from the date of its last row.

    Returns:
        For a quarterly release, the last day that it covers; for an earlier release, the month of
        the last row; empty if unknown, or not of this century.
    """
    release = last_date[:7] if last_date.startswith("20") else ""
    if release and last_date >= _QUARTERS_SINCE:
        quarter = (int(last_date[5:7]) - 1) // 3
        release = f"{last_date[:4]}-{('03-31', '06-30', '09-30', '12-31')[quarter]}"
    return max(release, _FIRST_WITH_LICENSE_FILE) if has_license_file else release
