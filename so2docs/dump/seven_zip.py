"""Read members of 7z archives.

bzip2, in which Stack Exchange's archives are compressed, and the default LZMA2 are decompressed in
several threads. Other methods, and methods combined with filters, are decompressed in one.

Format: Methods.txt of the LZMA SDK, https://7-zip.org/sdk.html
"""

from __future__ import annotations

import io
import lzma
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

from so2docs.dump.archives import Archive, Entry
from so2docs.dump.bzip2 import decompress_bzip2
from so2docs.dump.compressed import (
    decompress_deflate,
    decompress_streams,
    decompress_zstd,
    lzma2_dictionary,
    raw_lzma,
    read_range,
)
from so2docs.dump.layers import Parts, Read, read_blocks
from so2docs.dump.lzma2 import Method, ReadAt, decompress_blocks
from so2docs.dump.seven_zip_header import KIND, Coder, Folder, read_header
from so2docs.errors import ArchiveError

_LZMA, _LZMA2, _BZIP2 = b"\x03\x01\x01", b"\x21", b"\x04\x02\x02"
_ENCRYPTED = b"\x06\xf1"
_FROM_START: dict[bytes, Callable[[Read], Parts]] = {
    b"\x00": read_blocks,
    b"\x04\x01\x08": decompress_deflate,
    _BZIP2: lambda read: decompress_bzip2(read, 1),
    b"\x04\xf7\x11\x01": lambda read: decompress_zstd(read, 1),
}
_FILTERS = {
    b"\x03": lzma.FILTER_DELTA,
    b"\x04": lzma.FILTER_X86,
    b"\x05": lzma.FILTER_POWERPC,
    b"\x06": lzma.FILTER_IA64,
    b"\x07": lzma.FILTER_ARM,
    b"\x08": lzma.FILTER_ARMTHUMB,
    b"\x09": lzma.FILTER_SPARC,
    b"\x03\x03\x01\x03": lzma.FILTER_X86,
    b"\x03\x03\x02\x05": lzma.FILTER_POWERPC,
    b"\x03\x03\x04\x01": lzma.FILTER_IA64,
    b"\x03\x03\x05\x01": lzma.FILTER_ARM,
    b"\x03\x03\x07\x01": lzma.FILTER_ARMTHUMB,
    b"\x03\x03\x08\x05": lzma.FILTER_SPARC,
}
_NAMES = {
    b"\x00": "stored",
    b"\x04\x01\x08": "deflate",
    b"\x04\x01\x09": "Deflate64",
    _BZIP2: "bzip2",
    _LZMA: "LZMA",
    _LZMA2: "LZMA2",
    b"\x03": "Delta",
    b"\x0a": "ARM64",
    b"\x0b": "RISC-V",
    b"\x03\x03\x01\x03": "BCJ",
    b"\x03\x03\x01\x1b": "BCJ2",
    b"\x03\x04\x01": "PPMd",
    b"\x04\xf7\x11\x01": "zstd",
    b"\x04\xf7\x11\x02": "brotli",
}
_CHUNK = 64 * 1024
"""Maximum size of a chunk of LZMA2 that is stored."""


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
        return dict(Counter(_join_names(reversed(folder.coders)) for folder in self._folders))

    def open_block(self, entry: Entry, threads: int, work_dir: str | None) -> Parts:
        """Decompress the block of an entry."""
        folder = self._folders[entry.block]
        method, properties = folder.coders[0]
        if len(folder.coders) == 1 and method == _BZIP2:
            self.file.seek(folder.start)
            packed = read_range(self.file, folder.packed)
            ends = [member.offset + member.size for member in self._members_to_read(entry.block)]
            end = max(ends, default=folder.size)
            return decompress_bzip2(packed, threads, end)
        # Files in object stores are read once, in order, so decompress them as one stream.
        is_local = isinstance(self.file, io.FileIO | io.BufferedIOBase)
        if len(folder.coders) == 1 and method == _LZMA2 and is_local:
            return decompress_blocks(
                self._reader_at(folder),
                folder.packed,
                _lzma2(self.name, properties, folder.size),
                *(threads, self._tell_wanted(entry.block)),
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

    def _members_to_read(self, number: int) -> list[Entry]:
        """Return the announced members of a folder; if there are none, all may be read."""
        return [entry for entry in self._expected if entry.block == number]

    def _tell_wanted(self, number: int) -> Callable[[int, int], bool]:
        """Return a function that checks whether a range of a folder overlaps a member to read."""
        members = self._members_to_read(number)

        def is_wanted(start: int, end: int) -> bool:
            return not members or any(
                entry.offset < end and start < entry.offset + entry.size for entry in members
            )

        return is_wanted


def _join_names(coders: Iterable[Coder]) -> str:
    return " and ".join(_NAMES.get(coder.method, coder.method.hex()) for coder in coders)


def _lzma2(name: str, properties: bytes, unpacked: int) -> Method:
    new = raw_lzma(name, properties, unpacked, is_lzma2=True)
    return Method(new, lzma2_dictionary(properties, unpacked))


def _decompress(name: str, file: BinaryIO, folder: Folder) -> Parts:
    """Decompress a block from its start: its method, then its filters.

    Raises:
        ArchiveError: The block is encrypted, or compressed with a method that is not supported.
    """
    (method, properties), *filters = folder.coders
    if any(coder.method.startswith(_ENCRYPTED) for coder in folder.coders):
        raise ArchiveError(name, "is encrypted", advice="unpack it first, with its password")
    is_filtered = {coder.method for coder in filters} <= _FILTERS.keys()
    if method not in (*_FROM_START, _LZMA, _LZMA2) or folder.streams > 1 or not is_filtered:
        problem = f"is compressed with {_join_names(folder.coders)}, which so2docs does not unpack"
        raise ArchiveError(name, problem, advice="unpack it first")

    def start() -> Read:
        file.seek(folder.start)
        return read_range(file, folder.packed)

    if method == _LZMA2:
        parts = _lzma2(name, properties, folder.sizes[0]).decompress(start)
    elif method == _LZMA:
        parts = decompress_streams(start(), raw_lzma(name, properties, folder.sizes[0]))
    else:
        parts = _FROM_START[method](start())
    for coder, size in zip(filters, folder.sizes, strict=False):
        parts = _filter(_limit(parts, size), coder)
    yield from _limit(parts, folder.size)


def _filter(parts: Parts, coder: Coder) -> Parts:
    """Undo a filter.

    liblzma has filters only in front of LZMA2, and needs the end marker of LZMA2 to return the last
    bytes. The bytes are therefore framed as stored chunks.
    """
    settings: dict[str, Any] = {"id": _FILTERS[coder.method]}
    if coder.method == b"\x03":
        settings["dist"] = coder.properties[0] + 1
    elif coder.properties:
        settings["start_offset"] = int.from_bytes(coder.properties, "little")
    chain = [settings, {"id": lzma.FILTER_LZMA2, "dict_size": _CHUNK}]
    decompressor = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=chain)
    for chunk in _frame(parts):
        yield decompressor.decompress(chunk)


def _limit(parts: Parts, size: int) -> Parts:
    """Yield the first `size` bytes; LZMA does not mark its end."""
    while size:
        if not (part := next(parts, b"")[:size]):
            raise EOFError
        size -= len(part)
        yield part


def _frame(parts: Parts) -> Iterator[bytes]:
    """Frame bytes as stored chunks of LZMA2, followed by the end marker."""
    control = b"\x01"  # The first chunk resets the dictionary.
    for part in parts:
        for at in range(0, len(part), _CHUNK):
            data = part[at : at + _CHUNK]
            yield b"".join((control, (len(data) - 1).to_bytes(2, "big"), data))
            control = b"\x02"
    yield b"\0"
