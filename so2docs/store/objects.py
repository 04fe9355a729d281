"""JSON objects by id on disk, such as users with their badges, which the second pass looks up.

The objects are in ascending order of their ids, in blocks of about 4 KB, so reading one takes one
small read. The end of the file contains the first id, the offset and the checksum of each block. Of
users, only attributes that documents use are kept, 120 bytes per user, so that the 22 million users
of Stack Overflow fit in the system's cache; their index takes 20 MB in each worker.
"""

from __future__ import annotations

import os
import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager

from isal.isal_zlib import crc32

from so2docs.errors import damaged_spill_error
from so2docs.parse import core
from so2docs.store.blocks import damage_error
from so2docs.store.disk import AppendedFile, open_finished, read_at

ObjectBlock = tuple[int, bytes]
"""The first id of some objects, and their bytes: the number of objects, their ids and the ends of
their JSON as 64-bit integers, and the JSON."""

_FULL_BLOCK = 4 * 1024
_COUNT = struct.Struct("=q")
_END = struct.Struct("=QQ")
"""End of a file: the number of blocks, and the checksum of the index."""


def pack_objects(objects: Iterable[tuple[int, bytes]]) -> Iterator[ObjectBlock]:
    """Divide JSON objects, which are in ascending order of their ids, into blocks."""
    ids, ends, json = array("q"), array("q"), bytearray()
    for key, of_key in objects:
        ids.append(key)
        json += of_key
        ends.append(len(json))
        if len(json) >= _FULL_BLOCK:
            yield ids[0], _pack(ids, ends, json)
            del ids[:], ends[:], json[:]
    if ids:
        yield ids[0], _pack(ids, ends, json)


def _pack(ids: array[int], ends: array[int], json: bytearray) -> bytes:
    return (array("q", [len(ids)]) + ids + ends).tobytes() + json


class ObjectWriter(AbstractContextManager["ObjectWriter"]):
    """Writes objects in ascending order of their ids; the file is complete only after `finish`."""

    def __init__(self, path: str) -> None:
        self._file = AppendedFile(path)
        self._firsts, self._sums, self._starts = array("q"), array("q"), array("q")

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def add(self, objects: Iterable[tuple[int, bytes]]) -> None:
        """Add ids and JSON objects."""
        self.add_blocks(pack_objects(objects))

    def add_blocks(self, blocks: Iterable[ObjectBlock]) -> None:
        """Add blocks that `pack_objects` made."""
        for first, block in blocks:
            self._firsts.append(first)
            self._sums.append(crc32(block))
            self._starts.append(self._file.write(block))

    def finish(self) -> None:
        """Write the index."""
        self._starts.append(self._file.size)
        index = (self._firsts + self._sums + self._starts).tobytes()
        self._file.write(index + _END.pack(len(self._firsts), crc32(index)))


class Objects(AbstractContextManager["Objects"]):
    """Reads objects by id."""

    def __init__(self, path: str) -> None:
        """Open a finished file and read its index.

        Raises:
            SpillError: The file cannot be read, or is damaged.
        """
        self._path, self._file = path, open_finished(path)
        try:
            self._read_index(os.fstat(self._file).st_size - _END.size)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exception: object) -> None:
        os.close(self._file)

    def _read_index(self, end: int) -> None:
        tail = read_at(self._file, _END.size, max(0, end)).rjust(_END.size, b"\0")
        count, crc = _END.unpack(tail)
        size = 8 * (3 * count + 1)
        index = read_at(self._file, size, end - size) if size <= end else b""
        if crc32(index) != crc or not index:
            raise damaged_spill_error(self._path, "the checksum of its index is wrong")
        words = array("q", index)
        self._firsts, self._sums = words[:count], words[count : 2 * count]
        self._starts = words[2 * count :]

    def get(self, key: int) -> bytes | None:
        """Return the object with an id; None for an unknown id.

        Raises:
            SpillError: The file is damaged.
        """
        number = bisect_right(self._firsts, key) - 1
        if number < 0:
            return None
        block = self._read(number)
        (count,) = _COUNT.unpack_from(block)
        json = _COUNT.size * (2 * count + 1)
        words = memoryview(block)[:json].cast("q")
        at = bisect_left(words, key, 1, count)
        if words[at] != key:
            return None
        start = words[count + at - 1] if at > 1 else 0
        return block[json + start : json + words[count + at]]

    def get_all(self, keys: array[int]) -> list[bytes | None]:
        """Return the objects with these ids, which are ascending, with the compiled core."""
        return core.compiled.find_objects(self._firsts, keys, self._read)

    def _read(self, number: int) -> bytes:
        start, end = self._starts[number], self._starts[number + 1]
        block = read_at(self._file, end - start, start)
        if crc32(block) != self._sums[number]:
            raise damage_error(self._path, start)
        return block
