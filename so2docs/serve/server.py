"""Outputs and databases -> a running server."""

from __future__ import annotations

import errno
import ipaddress
import os
import re
import socket
from pathlib import Path

import uvicorn

from so2docs.dump.kinds import SQLITE
from so2docs.dump.storage import unreadable_output
from so2docs.errors import OptionError, OutputError, So2docsError, flag
from so2docs.options.choices import DATABASE_ENDINGS
from so2docs.output.paths import OutputPaths
from so2docs.progress import log
from so2docs.reader.folder import check_holds_outputs, is_folder_of_outputs, outputs_in, readable
from so2docs.serve.app import Guard, application
from so2docs.serve.store import Store
from so2docs.sqlite.about import read_about
from so2docs.sqlite.build import to_sqlite
from so2docs.sqlite.sources import open_source

_TAKEN = {"static", "search", "search.json", "index.json"}
_GRACE_SECONDS = 1
"""For requests under way when the server is told to end; then they are stopped."""


def open_sites(
    paths: list[str],
    *,
    progress: bool = False,
    site: str | None = None,
    local: bool = True,
    formulas: bool | None = None,
) -> Guard:
    """The application for some outputs and databases.

    A database of an output is made next to it, once. Of a folder, what cannot be served is logged.

    Args:
        paths: Outputs of `convert` in JSON lines, dumps, databases, or folders of these.
        progress: Show progress bars meanwhile.
        site: Address of the site, where the names do not tell.
        local: Answer only where this machine is asked under its own name.
        formulas: Whether posts hold formulas in TeX; by the site, or its posts, if None.

    Raises:
        So2docsError: One cannot be read, or its database cannot be made.
    """
    stores: dict[str, Store] = {}
    for path in paths:
        is_folder = is_folder_of_outputs(path)
        for database in _inside(path) if is_folder else [path]:
            try:
                about = read_about(_find_database(database, progress=progress, site=site))
            except So2docsError as error:
                if not is_folder:
                    raise
                log.warning("%s; the other sites of the folder are served", error)
                continue
            for site_about in about.sites:
                slug = re.sub(r"[^a-z0-9.-]+", "-", site_about.title.lower()).strip("-") or "site"
                while slug in stores or slug in _TAKEN:
                    slug += "-"
                stores[slug] = Store(about, site_about, formulas=formulas)
    if not stores:
        raise OptionError("there is nothing to serve: the databases have no questions")
    return application(stores, local=local)


def _inside(folder: str) -> list[str]:
    """The outputs in a folder, and the databases of others.

    Raises:
        OutputNotFoundError: The folder has no database.
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


def _find_database(path: str, *, progress: bool, site: str | None) -> str:
    """The database of an output: itself, the one next to it, or a new one."""
    try:
        with open(path, "rb") as file:
            if file.read(len(SQLITE)) == SQLITE:
                return path
    except IsADirectoryError:
        pass
    except OSError as error:
        raise unreadable_output(path, error) from error
    source = open_source(path)
    database = str(Path(os.path.dirname(path) or ".", f"{source.stem}.db"))
    exists = os.path.exists(database)
    if exists and _is_database_of(database, source.identity()):
        return database
    if exists:
        log.info(f"{database}: was made from an earlier version of {path}; making it again")
    else:
        log.info(f"{path}: making a database of it, once: {database}")
    to_sqlite(path, database, site=site, force=exists, progress=progress, nest=_all_there(path))
    return database


def _all_there(path: str) -> tuple[str, ...]:
    """Of a site's archive or folder, every table."""
    return ("all",) if path.endswith(".7z") or os.path.isdir(path) else ()


def _is_database_of(database: str, identity: object) -> bool:
    try:
        return identity in read_about(database).sources
    except OutputError as error:
        raise OutputError(
            f"{error}; that name is needed for the database of the output: move the file away"
        ) from None


def bind(host: str, port: int) -> socket.socket:
    """A socket to serve from.

    Args:
        host: An address; of this machine alone, unless somebody asked for another.
        port: The port; 0 for any that is free.

    Raises:
        So2docsError: It cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Of no named protocol, asyncio would leave Nagle's algorithm on: 40 ms more for every page.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen()  # Whoever comes before all is ready waits for it.
    except OSError as error:
        bound.close()
        raise So2docsError(
            f"{host}:{port}: cannot listen there ({error.strerror or error}); choose another "
            f"{flag('port' if error.errno in (errno.EADDRINUSE, errno.EACCES) else 'host')}"
        ) from error
    return bound


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def make_server(app: Guard) -> uvicorn.Server:
    """A server of the application; what goes wrong in a request is told by the application."""
    config = uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    return uvicorn.Server(config)


def run(app: Guard, bound: socket.socket) -> None:
    """Serve until Ctrl-C."""
    make_server(app).run(sockets=[bound])
