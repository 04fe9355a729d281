"""Which dumps, under which names, and where in the shuffle their posts go. Pure but for the glob.

A part is a fixed range of question ids and becomes one part file. Its place in the shuffle follows
from the site and the ids alone, so that nothing has to be read to plan the shuffle, and the files
are the same for any cluster and any size of the chunks.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path

from so2docs.errors import DumpError, OptionError
from so2docs.options.conversion import Options
from so2docs.sources import storage
from so2docs.sources.dump import Dump

PART_BITS = 3
"""A part holds 2^3 buckets, 131,072 question ids: 160 MB of JSON of a busy site, 50 MB of gzip."""

_PART_SOURCE_BYTES = 128 * 1024 * 1024

_TABLE_SOURCE_BYTES = 32 * 1024 * 1024
"""PySpark holds what a task sends to the shuffle, so that a task for rows of tables gets little."""

_SMALLEST_CHUNK = 32 * 1024 * 1024
_MOST_CHUNKS = 800

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass(frozen=True, slots=True)
class Stream:
    """A dump that can only be read from its start, such as from an archive; seen from outside.

    Attributes:
        path: The file.
        identity: To notice a change, as that of a `Dump`.
        size: Bytes of the dump in it, about.
    """

    path: str
    identity: storage.Identity
    size: int


@dataclass(frozen=True, slots=True)
class Site:
    """A dump with its place among the others.

    Attributes:
        number: From 0, in the order of the paths.
        name: What its folder, and `Site` in its documents, is called.
        dump: The dump.
        folder: Where its files go; empty for a data frame.
        options: How to convert it.
        tables: The tables to nest, by name.
    """

    number: int
    name: str
    dump: Dump | Stream
    folder: str
    options: Options
    tables: Mapping[str, Dump] = field(default_factory=dict)

    @property
    def nests_rows(self) -> bool:
        """Whether rows of a table have to find the question of their post."""
        return bool(self.tables.keys() - {"users"})

    @property
    def nests_users(self) -> bool:
        """Whether users have to find the posts and comments that name them."""
        return "users" in self.tables


@dataclass(frozen=True, slots=True)
class RangeTask:
    """A range of a dump, or of one of its tables, for one task of the first stage."""

    site: Site
    chunk: int
    start: int
    end: int
    table: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    """The partitions of the shuffle, for questions, post ids, user ids and each site's tallies.

    What stands in those of the post ids and the user ids is on its way to the questions.

    Attributes:
        first: By site, the partition of its first part.
        partitions: Number of those for questions.
        first_lookup: By site, the partition of its first post ids, among those for post ids.
        lookups: Number of those for post ids.
        first_user: By site, the partition of its first users, among those for users.
        users: Number of those for user ids.
    """

    first: tuple[int, ...]
    partitions: int
    first_lookup: tuple[int, ...] = ()
    lookups: int = 0
    first_user: tuple[int, ...] = ()
    users: int = 0

    @property
    def of_posts(self) -> range:
        """The partitions for post ids."""
        return range(self.partitions, self.partitions + self.lookups)

    @property
    def of_users(self) -> range:
        """The partitions for user ids."""
        return range(self.of_posts.stop, self.of_posts.stop + self.users)

    @property
    def of_sites(self) -> range:
        """The partitions for tallies."""
        return range(self.of_users.stop, self.of_users.stop + len(self.first))

    @property
    def total(self) -> int:
        """Number of all partitions."""
        return self.of_sites.stop

    def of_bucket(self, site: int, bucket: int | None) -> int:
        """Partition of a bucket of questions; that of the tallies for rows that belong to none."""
        if bucket is None:
            return self.of_tallies(site)
        return (self.first[site] + (bucket >> PART_BITS)) % self.partitions

    def of_post(self, site: int, bucket: int | None) -> int:
        """Partition of a bucket of post ids; that of the tallies for rows that belong to none."""
        if bucket is None:
            return self.of_tallies(site)
        return self.of_posts[(self.first_lookup[site] + bucket) % self.lookups]

    def of_user(self, site: int, bucket: int) -> int:
        """Partition of a bucket of user ids."""
        return self.of_users[(self.first_user[site] + bucket) % self.users]

    def of_tallies(self, site: int) -> int:
        """Partition of a site's tallies."""
        return self.of_sites[site]


