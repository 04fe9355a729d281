"""What a path stands for: the posts, and the tables beside them, on a disk or in a store."""

from __future__ import annotations

import os

from so2docs import files
from so2docs.dump import Dump, open_dump
from so2docs.sources.opening import posts_in_folder
from so2docs.table_files import open_tables
from so2docs.tables import TABLES


def posts_of(path: str) -> Dump:
    """Look at the head and the tail of a dump, or of that in a folder.

    Raises:
        DumpError: It is not sound.
    """
    if not files.is_url(path) and os.path.isdir(path):
        path = posts_in_folder(path)
    return open_dump(path)


def tables_beside(path: str, nest: tuple[str, ...]) -> dict[str, Dump]:
    """Look at the head and the tail of the tables to nest.

    Args:
        path: The dump.
        nest: Names of the tables.

    Raises:
        DumpError: A file is missing, or is not sound.
    """
    if not nest or not files.is_url(path):
        return open_tables(path, nest, {})
    folder = path.rpartition("/")[0]
    by_name = {name.lower(): name for name in files.listed(folder)}
    return open_tables(path, nest, {name: _url(folder, by_name, name) for name in nest})


def _url(folder: str, by_name: dict[str, str], table: str) -> str:
    expected = TABLES[table].file
    return files.join(folder, by_name.get(expected.lower(), expected))
