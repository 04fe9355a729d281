"""The tables that a conversion reads next to the posts, and their files.

A plain file is checked before the conversion, like the file of the posts. For an archive, only the
list of members is checked, since a table in a solid archive may come after gigabytes of other
tables. Such tables are opened one at a time, in the order of the archive.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from operator import attrgetter

from so2docs.dump.archives import Entry
from so2docs.dump.dump import Dump
from so2docs.dump.kinds import files_with, is_of_site, join_names, members_with, table_prefix
from so2docs.dump.opening import (
    STANDARD_INPUT,
    Catalog,
    DumpLike,
    SourceFile,
    file_in_folder,
    names_in_folder,
    open_file,
    open_stream,
)
from so2docs.dump.places import Restart
from so2docs.dump.source import changed_error
from so2docs.dump.stream import AnyDump
from so2docs.errors import ArchiveError, DumpError, flag
from so2docs.options.table import Tables
from so2docs.progress import log
from so2docs.schema import DUMP, POSTS, TABLES, Table

_HEAD = 4096

_STREAM_WORK = 2
"""Approximate cost of reading a byte from a stream, relative to a plain file."""


@dataclass(slots=True)
class TableFile:
    """A table of a dump, such as the posts, with its file.

    Attributes:
        table: The table.
        name: Name in messages.
        size: Size of the table in bytes; approximate for a compressed file; 0 if unknown.
        source: The file; None for an open file or standard input.
        entry: Member of an archive; None for other files.
        dump: The open table, or None. Plain files, and sources that can be read only once, are
            always open.
    """

    table: Table
    name: str
    size: int
    source: SourceFile | None = None
    entry: Entry | None = None
    dump: AnyDump | None = None

    @property
    def file(self) -> str | None:
        """Path of the file; None if it can be read only once."""
        return self.source.path if self.source is not None and self.source.is_file else None

    @property
    def is_plain(self) -> bool:
        """Whether the file is read in ranges, not as a stream."""
        return isinstance(self.dump, Dump) if self.source is None else self.source.is_plain

    @property
    def label(self) -> str:
        """The name in a progress bar."""
        return "reading" if self.table == POSTS else f"reading {self.table.name}"

    @property
    def work(self) -> int:
        """Cost of reading the table, in bytes of a plain file; 0 if unknown."""
        return self.size * (1 if self.is_plain else _STREAM_WORK)

    @property
    def chunk_bytes(self) -> int:
        """Default size of a chunk in bytes; 0 for growing pieces of a stream."""
        return self.dump.chunk_bytes if isinstance(self.dump, Dump) else 0

    @property
    def place(self) -> tuple[str, int, int]:
        """Position of the table: file, block, offset in the block."""
        path = "" if self.source is None else self.source.path
        return (path, self.entry.block, self.entry.offset) if self.entry else (path, 0, 0)

    def precedes(self, other: TableFile) -> bool:
        """Whether the table comes before another table in the same compressed stream."""
        shares_a_block = self.entry is not None and self.place[:2] == other.place[:2]
        return shares_a_block and self.place < other.place

    def open(
        self, *, threads: int, work_dir: str | None, restart: Restart | None = None
    ) -> AnyDump:
        """Open the table and read its start; if it is already open, return it unchanged.

        Raises:
            DumpError: The file cannot be read, or contains a table other than `table`.
        """
        if self.dump is not None:
            return self.dump
        assert self.source is not None
        dump = open_file(
            self.source,
            self.table,
            name=self.name,
            threads=threads,
            work_dir=work_dir,
            restart=restart,
        )
        if dump.identity != self.source.identity:
            dump.close()
            raise changed_error(self.name, "changed before it was read")
        self.dump, self.size = dump, dump.size
        return dump

    def pass_over(self, restart: Restart | None) -> None:
        """Skip a table that was already read; later tables are read from the place of `restart`."""
        if restart is not None and self.source is not None and self.entry is not None:
            archive = self.source.archive()
            assert archive is not None
            archive.resume_after(self.entry, restart.place)

    def close(self) -> None:
        """Close the table; a stream cannot be reread."""
        if self.dump is not None:
            self.dump.close()


def find_posts(
    posts_source: DumpLike, catalog: Catalog, *, threads: int = 1, work_dir: str | None = None
) -> TableFile:
    """Find the posts of a dump.

    Args:
        posts_source: A `Posts.xml`, an archive or compressed file, a folder with one of them, `-`
            for standard input, or an open binary file, which is left open.
        catalog: The files inspected so far.
        threads: Number of decompression threads.
        work_dir: Folder for a copy of an archive that is inside another archive or comes from
            standard input; the system's temporary folder if None.

    Raises:
        DumpError: The file cannot be read, or is not a dump.
    """
    if not isinstance(posts_source, str | os.PathLike) or os.fspath(posts_source) == STANDARD_INPUT:
        file = None if isinstance(posts_source, str | os.PathLike) else posts_source
        dump = open_stream(file, threads=threads, work_dir=work_dir)
        return TableFile(POSTS, dump.path, dump.size, dump=dump)
    path = os.fspath(posts_source)
    if os.path.isdir(path):
        folder, path = path, file_in_folder(path, POSTS)
        others = [
            name
            for name in names_in_folder(folder)
            if is_of_site(name) and name != os.path.basename(path)
        ]
        if others:
            log.warning(
                f"{folder}: only {os.path.basename(path)} is read, not the archives next to it: "
                f"{join_names(others)}; to convert them, list them"
            )
    source = catalog.look(path)
    posts = table_file(POSTS, source, source.name)
    if source.is_plain:
        posts.open(threads=threads, work_dir=work_dir)
    return posts


def find_tables(
    source: DumpLike, nest: tuple[str, ...], tables: Tables, catalog: Catalog
) -> dict[str, TableFile]:
    """Find all tables to nest; return their files by table name, in the order of `nest`.

    Args:
        source: The source of the posts. The search starts in this archive or folder, and continues
            next to it: `stackoverflow.com-Comments.7z` next to `stackoverflow.com-Posts.7z`.
        nest: Names of the tables to nest.
        tables: Files, folders or archives of tables that are elsewhere.
        catalog: The files inspected so far.

    Raises:
        DumpError: A table is missing, or the plain file of a table is invalid.
    """
    files: dict[str, TableFile] = {}
    for name in nest:
        option = tables.get(TABLES[name].file_option)
        path = _locate_to_nest(source, TABLES[name], catalog) if option is None else str(option)
        if os.path.isdir(path):
            path = file_in_folder(path, TABLES[name])
        files[name] = find_table(TABLES[name], catalog.look(path))
    return files


def find_dump_tables(
    dump: str, only: tuple[str, ...], catalog: Catalog, advice: str = ""
) -> list[TableFile]:
    """Return the tables of a dump in reading order: those in `only`, or all if it is empty.

    Raises:
        DumpError: A requested table is missing, or the dump has no table.
    """
    _check_is_table(dump, catalog)
    tables = [table for table in DUMP.values() if not only or table.name in only]
    files: list[TableFile] = []
    for table in tables:
        path = locate(dump, table, catalog)
        if path is not None:
            files.append(find_table(table, catalog.look(path)))
        elif only:
            problem = f"has no {table.file}, and none is next to it"
            raise _without_tables(dump, problem, catalog, advice)
    if not files:
        raise _without_tables(dump, "has no table of a Stack Exchange dump", catalog)
    return sorted(files, key=attrgetter("place"))


def _check_is_table(dump: str, catalog: Catalog) -> None:
    """Raise the error of a conversion for a file that is neither an archive nor a table."""
    if os.path.isdir(dump):
        return
    file = catalog.look(dump)
    name, tables = os.path.basename(file.name), DUMP.values()
    if file.archive() is not None or any(table_prefix(table, name) is not None for table in tables):
        return
    if not file.is_file:
        raise DumpError(dump, "is not a file", advice="give an archive, a folder or a file")
    if any(_has_root(file, table) for table in tables):
        return
    with closing(open_file(file, POSTS, name=file.name, threads=1, work_dir=None)):
        advice = f"if it holds posts, rename it to {POSTS.file}, with its extension for compression"
        raise DumpError(dump, "has no table of a Stack Exchange dump in its name", advice=advice)


def _without_tables(dump: str, problem: str, catalog: Catalog, advice: str = "") -> DumpError:
    if os.path.isdir(dump):
        names = names_in_folder(dump)
    elif catalog.look(dump).archive() is None:
        advice = advice or "give a file such as Posts.xml, or its folder"
        return DumpError(dump, problem, advice=advice)
    else:
        names = catalog.look(dump).names()
    advice = advice or f"choose tables with {flag('only')}"
    return ArchiveError(dump, f"{problem}; it holds {join_names(names)}", advice=advice)


def tables_beside(source: DumpLike, names: Iterable[str], catalog: Catalog) -> list[str]:
    """Return the names of the tables that are in the archive of the posts, or next to it."""
    present = []
    for name in names:
        with suppress(DumpError):
            find_tables(source, (name,), {}, catalog)
            present.append(name)
    return present


def in_reading_order(posts: TableFile, tables: Iterable[TableFile]) -> list[TableFile]:
    """Sort the tables of a dump by their position in their files.

    A table in the same compressed stream as the posts keeps its position before or after them; all
    other tables follow the posts. This way, nothing is decompressed twice.
    """
    files = list(tables)
    before = sorted((table for table in files if table.precedes(posts)), key=attrgetter("place"))
    after = [table for table in files if not table.precedes(posts)]
    paths = [posts.place[0], *(table.place[0] for table in after)]
    after.sort(key=lambda table: (paths.index(table.place[0]), table.place))
    return [*before, posts, *after]


def announce(files: Iterable[TableFile]) -> None:
    """Announce all tables to be read, so that other members of an archive can be skipped."""
    for file in files:
        if (
            file.source is not None
            and file.entry is not None
            and (archive := file.source.archive())
        ):
            archive.expect([file.entry])


def table_file(table: Table, source: SourceFile, name: str) -> TableFile:
    """Describe a table in a file without opening it.

    Raises:
        ArchiveError: The file is an archive without the table, or a damaged archive.
    """
    archive = source.archive()
    entry = None if archive is None else archive.find(table)
    size = source.expected if entry is None else entry.size
    return TableFile(table, name, size, source, entry)


def find_table(table: Table, source: SourceFile) -> TableFile:
    """Describe a table in a file, and open a plain file.

    Raises:
        DumpError: The file does not contain the table.
    """
    path = source.name
    if source.archive() is not None and not members_with(table, source.names()):
        raise _missing(table, path, f"has no {table.file}", source.names())
    is_clear = source.is_plain or table.stem.lower() in os.path.basename(path).lower()
    file = table_file(table, source, path if is_clear else f"{path} ({table.file})")
    if source.is_plain:
        file.open(threads=1, work_dir=None)
    return file


def locate(
    source: DumpLike, table: Table, catalog: Catalog, advice: str = "name the archive of one dump"
) -> str | None:
    """Return the path of a table: the source itself, or a file in its folder or next to it.

    Returns None if no file contains the table.

    A file next to the source has the same prefix, such as `stackoverflow.com-Comments.7z` next to
    `stackoverflow.com-Posts.7z`, or no prefix, such as `Comments.xml` next to `beer.xml`.

    Raises:
        ArchiveError: Several files match, or an archive is damaged.
    """
    if not isinstance(source, str | os.PathLike) or source == STANDARD_INPUT:
        return _beside(table, ".", [""], advice)
    path = os.fspath(source)
    is_folder = os.path.isdir(path)
    if is_folder:
        names = names_in_folder(path)
        posts = members_with(POSTS, names)
        if len(posts) != 1:
            return _single(table, path, members_with(table, names), advice)
        path = os.path.join(path, posts[0])
    file = catalog.look(path)
    name = os.path.basename(file.name)
    prefixes = [table_prefix(other, name) for other in DUMP.values()]
    near = [prefix for prefix in prefixes if prefix is not None]
    if file.archive() is not None:
        is_here = bool(members_with(table, file.names()))
    else:
        is_here = table_prefix(table, name) is not None or (not near and _has_root(file, table))
    if is_here:
        return path
    if is_folder or file.archive() is None:
        near.append("")
    return _beside(table, os.path.dirname(path) or ".", near, advice)


def _has_root(file: SourceFile, table: Table) -> bool:
    """Whether a plain file starts with the root element of a table."""
    if not file.is_plain:
        return False
    with file.open() as opened:
        return re.search(rb"<%b[\s/>]" % table.root.encode(), opened.read(_HEAD)) is not None


def _beside(table: Table, folder: str, prefixes: list[str], advice: str) -> str | None:
    """Return the path of a table's file in a folder, trying prefixes in order; None if missing."""
    names = names_in_folder(folder)
    for prefix in prefixes:
        if path := _single(table, folder, files_with(table, names, prefix), advice):
            return path
    return None