def layout(sites: Sequence[Site]) -> Layout:
    """Lay the parts of dumps out, about one a partition."""
    found = Layout(*_placed([site.dump.size for site in sites], _PART_SOURCE_BYTES))
    rows = [
        sum(site.tables[name].size for name in site.tables if name != "users") for site in sites
    ]
    if any(site.nests_rows for site in sites):
        first, lookups = _placed(rows, _TABLE_SOURCE_BYTES)
        found = replace(found, first_lookup=first, lookups=lookups)
    if any(site.nests_users for site in sites):
        sizes = [site.tables["users"].size if site.nests_users else 0 for site in sites]
        first, users = _placed(sizes, _TABLE_SOURCE_BYTES)
        found = replace(found, first_user=first, users=users)
    return found


def _placed(sizes: Iterable[int], share: int) -> tuple[tuple[int, ...], int]:
    """The first of several partitions for each site, and their number."""
    parts = [max(1, -(-size // share)) for size in sizes]
    first = tuple(accumulate(parts, initial=0))
    return first[:-1], max(1, first[-1])


def ranges(site: Site) -> Iterator[RangeTask]:
    """The tasks of the first stage for a dump and its tables; a stream is one task."""
    for table, dump in {"": site.dump, **site.tables}.items():
        if isinstance(dump, Stream):
            yield RangeTask(site, 0, 0, dump.size)
            continue
        for chunk in dump.chunks(chunk_bytes(site, dump), (), Path()):
            yield RangeTask(site, chunk.number, chunk.start, chunk.end, table)


def chunk_bytes(site: Site, dump: Dump | Stream) -> int:
    """Bytes of a chunk of a dump, or of a table."""
    return site.options.chunk_bytes or max(_SMALLEST_CHUNK, -(-dump.size // _MOST_CHUNKS))


def is_pattern(source: Source) -> bool:
    """Whether a source may stand for several dumps."""
    return not isinstance(source, str | os.PathLike) or storage.matching(os.fspath(source)) != [
        os.fspath(source)
    ]


def paths(source: Source) -> list[str]:
    """The dumps that a path, a pattern, or several of them stand for; each once.

    Raises:
        DumpError: A pattern stands for nothing.
        OptionError: There is no path at all.
    """
    several = [source] if isinstance(source, str | os.PathLike) else list(source)
    found: list[str] = []
    for one in several:
        pattern = os.fspath(one)
        matching = storage.matching(pattern)
        if not matching:
            raise DumpError(
                pattern, "matches no file", advice="quote the pattern, and check its folder"
            )
        found += matching
    if not found:
        raise OptionError("no dump is given; give a path or a pattern")
    return list(dict.fromkeys(found))


def names(dumps: Sequence[str]) -> list[str]:
    """A name for each dump: its folder if the file is `Posts.xml`, else its file name.

    Dumps that would share a name (several dates of one site) get the folders above as well, as
    many for all as it takes to tell them apart.

    Raises:
        OptionError: A dump has no name, or two cannot be told apart.
    """
    places = [_place(path) for path in dumps]
    for depth in range(1, max(map(len, places)) + 1):
        found = ["/".join(place[-depth:]) for place in places]
        if len(set(found)) == len(found):
            return found
    raise OptionError(f"two dumps have the same name, such as {dumps[0]}; convert them one by one")


def _place(path: str) -> list[str]:
    """Folders and name of a dump, without the parts that all dumps have."""
    if storage.is_url(path):
        parts = path.partition("://")[2].strip("/").split("/")
    else:
        parts = os.path.abspath(path).strip(os.sep).split(os.sep)
    stem = parts[-1].partition(".7z")[0]
    for extension in (".zip", ".gz", ".bz2", ".xz", ".zst", ".xml"):
        stem = stem.removesuffix(extension)
    stem = stem.removesuffix("-Posts")
    place = parts[:-1] if stem == "Posts" else [*parts[:-1], stem]
    return [part for part in place if part not in ("", ".", "..")] or ["posts"]
