"""What can be told of dumps before they are converted, in executors: they are who reads them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from so2docs.errors import DumpError
from so2docs.schema import POSTS, TABLES
from so2docs.sources import kinds, storage
from so2docs.sources.dump import Dump, open_dump
from so2docs.sources.opening import file_in_folder, inspect_file
from so2docs.sources.tables import find_tables
from so2docs.spark import folders
from so2docs.spark.plan import Site

_RATIO = 4.0
"""Bytes of a dump for each of an archive, at least; only says what to begin with."""


@dataclass(frozen=True, slots=True)
class LookTask:
    """A site to look at.

    Attributes:
        site: The site.
        nest: Names of the tables to nest.
        force: Whether a finished folder counts as unfinished.
    """

    site: Site
    nest: tuple[str, ...] = ()
    force: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """A sound site.

    Attributes:
        size: Bytes of its posts and tables, about.
        dumps: Its posts and tables by name, if all of them can be read in ranges.
        is_finished: Whether its folder has all its files.
        is_begun: Whether there is anything in its folder.
    """

    size: int = 0
    dumps: Mapping[str, Dump] = field(default_factory=dict)
    is_finished: bool = False
    is_begun: bool = False


def matching(pattern: str) -> list[str]:
    """The dumps that a path or a pattern stands for.

    Raises:
        DumpError: There is none.
    """
    found = storage.matching(pattern)
    if not found:
        raise DumpError(
            pattern, "matches no file", advice="quote the pattern, and check its folder"
        )
    return found


def look(task: LookTask) -> Found:
    """Look at the folder of a site, at head and tail of its plain files, at the kind of others.

    Raises:
        DumpError: The dump or a table is missing, or is not sound.
        OutputError: The folder holds what is not ours.
    """
    site = task.site
    names = folders.names_in(site.folder) if site.folder else []
    if folders.SUCCESS in names and not task.force:
        return Found(is_finished=True)
    try:
        dumps, size = _look_at_site(site.path, task.nest)
    except DumpError as error:
        folders.save_excerpt(site.folder, error)
        raise
    return Found(size, dumps, is_begun=bool(names))


def _look_at_site(path: str, nest: tuple[str, ...]) -> tuple[dict[str, Dump], int]:
    """Posts and tables, if all can be read in ranges, and the bytes of all, about."""
    posts = path
    if not storage.is_url(posts) and os.path.isdir(posts):
        posts = file_in_folder(posts, kinds.POSTS)
    dump, size = _look_at_posts(posts)
    tables = find_tables(path, nest, tables_by_url(path, nest))
    found = {POSTS.name: dump} | {name: table.dump for name, table in tables.items()}
    dumps = {name: dump for name, dump in found.items() if dump is not None}
    all_size = size + sum(table.size for table in tables.values())
    return dumps if len(dumps) == len(found) else {}, all_size


def _look_at_posts(path: str) -> tuple[Dump | None, int]:
    facts = inspect_file(path)
    if facts.is_plain or not facts.is_file:  # Of a pipe, it says that it is no file.
        dump = open_dump(path)
        return dump, dump.size
    return None, int(facts.identity[0] * (max(facts.kind.ratio, _RATIO) if facts.kind else 1))


def tables_by_url(path: str, nest: tuple[str, ...]) -> dict[str, str]:
    """The tables beside a dump that is given by a URL, where nobody else looks for them."""
    if not nest or not storage.is_url(path):
        return {}
    kind = inspect_file(path).kind
    if kind is not None and kind.is_archive:
        return {}
    folder = path.rpartition("/")[0]
    by_name = {name.lower(): name for name in storage.listed(folder)}
    files = {name: TABLES[name].file for name in nest}
    return {
        name: storage.join(folder, by_name.get(file.lower(), file)) for name, file in files.items()
    }
