"""Users on disk, read by id: in the workers of both passes.

A range of `Users.xml` becomes a file of short JSON objects, one a line with its checksum, with a
block of keys at its end that says where each is. From those keys a map is made, user id ->
place, and a user is two small reads away. Only what the documents show is kept, 120 bytes a
user, so that the table of Stack Overflow's 22 million users fits in the system's cache.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import orjson
from isal.isal_zlib import crc32

from so2docs.parse.keys import KEY
from so2docs.parse.posts import Posts, Projection
from so2docs.parse.table_rows import Row, reject
from so2docs.schema import TABLES, USER_ATTRIBUTES
from so2docs.store.blocks import BlockReader, BlockWriter, damage_error
from so2docs.store.id_map import IdMap

PLACE_BITS = 40
"""A place is the number of a chunk << 40 | bytes from the start of its file."""

CHECK_BYTES = 8
"""A line starts with the CRC-32 of its JSON, in hexadecimal."""

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
        self._found = posts
        self._writer = writer
        self._lines = bytearray()
        self._keys = bytearray()
        self._written = 0

    def add(self, rows: list[Row]) -> None:
        """Add the users of some rows."""
        for row in reject(self._found, TABLES["users"], rows):
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


@dataclass(frozen=True, slots=True)
class UserTable:
    """Where the users are.

    Attributes:
        places: The map from user ids to places.
        files: The chunks' files by number.
    """

    places: str
    files: dict[int, str]


class Users:
    """Reads users by id."""

    def __init__(self, table: UserTable) -> None:
        self._files = table.files
        self._places = IdMap(table.places)
        self._reader = BlockReader()

    def __enter__(self) -> Users:
        return self

    def __exit__(self, *exception: object) -> None:
        self._places.__exit__()
        self._reader.__exit__()

    def get(self, user_id: int) -> bytes | None:
        """The JSON object of a user; None if the table has no such user."""
        place = self._places.get(user_id)
        return None if place is None else self.at(place)

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
