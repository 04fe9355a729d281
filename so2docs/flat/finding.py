"""Which tables a dump has, and in which files they are."""

from __future__ import annotations

import os
import re

from so2docs.dump.kinds import files_with, join_names, members_with, table_prefix
from so2docs.dump.opening import Catalog, names_in_folder
from so2docs.dump.tables import TableFile, table_file
from so2docs.errors import ArchiveError, DumpError, flag
from so2docs.schema import DUMP, Table

_HEAD = 4096


def find_dump_tables(dump: str, only: tuple[str, ...], catalog: Catalog) -> list[TableFile]:
    """Find tables of a dump, in the order in which they are read: each archive from start to end.

    Args:
        dump: A folder, an archive, or the file of a table, with those next to it.
        only: Names of the tables; all that are there if empty.
        catalog: The files that were looked into.

    Raises:
        DumpError: A requested table is missing, or the dump has no table.
    """
    files: list[TableFile] = []
    for table in DUMP.values():
        if only and table.name not in only:
            continue
        path = _path(dump, table, catalog)
        if path is not None:
            files.append(table_file(table, catalog.look(path)))
        elif only:
            raise _missing(dump, f"has no {table.file}, and none is next to it", catalog)
    if not files:
        raise _missing(dump, "has no table of a Stack Exchange dump", catalog)
    return sorted(files, key=lambda file: file.place)


def _path(dump: str, table: Table, catalog: Catalog) -> str | None:
    """The file that a table is in."""
    if os.path.isdir(dump):
        return _in_folder(dump, table, catalog)
    archive = catalog.look(dump).archive()
    if archive is not None:
        if members_with(table, [entry.name for entry in archive.entries]):
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
    archive = catalog.look(path).archive()
    is_there = archive is None or members_with(table, [entry.name for entry in archive.entries])
    return path if is_there else None


def _unclear(folder: str, table: Table, names: list[str]) -> DumpError:
    return ArchiveError(
        folder,
        f"holds several files with {table.name}: {join_names(names)}",
        advice="name the archive of one dump",
    )


def _missing(dump: str, problem: str, catalog: Catalog) -> DumpError:
    if os.path.isdir(dump):
        names = names_in_folder(dump)
    elif catalog.look(dump).archive() is None:
        return DumpError(dump, problem, advice="give a file such as Posts.xml, or the folder of it")
    else:
        names = [entry.name for entry in catalog.look(dump).members()]
    advice = f"choose tables with {flag('only')}"
    return ArchiveError(dump, f"{problem}; it holds {join_names(names)}", advice=advice)
