"""Maps that are made between the passes: of posts, of users and of badges.

Maps are made from committed keys only, in the order of the dump. A map that an interrupted session
left unfinished is made again.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from operator import add

import orjson

from so2docs.counts import ChunkTally
from so2docs.parse.id_set import Pages, ids_in_pages
from so2docs.parse.keys import integers
from so2docs.parse.posts import stray_line
from so2docs.schema import TABLES
from so2docs.spill import MADE_CHUNK, SEQUENCE_BITS, Spill
from so2docs.store.id_map import IdMap, IdMapWriter
from so2docs.store.users import CLASS_BITS, PLACE_BITS, Users, UserTable

_POSTS_ARE_MAPPED = "posts are mapped"
_AT_ONCE = 1_000_000


def map_posts(spill: Spill) -> str:
    """Map spilled posts to their questions, and questions to themselves; return the map's path.

    A post id under several questions is mapped to the lowest one.
    """
    path = str(spill.folder / "posts.map")
    if not spill.get(_POSTS_ARE_MAPPED):
        with IdMapWriter(path, min) as posts:
            for _, keys in spill.pairs():
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
        for _, keys in spill.pairs():
            fields = integers(keys)
            for post_id, question_id in zip(fields[1::2], fields[::2], strict=True):
                is_repeated = post_id in batch
                if is_repeated and questions.setdefault(post_id, question_id) != question_id:
                    several.add(post_id)
        shared += len(several)
    return shared


def map_users(spill: Spill) -> UserTable:
    """Map users to the positions of their JSON objects; if an id is repeated, keep the first user.

    Later users with the same id become strays, in a separate chunk after the chunks of the table.
    Once this chunk is committed, the map is complete.
    """
    sequence = TABLES["users"].sequence
    last = (sequence << SEQUENCE_BITS) + MADE_CHUNK
    files = {_number(chunk): path for chunk, path in spill.files(sequence).items()}
    table = UserTable(str(spill.folder / "users.map"), files)
    if last in spill.tallies(sequence):
        return table
    with IdMapWriter(table.places) as users:
        for chunk, keys in spill.pairs(sequence):
            fields = integers(keys)
            start = _number(chunk) << PLACE_BITS
            places = array("q", [start + offset for offset in fields[1::2]])
            users.add(fields[::2], places)
        repeated = sorted(users.finish())
    with Users(table) as known_users:
        rows = [orjson.loads(known_users.at(place)) for place in repeated]
    strays = [(None, b"", b"".join(stray_line("user_repeated_id", row) for row in rows))]
    tally = ChunkTally(strays=+Counter(user_repeated_id=len(rows)))
    spill.add_chunk(last, strays if rows else (), tally)
    return table


def map_badges(spill: Spill, users: UserTable) -> UserTable:
    """Map every user and class to the number of badges; badges of unknown users become strays.

    Returns:
        Table of the users and their badges.
    """
    sequence = TABLES["badges"].sequence
    last = (sequence << SEQUENCE_BITS) + MADE_CHUNK
    table = replace(users, badges=str(spill.folder / "badges.map"))
    if last in spill.tallies(sequence):
        return table
    with IdMapWriter(table.badges, add) as badges:
        for _, keys in spill.pairs(sequence):
            fields = integers(keys)
            badges.add(fields[::2], fields[1::2])
        badges.finish()
    tally = ChunkTally()
    spill.add_chunk(last, _badges_without_user(table, tally), tally)
    return table


def _badges_without_user(
    table: UserTable, tally: ChunkTally
) -> Iterator[tuple[None, bytes, bytes]]:
    """Yield badges of unknown users as records, a line per user and class, and count them."""
    with IdMap(table.badges) as counts_map, IdMap(table.places) as users_map:
        for badge_keys, counts in counts_map.items():
            user_ids = users_map.find({key >> CLASS_BITS for key in badge_keys})
            lines = bytearray()
            for key, count in zip(badge_keys, counts, strict=True):
                user_id = key >> CLASS_BITS
                if user_id not in user_ids:
                    row = {"UserId": user_id, "Class": key - (user_id << CLASS_BITS)}
                    stray = {"reason": "badge_without_user", "count": count, "row": row}
                    lines += orjson.dumps(stray) + b"\n"
                    tally.strays["badge_without_user"] += count
            if lines:
                yield None, b"", bytes(lines)


def _number(chunk: int) -> int:
    """Return the number of a chunk within its table."""
    return chunk & ((1 << SEQUENCE_BITS) - 1)
