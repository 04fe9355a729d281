"""A map on disk from ids to 64-bit values: post id -> question id, user id -> position of the user.

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import groupby

from isal.isal_zlib import crc32

from so2docs.errors import damaged_spill_error
from so2docs.parse import core
from so2docs.store.disk import AppendedFile, read_at

_BLOCK = 256
WORD = 8
_PAIR = 2 * WORD
_END = struct.Struct("=8sQQI")
"""End of the file: mark, number of pairs, number of blocks, checksum of all bytes after the
blocks."""

_MOST_KNOWN = 1 << 10
"""Maximum number of blocks that a reader keeps in memory; they take 4 MB."""

_MARK = b"so2docsM"


class MapFile(AbstractContextManager["MapFile"]):
    """Writes sorted pairs as blocks."""

    def __init__(self, path: str) -> None:
        self._file = AppendedFile(path)
        self._ids, self._values = array("q"), array("q")
        self._firsts, self._sums = array("q"), array("I")
        self._count = 0

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def add(self, ids: array[int], values: array[int]) -> None:
        """Append pairs of ids and values. The ids must be higher than all earlier ids."""
        self._ids += ids
        self._values += values
        whole = len(self._ids) // _BLOCK * _BLOCK
        self._write(whole)

    def _write(self, count: int) -> None:
        data = bytearray()
        for start in range(0, count, _BLOCK):
            end = min(start + _BLOCK, count)
            block = self._ids[start:end].tobytes() + self._values[start:end].tobytes()
            self._firsts.append(self._ids[start])
            self._sums.append(crc32(block))
            data += block
        self._file.write(data)
        self._count += count
        del self._ids[:count], self._values[:count]

    def finish(self) -> None:
        """Write the last block and the end of the file."""
        self._write(len(self._ids))
        index = self._firsts.tobytes() + self._sums.tobytes()
        head = _END.pack(_MARK, self._count, len(self._firsts), 0)[: -struct.calcsize("=I")]
        self._file.write(index + head + struct.pack("=I", crc32(head, crc32(index))))


class IdMap(AbstractContextManager["IdMap"]):
    """Reads a finished map."""

    def __init__(self, path: str) -> None:
        """Open a map and read its index.

        Raises:
            SpillError: The file cannot be read, or is damaged.
        """
        self._path = path
        try:
            self._file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except OSError as error:
            raise damaged_spill_error(path, error.strerror) from error
        self._firsts, self._sums = array("q"), array("I")
        self._known: dict[int, array[int]] = {}
        try:
            self._read_index(os.fstat(self._file).st_size)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exception: object) -> None:
        os.close(self._file)

    def _read_index(self, size: int) -> None:
        end = read_at(self._file, _END.size, max(0, size - _END.size)).rjust(_END.size, b"\0")
        mark, self._count, blocks, crc = _END.unpack(end)
        words = blocks * (WORD + self._sums.itemsize)
        if mark != _MARK or size != self._count * _PAIR + words + _END.size:
            raise damaged_spill_error(self._path, "its size has changed")
        index = read_at(self._file, words, self._count * _PAIR)
        if crc32(end[: -struct.calcsize("=I")], crc32(index)) != crc:
            raise damaged_spill_error(self._path, "the checksum of its index is wrong")
        self._firsts.frombytes(index[: blocks * WORD])
        self._sums.frombytes(index[blocks * WORD :])

    def get(self, key: int) -> int | None:
        """Return the value of an id; None for a missing id."""
        return self.find((key,)).get(key)

    def find(self, ids: Iterable[int]) -> dict[int, int]:
        """Return the value of each of these ids that is in the map, by id."""
        values: dict[int, int] = {}
        firsts = self._firsts
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

    def items(self) -> Iterator[tuple[array[int], array[int]]]:
        """Yield all ids in ascending order with their values, in parts."""
        for number in range(len(self._firsts)):
            words = self._block(number)
            count = len(words) // 2
            yield words[:count], words[count:]

    def replace(self, ids: array[int], values: array[int]) -> None:
        """Look up many ids with the compiled core, and store each value at the index of its id.

        The values at the indexes of missing ids stay unchanged.
        """
        core.compiled.find_values(self._firsts, ids, values, self._block)

    def _block(self, number: int) -> array[int]:
        """Read the ids and values of a block; recent blocks are cached."""
        block = self._known.get(number)
        if block is None:
            start = number * _BLOCK
            count = min(_BLOCK, self._count - start)
            data = read_at(self._file, count * _PAIR, start * _PAIR)
            if crc32(data) != self._sums[number]:
                raise damaged_spill_error(self._path, f"at byte {start * _PAIR:,}")
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            block = self._known[number] = array("q", data)
        return block


Combine = Callable[[dict[int, int], Iterable[tuple[int, int]], "array[int]"], None]
"""Adds pairs to those in a dictionary; may append the values of repeated ids to an array."""

_RUN = 1 << 17
"""Number of pairs that are sorted in memory; they take 20 MB."""

_SAMPLE = 1 << 10
"""Interval of the ids of a run that are kept in memory, as samples."""


class IdMapWriter(AbstractContextManager["IdMapWriter"]):
    """Writes a map, which is complete only after `finish`."""

    def __init__(self, path: str, combine: Combine | None = None) -> None:
        """Begin a map; of a repeated id, it keeps the first value unless `combine` is given."""
        self._path = path
        self._combine = combine or _keep_first
        self._pending: dict[int, int] = {}
        self._repeated = array("q")
        self._runs: list[_Run] = []
        self._file: AppendedFile | None = None

    def __exit__(self, *exception: object) -> None:
        if self._file is not None:
            self._file.close()
            if os.path.exists(self._file.path):
                os.unlink(self._file.path)

    def add(self, ids: Sequence[int], values: Sequence[int]) -> None:
        """Add ids with their values."""
        for start in range(0, len(ids), _RUN):
            self._add(ids[start : start + _RUN], values[start : start + _RUN])
            if len(self._pending) >= _RUN:
                self._write_run()

    def _add(self, ids: Sequence[int], values: Sequence[int]) -> None:
        pending, fresh = self._pending, dict(zip(ids, values, strict=True))
        if len(fresh) == len(ids) and pending.keys().isdisjoint(fresh):
            pending.update(fresh)
        else:
            self._combine(pending, zip(ids, values, strict=True), self._repeated)

    def _write_run(self) -> None:
        if self._file is None:
            self._file = AppendedFile(f"{self._path}.runs", "w+b")
        self._runs.append(_Run(self._file, *self._sort()))

    def _sort(self) -> tuple[array[int], array[int]]:
        """Return the pairs held in memory, sorted, and clear them."""
        ids = array("q", sorted(self._pending))
        values = array("q", map(self._pending.__getitem__, ids))
        self._pending = {}
        return ids, values

    def finish(self) -> array[int]:
        """Merge the runs into the map.

        Returns:
            The later values of repeated ids, in no particular order; empty with `combine`.
        """
        if self._runs and self._pending:
            self._write_run()
        with MapFile(self._path) as blocks:
            if not self._runs:
                blocks.add(*self._sort())
            pivots = sorted(sample for run in self._runs for sample in run.samples)
            for pivot in (*pivots[_RUN // _SAMPLE :: _RUN // _SAMPLE], None):
                blocks.add(*self._merge([run.take(pivot) for run in self._runs]))
            for run in self._runs:
                run.check_taken()
            blocks.finish()
        return self._repeated

    def _merge(self, parts: list[tuple[array[int], array[int]]]) -> tuple[array[int], array[int]]:
        """Merge the pairs of one range of ids, given by run, earlier runs first."""
        parts = [part for part in parts if part[0]]
        if len(parts) == 1:
            return parts[0]
        merged: dict[int, int] = {}
        for ids, values in parts:
            self._combine(merged, zip(ids, values, strict=True), self._repeated)
        ids = array("q", sorted(merged))
        return ids, array("q", map(merged.__getitem__, ids))


def add_up(known: dict[int, int], pairs: Iterable[tuple[int, int]], repeated: array[int]) -> None:
    """Add up the values of a repeated id."""
    del repeated
    for key, value in pairs:
        known[key] = known.get(key, 0) + value


def keep_lowest(
    known: dict[int, int], pairs: Iterable[tuple[int, int]], repeated: array[int]
) -> None:
    """Keep the lowest value of a repeated id."""
    del repeated
    for key, value in pairs:
        known[key] = min(value, known.get(key, value))


def _keep_first(
    known: dict[int, int], pairs: Iterable[tuple[int, int]], repeated: array[int]
) -> None:
    for key, value in pairs:
        if key in known:
            repeated.append(value)
        else:
            known[key] = value


class _Run:
    """Sorted pairs in a file, to be read in ascending ranges of ids."""

    def __init__(self, file: AppendedFile, ids: array[int], values: array[int]) -> None:
        self.samples = ids[::_SAMPLE]
        self._file, self._count = file, len(ids)
        self._start = file.write(ids.tobytes())
        file.write(values.tobytes())
        self._sums = crc32(ids), crc32(values)
        self._taken, self._taken_sums = 0, (0, 0)

    def take(self, pivot: int | None) -> tuple[array[int], array[int]]:
        """Read the next pairs with ids below `pivot`; with None, all remaining pairs."""
        begin, end = self._taken, self._count
        if pivot is not None:
            end = max(begin, min(end, bisect_left(self.samples, pivot) * _SAMPLE))
        ids = self._words(begin, end)
        if pivot is not None:
            del ids[bisect_left(ids, pivot) :]
        self._taken += len(ids)
        values = self._words(self._count + begin, self._count + self._taken)
        ids_sum, values_sum = self._taken_sums
        self._taken_sums = crc32(ids, ids_sum), crc32(values, values_sum)
        return ids, values

    def check_taken(self) -> None:
        """Check that all pairs were read, and that they are the pairs that were written."""
        if self._taken != self._count or self._taken_sums != self._sums:
            raise damaged_spill_error(self._file.path, "the checksum of a run is wrong")

    def _words(self, begin: int, end: int) -> array[int]:
        data = read_at(self._file.number, WORD * (end - begin), self._start + WORD * begin)
        if len(data) != WORD * (end - begin):
            raise damaged_spill_error(self._file.path, "it was shortened")
        return array("q", data)
