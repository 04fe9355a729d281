"""A map on disk from ids to 64-bit values: post id -> question id, user id -> place of the user.

One slot of 8 bytes for each id, in pages of 4,096 ids; there is a page only where there is an id,
so that the made-up ids of ten digits at the end of a dump cost two pages and not 8 GB. A list
of the pages stands beside the slots. The 80 million ids of Stack Overflow take 640 MB of disk and
20,000 entries in memory.

Written by one process, read by many. What the map may hold of memory is bounded in both: the writer
lets go of what it mapped every few thousand ids, the reader reads slots and keeps none.
"""

from __future__ import annotations

import mmap
import os
import struct
from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import groupby

from so2docs.errors import SpillError

_PAGE_BITS = 12
_SLOTS = 1 << _PAGE_BITS
_MASK = _SLOTS - 1
_SLOT = struct.Struct("=q")
_PAGE_BYTES = _SLOTS * _SLOT.size
_STEP = 256
"""Pages that the file grows by at least: 8 MiB, which take no room where nothing is written."""

_BATCH = 1 << 14
"""Ids after which the writer unmaps all: at 4 KiB an id in the worst case, 64 MiB of memory."""

_FEW = 8
"""From so many ids of one page on, reading the page is cheaper than reading each slot."""

# A slot that nobody wrote to is zero, so that the value 0 needs a stand-in.
_ZERO = -(1 << 63)


def _list_of_pages(path: str) -> str:
    return f"{path}.pages"


class IdMapWriter:
    """Makes a map; complete only after `finish`."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = open(path, "w+b")  # noqa: SIM115
        self._positions: dict[int, int] = {}
        self._room = 0
        self._map: mmap.mmap | None = None
        self._slots = memoryview(b"")

    def __enter__(self) -> IdMapWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self._unmap()
        self._file.close()

    def add(self, ids: Sequence[int], values: Sequence[int]) -> list[int]:
        """Map ids to values; an id that is there already keeps its value.

        Returns:
            The places in `ids` of those that were there already.
        """
        known: list[int] = []
        for start in range(0, len(ids), _BATCH):
            end = start + _BATCH
            known += self._add(start, ids[start:end], values[start:end])
            self._let_go()
        return known

    def _add(self, start: int, ids: Sequence[int], values: Sequence[int]) -> list[int]:
        known: list[int] = []
        current, base, slots = None, 0, self._slots
        for place, (key, value) in enumerate(zip(ids, values, strict=True), start):
            page = key >> _PAGE_BITS
            if page != current:
                current, base = page, self._base(page)
                slots = self._slots
            slot = base + (key & _MASK)
            if slots[slot]:
                known.append(place)
            else:
                slots[slot] = value or _ZERO
        return known

    def replace(self, changed: Iterable[tuple[int, int]]) -> None:
        """Map ids to other values."""
        for key, value in changed:
            base = self._base(key >> _PAGE_BITS)
            self._slots[base + (key & _MASK)] = value or _ZERO

    def finish(self) -> None:
        """Cut off what was not needed, and write down where the pages are."""
        self._unmap()
        self._file.truncate(len(self._positions) * _PAGE_BYTES)
        with open(_list_of_pages(self._path), "wb") as file:
            array("q", self._positions).tofile(file)

    def _base(self, page: int) -> int:
        """First slot of a page, which is made if need be."""
        position = self._positions.get(page)
        if position is None:
            position = self._positions[page] = len(self._positions)
            if position >= self._room:
                self._grow()
        return position * _SLOTS

    def _grow(self) -> None:
        self._unmap()
        self._room += max(_STEP, self._room // 4)
        self._file.truncate(self._room * _PAGE_BYTES)
        self._map = mmap.mmap(self._file.fileno(), self._room * _PAGE_BYTES)
        self._slots = memoryview(self._map).cast("q")

    def _let_go(self) -> None:
        """Give the memory back; what was written stays with the system and goes to the file."""
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            with suppress(OSError):
                self._map.madvise(mmap.MADV_DONTNEED)

    def _unmap(self) -> None:
        self._slots.release()
        if self._map is not None:
            self._map.close()
            self._map = None


class IdMap:
    """Reads a map that is finished."""

    def __init__(self, path: str) -> None:
        """Open it.

        Raises:
            SpillError: It is not there.
        """
        pages = array("q")
        try:
            with open(_list_of_pages(path), "rb") as file:
                pages.frombytes(file.read())
            self._file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except OSError as error:
            raise SpillError(
                f"{path}: the spill cannot be read ({error.strerror}); run again with --restart"
            ) from error
        self._starts = {page: place * _PAGE_BYTES for place, page in enumerate(pages)}

    def __enter__(self) -> IdMap:
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self._file)

    def get(self, key: int) -> int | None:
        """The value of one id; None if it has none."""
        start = self._starts.get(key >> _PAGE_BITS)
        if start is None:
            return None
        (value,) = _SLOT.unpack(self._read(_SLOT.size, start + (key & _MASK) * _SLOT.size))
        return (0 if value == _ZERO else value) if value else None

    def find(self, ids: Iterable[int]) -> dict[int, int]:
        """The values of those ids that have one."""
        found: dict[int, int] = {}
        for page, group in groupby(sorted(ids), lambda key: key >> _PAGE_BITS):
            start = self._starts.get(page)
            if start is None:
                continue
            wanted = list(group)
            if len(wanted) < _FEW:
                for key in wanted:
                    value = self.get(key)
                    if value is not None:
                        found[key] = value
                continue
            slots = memoryview(self._read(_PAGE_BYTES, start)).cast("q")
            for key in wanted:
                if value := slots[key & _MASK]:
                    found[key] = 0 if value == _ZERO else value
        return found

    def _read(self, size: int, offset: int) -> bytes:
        if hasattr(os, "pread"):
            return os.pread(self._file, size, offset)
        os.lseek(self._file, offset, os.SEEK_SET)
        return os.read(self._file, size)
