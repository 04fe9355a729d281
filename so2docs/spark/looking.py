"""What can be told of dumps before they are converted, in executors: they are who reads them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from so2docs.errors import DumpError
from so2docs.schema import POSTS
from so2docs.sources import kinds, storage
from so2docs.sources.dump import Dump, open_dump
from so2docs.sources.opening import file_in_folder, inspect_file
from so2docs.sources.tables import find_tables
from so2docs.spark import folders
from so2docs.spark.plan import PlannedSite


@dataclass(frozen=True, slots=True)
class LookTask:
    """A site to look at.

    Attributes:
        site: The site.
        nest: Names of the tables to nest.
        force: Whether a finished folder counts as unfinished.
    """

    site: PlannedSite
    nest: tuple[str, ...] = ()
    force: bool = False


@dataclass(frozen=True, slots=True)
class FoundDump:
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


def look(task: LookTask) -> FoundDump:
    """Look at the folder of a site, at head and tail of its plain files, at the kind of others.

    Raises:
        DumpError: The dump or a table is missing, or is not sound.
        OutputError: The folder holds what is not ours.
    """
    site = task.site
    names = folders.names_in(site.folder) if site.folder else []
    if folders.SUCCESS in names and not task.force:
        return FoundDump(is_finished=True)
    try:
        dumps, size = _look_at_site(site.path, task.nest)
    except DumpError as error:
        folders.save_excerpt(site.folder, error)
        raise
    return FoundDump(size, dumps, is_begun=bool(names))


def _look_at_site(path: str, nest: tuple[str, ...]) -> tuple[dict[str, Dump], int]:
    """Posts and tables, if all can be read in ranges, and the bytes of all, about."""
    posts = file_in_folder(path, kinds.POSTS) if os.path.isdir(path) else path
    facts = inspect_file(posts)
    # Of a pipe, `open_dump` says that it is no file.
    dump = open_dump(posts) if facts.is_plain or not facts.is_file else None
    tables = find_tables(path, nest, {})
    found = {POSTS.name: dump} | {name: table.dump for name, table in tables.items()}
    dumps = {name: dump for name, dump in found.items() if dump is not None}
    size = dump.size if dump else facts.expected
    size += sum(table.size for table in tables.values())
    return dumps if len(dumps) == len(found) else {}, size
