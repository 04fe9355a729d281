"""A dump as the caller names it, and the files of its tables.

The public API makes one `Source` for each dump; everything below takes it. Each file is inspected
only once. A plain file is checked before the conversion. For an archive, only the list of members
is checked, since a table in a solid archive may come after gigabytes of other tables. Such tables
are opened one at a time, in the order of the archive.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import AbstractContextManager
from operator import attrgetter
from os import PathLike
from typing import BinaryIO

from so2docs.dump.names import files_with, join_names, members_with, table_prefix
from so2docs.dump.opening import STANDARD_INPUT, SourceFile, TableFile
from so2docs.dump.storage import check_source, is_url, list_folder, unreadable_dump
from so2docs.errors import ArchiveError, DumpError, OptionError, flag
from so2docs.options.sites import published_host, site_from_name
from so2docs.options.table import Tables
from so2docs.schema import DUMP, POSTS, TABLES, Table

DumpLike = str | PathLike[str] | BinaryIO
"""A dump from a caller: a path or URL, `-` for standard input, or an open binary file."""


class Source(AbstractContextManager["Source"]):
    """A dump: a file, a folder, a URL or a stream, with the files inspected so far.

    It may be used again after it is closed.

    Attributes:
        path: Path or URL; `-` for standard input, and empty for an open file.
        stream: The open file, which is left open; None for a path.
        is_stream: Whether it is standard input or an open file, without a name.
        is_folder: Whether it is a local folder.
    """

    def __init__(self, dump: DumpLike) -> None:
        """Take a dump, without opening it."""
        check_source(dump, "the dump", "convert several with convert_all")
        self.path = ""
        self.stream: BinaryIO | None = None
        if isinstance(dump, str | PathLike):
            self.path = os.fspath(dump)
        else:
            self.stream = dump
        self.is_stream = self.stream is not None or self.path == STANDARD_INPUT
        self.is_folder = not self.is_stream and os.path.isdir(self.path)
        self._files: dict[str, SourceFile] = {}
        self._tables: list[TableFile] = []

    def __exit__(self, *exception: object) -> None:
        for table in self._tables:
            table.close()
        self._tables.clear()
        for file in self._files.values():
            file.close()

    @property
    def name(self) -> str:
        """The path, or the name of the stream."""
        return self.look("").name if self.stream is not None else self.path

    def check_exists(self) -> None:
        """Raise `DumpError` if the path does not exist; URLs and streams are not checked."""
        try:
            if not self.is_stream and not is_url(self.path):
                os.stat(self.path)
        except OSError as error:
            raise unreadable_dump(self.path, error) from error

    def check_named(self, noun: str) -> None:
        """Raise `OptionError` unless the dump can be read several times."""
        if self.is_stream:
            raise OptionError(f"{noun} from files; give an archive, a folder or a file")

    def site(self) -> str:
        """Derive the name of the site from the name of the dump."""
        if not self.is_stream:
            return site_from_name(self.path)
        raise OptionError(
            "the dump has no name that contains the site; give the site with "
            f"{flag('site', 'HOST')}"
        )

    def published_host(self) -> str | None:
        """Derive the host of the site from the name of the dump; None if it names no host."""
        return None if self.is_stream else published_host(self.site())

    def look(self, path: str) -> SourceFile:
        """Return the file at a path, which is inspected on the first call."""
        if path not in self._files:
            self._files[path] = SourceFile(path, None if path else self.stream)
        return self._files[path]

    def find_to_convert(self, nest: Iterable[str], files: Tables) -> list[TableFile]:
        """Find the posts, then the tables to nest, in the given order; open plain files.

        Args:
            nest: Names of the tables.
            files: Files, folders or archives of tables that are elsewhere.
        """
        path = file_in_folder(self.path, POSTS) if self.is_folder else self.path
        source = self.look(path)
        found = [self._add(TableFile.of(POSTS, source, source.name))]
        for table in (TABLES[name] for name in nest):
            option = flag("tables", {table.file_option: "FILE"})
            given = files.get(table.file_option) or self.locate(table, f"choose one with {option}")
            if given is not None and os.path.isdir(given):
                given = file_in_folder(str(given), table)
            advice = (
                f"name its file with {option}, leave the {table.name} out, or nest only the "
                f"tables that are there with {flag('if_present', True)}"
            )
            found.append(self._find(table, given, advice))
        return found

    def find_tables(self, only: Iterable[str] = ()) -> list[TableFile]:
        """Return tables in reading order: those in `only`, or all if it is empty."""
        requested = [*only]
        if not self.is_folder and not any(
            _holds(self.look(self.path), table) for table in DUMP.values()
        ):
            # If the file is no dump at all, such as a web page, raise the error of a conversion.
            self._find(POSTS, self.path).open()
            raise self.missing("has no table of a Stack Exchange dump in its name")
        found = []
        for table in DUMP.values():
            if requested and table.name not in requested:
                continue
            path = self.locate(table)
            if path or requested:
                found.append(self._find(table, path, f"choose tables with {flag('only')}"))
        if not found:
            raise self.missing("has no table of a Stack Exchange dump")
        return sorted(found, key=attrgetter("place"))

    def select_present(self, names: Iterable[str]) -> list[str]:
        """Select the names of the tables that are in the archive of the posts, or next to it.

        A table that cannot be read is present; reading it raises the error.
        """
        return [name for name in names if self.locate(TABLES[name]) is not None]

    def locate(self, table: Table, advice: str = "name the archive of one dump") -> str | None:
        """Return the path of a table: the dump itself, or a file in its folder or next to it.

        Returns None if no file contains the table.

        A file next to the dump has the same prefix, such as `stackoverflow.com-Comments.7z` next to
        `stackoverflow.com-Posts.7z`, or no prefix, such as `Comments.xml` next to `beer.xml`.
        """
        if self.is_stream:
            return _beside(table, ".", [""], advice)
        path = self.path
        if self.is_folder:
            names = list_folder(path)
            posts = members_with(POSTS, names)
            if len(posts) != 1:
                return _single(table, path, members_with(table, names), advice)
            path = os.path.join(path, posts[0])
        file = self.look(path)
        if _holds(file, table):
            return path
        near = _prefixes(file)
        if self.is_folder or file.archive() is None:
            near.append("")
        return _beside(table, os.path.dirname(path) or ".", near, advice)

    def _find(self, table: Table, given: str | PathLike[str] | None, advice: str = "") -> TableFile:
        """Find a table in a file, named after both unless the name of the file says enough.

        Raises:
            DumpError: The path is None; the error has this advice.
        """
        if given is None:
            raise self.missing(f"has no {table.file}, and none is next to it", advice)
        path = str(given)
        source = self.look(path)
        is_clear = source.is_plain or table.stem.lower() in os.path.basename(path).lower()
        name = source.name if is_clear else f"{source.name} ({table.file})"
        return self._add(TableFile.of(table, source, name))

    def _add(self, file: TableFile) -> TableFile:
        """Close a table together with the dump, and open it now if it is plain."""
        self._tables.append(file)
        if file.source.is_plain:
            file.open()
        return file

    def missing(self, problem: str, advice: str = "") -> DumpError:
        """Make the error for a missing table, with the names of the files that are there."""
        advice = advice or "give an archive, a folder, or a file such as Posts.xml"
        if self.is_folder:
            return _without(self.path, problem, list_folder(self.path), advice)
        file = self.look(self.path)
        archive = file.archive()
        if archive is None:
            return DumpError(file.name, problem, advice=advice)
        return _without(self.path, problem, archive.names, advice)


def in_reading_order(files: Iterable[TableFile]) -> list[TableFile]:
    """Sort the tables of a dump, given the posts first, by their position in their files.

    A table in the same compressed stream as the posts keeps its position before or after them; all
    other tables follow. This way, nothing is decompressed twice.
    """
    posts, *tables = files
    before = sorted((table for table in tables if table.precedes(posts)), key=attrgetter("place"))
    after = [table for table in tables if not table.precedes(posts)]
    paths = [posts.place[0], *(table.place[0] for table in after)]
    after.sort(key=lambda file: (not posts.precedes(file), paths.index(file.place[0]), file.place))
    return [*before, posts, *after]


def open_first(files: Iterable[TableFile], threads: int, work_dir: str | None) -> None:
    """Open the file that a conversion reads first."""
    in_reading_order(files)[0].open(threads=threads, work_dir=work_dir)


def file_in_folder(path: str, table: Table) -> str:
    """Return the path of a table's file in a folder, compressed or not."""
    names = list_folder(path)
    matches = members_with(table, names)
    if len(matches) == 1:
        return os.path.join(path, matches[0])
    lacks = f"is a folder without a {table.file}"
    problem = "is a folder with several dumps" if matches else lacks
    advice = f"give the {table.file} of one dump, or the archive of its site"
    raise _without(path, problem, matches or names, advice)


