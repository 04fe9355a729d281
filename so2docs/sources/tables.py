"""Which tables a conversion reads beside the posts, and where they are.

A plain file is looked at before anything is converted, as that of the posts is. Of what is packed
only the list of members is: in a solid archive, the first byte of a table may stand behind
gigabytes of others. It is opened when its turn comes, one at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from so2docs.errors import ArchiveError, ChangedDumpError, DumpError
from so2docs.options.keywords import Tables
from so2docs.schema import TABLES, Table
from so2docs.sources.dump import Dump, open_dump
from so2docs.sources.kinds import POSTS, DumpFile, listed
from so2docs.sources.opening import (
    STANDARD_INPUT,
    DumpLike,
    FileFacts,
    file_in_folder,
    inspect_file,
    names_in_folder,
    open_path,
)
from so2docs.sources.stream import AnyDump


@dataclass(frozen=True, slots=True)
class TableFile:
    """A table that was found.

    Attributes:
        table: Which.
        path: The file that it is in.
        facts: What that is.
        dump: What is known of a plain file; None if the table is read as a stream.
        size: Bytes of the table; of a compressed file, about.
    """

    table: Table
    path: str
    facts: FileFacts
    dump: Dump | None
    size: int

    @property
    def name(self) -> str:
        """What to call it in messages."""
        wanted = _wanted(self.table)
        is_clear = (
            self.dump is not None or wanted.stem.lower() in os.path.basename(self.path).lower()
        )
        return self.path if is_clear else f"{self.path} ({wanted.file})"

    @property
    def file(self) -> str | None:
        """The file; None if it can be read only once."""
        return self.path if self.facts.is_file else None

    @property
    def identity(self) -> tuple[int, int, int]:
        """Of that file: size, modification time and inode."""
        return self.facts.identity if self.dump is None else self.dump.identity

    @property
    def chunk_bytes(self) -> int:
        """Bytes of a chunk where nobody says otherwise; 0 for pieces that grow with the stream."""
        return 0 if self.dump is None else self.dump.chunk_bytes

    def open(self, *, threads: int, work_dir: str | None) -> AnyDump:
        """Open it, and read its start.

        Args:
            threads: How many may decompress.
            work_dir: Folder for an archive that has to be unpacked from another.

        Raises:
            DumpError: It cannot be read, or is not such a table.
        """
        if self.dump is not None:
            return self.dump
        dump = open_path(
            self.path, _wanted(self.table), name=self.name, threads=threads, work_dir=work_dir
        )
        if dump.identity != self.identity:
            dump.close()
            raise ChangedDumpError(
                self.name,
                "changed before it was read",
                advice="wait until it is complete and run the command again with --restart",
            )
        return dump


def find_tables(source: DumpLike, nest: tuple[str, ...], tables: Tables) -> dict[str, TableFile]:
    """Find every table to nest, in the order in which they are read.

    Args:
        source: What the posts are read from. A table is looked for in that archive or folder, then
            beside it: `stackoverflow.com-Comments.7z` beside `stackoverflow.com-Posts.7z`.
        nest: Names of the tables to nest.
        tables: Their files, folders or archives, where they do not stand there.

    Raises:
        DumpError: A table is missing, or a plain file of one is not what `open_dump` takes.
    """
    found: dict[str, TableFile] = {}
    for name in nest:
        given = tables.get(name)
        path = _located(source, TABLES[name]) if given is None else os.fspath(given)
        if os.path.isdir(path):
            path = file_in_folder(path, _wanted(TABLES[name]))
        found[name] = _found(TABLES[name], path)
    return found


def tables_beside(source: DumpLike, names: Iterable[str]) -> list[str]:
    """Those of some tables that stand with the posts or beside them."""
    found = []
    for name in names:
        with suppress(DumpError):
            find_tables(source, (name,), {})
            found.append(name)
    return found


def _wanted(table: Table) -> DumpFile:
    return DumpFile(table.file, table.name)


def _found(table: Table, path: str) -> TableFile:
    facts, wanted = inspect_file(path), _wanted(table)
    if facts.is_plain:
        dump = open_dump(path, wanted)
        return TableFile(table, path, facts, dump, dump.size)
    size, members = facts.expected, facts.members()
    if members is not None:
        found = wanted.among(list(members))
        if not found:
            raise _missing(table, path, f"has no {table.file} in it", members)
        size = members[found[0]]
    return TableFile(table, path, facts, None, size)


def _located(source: DumpLike, table: Table) -> str:
    """The file that a table is in: that of the posts, if it is an archive, or one beside it."""
    if not isinstance(source, str | os.PathLike) or source == STANDARD_INPUT:
        if found := _beside(table, ".", [""]):
            return found
        raise _missing(table, os.path.join(".", table.file), "is missing")
    path = os.fspath(source)
    is_folder = os.path.isdir(path)
    posts = file_in_folder(path, POSTS) if is_folder else path
    members = inspect_file(posts).members()
    if _wanted(table).among(list(members or ())):
        return posts
    prefix = POSTS.prefix_of(os.path.basename(posts))
    prefixes = [] if prefix is None else [prefix]
    if is_folder or members is None:
        prefixes.append("")
    folder = os.path.dirname(posts) or "."
    if found := _beside(table, folder, prefixes):
        return found
    if members is None:
        raise _missing(table, os.path.join(folder, table.file), "is missing")
    problem = f"has no {table.file} in it, and none stands beside it"
    raise _missing(table, posts, problem, members)


def _beside(table: Table, folder: str, prefixes: list[str]) -> str | None:
    """The file of a table in a folder, whose name starts with the first prefix that there is."""
    names = names_in_folder(folder)
    for prefix in prefixes:
        found = _wanted(table).beside(names, prefix)
        if table.file in found or len(found) == 1:
            return os.path.join(folder, table.file if table.file in found else found[0])
        if found:
            raise ArchiveError(
                folder,
                f"holds several files of the {table.name}: {listed(found)}",
                advice=f"choose one with --{table.name} FILE",
            )
    return None


def _missing(
    table: Table, path: str, problem: str, members: Iterable[str] | None = None
) -> DumpError:
    problem = f"{problem}, and the {table.name} to nest are in it" if members is None else problem
    advice = f"say where it is with --{table.name} FILE, or leave the {table.name} out"
    if members is None:
        return DumpError(path, problem, advice=advice)
    return ArchiveError(path, f"{problem}; it holds {listed(members)}", advice=advice)
