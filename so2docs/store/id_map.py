"""A map on disk from ids to 64-bit values, such as from posts to their questions.

The file contains sorted pairs of 16 bytes, in blocks of 256 pairs, so its size depends only on the
number of ids. The end of the file contains the first id and the checksum of each block, the numbers
of pairs and blocks, and a checksum of this index.

One process writes a map in bounded memory: it sorts pairs in runs and merges them at the end. The
ids of a dump are nearly in order, so most runs are copied unchanged. Many processes read the map
block by block. A reader keeps the first ids in memory: 4 MB for 80 million ids.
"""

from __future__ import annotations

import os
import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, suppress
from itertools import groupby, pairwise

from isal.isal_zlib import crc32

from so2docs.errors import damaged_spill_error
from so2docs.parse import core
from so2docs.store.disk import AppendedFile, open_finished, read_at

_BLOCK = 256
_PAIR = 16
_END = struct.Struct("=8sQQ")
"""End of the index: mark, number of pairs, number of blocks."""

_CRC = struct.Struct("=I")
"""End of the file: checksum of the index."""

_MOST_KNOWN = 1 << 10
"""Maximum number of blocks that a reader keeps in memory; they take 4 MB."""

_MARK = b"so2docsM"

_RUN = 1 << 17
"""Number of pairs that are sorted in memory; they take 20 MB."""

_ALL_IDS = -(1 << 63), 1 << 63

Pairs = tuple["array[int]", "array[int]"]
"""Ids in ascending order, and their values."""


