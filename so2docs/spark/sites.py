"""Which dumps there are, under which names, and what can be told of them before they are converted.

Executors look at them: they are who reads them. The data source does so where Spark plans it.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from so2docs.errors import DumpError, OptionError, So2docsError
from so2docs.options.conversion import Options
from so2docs.options.sites import host
from so2docs.schema import POSTS
from so2docs.sources import kinds, storage
from so2docs.sources.dump import Dump, open_dump
from so2docs.sources.opening import Catalog, file_in_folder
from so2docs.sources.tables import find_tables
from so2docs.spark import folders

Dumps = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

Run = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
"""Applies a function to tasks: what it returns or the `So2docsError` that it raises, for each."""

Result = TypeVar("Result")

_HADOOP = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/(?!/)")


@dataclass(frozen=True, slots=True)
class Site:
    """A dump, or the folder that it is in; its files go to `folder`, empty for a data frame."""

    name: str
    path: str
    folder: str = ""


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


Found = tuple[Site, FoundDump]


def find(
    given: Sequence[str],
    run: Run,
    *,
    folder: str = "",
    nest: tuple[str, ...] = (),
    force: bool = False,
) -> list[tuple[Site, FoundDump | So2docsError]]:
    """Find dumps by paths and patterns, name them, and look at each; `run` does so."""
    paths: dict[str, None] = {}
    for found in run(matching, given):
        if isinstance(found, So2docsError):
            raise found
        paths |= dict.fromkeys(found)
    folders_of = [name.split("/") for name in names(list(paths))]
    sites = [
        Site("/".join(own), path, storage.join(folder, *own) if folder else "")
        for own, path in zip(folders_of, paths, strict=True)
    ]
    return list(zip(sites, run(partial(look, nest=nest, force=force), sites), strict=True))


def patterns(source: Dumps) -> list[str]:
    """The paths and patterns that were given."""
    several = [source] if isinstance(source, str | os.PathLike) else list(source)
    if not several:
        raise OptionError("no dump is given; give a path or a pattern")
    return [located(one) for one in several]


def located(path: str | os.PathLike[str]) -> str:
    """A path that means the same in every process, whatever its current folder.

    Hadoop writes a URL without a host with one slash (`file:/x`), fsspec with three.
    """
    name = _HADOOP.sub(r"\1:///", os.fspath(path), count=1)
    return name if storage.is_url(name) else os.path.abspath(name)


def is_several(source: Dumps) -> bool:
    """Whether a source may stand for several dumps."""
    return not isinstance(source, str | os.PathLike) or glob.has_magic(os.fspath(source))


def matching(pattern: str) -> list[str]:
    """The dumps that a path or a pattern stands for."""
    found = storage.matching(pattern)
    if not found:
        raise DumpError(
            pattern, "matches no file", advice="quote the pattern, and check its folder"
        )
    return found


def names(dumps: Sequence[str]) -> list[str]:
    """A name for each dump: its folder if the file is `Posts.xml`, else its file name.

    Dumps that would share a name (several dates of one site) get the folders above as well, as
    many for all as it takes to tell them apart.
    """
    places = [_place(path) for path in dumps]
    for depth in range(1, max(map(len, places)) + 1):
        found = ["/".join(place[-depth:]) for place in places]
        if len(set(found)) == len(found):
            return found
    raise OptionError(f"two dumps have the same name, such as {dumps[0]}; convert them one by one")


def _place(path: str) -> list[str]:
    """Folders and name of a dump, without the parts that all dumps have."""
    name = path.partition("://")[2] if storage.is_url(path) else os.path.abspath(path)
    *above, stem = name.strip("/" + os.sep).replace(os.sep, "/").split("/")
    stem = stem.partition(".7z")[0]
    for extension in (".zip", ".gz", ".bz2", ".xz", ".zst", ".xml"):
        stem = stem.removesuffix(extension)
    stem = stem.removesuffix("-Posts")
    place = above if stem == "Posts" else [*above, stem]
    return [part for part in place if part not in (".", "..")] or ["posts"]


def look(site: Site, *, nest: tuple[str, ...] = (), force: bool = False) -> FoundDump:
    """Look at the folder of a site, at head and tail of its plain files, at the kind of others."""
    there = folders.names_in(site.folder) if site.folder else []
    if folders.SUCCESS in there and not force:
        return FoundDump(is_finished=True)
    try:
        posts = file_in_folder(site.path, kinds.POSTS) if os.path.isdir(site.path) else site.path
        with Catalog() as catalog:
            facts = catalog.look(posts)
            # Of a pipe, `open_dump` says that it is no file.
            dump = open_dump(posts) if facts.is_plain or not facts.is_file else None
            tables = find_tables(site.path, nest, {}, catalog)
    except DumpError as error:
        folders.save_excerpt(site.folder, error)
        raise
    found = {POSTS.name: dump} | {name: table.dump for name, table in tables.items()}
    dumps = {name: dump for name, dump in found.items() if isinstance(dump, Dump)}
    size = dump.size if dump else facts.expected
    size += sum(table.size for table in tables.values())
    return FoundDump(size, dumps if len(dumps) == len(found) else {}, is_begun=bool(there))


def site_options(site: Site, options: Options, *, has_site: bool = False) -> Options:
    """How to convert a site, whose host name has to be known if it is needed."""
    options = replace(options, site_field=("Site", site.name)) if has_site else options
    if not options.is_attributed:
        return options
    try:
        return replace(options, host=host(site.path, None))
    except OptionError as error:
        raise OptionError(
            f"{site.path}: the host name of its site cannot be told; put the dump into a folder of "
            "that name, such as beer.stackexchange.com/Posts.xml"
        ) from error


def sound(
    done: Iterable[tuple[Site, Result | So2docsError]], failures: dict[str, DumpError] | None = None
) -> list[tuple[Site, Result]]:
    """What sites came to; of dumps with an error, it is noted, or raised without such a place."""
    sound = []
    for site, result in done:
        if not isinstance(result, So2docsError):
            sound.append((site, result))
            continue
        if isinstance(result, DumpError) and site.folder and result.excerpt is not None:
            result.excerpt_path = storage.join(site.folder, folders.ERROR)
        if failures is None or not isinstance(result, DumpError):
            raise result
        failures[site.name] = result
    return sound


def by_size(found: Iterable[Found]) -> list[Site]:
    """The longest first, so that none is left for the end."""
    return [site for site, _ in sorted(found, key=lambda one: -one[1].size)]
