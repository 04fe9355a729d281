"""The users that the posts of a partition name, on disk, read by id while their part is merged."""

from __future__ import annotations

import os

import orjson
import zstandard
from isal.isal_zlib import crc32

from so2docs.spark.records import UserLines
from so2docs.store.id_runs import IdMapWriter
from so2docs.store.users import CHECK_BYTES, UserTable

_BATCH = 1 << 14


class GatheredUsers:
    """Users by part.

    Args:
        folder: A temporary folder for the files.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._decompress = zstandard.ZstdDecompressor().decompress

    def add(self, record: UserLines) -> None:
        """Add some users of a part."""
        with open(self._file(record.site, record.part), "ab") as file:
            for line in self._decompress(record.data).splitlines():
                file.write(b"%08x%b\n" % (crc32(line), line))

    def table(self, part: tuple[int, int]) -> UserTable:
        """Where the users of a part stand. The map of the part before is overwritten."""
        lines, places = self._file(*part), os.path.join(self._folder, "users.map")
        with IdMapWriter(places) as users:
            if os.path.exists(lines):
                _map(lines, users)
            users.finish()
        return UserTable(places, {0: lines})

    def _file(self, site: int, part: int) -> str:
        return os.path.join(self._folder, f"users-{site}-{part}")


def _map(path: str, users: IdMapWriter) -> None:
    ids: list[int] = []
    places: list[int] = []
    at = 0
    with open(path, "rb") as file:
        for line in file:
            ids.append(orjson.loads(line[CHECK_BYTES:])["Id"])
            places.append(at)
            at += len(line)
            if len(ids) == _BATCH:
                users.add(ids, places)
                ids, places = [], []
    users.add(ids, places)
