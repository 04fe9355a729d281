"""Open the file of a new database, and explain SQLite errors.

The file needs no journal, because it is renamed to its final name only when it is complete. A page
cache of 32 MiB is as fast as one of 64 MiB; sorts use the disk.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from so2docs.errors import OutputError, flag
from so2docs.output.part_files import explain_errors, remove
from so2docs.progress import log
from so2docs.store.sqlite_errors import sqlite_errors

_CACHE_KIB = 32 * 1024
_PAGE_BYTES = 32 * 1024
"""Larger pages waste less space between rows, and make fewer of them."""


def connect(part: str, cache_kib: int = _CACHE_KIB) -> sqlite3.Connection:
    """Create an empty database at the path of a part file, and begin a transaction."""
    with explain_errors(part):
        if os.path.exists(part):
            log.info(f"{part}: is left from an interrupted run; starting over")
        remove(part)
    connection = sqlite3.connect(part, isolation_level=None)
    for setting in (
        f"page_size={_PAGE_BYTES}",
        "journal_mode=OFF",
        "synchronous=OFF",
        "locking_mode=EXCLUSIVE",
        f"cache_size=-{cache_kib}",
        "threads=2",
    ):
        connection.execute(f"PRAGMA {setting}").fetchall()
    connection.execute("BEGIN")
    return connection


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Convert SQLite errors to so2docs errors that name the database."""
    with sqlite_errors(path, "cannot be written"):
        try:
            yield
        except sqlite3.IntegrityError as error:
            raise OutputError(
                f"{path}: an id occurs twice ({error}); ids are only unique per site: for several "
                f"sites, name a column with {flag('site_field')}"
            ) from error
