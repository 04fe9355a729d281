"""Maps that are made between the passes: of posts, of users and of badges.

Maps are made from committed keys only, in the order of the dump. A map that an interrupted session
left unfinished is made again.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

import orjson

from so2docs.counts import ChunkTally
from so2docs.parse.id_set import Pages, ids_in_pages
from so2docs.parse.keys import integers, walk
from so2docs.parse.posts import stray_line
from so2docs.parse.table_rows import unpack_votes
from so2docs.pipeline.filing import OF_BADGES
from so2docs.processes.pool import Workers
from so2docs.schema import BADGE_CLASSES, BADGES, TABLES
from so2docs.spill import MADE_CHUNK, SEQUENCE_BITS, Spill
from so2docs.store.blocks import Block, BlockReader, BlockWriter, check_blocks_match
from so2docs.store.id_map import IdMapWriter
from so2docs.store.objects import ObjectBlock, ObjectWriter, pack_objects

_POSTS_ARE_MAPPED = "posts are mapped"
_AT_ONCE = 1_000_000

_COUNTS = b",".join(b'"%b":%%d' % name.encode() for name in BADGE_CLASSES.values())
_BADGES = b'"%b":{%b}}' % (BADGES.key.encode(), _COUNTS)


def map_posts(spill: Spill) -> str:
    """Map spilled posts to their questions, and questions to themselves; return the map's path.

    A post id under several questions is mapped to the lowest one.
    """
    path = str(spill.folder / "posts.map")
    if not spill.get(_POSTS_ARE_MAPPED):
        with IdMapWriter(path) as posts:
            for keys in spill.pairs():
                fields = integers(keys)
                posts.add(fields[1::2], fields[::2])
            posts.finish()
        spill.put(_POSTS_ARE_MAPPED, True, commits=False)
    return path


def count_shared_ids(spill: Spill, repeated: Pages, at_once: int = _AT_ONCE) -> int:
    """Count the post ids that occur under several questions.

    Args:
        spill: The spill, after the posts.
        repeated: The post ids that occur several times.
        at_once: Number of ids to look up in one pass over the keys, which bounds the memory.
    """
    shared, ids = 0, ids_in_pages(repeated)
    while batch := frozenset(islice(ids, at_once)):
        questions, several = dict[int, int](), set[int]()
        for keys in spill.pairs():
            fields = integers(keys)
            for post_id, question_id in zip(fields[1::2], fields[::2], strict=True):
                is_repeated = post_id in batch
                if is_repeated and questions.setdefault(post_id, question_id) != question_id:
                    several.add(post_id)
        shared += len(several)
    return shared


class _SortedUsers(NamedTuple):
    """The users of a range of ids.

    Attributes:
        blocks: Their JSON objects by id, with any badges.
        repeated: Users with the id of an earlier user, as lines of strays, by id.
        unknown: Badges of unknown users, a line per user and class.
        counts: Numbers of repeated users and of badges of unknown users, by reason.
    """

    blocks: list[ObjectBlock]
    repeated: bytes
    unknown: bytes
    counts: Counter[str]


def map_users(spill: Spill, workers: Workers, *, with_badges: bool) -> str:
    """Write the users with their badges, by id; if an id is repeated, keep the first user.

    Later users with the same id, and badges of unknown users, become strays, in separate chunks
    after those of the tables. Once the chunk of users is committed, the file is complete.

    Returns:
        Path of the users, for `Objects`.
    """
    users, badges = (TABLES[name].sequence for name in ("users", "badges"))
    path = str(spill.folder / "users.map")
    of_users, of_badges = ((number << SEQUENCE_BITS) + MADE_CHUNK for number in (users, badges))
    if of_users in spill.tallies(users):
        return path
    spill.merge_only(users, badges)
    counts = Counter[str]()
    with (
        ObjectWriter(path) as writer,
        BlockWriter(spill.new_file(of_users), spill.budget.grant(of_users, 0)) as repeated,
        BlockWriter(spill.new_file(of_badges), spill.budget.grant(of_badges, 0)) as unknown,
    ):
        tasks = ((spill.blocks(bucket), with_badges) for bucket, _ in spill.buckets())
        for result in workers.run(_sort_users, tasks):
            writer.add_blocks(result.blocks)
            counts += result.counts
            if result.repeated:
                repeated.write(None, b"", result.repeated)
            if result.unknown:
                unknown.write(None, b"", result.unknown)
        writer.finish()
    for chunk, file, reason in (
        (of_badges, unknown, "badge_without_user"),
        (of_users, repeated, "user_repeated_id"),
    ):
        tally = ChunkTally(strays=+Counter({reason: counts[reason]}))
        if chunk not in spill.tallies(chunk >> SEQUENCE_BITS):  # A session ended after the first.
            spill.commit(chunk, file.blocks, tally)
    return path


def _sort_users(task: tuple[list[tuple[str, Block]], bool]) -> _SortedUsers:
    """Sort the users of a range of ids in a worker, and add their badges."""
    located, with_badges = task
    users, badges = dict[int, bytes](), Counter[tuple[int, int]]()
    repeated, unknown, counts = list[tuple[int, bytes]](), list[bytes](), Counter[str]()
    with BlockReader() as reader, check_blocks_match(located):
        for path, block in located:
            keys, json = reader.read(path, block)
            for user_id, _, rank, kind, start, end in walk(keys):
                if kind == OF_BADGES:
                    of_class, count = unpack_votes(rank)
                    badges[user_id, of_class] += count
                elif user_id in users:
                    row = orjson.loads(json[start:end])
                    repeated.append((user_id, stray_line("user_repeated_id", row)))
                else:
                    users[user_id] = json[start:end]
    for (user_id, of_class), count in sorted(badges.items()):
        if user_id not in users:
            row = {"UserId": user_id, "Class": of_class}
            stray = {"reason": "badge_without_user", "count": count, "row": row}
            unknown.append(orjson.dumps(stray) + b"\n")
            counts["badge_without_user"] += count
    if with_badges:
        for user_id, json in users.items():
            of_user = tuple(badges[user_id, of_class] for of_class in BADGE_CLASSES)
            users[user_id] = b"%b,%b" % (json[:-1], _BADGES % of_user)
    counts["user_repeated_id"] = len(repeated)
    lines = (line for _, line in sorted(repeated, key=itemgetter(0)))
    blocks = list(pack_objects(sorted(users.items())))
    return _SortedUsers(blocks, b"".join(lines), b"".join(unknown), counts)
