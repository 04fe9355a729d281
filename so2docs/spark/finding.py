"""What a path stands for: the posts, and the tables beside them, on a disk or in a store."""

from __future__ import annotations

import os

from so2docs.errors import DumpError
from so2docs.schema import TABLES
from so2docs.sources import storage
from so2docs.sources.dump import Dump, open_dump
from so2docs.sources.members import POSTS
from so2docs.sources.opening import file_in_folder, inspect_file
from so2docs.sources.tables import TableFile, find_tables
from so2docs.spark.plan import Stream

_RATIO = 4.0
"""Bytes of a dump for each of an archive, at least; only says how many partitions to make."""


def posts_of(path: str) -> Dump | Stream:
    """Look at a dump, or at that in a folder: head and tail of a plain file, kind of another.

    Raises:
        DumpError: It is not sound, or is none.
    """
    if not storage.is_url(path) and os.path.isdir(path):
        path = file_in_folder(path, POSTS)
    facts = inspect_file(path)
    if facts.is_plain or not facts.is_file:  # Of a pipe, it says that it is no file.
        return open_dump(path)
    ratio = 1.0 if facts.kind is None else max(facts.kind.ratio, _RATIO)
    return Stream(path, facts.identity, int(facts.identity[0] * ratio))


def tables_beside(path: str, nest: tuple[str, ...]) -> dict[str, Dump]:
    """Look at the head and the tail of the tables to nest.

    Args:
        path: The dump.
        nest: Names of the tables.

    Raises:
        DumpError: A file is missing, is not sound, or is packed.
    """
    given: dict[str, str] = {}
    if nest and storage.is_url(path):
        folder = path.rpartition("/")[0]
        by_name = {name.lower(): name for name in storage.listed(folder)}
        given = {name: _url(folder, by_name, name) for name in nest}
    found = find_tables(path, nest, given)
    return {name: _plain(file) for name, file in found.items()}


def _plain(file: TableFile) -> Dump:
    if file.dump is None:
        raise DumpError(
            file.name,
            "is packed, or not UTF-8; on Spark, tables are read from plain files only",
            advice="unpack it, or use `so2docs convert`, which reads it as it is",
        )
    return file.dump


def _url(folder: str, by_name: dict[str, str], table: str) -> str:
    expected = TABLES[table].file
    return storage.join(folder, by_name.get(expected.lower(), expected))
