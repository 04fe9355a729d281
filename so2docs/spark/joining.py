"""Between the stages, in an executor: rows of tables, and users, on their way to the questions.

Every row of a table arrives under the id of its post, beside the answers that have a question of
another id, and leaves under its question. Every user arrives under their own id, beside the parts
that name them, and leaves for those. The merge finds both there, in the form in which the plain
command has them.

Memory: what `chunk.flush` holds before it writes; the answers, or the users, of one bucket.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import orjson
import zstandard

from so2docs.passes import chunk as chunks
from so2docs.passes.chunk import FULL_BLOCK
from so2docs.passes.worker import peak_memory
from so2docs.posts.posts import BUCKET_BITS, KEY, Posts, new_bucket, stray_line
from so2docs.schema import COMMENT, TABLES
from so2docs.spark.gathering import GatheredBlocks, Part
from so2docs.spark.plan import PART_BITS, Layout, Site
from so2docs.spark.records import (
    Blocks,
    Placed,
    Record,
    Tallied,
    UserLines,
    sorted_out,
    temporary_folder,
)
from so2docs.spark.references import References
from so2docs.spill import SEQUENCE_BITS
from so2docs.store.blocks import Block, BlockReader, BlockWriter
from so2docs.store.users import PLACE_BITS

REPEATED_USERS = ((TABLES["users"].sequence + 1) << SEQUENCE_BITS) - 1
"""Number of the chunk of the users whose id an earlier one has, after those of the table."""

_FIRST = 1 << SEQUENCE_BITS
_MOST_HELD = 16 * 1024 * 1024
_REPEATED = "user_repeated_id"


def to_questions(
    sites: Mapping[int, Site],
    owners: Mapping[int, Mapping[int, int]],
    layout: Layout,
    found: Iterable[Record],
) -> Iterator[Placed]:
    """File the rows of tables under the questions of their posts.

    Args:
        sites: The sites to convert.
        owners: By site, which question a post keeps that stands under several.
        layout: Where records go.
        found: What a partition for post ids has.
    """
    with GatheredBlocks(found, sites) as blocks:
        for part in blocks.parts():
            yield from _refiled(sites[part[0]], part, owners.get(part[0], {}), blocks, layout)


def _refiled(
    site: Site, part: Part, owners: Mapping[int, int], blocks: GatheredBlocks, layout: Layout
) -> Iterator[Placed]:
    rows, references = Posts(), References(site, layout)
    # The rows of a post stay in their order, because all of them pass here; they follow the posts.
    chunk = _FIRST + part[1]

    def partition_of(block: Block) -> int:
        return layout.of_bucket(site.number, block.bucket)

    with temporary_folder() as folder:
        path = f"{folder}/blocks"
        with BlockWriter(path) as writer, BlockReader() as reader:
            for _, places in blocks.buckets(part):
                questions = _questions(reader, places)
                questions.update(owners)
                for at, block in places:
                    _refile(rows, references, *reader.read(at, block), questions)
                    chunks.flush(rows, writer, FULL_BLOCK)
            chunks.flush(rows, writer, 0)
        yield from sorted_out(path, writer.blocks, site.number, chunk, partition_of)
        yield from references.records(chunk, f"{path}.references")


def _questions(reader: BlockReader, places: list[tuple[str, Block]]) -> dict[int, int]:
    """The questions of the answers of a bucket of post ids."""
    found: dict[int, int] = {}
    for path, block in places:
        if not block.raw_size:
            for post_id, question_id, _, kind in KEY.iter_unpack(reader.read_keys(path, block)):
                if not kind:
                    found[post_id] = question_id
    return found


def _refile(
    rows: Posts, references: References, keys: bytes, json: bytes, questions: Mapping[int, int]
) -> None:
    """File the rows of a block under their questions; comments also name users."""
    at, view, buckets = 0, memoryview(json), rows.buckets
    for _, post_id, rank, size_and_kind in KEY.iter_unpack(keys):
        end = at + (size_and_kind >> 4)
        if not size_and_kind:
            continue
        question_id = questions.get(post_id, post_id)
        bucket = buckets.get(question_id >> BUCKET_BITS)
        if bucket is None:
            bucket = buckets[question_id >> BUCKET_BITS] = new_bucket()
        bucket.keys.extend(KEY.pack(question_id, post_id, rank, size_and_kind))
        bucket.json.extend(view[at:end])
        if size_and_kind & 15 == COMMENT:
            references.add_users(view[at:end], question_id >> BUCKET_BITS >> PART_BITS)
        at = end


def users_to_parts(
    sites: Mapping[int, Site], layout: Layout, found: Iterable[Record]
) -> Iterator[Placed]:
    """Send users to the parts that name them.

    Args:
        sites: The sites to convert.
        layout: Where records go.
        found: What a partition for user ids has.
    """
    with GatheredBlocks(found, sites) as blocks:
        for site, part in blocks.parts():
            sent = _Sent(site, layout)
            for _, places in blocks.places((site, part)):
                yield from sent.add(blocks.path, places)
            yield from sent.lines()
            yield from sent.strays()


class _Sent:
    """The users of a range of ids, by the parts that name them."""

    def __init__(self, site: int, layout: Layout) -> None:
        self._site = site
        self._layout = layout
        self._compress = zstandard.ZstdCompressor(level=1).compress
        self._lines: defaultdict[int, bytearray] = defaultdict(bytearray)
        self._held = 0
        self._repeated: list[tuple[int, int, bytes]] = []

    def add(self, path: str, places: list[tuple[int, Block]]) -> Iterator[Placed]:
        """Match the users of a bucket with those who name them."""
        users: dict[int, bytes] = {}
        named: defaultdict[int, set[int]] = defaultdict(set)
        with BlockReader() as reader:
            for chunk, block in places:
                keys, json = reader.read(path, block)
                at = 0
                for user_id, place, _, size in KEY.iter_unpack(keys):
                    end = at + (size >> 4)
                    if not size:
                        named[place].add(user_id)
                    elif users.setdefault(user_id, line := json[at:end]) is not line:
                        self._repeated.append((chunk, place, line))
                    at = end
        for part, ids in sorted(named.items()):
            lines = b"".join([users[one] + b"\n" for one in sorted(ids) if one in users])
            self._lines[part] += lines
            self._held += len(lines)
        if self._held >= _MOST_HELD:
            yield from self.lines()

    def lines(self) -> Iterator[Placed]:
        """What is held of users, as records."""
        for part, lines in self._lines.items():
            if lines:
                partition = self._layout.of_bucket(self._site, part << PART_BITS)
                yield partition, UserLines(self._site, part, self._compress(lines))
        self._lines.clear()
        self._held = 0

    def strays(self) -> Iterator[Placed]:
        """The users whose id an earlier one has, each with its place in the table."""
        if not self._repeated:
            return
        blocks = []
        with temporary_folder() as folder:
            path = f"{folder}/blocks"
            with BlockWriter(path) as writer:
                for chunk, place, line in self._repeated:
                    stray = stray_line(_REPEATED, orjson.loads(line))
                    writer.write(None, bytearray(), bytearray(stray))
                    order = (chunk << PLACE_BITS) + place
                    blocks.append(writer.blocks[-1]._replace(offset=order))
            with open(path, "rb") as file:
                data = file.read()
        partition = self._layout.of_tallies(self._site)
        yield partition, Blocks(self._site, REPEATED_USERS, blocks, data)
        tally = {"strays": {_REPEATED: len(self._repeated)}}
        tallied = Tallied(self._site, REPEATED_USERS, tally, {}, set(), None, peak_memory())
        yield partition, tallied
