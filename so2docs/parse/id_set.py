"""A set of ids on disk with a bit for each id, which one process writes and many processes map.

Bit `n & 7` of byte `n >> 3` says whether id `n` is in the set. Ranges without ids are holes in the
file, so the set takes a bit for each id: 10 MB for the 80 million posts of Stack Overflow. Workers
turn their ids into pages, and the process that writes the file only combines pages.

The bits are followed by pages with the ids outside the range of 32 bits, which a reader keeps in
memory (published dumps have one such id, user -1), and by the numbers of all other pages.
"""

from __future__ import annotations

import mmap
import os
import struct
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress

_PAGE_BITS = 12
_PAGE = 1 << _PAGE_BITS
_PAGE_BYTES = _PAGE // 8
_PAGES_IN_FILE = 1 << 32 - _PAGE_BITS
_FAR_PAGE = struct.Struct(f"=q{_PAGE_BYTES}s")
_END = struct.Struct("=qq")
"""End of the file: the number of pages after the bits, and that of the numbers of other pages."""

Pages = dict[int, int]
"""Ids as integers with a bit for each id, by `id >> 12`."""


def to_pages(ids: Iterable[int]) -> Pages:
    """Convert ids, in any order, to pages."""
    pages: Pages = {}
    bits, current = bytearray(_PAGE_BYTES), None
    for number in sorted(ids):
        if number >> _PAGE_BITS != current:
            if current is not None:
                pages[current] = int.from_bytes(bits, "little")
            current = number >> _PAGE_BITS
            bits = bytearray(_PAGE_BYTES)
        bits[number >> 3 & (_PAGE_BYTES - 1)] |= 1 << (number & 7)
    if current is not None:
        pages[current] = int.from_bytes(bits, "little")
    return pages


def count_pages(ids: Sequence[int]) -> list[Pages]:
    """Convert ids to the pages of all of them and, if any, those of the ids that are repeated."""
    distinct = set(ids)
    if len(distinct) == len(ids):
        return [to_pages(distinct)]
    return [to_pages(distinct), to_pages(n for n, count in Counter(ids).items() if count > 1)]


def ids_in_pages(pages: Pages) -> Iterator[int]:
    """Yield the ids of pages, in ascending order."""
    for page, bits in sorted(pages.items()):
        remaining = bits
        while remaining:
            lowest = remaining & -remaining
            yield page << _PAGE_BITS | lowest.bit_length() - 1
            remaining ^= lowest


class IdSetWriter(AbstractContextManager["IdSetWriter"]):
    """Writes a set, which readers can open after `finish`; an unfinished file is removed.

    Attributes:
        path: Path of the file.
        repeated: The ids that were added more than once.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._far: Pages = {}
        self._near = set[int]()
        self.repeated: Pages = {}
        self._is_finished = False
        self._file = open(path, "w+b")  # noqa: SIM115

    def __exit__(self, *exception: object) -> None:
        self._file.close()
        if not self._is_finished:
            # A file that cannot be removed must not follow a published output.
            with suppress(FileNotFoundError if exception[0] is None else OSError):
                os.unlink(self.path)

    def add(self, pages: Pages) -> None:
        """Add ids, as returned by `to_pages`."""
        for page, bits in pages.items():
            before = self._read(page)
            if repeated := before & bits:
                self.repeated[page] = self.repeated.get(page, 0) | repeated
            if before | bits != before:
                self._write(page, before | bits)

    def add_id(self, number: int) -> None:
        """Add one id."""
        self.add({number >> _PAGE_BITS: 1 << (number & (_PAGE - 1))})

    def __contains__(self, number: int) -> bool:
        return bool(self._read(number >> _PAGE_BITS) >> (number & (_PAGE - 1)) & 1)

    def _read(self, page: int) -> int:
        if not 0 <= page < _PAGES_IN_FILE:
            return self._far.get(page, 0)
        self._file.seek(page * _PAGE_BYTES)
        return int.from_bytes(self._file.read(_PAGE_BYTES), "little")

    def _write(self, page: int, bits: int) -> None:
        if not 0 <= page < _PAGES_IN_FILE:
            self._far[page] = bits
            return
        self._near.add(page)
        self._write_at(page * _PAGE_BYTES, bits.to_bytes(_PAGE_BYTES, "little"))

    def _write_at(self, offset: int, data: bytes) -> None:
        try:
            self._file.seek(offset)
            self._file.write(data)
        except OSError as error:
            error.filename = self.path
            raise

    def finish(self) -> None:
        """Write the end of the file."""
        pages = (
            _FAR_PAGE.pack(page, bits.to_bytes(_PAGE_BYTES, "little"))
            for page, bits in sorted(self._far.items())
        )
        numbers = array("q", sorted(self._near))
        end = self._file.seek(0, os.SEEK_END)
        data = b"".join(pages) + numbers.tobytes() + _END.pack(len(self._far), len(numbers))
        self._write_at(end, data)
        self._file.flush()
        self._is_finished = True


class IdSet:
    """A finished set, mapped into memory."""

    def __init__(self, path: str) -> None:
        """Map a set. Raises `OSError` if the file cannot be read."""
        with open(path, "rb") as file:
            self._bits = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        numbers_end = len(self._bits) - _END.size
        far, near = _END.unpack_from(self._bits, numbers_end)
        far_end = numbers_end - near * 8
        self._numbers = array("q", self._bits[far_end:numbers_end])
        end = far_end - far * _FAR_PAGE.size
        self._limit = end * 8
        self._far: Pages = {
            page: int.from_bytes(bits, "little")
            for page, bits in _FAR_PAGE.iter_unpack(self._bits[end:far_end])
        }

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        if 0 <= number < self._limit:
            return bool(self._bits[number >> 3] >> (number & 7) & 1)
        return bool(self._far.get(number >> _PAGE_BITS, 0) >> (number & (_PAGE - 1)) & 1)

    def __bool__(self) -> bool:
        return bool(self._far or self._numbers)

    def isdisjoint(self, ids: Iterable[int]) -> bool:
        """Whether the set has none of these ids."""
        return not any(number in self for number in ids)

    def find(self, ids: Iterable[int | None]) -> list[bool]:
        """Return whether each id is in the set; False for None."""
        bits, limit = self._bits, self._limit
        return [
            bits[number >> 3] >> (number & 7) & 1 == 1
            if number is not None and 0 <= number < limit
            else number in self
            for number in ids
        ]

    def page(self, number: int) -> int:
        """Return the page with a number, which may be empty."""
        if 0 <= number < self._limit >> _PAGE_BITS:
            at = number * _PAGE_BYTES
            return int.from_bytes(self._bits[at : at + _PAGE_BYTES], "little")
        return self._far.get(number, 0)

    def pages(self) -> Iterator[tuple[int, int]]:
        """Yield the number and the bits of each page that is not empty."""
        return ((number, self.page(number)) for number in (*self._far, *self._numbers))
