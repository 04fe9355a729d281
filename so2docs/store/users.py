"""Store users with their badges on disk, where workers of the second pass look them up by id.

A chunk of `Users.xml` becomes a file of short JSON objects, one per line with its checksum. A block
of keys at the end of the file contains the position of each object. These keys become a map from
user ids to positions, so reading a user takes two small reads. Only attributes that documents use
are kept, 120 bytes per user, so that the 22 million users of Stack Overflow fit in the system's
cache. Another map contains the number of badges by user and class.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from isal.isal_zlib import crc32

from so2docs.parse.table_rows import MOST_USERS
from so2docs.schema import BADGE_CLASSES, BADGES
from so2docs.store.blocks import BlockReader, damage_error
from so2docs.store.id_map import IdMap

PLACE_BITS = 40
"""Bits of the offset in a position: number of the chunk << 40 | bytes from the start of its
file."""

CHECK_BYTES = 8
"""Size of the checksum at the start of a line: the CRC-32 of the JSON, in hexadecimal."""

CLASS_BITS = 2
"""Bits of the class in the key of a badge: user id << 2 | class."""

_COUNTS = b",".join(b'"%b":%%d' % name.encode() for name in BADGE_CLASSES.values())
_BADGES = b'"%b":{%b}}' % (BADGES.key.encode(), _COUNTS)

_WINDOW = 2 * 1024
_NOWHERE = -1


@dataclass(frozen=True, slots=True)
class UserTable:
    """The files in which users are looked up.

    Attributes:
        places: Path of the map from user ids to positions.
        files: Paths of the files of the chunks, by chunk number.
        badges: Path of the map from user ids and classes to numbers of badges; empty if badges are
            not nested.
    """

    places: str
    files: dict[int, str]
    badges: str = ""


class Users(AbstractContextManager["Users"]):
    """Reads users by id."""

    def __init__(self, table: UserTable) -> None:
        self._files = table.files
        self._places = IdMap(table.places)
        self._badges = IdMap(table.badges) if table.badges else None
        self._reader = BlockReader()
        self._start, self._window = 0, b""

    def __exit__(self, *exception: object) -> None:
        self._places.__exit__()
        if self._badges is not None:
            self._badges.__exit__()
        self._reader.__exit__()

    def get(self, user_id: int) -> bytes | None:
        """Return the JSON object of a user, with any badges; None for an unknown user."""
        place = self._places.get(user_id)
        if place is None or self._badges is None:
            return None if place is None else self.at(place)
        keys = _badge_keys(user_id)
        counts = self._badges.find(keys)
        return _with_badges(self.at(place), [counts.get(key, 0) for key in keys])

    def get_all(self, user_ids: array[int]) -> list[bytes | None]:
        """Return the JSON objects of many users, found with the compiled core; None if unknown.

        Users are read in the order in which they are stored, adjacent users in one read.
        """
        places = array("q", [_NOWHERE]) * len(user_ids)
        self._places.replace(user_ids, places)
        users: list[bytes | None] = [None] * len(user_ids)
        for number in sorted(range(len(places)), key=places.__getitem__):
            if places[number] != _NOWHERE:
                users[number] = self.at(places[number])
        if self._badges is not None:
            keys = array("q", [key for user_id in user_ids for key in _badge_keys(user_id)])
            counts = array("q", bytes(8 * len(keys)))
            self._badges.replace(keys, counts)
            size = len(BADGE_CLASSES)
            for number, user in enumerate(users):
                if user is not None:
                    users[number] = _with_badges(user, counts[number * size : (number + 1) * size])
        return users

    def at(self, place: int) -> bytes:
        """Return the JSON object at a position, without badges; nearby objects are in one read."""
        path, offset = self._files[place >> PLACE_BITS], place & ((1 << PLACE_BITS) - 1)
        start, size = place - self._start, _WINDOW
        end = self._window.find(b"\n", start) if start >= 0 else -1
        while end < 0:
            self._start, start = place, 0
            self._window = self._reader.bytes_at(path, offset, size)
            end = self._window.find(b"\n")
            if end < 0 and len(self._window) < size:
                raise damage_error(path, offset)
            size *= 8
        json = self._window[start + CHECK_BYTES : end]
        if self._window[start : start + CHECK_BYTES] != b"%08x" % crc32(json):
            raise damage_error(path, offset)
        return json


def _badge_keys(user_id: int) -> list[int]:
    """Return the keys of a user's badge counts, one per class; unused keys for too large ids."""
    user_id = user_id if abs(user_id) < MOST_USERS else -MOST_USERS
    return [user_id << CLASS_BITS | of_class for of_class in BADGE_CLASSES]


def _with_badges(user: bytes, counts: Sequence[int]) -> bytes:
    """Add the numbers of badges to the JSON object of a user, as its last member."""
    return b"%b,%b" % (user[:-1], _BADGES % tuple(counts))
