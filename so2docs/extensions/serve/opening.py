"""Open databases, and make those of dumps that have none."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

from so2docs.errors import explain
from so2docs.extensions.serve.store import Store
from so2docs.extensions.sqlite.about import About, read_about
from so2docs.extensions.sqlite.build import to_sqlite
from so2docs.options.choices import DATABASE_ENDINGS
from so2docs.plugin import (
    POSTS,
    OptionError,
    OutputError,
    So2docsError,
    log,
    site_from_name,
)

_TAKEN = {"static", "search"}
"""Paths that the server uses itself, so they cannot be names of sites."""


def open_stores(paths: list[str], **options: Any) -> dict[str, Store]:
    """Open the databases of sites; return them by their names in URLs.

    The database of a dump is made in the cache folder of the user. Files in a folder that cannot be
    read are skipped with a warning.

    Args:
        paths: Databases, folders of databases, or dumps.
        options: Options of `to_sqlite` for the databases of dumps.

    Raises:
        So2docsError: A file cannot be read, or its database cannot be made.
    """
    stores: dict[str, Store] = {}
    for about in _read_databases(paths, options):
        slug = re.sub(r"[^a-z0-9.-]+", "-", about.title.lower()).strip("-") or "site"
        while slug in stores or slug in _TAKEN:
            slug += "-"
        with explain(about.path, "cannot be read"):
            stores[slug] = Store(about)
    if not stores:
        raise OptionError("there is nothing to serve; give databases or dumps")
    return stores


def _read_databases(paths: list[str], options: dict[str, Any]) -> Iterator[About]:
    """Yield the descriptions of the databases; those of a folder that fail are skipped."""
    for path in paths:
        databases = _inside(path)
        if not databases:
            yield read_about(_find_database(path, options))
        for database in databases:
            try:
                yield read_about(database)
            except So2docsError as error:
                log.warning("%s; the other sites of the folder are served", error)


def _inside(path: str) -> list[str]:
    """List the databases in a folder; empty for a file and for the folder of a dump."""
    if not os.path.isdir(path) or os.path.exists(os.path.join(path, POSTS.file)):
        return []
    names = sorted(os.path.join(path, name) for name in os.listdir(path))
    return [name for name in names if name.endswith(DATABASE_ENDINGS)]


def _find_database(path: str, options: dict[str, Any]) -> str:
    """Return a database, or make that of a dump in the user's cache folder."""
    if path.endswith(DATABASE_ENDINGS) and not os.path.isdir(path):
        return path
    database = cached(path)
    if not os.path.exists(database):
        log.info(f"{path}: making the database {database}, to be reused later")
    to_sqlite(path, database, update=True, **options)
    return database


def cached(path: str) -> str:
    """Return the path of the database of a dump in the user's cache folder; make the folder.

    Without a home, the folder is in the system's folder for temporary files.
    """
    folders = [os.environ.get("XDG_CACHE_HOME", ""), os.environ.get("LOCALAPPDATA", "")]
    folders += [os.path.join(os.path.expanduser("~"), ".cache"), tempfile.gettempdir()]
    digest = blake2b(os.fsencode(os.path.realpath(path)), digest_size=4).hexdigest()
    folder = os.path.join(next(filter(os.path.isabs, folders)), "so2docs")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"{folder}: cannot be made ({error.strerror}); set XDG_CACHE_HOME to another folder, "
            "or make the database with `so2docs sqlite`"
        ) from error
    return os.path.join(folder, f"{site_from_name(path)}-{digest}.db")
