"""Explain errors of SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from so2docs.errors import OutputError, So2docsError, full_disk_error


@contextmanager
def sqlite_errors(
    place: object,
    problem: str,
    retry: str = "fix this",
    kind: type[So2docsError] = OutputError,
) -> Iterator[None]:
    """Convert SQLite errors to `DiskFullError`, or to an error of `kind` with a problem and advice.

    Args:
        place: The file or folder for the message.
        problem: The failed action, such as `cannot be written`.
        retry: Advice that precedes running the command again.
        kind: Class of the error.
    """
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorname", "") == "SQLITE_FULL":
            raise full_disk_error(place) from error
        raise kind(f"{place}: {problem}: {error}", retry=retry) from error