def _without(path: str, problem: str, names: list[str], advice: str) -> ArchiveError:
    return ArchiveError(path, f"{problem}; it holds {join_names(names)}", advice=advice)


def _prefixes(file: SourceFile) -> list[str]:
    """Return what precedes the names of tables in the name of a file; empty if it names none."""
    name = os.path.basename(file.name)
    prefixes = [table_prefix(table, name) for table in DUMP.values()]
    return [prefix for prefix in prefixes if prefix is not None]


def _holds(file: SourceFile, table: Table) -> bool:
    """Whether a file contains a table: by its members, by its name, or by its root element."""
    archive = file.archive()
    if archive is not None:
        return bool(members_with(table, archive.names))
    if _prefixes(file):
        return table_prefix(table, os.path.basename(file.name)) is not None
    return file.has_root(table.root)


def _beside(table: Table, folder: str, prefixes: list[str], advice: str) -> str | None:
    """Return the path of a table's file in a folder, trying prefixes in order; None if missing."""
    names = list_folder(folder)
    for prefix in prefixes:
        if path := _single(table, folder, files_with(table, names, prefix), advice):
            return path
    return None


def _single(table: Table, folder: str, names: list[str], advice: str) -> str | None:
    """Return the path of `table.file` or of the only file; None if there is no file."""
    if table.file in names:
        names = [table.file]
    if len(names) > 1:
        raise _without(folder, f"holds several files with {table.name}", names, advice)
    return os.path.join(folder, names[0]) if names else None
