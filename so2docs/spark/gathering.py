"""What the shuffle brings to a task, in an executor: tallies to add up, or blocks to nest.

Records come in any order and are read once. Blocks are appended to a temporary file, so that a task
holds only their places; tallies are combined as they come.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from so2docs.errors import DumpError
from so2docs.passes.first_pass import complete_place
from so2docs.posts import repeats
from so2docs.posts.posts import KEY
from so2docs.schema import TABLES
from so2docs.sources.dump import Dump
from so2docs.spark.plan import PART_BITS, Site, Stream
from so2docs.spark.records import Blocks, Ended, Record, Tallied, UserLines, temporary_folder
from so2docs.spark.user_files import GatheredUsers
from so2docs.spill import REJECTED, SEQUENCE_BITS
from so2docs.store.blocks import Block, BlockReader
from so2docs.store.users import UserTable

Part = tuple[int, int]
"""Number of a site, and that of a range of its question ids: `bucket >> PART_BITS`."""


def is_part(number: int) -> bool:
    """Whether a range of question ids may have documents: not that of rejected posts' keys."""
    return number != REJECTED >> PART_BITS


@dataclass(slots=True)
class Stock:
    """What the first stage found in one dump.

    Attributes:
        site: Number of the site.
        tallies: Fields of the `ChunkTally` of each chunk, in their order.
        repeated: Post ids that stand in several chunks.
        parts: Ranges of question ids that have posts.
        error: The first thing wrong with the dump.
        peak: Most resident memory of a worker, in bytes.
        ended: Of a stream, what its end told.
    """

    site: int
    tallies: dict[int, dict[str, Any]] = field(default_factory=dict)
    repeated: set[int] = field(default_factory=set)
    parts: set[int] = field(default_factory=set)
    error: DumpError | None = None
    peak: int = 0
    ended: Ended | None = None

    @property
    def of_posts(self) -> dict[int, dict[str, Any]]:
        """The tallies of the posts."""
        return self.of(0)

    def of(self, sequence: int) -> dict[int, dict[str, Any]]:
        """The tallies of the posts (0), or of the table of this sequence."""
        return {
            chunk: tally
            for chunk, tally in self.tallies.items()
            if chunk >> SEQUENCE_BITS == sequence
        }


def take_stock(sites: Mapping[int, Site], found: Iterable[Record]) -> Stock:
    """Combine the tallies of all chunks of one dump."""
    seen = repeats.SeenIds()
    stock = Stock(-1)
    failed: list[Tallied] = []
    for record in found:
        stock.site = record.site
        if isinstance(record, Ended):
            stock.ended = record
        if not isinstance(record, Tallied):
            continue
        stock.peak = max(stock.peak, record.peak)
        if record.error is not None:
            failed.append(record)
            continue
        stock.tallies[record.chunk] = record.tally
        seen.add(record.pages)
        parts = {bucket >> PART_BITS for bucket in record.buckets}
        stock.parts.update(part for part in parts if is_part(part))
    stock.repeated = set(repeats.ids_of(seen.repeated))
    stock.tallies = dict(sorted(stock.tallies.items()))
    if failed:
        first = min(failed, key=attrgetter("chunk"))
        stock.error = first.error
        _complete(first, sites[stock.site], stock.tallies)
    return stock


def _complete(failed: Tallied, site: Site, tallies: Mapping[int, dict[str, Any]]) -> None:
    """Turn a place within a chunk into one within the dump, or within the table."""
    assert failed.error is not None
    sequence = failed.chunk >> SEQUENCE_BITS
    dump: Dump | Stream = site.dump
    for table in TABLES.values():
        if table.sequence == sequence:
            dump = site.tables[table.name]
            if failed.error.place is not None:
                failed.error.place.row = table.row
    before = range(sequence << SEQUENCE_BITS, failed.chunk)
    if isinstance(dump, Dump):  # The task that reads a stream knows all of it.
        complete_place(failed.error, dump, [tallies[chunk] for chunk in tallies if chunk in before])