class SortedPairs:
    """Blocks of sorted pairs in an open file.

    Args:
        path: Name of the file.
        file: File descriptor.
        start: Offset of the first block.
    """

    def __init__(self, path: str, file: int, start: int = 0) -> None:
        self.path, self.file, self.start = path, file, start
        self.firsts, self.sums = array("q"), array("I")
        self.count = 0

    def pack(self, ids: array[int], values: array[int]) -> bytearray:
        """Add pairs, higher than those before, to the index, and return the bytes of their blocks.

        Only the last block may be shorter than the others.
        """
        data = bytearray()
        for at in range(0, len(ids), _BLOCK):
            block = ids[at : at + _BLOCK].tobytes() + values[at : at + _BLOCK].tobytes()
            self.firsts.append(ids[at])
            self.sums.append(crc32(block))
            data += block
        self.count += len(ids)
        return data

    def read(self, number: int) -> array[int]:
        """Read the ids of a block, followed by their values.

        Raises:
            SpillError: The block is damaged.
        """
        first = number * _BLOCK
        at = self.start + first * _PAIR
        data = read_at(self.file, min(_BLOCK, self.count - first) * _PAIR, at)
        if crc32(data) != self.sums[number]:
            raise damaged_spill_error(self.path, f"at byte {at:,}")
        return array("q", data)

    def between(self, low: int, high: int) -> Pairs:
        """Read the pairs with ids from `low` to below `high`."""
        ids, values = array("q"), array("q")
        first = max(0, bisect_right(self.firsts, low) - 1)
        for number in range(first, bisect_left(self.firsts, high)):
            words = self.read(number)
            ids += words[: len(words) // 2]
            values += words[len(words) // 2 :]
        begin, end = bisect_left(ids, low), bisect_left(ids, high)
        return ids[begin:end], values[begin:end]


class IdMap(SortedPairs, AbstractContextManager["IdMap"]):
    """Reads a finished map."""

    def __init__(self, path: str) -> None:
        """Open a map and read its index.

        Raises:
            SpillError: The file cannot be read, or is damaged.
        """
        super().__init__(path, open_finished(path))
        self._known: dict[int, array[int]] = {}
        try:
            self._read_index(os.fstat(self.file).st_size)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exception: object) -> None:
        os.close(self.file)

    def _read_index(self, size: int) -> None:
        length = _END.size + _CRC.size
        end = read_at(self.file, length, max(0, size - length)).rjust(length, b"\0")
        mark, self.count, blocks = _END.unpack_from(end)
        words = blocks * (self.firsts.itemsize + self.sums.itemsize)
        if mark != _MARK or size != self.count * _PAIR + words + length:
            raise damaged_spill_error(self.path, "its size has changed")
        index = read_at(self.file, words, self.count * _PAIR)
        if _CRC.pack(crc32(index + end[: _END.size])) != end[_END.size :]:
            raise damaged_spill_error(self.path, "the checksum of its index is wrong")
        self.firsts.frombytes(index[: blocks * self.firsts.itemsize])
        self.sums.frombytes(index[blocks * self.firsts.itemsize :])

    def get(self, key: int) -> int | None:
        """Return the value of an id; None for a missing id."""
        return self.find((key,)).get(key)

    def find(self, ids: Iterable[int]) -> dict[int, int]:
        """Return the value of each of these ids that is in the map, by id."""
        values: dict[int, int] = {}
        firsts = self.firsts
        for number, keys in groupby(sorted(ids), lambda key: bisect_right(firsts, key) - 1):
            if number < 0:
                continue
            words = self._block(number)
            count = len(words) // 2
            for key in keys:
                index = bisect_left(words, key, 0, count - 1)
                if words[index] == key:
                    values[key] = words[count + index]
        return values

    def items(self) -> Iterator[Pairs]:
        """Yield all ids in ascending order with their values, in parts."""
        for low, high in pairwise((*self.firsts, _ALL_IDS[1])):
            yield self.between(low, high)

    def replace(self, ids: array[int], values: array[int]) -> None:
        """Look up many ids with the compiled core, and store each value at the index of its id.

        The values at the indexes of missing ids stay unchanged.
        """
        core.compiled.find_values(self.firsts, ids, values, self._block)

    def _block(self, number: int) -> array[int]:
        """Read the ids and values of a block; recent blocks are cached."""
        block = self._known.get(number)
        if block is None:
            block = self.read(number)
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[number] = block
        return block


class IdMapWriter(AbstractContextManager["IdMapWriter"]):
    """Writes a map, which is complete only after `finish`; a repeated id has its lowest value.

    Args:
        path: Path of the map.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._pending: dict[int, int] = {}
        self._runs: list[SortedPairs] = []
        self._file: AppendedFile | None = None

    def __exit__(self, *exception: object) -> None:
        if self._file is not None:
            self._file.close()
            with suppress(FileNotFoundError):
                os.unlink(self._file.path)

    def add(self, ids: Sequence[int], values: Sequence[int]) -> None:
        """Add ids with their values."""
        for start in range(0, len(ids), _RUN):
            _add(self._pending, ids[start : start + _RUN], values[start : start + _RUN])
            if len(self._pending) >= _RUN:
                self._write_run()

    def _write_run(self) -> None:
        if self._file is None:
            self._file = AppendedFile(f"{self._path}.runs", "w+b")
        run = SortedPairs(self._file.path, self._file.number, self._file.size)
        self._file.write(run.pack(*_sort(self._pending)))
        self._runs.append(run)
        self._pending = {}

    def finish(self) -> None:
        """Merge the runs into the map."""
        if self._runs and self._pending:
            self._write_run()
        with closing(AppendedFile(self._path)) as file:
            blocks = SortedPairs(self._path, file.number)
            ids, values = array("q"), array("q")
            for more_ids, more_values in self._merged():
                ids += more_ids
                values += more_values
                whole = len(ids) // _BLOCK * _BLOCK
                file.write(blocks.pack(ids[:whole], values[:whole]))
                del ids[:whole], values[:whole]
            file.write(blocks.pack(ids, values))
            index = blocks.firsts.tobytes() + blocks.sums.tobytes()
            index += _END.pack(_MARK, blocks.count, len(blocks.firsts))
            file.write(index + _CRC.pack(crc32(index)))

    def _merged(self) -> Iterator[Pairs]:
        """Yield all pairs in ascending order."""
        if not self._runs:
            yield _sort(self._pending)
            return
        low, high = _ALL_IDS
        pivots = sorted(first for run in self._runs for first in run.firsts)
        step = _RUN // _BLOCK
        for start, stop in pairwise((low, *pivots[step::step], high)):
            parts = [part for run in self._runs if (part := run.between(start, stop))[0]]
            if len(parts) == 1:
                yield parts[0]
                continue
            merged: dict[int, int] = {}
            for ids, values in parts:
                _add(merged, ids, values)
            yield _sort(merged)


def _add(known: dict[int, int], ids: Sequence[int], values: Sequence[int]) -> None:
    fresh = dict(zip(ids, values, strict=True))
    if len(fresh) == len(ids) and known.keys().isdisjoint(fresh):
        known.update(fresh)
        return
    for key, value in zip(ids, values, strict=True):
        known[key] = min(value, known.get(key, value))


def _sort(pairs: dict[int, int]) -> Pairs:
    ids = array("q", sorted(pairs))
    return ids, array("q", map(pairs.__getitem__, ids))
