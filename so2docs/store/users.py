"""Users on disk, read by id, and their badges: in the workers of both passes.

A range of `Users.xml` becomes a file of short JSON objects, one a line with its checksum, with a
block of keys at its end that says where each is. From those keys a map is made, user id ->
place, and a user is two small reads away. Only what the documents show is kept, 120 bytes a
user, so that the table of Stack Overflow's 22 million users fits in the system's cache. Of badges
only their number by user and class is kept, in a map of its own.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import orjson
from isal.isal_zlib import crc32

from so2docs.parse import core
from so2docs.parse.core import Added
from so2docs.parse.keys import KEY
from so2docs.parse.posts import Posts, Projection
from so2docs.parse.table_rows import MOST_USERS, Row, reject
from so2docs.schema import BADGE_CLASSES, BADGES, TABLES, USER_ATTRIBUTES
from so2docs.store.blocks import BlockReader, BlockWriter, damage_error
from so2docs.store.id_map import IdMap

PLACE_BITS = 40
"""A place is the number of a chunk << 40 | bytes from the start of its file."""

CHECK_BYTES = 8
"""A line starts with the CRC-32 of its JSON, in hexadecimal."""

CLASS_BITS = 2
"""Badges are counted by the id of their user << 2 | class."""

_MOST_COUNTS = 1 << 17
_BADGE_COLUMNS = (b"Id", b"UserId", b"Class", b"Other")
_BADGE_KINDS = bytes([1, 1, 1, 5])
_COUNTS = b",".join(b'"%b":%%d' % name.encode() for name in BADGE_CLASSES.values())
_BADGES = b'"%b":{%b}}' % (BADGES.key.encode(), _COUNTS)

_ENOUGH = 512
_WINDOW = 16 * 1024
_NOWHERE = -1
_FULL = 1024 * 1024


class UserRecords:
    """Turns rows of `Users.xml` into the lines of a chunk's file.

    Args:
        found: Gets the strays.
        writer: Gets the lines, and the keys in the end.
        projection: What to make of each before it is JSON.
    """

    def __init__(
        self, posts: Posts, writer: BlockWriter, projection: Projection | None = None
    ) -> None:
        self._projection = projection
        self._posts = posts
        self._writer = writer
        self._lines = bytearray()
        self._keys = bytearray()
        self._written = 0

    def add(self, rows: list[Row]) -> None:
        """Add the users of some rows."""
        for row in reject(self._posts, TABLES["users"], rows):
            attributes = {name: value for name, value in row.items() if name in USER_ATTRIBUTES}
            self._add(
                row["Id"],
                orjson.dumps(
                    attributes if self._projection is None else self._projection(attributes)
                ),
            )
        self._flush_if_full()

    def add_compiled(self, keys: bytes, jsons: bytes) -> None:
        """Add users that are JSON already.

        Args:
            keys: For each the `Id`, and the size of the JSON as in a key.
            jsons: Their JSON, one after the other.
        """
        at = 0
        for user_id, _, _, size_and_kind in KEY.iter_unpack(keys):
            end = at + (size_and_kind >> 4)
            self._add(user_id, jsons[at:end])
            at = end
        self._flush_if_full()

    def _add(self, user_id: int, json: bytes) -> None:
        self._keys += KEY.pack(user_id, self._written + len(self._lines), 0, 0)
        self._lines += b"%08x%b\n" % (crc32(json), json)

    def _flush_if_full(self) -> None:
        if len(self._lines) >= _FULL:
            self.flush()

    def flush(self) -> None:
        """Write the lines."""
        self._writer.append(self._lines)
        self._written += len(self._lines)
        self._lines = bytearray()

    def finish(self) -> None:
        """Write the keys after them."""
        self.flush()
        self._writer.write(None, self._keys, bytearray())


class BadgeCounts:
    """Counts rows of `Badges.xml` by user and class, as keys in a chunk's file.

    Args:
        found: Gets the strays.
        writer: Gets the keys.
    """

    def __init__(self, posts: Posts, writer: BlockWriter) -> None:
        self._posts = posts
        self._writer = writer
        self._counts: Counter[tuple[int, int]] = Counter()

    def add(self, rows: list[Row]) -> None:
        """Count the badges of some rows."""
        usable = reject(self._posts, TABLES["badges"], rows)
        self._count((row["UserId"], row["Class"]) for row in usable)

    def add_compiled(self, data: bytes) -> Added | None:
        """Count those of a slice by the compiled core; None if that is for the reference."""
        columns = core.read_columns(data, _BADGE_COLUMNS, _BADGE_KINDS)
        if columns is None:
            return None
        rows, last_id, (_, of_users, of_classes, _) = columns
        users, classes = array("q", of_users[2]), array("q", of_classes[2])
        is_whole = not of_users[0] and not of_classes[0] and BADGE_CLASSES.keys() >= set(classes)
        if not is_whole or any(abs(user_id) >= MOST_USERS for user_id in users):
            return None
        self._count(zip(users, classes, strict=True))
        return Added(rows, last_id)

    def _count(self, badges: Iterable[tuple[int, int]]) -> None:
        self._counts.update(badges)
        if len(self._counts) >= _MOST_COUNTS:
            self.finish()

    def finish(self) -> None:
        """Write the counts."""
        keys = bytearray()
        for (user_id, of_class), count in self._counts.items():
            keys += KEY.pack(user_id << CLASS_BITS | of_class, count, 0, 0)
        self._counts.clear()
        if keys:
            self._writer.write(None, keys, bytearray())


@dataclass(frozen=True, slots=True)
class UserTable:
    """The positions of the users.

    Attributes:
        places: The map from user ids to places.
        files: The chunks' files by number.
        badges: The map from user ids and classes to numbers of badges; empty if they are not
            nested.
    """

    places: str
    files: dict[int, str]
    badges: str = ""


class Users:
    """Reads users by id."""

    def __init__(self, table: UserTable) -> None:
        self._files = table.files
        self._places = IdMap(table.places)
        self._badges = IdMap(table.badges) if table.badges else None
        self._reader = BlockReader()

    def __enter__(self) -> Users:
        return self

    def __exit__(self, *exception: object) -> None:
        self._places.__exit__()
        if self._badges is not None:
            self._badges.__exit__()
        self._reader.__exit__()

    def get(self, user_id: int) -> bytes | None:
        """The JSON object of a user; None if the table has no such user."""
        place = self._places.get(user_id)
        if place is None or self._badges is None:
            return None if place is None else self.at(place)
        keys = _badge_keys(user_id)
        counts = self._badges.find(keys)
        return _with_badges(self.at(place), [counts.get(key, 0) for key in keys])

    def get_all(self, user_ids: array[int]) -> list[bytes | None]:
        """The JSON objects of many users, by the compiled core; None for those there are not.

        Read in the order in which they are stored, those that are near each other at once.
        """
        places = array("q", [_NOWHERE]) * len(user_ids)
        self._places.replace(user_ids, places)
        users: list[bytes | None] = [None] * len(user_ids)
        start, window = _NOWHERE, b""
        for number in sorted(range(len(places)), key=places.__getitem__):
            place = places[number]
            if place == _NOWHERE:
                continue
            if not start <= place <= start + _WINDOW:
                path, offset = self._where(place)
                start, window = place, self._reader.bytes_at(path, offset, _WINDOW + _ENOUGH)
            at = place - start
            end = window.find(b"\n", at)
            json = window[at + CHECK_BYTES : end]
            is_whole = end > 0 and window[at : at + CHECK_BYTES] == b"%08x" % crc32(json)
            users[number] = json if is_whole else self.at(place)
        if self._badges is not None:
            keys = array("q", [key for user_id in user_ids for key in _badge_keys(user_id)])
            counts = array("q", bytes(8 * len(keys)))
            self._badges.replace(keys, counts)
            size = len(BADGE_CLASSES)
            for number, user in enumerate(users):
                if user is not None:
                    users[number] = _with_badges(user, counts[number * size : (number + 1) * size])
        return users

    def _where(self, place: int) -> tuple[str, int]:
        """Path of the file and bytes from its start."""
        return self._files[place >> PLACE_BITS], place & ((1 << PLACE_BITS) - 1)

    def at(self, place: int) -> bytes:
        """The JSON object that starts at a place.

        Raises:
            SpillError: It is not what was written.
        """
        path, offset = self._where(place)
        size = _ENOUGH
        while True:
            data = self._reader.bytes_at(path, offset, size)
            line, end, _ = data.partition(b"\n")
            if end or len(data) < size:
                json = line[CHECK_BYTES:]
                if not end or line[:CHECK_BYTES] != b"%08x" % crc32(json):
                    raise damage_error(path, offset)
                return json
            size *= 8


def _badge_keys(user_id: int) -> list[int]:
    """Keys of the badges of a user, by class; those of nobody for an id that is too large."""
    user_id = user_id if abs(user_id) < MOST_USERS else -MOST_USERS
    return [user_id << CLASS_BITS | of_class for of_class in BADGE_CLASSES]


def _with_badges(user: bytes, counts: Sequence[int]) -> bytes:
    """The JSON object of a user with the numbers of their badges as its last member."""
    return b"%b,%b" % (user[:-1], _BADGES % tuple(counts))
