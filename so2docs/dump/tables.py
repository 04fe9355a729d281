"""The tables that a conversion reads next to the posts, and their files.

A plain file is checked before the conversion, like that of the posts. In an archive only the list
of members is: the first byte of a table in a solid archive may come after gigabytes of others. It
is opened in its turn, one table at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from so2docs.dump.archives import Entry
from so2docs.dump.dump import Dump
from so2docs.dump.kinds import files_with, join_names, members_with, table_prefix
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
from so2docs.dump.source import changed_error
from so2docs.dump.stream import AnyDump
from so2docs.errors import ArchiveError, DumpError, flag
from so2docs.options.table import Tables
from so2docs.schema import POSTS, TABLES, Table


@dataclass(slots=True)
class TableFile:
    """A table of a dump and its file; also used for the posts.

    Attributes:
        table: The table.
        name: Its name in messages.
        size: Bytes of the table; approximate for a compressed file; 0 if unknown.
        source: Its file; None for an open file or standard input.
        entry: Its member in an archive.
        dump: The open table. A plain file, or a source that can be read only once, is always open.
    """

    table: Table
    name: str
    size: int
    source: SourceFile | None = None
    entry: Entry | None = None
    dump: AnyDump | None = None

    @property
    def file(self) -> str | None:
        """The file; None if it can be read only once."""
        return self.source.path if self.source is not None and self.source.is_file else None

    @property
    def is_plain(self) -> bool:
        """Whether it is read in ranges, not as a stream."""
        return isinstance(self.dump, Dump)

    @property
    def chunk_bytes(self) -> int:
        """Default size of a chunk in bytes; 0 for pieces that grow with the stream."""
        return self.dump.chunk_bytes if isinstance(self.dump, Dump) else 0

    @property
    def place(self) -> tuple[str, int, int]:
        """Position of its bytes: the file, the block, the offset in the block."""
        path = "" if self.source is None else self.source.path
        return (path, self.entry.block, self.entry.offset) if self.entry else (path, 0, 0)

    def precedes(self, other: TableFile) -> bool:
        """Whether it comes before another table in one compressed stream."""
        shares_a_block = self.entry is not None and self.place[:2] == other.place[:2]
        return shares_a_block and self.place < other.place

    def open(self, *, threads: int, work_dir: str | None) -> AnyDump:
        """Open it and read its start, once.

        Args:
            threads: Number of threads that decompress.
            work_dir: Folder for an archive that has to be unpacked from another.

        Raises:
            DumpError: It cannot be read, or is another table.
        """
        if self.dump is not None:
            return self.dump
        assert self.source is not None
        dump = open_file(
            self.source, self.table, name=self.name, threads=threads, work_dir=work_dir
        )
        if dump.identity != self.source.identity:
            dump.close()
            raise changed_error(self.name, "changed before it was read")
        self.dump, self.size = dump, dump.size
        return dump

    def close(self) -> None:
        """Close it; a stream cannot be read again."""
        if self.dump is not None:
            self.dump.close()


def find_posts(
    posts_source: DumpLike, catalog: Catalog, *, threads: int = 1, work_dir: str | None = None
) -> TableFile:
    """Find the posts of a dump.

    Args:
        posts_source: A `Posts.xml`, an archive or compressed file, a folder with one of them, `-`
            for standard input, or an open binary file, which is left open.
        catalog: The files that were looked into.
        threads: Number of threads that decompress.
        work_dir: Folder for an archive that has to be unpacked from another, or saved from
            standard input; the system's temporary folder if None.

    Raises:
        DumpError: The file cannot be read, or is not a dump.
    """
    if not isinstance(posts_source, str | os.PathLike) or os.fspath(posts_source) == STANDARD_INPUT:
        file = None if isinstance(posts_source, str | os.PathLike) else posts_source
        dump = open_stream(file, threads=threads, work_dir=work_dir)
        return TableFile(POSTS, dump.path, dump.size, dump=dump)
    path = os.fspath(posts_source)
    path = file_in_folder(path, POSTS) if os.path.isdir(path) else path
    source = catalog.look(path)
    posts = table_file(POSTS, source, path)
    if source.is_plain:
        posts.open(threads=threads, work_dir=work_dir)
    return posts


def find_tables(
    source: DumpLike, nest: tuple[str, ...], tables: Tables, catalog: Catalog
) -> dict[str, TableFile]:
    """Find every table to nest, in the order in which they are nested.

    Args:
        source: The source of the posts. A table is searched for in that archive or folder, then
            next to it: `stackoverflow.com-Comments.7z` next to `stackoverflow.com-Posts.7z`.
        nest: Names of the tables to nest.
        tables: Files, folders or archives of tables that are elsewhere.
        catalog: The files that were looked into.

    Raises:
        DumpError: A table is missing, or a plain file of one is not what `open_dump` takes.
    """
    files: dict[str, TableFile] = {}
    for name in nest:
        option = tables.get(TABLES[name].file_option)
        path = _locate(source, TABLES[name], catalog) if option is None else os.fspath(option)
        if os.path.isdir(path):
            path = file_in_folder(path, TABLES[name])
        files[name] = find_table(TABLES[name], catalog.look(path))
    return files


def tables_beside(source: DumpLike, names: Iterable[str], catalog: Catalog) -> list[str]:
    """Select the tables that are in the archive of the posts or next to them."""
    present = []
    for name in names:
        with suppress(DumpError):
            find_tables(source, (name,), {}, catalog)
            present.append(name)
    return present


def in_reading_order(posts: TableFile, tables: Iterable[TableFile]) -> list[TableFile]:
    """Sort the tables of a dump by their position in their files.

    A table that shares a compressed stream with the posts is before or after them, as in the
    archive; all others follow. So nothing is decompressed twice.
    """
    others = list(tables)
    before = sorted((table for table in others if table.precedes(posts)), key=_place)
    after = [table for table in others if not table.precedes(posts)]
    paths = [posts.place[0], *(table.place[0] for table in after)]
    after.sort(key=lambda table: (paths.index(table.place[0]), table.place))
    return [*before, posts, *after]


def _place(table: TableFile) -> tuple[str, int, int]:
    return table.place


def table_file(table: Table, source: SourceFile, name: str) -> TableFile:
    """Describe a table in a file that was found, and do not open it.

    Args:
        table: Which.
        source: The file.
        name: What to call it in messages.

    Raises:
        ArchiveError: The file is an archive without the table, or is damaged.
    """
    archive = source.archive()
    entry = None if archive is None else archive.find(table)
    size = source.expected if entry is None else entry.size
    return TableFile(table, name, size, source, entry)


def find_table(table: Table, source: SourceFile) -> TableFile:
    """Describe a table in a file that was found; a plain file is opened.

    Raises:
        DumpError: The file holds something else.
    """
    path = source.path
    if source.archive() is not None and not members_with(table, source.names()):
        raise _missing(table, path, f"has no {table.file}", source.names())
    is_clear = source.is_plain or table.stem.lower() in os.path.basename(path).lower()
    file = table_file(table, source, path if is_clear else f"{path} ({table.file})")
    if source.is_plain:
        file.open(threads=1, work_dir=None)
    return file


def _locate(source: DumpLike, table: Table, catalog: Catalog) -> str:
    """Find the file of a table: the archive of the posts, or a file next to it."""
    if not isinstance(source, str | os.PathLike) or source == STANDARD_INPUT:
        if near := _beside(table, ".", [""]):
            return near
        raise _missing(table, os.path.join(".", table.file), "is missing")
    path = os.fspath(source)
    is_folder = os.path.isdir(path)
    posts = file_in_folder(path, POSTS) if is_folder else path
    source_file = catalog.look(posts)
    members = None if source_file.archive() is None else source_file.names()
    if members_with(table, members or []):
        return posts
    prefix = table_prefix(POSTS, os.path.basename(posts))
    prefixes = [] if prefix is None else [prefix]
    if is_folder or members is None:
        prefixes.append("")
    folder = os.path.dirname(posts) or "."
    if near := _beside(table, folder, prefixes):
        return near
    if members is None:
        raise _missing(table, os.path.join(folder, table.file), "is missing")
    problem = f"has no {table.file} in it, and none is next to it"
    raise _missing(table, posts, problem, members)


def _beside(table: Table, folder: str, prefixes: list[str]) -> str | None:
    """Find the file of a table in a folder, by the first prefix that matches."""
    names = names_in_folder(folder)
    for prefix in prefixes:
        matches = files_with(table, names, prefix)
        if table.file in matches or len(matches) == 1:
            return os.path.join(folder, table.file if table.file in matches else matches[0])
        if matches:
            raise ArchiveError(
                folder,
                f"holds several files with {table.name}: {join_names(matches)}",
                advice=f"choose one with {flag(table.file_option, 'FILE')}",
            )
    return None


def _missing(
    table: Table, path: str, problem: str, members: Iterable[str] | None = None
) -> DumpError:
    problem = f"{problem}, and the {table.name} to nest are in it" if members is None else problem
    advice = (
        f"say where it is with {flag(table.file_option, 'FILE')}, or leave the {table.name} out"
    )
    if members is None:
        return DumpError(path, problem, advice=advice)
    return ArchiveError(path, f"{problem}; it holds {join_names(members)}", advice=advice)
