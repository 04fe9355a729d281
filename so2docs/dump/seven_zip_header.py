"""Read the header of a 7z archive: its solid blocks, and the position of each file in them.

The header may come from anyone. Every number in it is checked against the size of the file, or
against the bytes left in the header, before memory is allocated for it. Every checksum is checked.

Format: 7zFormat.txt of the LZMA SDK, https://7-zip.org/sdk.html
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import PurePath
from typing import BinaryIO, NamedTuple, NoReturn

from isal.isal_zlib import crc32

from so2docs.dump.archives import Entry
from so2docs.dump.compressed import Parts, read_blocks, read_range
from so2docs.dump.kinds import UNPACK
from so2docs.dump.layers import Stream
from so2docs.errors import ArchiveError, TruncatedDumpError

KIND = "a 7z archive"

_START = struct.Struct("<6sBBLQQL")
_MOST_HEADER = 16 * 1024 * 1024
_MOST_FILES = 100_000
_MOST_METHODS = 32
"""Maximum number of methods of a block: the limit of 7-Zip."""

_END, _HEADER, _MAIN_STREAMS, _FILES = 0, 1, 4, 5
_PACK_INFO, _UNPACK_INFO, _SUBSTREAMS_INFO, _SIZE, _CRC, _FOLDER = range(6, 12)
_UNPACK_SIZES, _STREAM_COUNTS, _EMPTY_STREAMS, _EMPTY_FILES = range(12, 16)
_NAMES, _ENCODED_HEADER = 17, 23

STORED, LZMA, LZMA2, BZIP2 = b"\x00", b"\x03\x01\x01", b"\x21", b"\x04\x02\x02"
_ENCRYPTED = b"\x06\xf1"


class SolidBlock(NamedTuple):
    """A compressed stream with one or more files.

    Attributes:
        method: Compression method.
        properties: Settings of the method.
        start: Offset of the stream in the file.
        packed: Compressed size in bytes.
        size: Decompressed size in bytes.
        crc: CRC-32 of the decompressed bytes; None if the archive does not contain it.
    """

    method: bytes
    properties: bytes
    start: int
    packed: int
    size: int
    crc: int | None = None


class _Cursor:
    """The bytes of a header, read from start to end."""

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self._data, self._at = data, 0

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        if size > len(self._data) - self._at:
            self.fail("its list of members ends too early")
        self._at += size
        return self._data[self._at - size : self._at]

    def rest(self) -> bytes:
        """Return all bytes that are left."""
        return self.take(len(self._data) - self._at)

    def number(self) -> int:
        """Read a number: the leading ones of its first byte count the bytes that follow."""
        first = self.take(1)[0]
        following = 8 - (first ^ 0xFF).bit_length()
        low = int.from_bytes(self.take(following), "little")
        return low | (first & (0x7F >> following)) << 8 * following

    def count(self, most: int = _MOST_FILES) -> int:
        """Read a number of files, blocks, methods or streams."""
        number = self.number()
        if number > most:
            problem = f"is {KIND} with {number:,} files, blocks or methods, more than {most:,}"
            raise ArchiveError(self.name, problem, advice=UNPACK)
        return number

    def bits(self, size: int) -> list[bool]:
        """Read a bit for each of several things."""
        data = self.take((size + 7) // 8)
        return [bool(data[at >> 3] & 0x80 >> (at & 7)) for at in range(size)]

    def crcs(self, size: int) -> list[int | None]:
        """Read the checksums of several things, which may lack one."""
        defined = [True] * size if self.take(1)[0] else self.bits(size)
        return [int.from_bytes(self.take(4), "little") if has else None for has in defined]

    def has(self, kind: int) -> bool:
        """Whether a property of this kind follows; if so, its number is read."""
        if self._data[self._at : self._at + 1] != bytes([kind]):
            return False
        self._at += 1
        return True

    def expect(self, expected: int) -> None:
        """Read a number that can have only one value."""
        if (number := self.number()) != expected:
            self.fail(f"its list of members has {number} where {expected} belongs")

    def fail(self, reason: str) -> NoReturn:
        """Raise an error for a damaged archive."""
        raise _damaged(self.name, reason)


def read_header(
    name: str, file: BinaryIO, decompress: Callable[[SolidBlock], Parts]
) -> tuple[list[SolidBlock], list[Entry]]:
    """Read the header of an archive.

    Args:
        name: Name of the archive, for messages.
        file: The open file.
        decompress: Decompresses a block, for a header that is compressed itself.

    Returns:
        The blocks, and the files with their positions in the blocks.

    Raises:
        ArchiveError: The header is damaged or encrypted, or in a form that so2docs does not read.
        TruncatedDumpError: The file ends before the end of the header.
    """
    file_size = file.seek(0, os.SEEK_END)
    start = _read_at(name, file, 0, _START.size)
    _, major, _, start_crc, offset, size, crc = _START.unpack(start)
    if crc32(start[12:]) != start_crc:
        raise _damaged(name, "the checksum of its start is wrong")
    if major:
        raise ArchiveError(name, f"is {KIND} of version {major}", advice=UNPACK)
    if _START.size + offset + size > file_size:
        raise _cut_off(name, file_size, _START.size + offset + size)
    if not size:
        return [], []
    _check_size(name, size)
    cursor = _check_crc(name, _read_at(name, file, _START.size + offset, size), crc)
    kind = cursor.number()
    if kind == _ENCODED_HEADER:
        blocks, _ = _read_streams(cursor, file_size)
        if len(blocks) != 1:
            raise _damaged(name, "it has no list of members")
        _check_size(name, blocks[0].size)
        data = _read_exactly(name, decompress(blocks[0]), blocks[0].size)
        cursor = _check_crc(name, data, blocks[0].crc)
        kind = cursor.number()
    if kind != _HEADER:
        raise _damaged(name, "it has no list of members")
    # The properties are in a fixed order.
    blocks, members = _read_streams(cursor, file_size) if cursor.has(_MAIN_STREAMS) else ([], [])
    entries = _read_files(cursor, members) if cursor.has(_FILES) else []
    cursor.expect(_END)
    return blocks, entries


def _check_crc(name: str, data: bytes, crc: int | None) -> _Cursor:
    if crc is not None and crc32(data) != crc:
        raise _damaged(name, "the checksum of its list of members is wrong")
    return _Cursor(name, data)


def _damaged(name: str, reason: str) -> ArchiveError:
    return ArchiveError(name, f"is {KIND} that is damaged ({reason})", advice="download it again")


def _cut_off(name: str, file_size: int, size: int) -> ArchiveError | TruncatedDumpError:
    if re.search(r"\.\d{3}$", name):
        problem = f"is one of several volumes of {KIND}"
        return ArchiveError(name, problem, advice="join them: cat NAME.7z.* > NAME.7z")
    return TruncatedDumpError(
        name,
        f"is {KIND} that is truncated: it has {file_size:,} of {size:,} bytes",
        advice="download it again, or the missing part",
    )


def _check_size(name: str, size: int) -> None:
    if size > _MOST_HEADER:
        problem = f"is {KIND} with a list of members of more than {_MOST_HEADER >> 20} MiB"
        raise ArchiveError(name, problem, advice=UNPACK)


def _read_at(name: str, file: BinaryIO, start: int, size: int) -> bytes:
    file.seek(start)
    return _read_exactly(name, read_blocks(read_range(file, size)), size)


def _read_exactly(name: str, parts: Parts, size: int) -> bytes:
    with closing(Stream(parts, name, KIND)) as stream:
        data = stream.peek(size)[:size]
    if len(data) < size:
        raise _damaged(name, "its list of members ends too early")
    return data


def _read_streams(cursor: _Cursor, file_size: int) -> tuple[list[SolidBlock], list[Entry]]:
    """Read the blocks, and the files in them, which do not have names yet."""
    start, packed = _START.size, list[int]()
    if cursor.has(_PACK_INFO):
        start += cursor.number()
        count = cursor.count()
        if cursor.has(_SIZE):
            packed = [cursor.number() for _ in range(count)]
        if cursor.has(_CRC):
            cursor.crcs(count)
        cursor.expect(_END)
        if start + sum(packed) > file_size:
            cursor.fail(f"it has {file_size:,} bytes, and its blocks have more")
    blocks = _read_blocks(cursor, start, packed) if cursor.has(_UNPACK_INFO) else []
    if cursor.has(_SUBSTREAMS_INFO):
        members = _read_substreams(cursor, blocks)
    else:
        members = [Entry("", block.size, at, 0, block.crc) for at, block in enumerate(blocks)]
    cursor.expect(_END)
    return blocks, members


def _read_blocks(cursor: _Cursor, start: int, packed: list[int]) -> list[SolidBlock]:
    cursor.expect(_FOLDER)
    count = cursor.count()
    cursor.expect(0)  # Not in another stream.
    methods = [_read_method(cursor) for _ in range(count)]
    cursor.expect(_UNPACK_SIZES)
    sizes = [cursor.number() for _ in methods]
    if len(packed) < count or max(sizes, default=0) >= 1 << 63:
        cursor.fail("the sizes of its blocks are wrong")
    crcs = cursor.crcs(count) if cursor.has(_CRC) else [None] * count
    cursor.expect(_END)
    blocks = []
    for method, packed_size, size, crc in zip(methods, packed, sizes, crcs, strict=False):
        blocks.append(SolidBlock(*method, start, packed_size, size, crc))
        start += packed_size
    return blocks


def _read_method(cursor: _Cursor) -> tuple[bytes, bytes]:
    """Read the method of a block with its settings; blocks with several methods are refused."""
    methods, is_simple = [], True
    properties = b""
    for _ in range(cursor.count(_MOST_METHODS)):
        flags = cursor.take(1)[0]
        methods.append(cursor.take(flags & 0x0F))
        if flags & 0xC0:
            cursor.fail("a block has a method in an unknown form")
        if flags & 0x10:
            is_simple = (cursor.number(), cursor.number()) == (1, 1)
        properties = cursor.take(cursor.number()) if flags & 0x20 else b""
    if any(method.startswith(_ENCRYPTED) for method in methods):
        problem, advice = "is encrypted", f"{UNPACK}, with its password"
        raise ArchiveError(cursor.name, problem, advice=advice)
    if len(methods) != 1 or not is_simple:
        raise unsupported(cursor.name)
    return methods[0], properties


def unsupported(name: str) -> ArchiveError:
    """Make the error for a block that is compressed with another method or with filters."""
    problem = "is not compressed with LZMA2, LZMA or bzip2 alone"
    return ArchiveError(name, problem, advice=UNPACK)


def _read_substreams(cursor: _Cursor, blocks: list[SolidBlock]) -> list[Entry]:
    """Read the sizes and the checksums of the files in the blocks."""
    counts = [1] * len(blocks)
    if cursor.has(_STREAM_COUNTS):
        counts = [cursor.count() for _ in blocks]
    if sum(counts) > _MOST_FILES:
        cursor.fail("it has too many members")
    has_sizes = cursor.has(_SIZE)
    members: list[Entry] = []
    for number, (block, files) in enumerate(zip(blocks, counts, strict=True)):
        offset = 0
        for left in reversed(range(files)):
            if left and not has_sizes:
                cursor.fail("the sizes of its members are missing")
            size = cursor.number() if left else block.size - offset
            members.append(Entry("", size, number, offset, block.crc if files == 1 else None))
            offset += size
            if offset > block.size:
                cursor.fail("its members are larger than its blocks")
    if cursor.has(_CRC):
        unknown = [at for at, member in enumerate(members) if member.crc is None]
        for at, crc in zip(unknown, cursor.crcs(len(unknown)), strict=True):
            members[at] = replace(members[at], crc=crc)
    cursor.expect(_END)
    return members


def _read_files(cursor: _Cursor, members: list[Entry]) -> list[Entry]:
    """Read the names of the files, and match the files that have bytes with the blocks."""
    size = cursor.count()
    properties: dict[int, _Cursor] = {}
    while (kind := cursor.number()) != _END:
        properties[kind] = _Cursor(cursor.name, cursor.take(cursor.number()))
    empty, files = [False] * size, [False] * size
    if stored := properties.get(_EMPTY_STREAMS):
        empty = stored.bits(size)
    if stored := properties.get(_EMPTY_FILES):
        files = stored.bits(sum(empty))
    # A file that was compressed from standard input may have no name; 7-Zip names it as follows.
    names = [PurePath(cursor.name).stem] * size
    if stored := properties.get(_NAMES):
        stored.expect(0)  # Not in another stream.
        names = stored.rest().decode("utf-16-le", "replace").split("\0", size)[:-1]
    if len(names) != size or empty.count(False) != len(members):
        cursor.fail("its names and its members differ in number")
    entries: list[Entry] = []
    with_bytes, without_bytes = iter(members), iter(files)
    for name, is_empty in zip(names, empty, strict=True):
        if not is_empty:
            entries.append(replace(next(with_bytes), name=name))
        elif next(without_bytes):  # Otherwise, it is a folder.
            entries.append(Entry(name, 0))
    return entries
