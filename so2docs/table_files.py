"""Which tables a conversion reads beside the posts, and where: plain files, not archives."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from so2docs.dump import Dump, open_dump
from so2docs.errors import DumpError, MalformedDumpError, OptionError
from so2docs.sources.opening import Given
from so2docs.tables import TABLES

POSTS = "Posts.xml"
ALL = "all"

Tables = Mapping[str, str | os.PathLike[str] | None]
"""Files of tables by the tables' names; None where none was given."""


def asked(nest: Iterable[str], tables: Tables) -> tuple[str, ...]:
    """Names of the tables to nest, in the order in which they are read.

    Args:
        nest: Names, or `all`.
        tables: Files of tables, which are asked for by that.

    Raises:
        OptionError: There is no such table.
    """
    wanted = {nest} if isinstance(nest, str) else set(nest)
    for name in sorted({*wanted, *tables} - {*TABLES, ALL}):
        raise OptionError(f"there is no table {name!r} to nest; choose of {', '.join(TABLES)}, all")
    wanted |= {name for name, path in tables.items() if path is not None}
    return tuple(name for name in TABLES if name in wanted or ALL in wanted)


def open_tables(source: Given, nest: tuple[str, ...], tables: Tables) -> dict[str, Dump]:
    """Look at the head and the tail of every table to nest, in the order in which they are read.

    Args:
        source: What the posts are read from; tables are looked for in that folder, or beside it.
        nest: Names of the tables to nest.
        tables: Their files, where they do not stand there.

    Raises:
        DumpError: A file is missing, or is not what `open_dump` takes.
    """
    folder = "."
    if isinstance(source, str | os.PathLike) and source != "-":
        path = os.fspath(source)
        folder = path if os.path.isdir(path) else os.path.dirname(path) or "."
    return {name: _open_table(name, folder, tables.get(name)) for name in nest}


def _open_table(name: str, folder: str, given: str | os.PathLike[str] | None) -> Dump:
    expected = TABLES[name].file
    path = _find(folder, expected) if given is None else os.fspath(given)
    if path is None:
        raise DumpError(
            os.path.join(folder, expected),
            f"is missing, and the {name} to nest are in it",
            advice=f"say where it is with --{name} FILE (unpacked), or leave the {name} out",
        )
    try:
        return open_dump(path)
    except MalformedDumpError as error:
        error.problem = error.problem.replace(POSTS, expected)
        error.advice = error.advice.replace(POSTS, expected)
        raise


def _find(folder: str, name: str) -> str | None:
    """Path of a file whose name is written in any case."""
    for found in sorted(os.listdir(folder), reverse=True):
        if found.lower() == name.lower():
            return os.path.join(folder, found)
    return None