class GatheredBlocks:
    """The blocks of one partition, in a temporary file.

    Args:
        found: The records of the partition.
        wanted: Numbers of the sites whose blocks to keep.
    """

    def __init__(self, found: Iterable[Record], wanted: Mapping[int, Site]) -> None:
        self._folder = temporary_folder()
        self.path = f"{self._folder.name}/blocks"
        # By part: bucket, chunk, place in the chunk; and where the block stands here.
        self._places: dict[tuple[int, int | None], list[tuple[int, int, int, Block]]]
        self._places = defaultdict(list)
        self._users = GatheredUsers(self._folder.name)
        self.tallied: list[Tallied] = []
        size = 0
        try:
            with open(self.path, "wb") as file:
                for record in found:
                    if record.site not in wanted:
                        continue
                    if isinstance(record, Blocks):
                        file.write(record.data)
                        self._add(record, size)
                        size += len(record.data)
                    elif isinstance(record, UserLines):
                        self._users.add(record)
                    elif isinstance(record, Tallied):
                        self.tallied.append(replace(record, pages={}, buckets=set()))
        except BaseException:
            self._folder.cleanup()
            raise

    def __enter__(self) -> GatheredBlocks:
        return self

    def __exit__(self, *exception: object) -> None:
        self._folder.cleanup()

    def _add(self, record: Blocks, at: int) -> None:
        for block in record.blocks:
            number = block.bucket
            part = None if number is None else number >> PART_BITS
            place = (number or 0, record.chunk, block.offset, block._replace(offset=at))
            self._places[record.site, part].append(place)
            at += block.keys_size + block.json_size

    def parts(self) -> list[Part]:
        """The parts with posts, by site, in ascending id."""
        return sorted(
            (site, part) for site, part in self._places if part is not None and is_part(part)
        )

    def buckets(self, part: Part) -> list[tuple[int, list[tuple[str, Block]]]]:
        """The buckets of a part in ascending order, each with its blocks in the dump's order."""
        return [
            (number, [(self.path, block) for _, block in places])
            for number, places in self.places(part)
        ]

    def places(self, part: Part) -> list[tuple[int, list[tuple[int, Block]]]]:
        """The same, with the chunk of each block instead of the file."""
        found: dict[int, list[tuple[int, Block]]] = defaultdict(list)
        for number, chunk, _, block in sorted(self._places[part]):
            found[number].append((chunk, block))
        return list(found.items())

    def users(self, part: Part) -> UserTable:
        """The users that posts and comments of a part name, until those of another are asked."""
        return self._users.table(part)

    def sites_with_keyless_strays(self) -> list[int]:
        """Numbers of the sites that have rows here that belong to no bucket."""
        return [site for site, part in self._places if part is None]

    def keyless_strays(self, site: int) -> Iterator[bytes]:
        """Lines of the strays of a site that belong to no bucket, in the order of the dump."""
        with BlockReader() as reader:
            for _, _, _, block in sorted(self._places.get((site, None), [])):
                yield from reader.read(self.path, block)[1].splitlines(keepends=True)

    def first_questions(
        self, repeated: Mapping[int, set[int]]
    ) -> dict[tuple[int, int], tuple[int, int]]:
        """Where repeated post ids stand first.

        Args:
            repeated: Post ids by site.

        Returns:
            By site and post id, the lowest chunk with it, and a question id that it has there.
        """
        first: dict[tuple[int, int], tuple[int, int]] = {}
        with BlockReader() as reader:
            for (site, part), places in self._places.items():
                wanted = repeated[site]
                for _, chunk, _, block in places if part is not None else ():
                    keys = reader.read_keys(self.path, block)
                    for question_id, post_id, _, _ in KEY.iter_unpack(keys):
                        if post_id in wanted:
                            place = first.get((site, post_id))
                            if place is None or (chunk, question_id) < place:
                                first[site, post_id] = (chunk, question_id)
        return first