def _single(table: Table, folder: str, names: list[str], advice: str) -> str | None:
    """Return the path of `table.file` or of the only file; None if there is no file."""
    if table.file in names:
        names = [table.file]
    if len(names) > 1:
        problem = f"holds several files with {table.name}: {join_names(names)}"
        raise ArchiveError(folder, problem, advice=advice)
    return os.path.join(folder, names[0]) if names else None


def _locate_to_nest(source: DumpLike, table: Table, catalog: Catalog) -> str:
    """Return the path of a table to nest; raise `DumpError` if it is missing."""
    file_option = flag("tables", {table.file_option: "FILE"})
    if path := locate(source, table, catalog, f"choose one with {file_option}"):
        return path
    if not isinstance(source, str | os.PathLike) or source == STANDARD_INPUT:
        raise _missing(table, os.path.join(".", table.file), "is missing")
    posts = os.fspath(source)
    posts = file_in_folder(posts, POSTS) if os.path.isdir(posts) else posts
    if catalog.look(posts).archive() is None:
        raise _missing(table, os.path.join(os.path.dirname(posts), table.file), "is missing")
    problem = f"has no {table.file} in it, and none is next to it"
    raise _missing(table, posts, problem, catalog.look(posts).names())


def _missing(
    table: Table, path: str, problem: str, members: Iterable[str] | None = None
) -> DumpError:
    problem = f"{problem}, so the {table.name} cannot be nested" if members is None else problem
    file_option = flag("tables", {table.file_option: "FILE"})
    advice = (
        f"name its file with {file_option}, leave the {table.name} out, or nest only the tables "
        f"that are there with {flag('if_present', True)}"
    )
    if members is None:
        return DumpError(path, problem, advice=advice)
    return ArchiveError(path, f"{problem}; it holds {join_names(members)}", advice=advice)
