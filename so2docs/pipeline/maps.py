"""The maps that tables need, made from the keys of the spill in the main process.

From committed keys only, in the order of the dump: a map that an interrupted session left
unfinished is simply made again.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping

import orjson

from so2docs.counts import Counts
from so2docs.parse.keys import integers
from so2docs.parse.posts import stray_line
from so2docs.pipeline import strict
from so2docs.schema import TABLES
from so2docs.spill import SEQUENCE_BITS, Spill
from so2docs.store.blocks import BlockWriter
from so2docs.store.id_map import IdMapWriter
from so2docs.store.tally import ChunkTally
from so2docs.store.users import PLACE_BITS, Users, UserTable

_FIELDS = 4
_POSTS_ARE_MAPPED = "posts are mapped"


def map_posts(spill: Spill, first_questions: Mapping[int, int]) -> str:
    """Map every post that was spilled to its question; a question to itself.

    Args:
        spill: Has all posts.
        first_questions: For post ids that occur under several questions, the one that stays.

    Returns:
        Path of the map.
    """
    path = str(spill.folder / "posts.map")
    if not spill.get(_POSTS_ARE_MAPPED):
        with IdMapWriter(path) as posts:
            # What comes first stays.
            posts.add(list(first_questions), list(first_questions.values()))
            for _, keys in spill.all_keys():
                fields = integers(keys)
                posts.add(fields[1::_FIELDS], fields[::_FIELDS])
            posts.finish()
        spill.put(_POSTS_ARE_MAPPED, True)
    return path


def map_users(spill: Spill, chunks: int, strict_about: str | None = None) -> UserTable:
    """Map every user to the place of their JSON object; of a repeated id, the first one stays.

    The others become strays, in a chunk of their own after those of the table. That the map is
    complete shows in this chunk being committed.

    Args:
        spill: Has all users.
        chunks: Number of the table's chunks.
        strict_about: Name of the table, if there may be no such strays.

    Raises:
        StrictError: There are some, but may be none.
    """
    sequence = TABLES["users"].sequence
    last = (sequence << SEQUENCE_BITS) + chunks
    files = {_number(chunk): path for chunk, path in spill.files(sequence).items()}
    table = UserTable(str(spill.folder / "users.map"), files)
    if last in spill.tallies(sequence):
        return table
    with IdMapWriter(table.places) as users:
        for chunk, keys in spill.all_keys(sequence):
            fields = integers(keys)
            start = _number(chunk) << PLACE_BITS
            places = array("q", [start + offset for offset in fields[1::_FIELDS]])
            users.add(fields[::_FIELDS], places)
        repeated = sorted(users.finish())
    with Users(table) as known_users:
        rows = [orjson.loads(known_users.at(place)) for place in repeated]
    lines = [stray_line("user_repeated_id", row) for row in rows]
    if strict_about is not None:
        strict.check_lines(strict_about, lines)
    path = spill.new_file(last)
    room = spill.budget.grant(last, sum(map(len, lines)))
    with BlockWriter(path, room) as writer:
        if lines:
            writer.write(None, bytearray(), bytearray(b"".join(lines)))
    spill.commit(
        last, path, writer.blocks, ChunkTally(Counts(strays=Counter(user_repeated_id=len(lines))))
    )
    return table


def _number(chunk: int) -> int:
    """Number of a chunk within its table."""
    return chunk & ((1 << SEQUENCE_BITS) - 1)
