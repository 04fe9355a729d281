"""Open the sites of outputs and databases, and make missing databases."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partial
from hashlib import blake2b

from so2docs.dump.kinds import SQLITE
from so2docs.dump.storage import unreadable_output
from so2docs.errors import OptionError, OutputError, So2docsError
from so2docs.extensions.serve.store import Store
from so2docs.extensions.sites.outputs import (
    check_holds_outputs,
    is_folder_of_outputs,
    outputs_in,
    readable,
)
from so2docs.extensions.sqlite.about import About, explain_database_errors, read_about
from so2docs.extensions.sqlite.build import find_database
from so2docs.extensions.sqlite.sources import open_source
from so2docs.options.choices import DATABASE_ENDINGS
from so2docs.options.keywords import NestName
from so2docs.output.paths import OutputPaths
from so2docs.output.provenance import UP_TO_DATE
from so2docs.progress import log
from so2docs.reader.reading import describe_foreign, is_output, read_start

_TAKEN = {"pictures", "static", "search", "search.json", "index.json"}
"""Paths that the server uses itself, so they cannot be names of sites."""


def open_stores(
    paths: list[str],
    *,
    progress: bool = False,
    site: str | None = None,
    formulas: bool | None = None,
) -> dict[str, Store]:
    """Open the sites in outputs and databases; return them by their names in URLs.

    If an output or a dump has no up-to-date database, one is made: next to the output, or in the
    user's cache folder. Files in a folder that cannot be read are skipped with a warning.

    Args:
        paths: Outputs of `convert` in JSON lines, dumps, databases, or folders of these.
        progress: Show progress bars.
        site: Host name of the site, if the file names do not contain it.
        formulas: Whether posts have TeX formulas; if None, this is derived from the host name or
            the posts.

    Raises:
        So2docsError: A file cannot be read, or its database cannot be made.
    """
    stores: dict[str, Store] = {}
    for about in _read_databases(paths, progress=progress, site=site):
        for site_about in about.sites:
            slug = re.sub(r"[^a-z0-9.-]+", "-", site_about.title.lower()).strip("-") or "site"
            while slug in stores or slug in _TAKEN:
                slug += "-"
            with explain_database_errors(about.path):
                stores[slug] = Store(about, site_about, formulas=formulas)
    if not stores:
        raise OptionError("there is nothing to serve: the databases have no questions")
    return stores


def _read_databases(paths: list[str], *, progress: bool, site: str | None) -> Iterator[About]:
    """Yield the descriptions of the databases; those of a folder that fail are skipped."""
    for path in paths:
        is_folder = is_folder_of_outputs(path)
        for source in _inside(path) if is_folder else [path]:
            try:
                yield read_about(_find_database(source, progress=progress, site=site))
            except So2docsError as error:
                if not is_folder:
                    raise
                log.warning("%s; the other sites of the folder are served", error)


def _inside(folder: str) -> list[str]:
    """List the outputs in a folder, and the databases that were not made from them.

    Raises:
        OutputNotFoundError: The folder has neither outputs nor databases.
    """
    outputs = outputs_in(folder)
    databases, own = [], set()
    for site, paths in outputs.items():
        try:
            path = readable(paths)
        except OutputError as error:
            log.warning("%s: %s; the other sites of the folder are served", site, error)
            continue
        databases.append(path)
        own.add(f"{OutputPaths(path, None).stem}.db")
    names = sorted(os.path.join(folder, name) for name in os.listdir(folder))
    databases += [name for name in names if name.endswith(DATABASE_ENDINGS) and name not in own]
    if not databases:
        check_holds_outputs(folder, outputs)
    return databases


_USABLE = (UP_TO_DATE, "other options")


def _cached(path: str, stem: str) -> str:
    """Return the path in the user's cache folder of the database for a path; make the folder."""
    default = os.path.join(os.path.expanduser("~"), ".cache")
    cache = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or default
    digest = blake2b(os.fsencode(os.path.realpath(path)), digest_size=4).hexdigest()
    folder = os.path.join(cache, "so2docs")
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, f"{stem}-{digest}.db")


def _find_database(path: str, *, progress: bool, site: str | None) -> str:
    """Return the database for a path: the path itself, the database next to it, or a new one.

    The new database of an output is made next to it. That of a dump goes to the user's cache
    folder, as does that of an output in a folder that cannot be written.
    """
    is_folder = os.path.isdir(path)
    if not is_folder:
        try:
            with open(path, "rb") as file:
                if file.read(len(SQLITE)) == SQLITE:
                    return path
        except OSError as error:
            raise unreadable_output(path, error) from error
        start = read_start(path) if path.endswith(DATABASE_ENDINGS) else b"<"
        if not is_output(path, start) and describe_foreign(start) is None:
            raise OutputError(
                f"{path}: is not an SQLite database; give an output, a dump, or a database that "
                "so2docs sqlite made of one"
            )
    # The archive or folder of a site has all tables, so nest them all.
    nest: tuple[NestName, ...] = ("all",) if is_folder or path.endswith(".7z") else ()
    source = open_source(path)
    folder = os.path.dirname(path) or "."
    database = os.path.join(folder, f"{source.stem}.db")
    profiles = path if nest else None
    make = partial(find_database, site=site, progress=progress, nest=nest, profiles=profiles)
    product = make(path, database)
    state, reason = product.compare()
    if state not in _USABLE and not (source.is_output and os.access(folder, os.W_OK)):
        database = _cached(path, source.stem)
        product = make(path, database)
        state, reason = product.compare()
    if state in _USABLE:
        return database
    if state == "unknown":
        raise OutputError(
            f"{database}: exists{reason}, but its name is needed for the database of the output; "
            "move the file away"
        )
    if state == "missing":
        log.info(f"{path}: making the database {database}, to be reused later")
    else:
        log.info(f"{database}: was made from an earlier version of {path}; rebuilding it")
    product.build(force=False, update=True)
    return database
