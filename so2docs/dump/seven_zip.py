"""Read members of 7z archives.

bzip2, in which Stack Exchange's archives are compressed, and the default LZMA2 are decompressed in
several threads. Headers are compressed with LZMA. Other methods and filters are rejected.

Format: Methods.txt of the LZMA SDK, https://7-zip.org/sdk.html
"""

from __future__ import annotations

import io
import threading
from collections import Counter
from collections.abc import Callable
from typing import BinaryIO

from so2docs.dump.archives import Archive, Entry
from so2docs.dump.bzip2 import decompress_bzip2
from so2docs.dump.compressed import decompress_streams, lzma2_dictionary, raw_lzma, read_range
from so2docs.dump.layers import START, Parts, Place, read_blocks
from so2docs.dump.lzma2 import ReadAt, decompress_blocks
from so2docs.dump.seven_zip_header import KIND, Folder, read_header
from so2docs.errors import ArchiveError

_STORED, _LZMA, _LZMA2, _BZIP2 = b"\x00", b"\x03\x01\x01", b"\x21", b"\x04\x02\x02"
_ENCRYPTED = b"\x06\xf1"
_NAMES = {
    _STORED: "stored",
    b"\x04\x01\x08": "deflate",
    _BZIP2: "bzip2",
    _LZMA: "LZMA",
    _LZMA2: "LZMA2",
    b"\x03\x03\x01\x03": "BCJ",
    b"\x03\x04\x01": "PPMd",
    b"\x04\xf7\x11\x01": "zstd",
}


class SevenZip(Archive):
    """A 7z archive."""

    kind = KIND

    def __init__(self, name: str, file: BinaryIO) -> None:
        self._folders, entries = read_header(
            name, file, lambda folder: _decompress(name, file, folder)
        )
        super().__init__(name, file, entries)

    def codecs(self) -> dict[str, int]:
        """Return the number of blocks by compression method."""
        return dict(Counter(map(_join_names, self._folders)))

    def open_block(
        self, entry: Entry, threads: int, work_dir: str | None, place: Place = START
    ) -> Parts:
        """Decompress the block of an entry, from a place in it."""
        folder = self._folders[entry.block]
        method, properties = folder.coders[0]
        if len(folder.coders) == 1 and method == _BZIP2:
            self.file.seek(folder.start + place.packed // 8)
            packed = read_range(self.file, folder.packed - place.packed // 8)
            return decompress_bzip2(packed, threads, place, self._mark)
        # Files in object stores are read once, in order, so decompress them as one stream.
        is_local = isinstance(self.file, io.FileIO | io.BufferedIOBase)
        if len(folder.coders) == 1 and method == _LZMA2 and is_local:
            return decompress_blocks(
                self._reader_at(folder),
                folder.packed,
                raw_lzma(self.name, properties, folder.size, is_lzma2=True),
                *(threads, self._tell_wanted(entry.block)),
                place=place,
                mark=self._mark,
                dictionary=lzma2_dictionary(properties),
                work_dir=work_dir,
            )
        return _decompress(self.name, self.file, folder)

    def _reader_at(self, folder: Folder) -> ReadAt:
        """Return a thread-safe function that reads n bytes of a packed stream at an offset."""
        lock = threading.Lock()

        def read_at(length: int, offset: int) -> bytes:
            with lock:
                self.file.seek(folder.start + offset)
                return self.file.read(min(length, folder.packed - offset))

        return read_at

    def _tell_wanted(self, number: int) -> Callable[[int, int], bool]:
        """Return a function that checks whether a range of a folder overlaps a member to read."""
        members = [entry for entry in self._expected if entry.block == number]

        def is_wanted(start: int, end: int) -> bool:
            return not members or any(
                entry.offset < end and start < entry.offset + entry.size for entry in members
            )

        return is_wanted


def _join_names(folder: Folder) -> str:
    return " and ".join(_NAMES.get(coder.method, coder.method.hex()) for coder in folder.coders)


def _decompress(name: str, file: BinaryIO, folder: Folder) -> Parts:
    """Decompress a block from its start in one thread."""
    method, properties = folder.coders[0]
    if any(coder.method.startswith(_ENCRYPTED) for coder in folder.coders):
        raise ArchiveError(name, "is encrypted", advice="unpack it first, with its password")
    if len(folder.coders) > 1 or method not in (_STORED, _LZMA, _LZMA2, _BZIP2):
        problem = f"is compressed with {_join_names(folder)}, which so2docs does not unpack"
        raise ArchiveError(name, problem, advice="unpack it first")
    file.seek(folder.start)
    read = read_range(file, folder.packed)
    if method == _STORED:
        return read_blocks(read)
    if method == _BZIP2:
        return decompress_bzip2(read, 1)
    new = raw_lzma(name, properties, folder.size, is_lzma2=method == _LZMA2)
    return _limit(decompress_streams(read, new), folder.size)


def _limit(parts: Parts, size: int) -> Parts:
    """Yield the first `size` bytes; LZMA does not mark its end."""
    while size:
        if not (part := next(parts, b"")[:size]):
            raise EOFError
        size -= len(part)
        yield part
