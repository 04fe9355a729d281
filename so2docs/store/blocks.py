"""Blocks of posts in the files of chunks: the first pass writes them, the second reads them.

A worker appends to its own file, and can read any file; this module does not use the index. Each
block is checked when it is read, so a damaged disk never causes a wrong document.

A budget limits the uncompressed part of a spill to what the system's cache can hold. Compression
takes a quarter of the CPU time of a conversion, and most conversions do not need the disk space
that it saves.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from isal.isal_zlib import crc32

from so2docs.errors import SpillError, damaged_spill_error
from so2docs.limits import available_memory
from so2docs.store.disk import AppendedFile, open_files_limit, open_finished, read_at
from so2docs.zstd import CompressionParameter, ZstdError, decompress, frame_compressor

_LEVEL = 1
_ZSTD = {CompressionParameter.hash_log: 13, CompressionParameter.min_match: 7}
"""Level 1 with a hash table that fits in the L1 cache. It compresses real dumps to 0.28 to 0.34 of
their size and a generated one to 0.35; writing and reading take 3.5 to 3.9 s of CPU time per GB.
The default table gives 0.27 to 0.33, but takes 0.2 to 0.6 s more. Level -1 takes 0.2 s less, but
gives up to 0.46, above the promised limit of 0.4. LZ4 takes 0.6 of the time of level 1, but
gives 0.39 to 0.47; ISA-L's deflate takes nearly as long as level 1."""

_MOST_FILES = 200


class Block(NamedTuple):
    """The position of a block in the file of its chunk.

    Attributes:
        bucket: The bucket; None for stray lines, and for pairs of integers, which the maps between
            the passes are made from.
        offset: Bytes from the start of the file.
        keys_size: Bytes of the keys in the file.
        json_size: Bytes of the JSON in the file, after the keys.
        raw_size: Bytes of the JSON, uncompressed.
        crc: CRC-32 of the JSON in the file.
        keys_crc: CRC-32 of the keys, which are sometimes read without the JSON.
        packed: 1 if keys and JSON are compressed, else 0.
    """

    bucket: int | None
    offset: int
    keys_size: int
    json_size: int
    raw_size: int
    crc: int
    keys_crc: int
    packed: int


class BlockWriter(AbstractContextManager["BlockWriter"]):
    """Appends blocks to the file of a chunk.

    Args:
        path: Name of the file.
        room: Bytes that may be written uncompressed; the rest is compressed.
    """

    def __init__(self, path: str, room: int = 0) -> None:
        self.path = path
        self._file = AppendedFile(path)
        self._compress = frame_compressor(_LEVEL, _ZSTD)
        self._room = room
        self.blocks: list[Block] = []

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def write(self, bucket: int | None, keys: bytes | bytearray, json: bytes | bytearray) -> None:
        """Append a block of keys and JSON, compressed if it is larger than the remaining room."""
        size, raw_size = len(keys) + len(json), len(json)
        is_packed = size > self._room
        stored: tuple[bytes | bytearray, bytes | bytearray] = keys, json
        if is_packed:
            stored = self._compress(keys), self._compress(json)
        else:
            self._room -= size
        sizes, sums = map(len, stored), map(crc32, stored)
        keys_size, json_size = sizes
        keys_crc, crc = sums
        offset = self._file.size
        self.blocks.append(
            Block(bucket, offset, keys_size, json_size, raw_size, crc, keys_crc, int(is_packed))
        )
        for data in stored:
            self.append(data)

    def append(self, data: bytes | bytearray) -> int:
        """Append bytes that belong to no block, unchanged; return their offset."""
        return self._file.write(data)


class BlockReader(AbstractContextManager["BlockReader"]):
    """Reads blocks in the worker that merges them, and keeps the files open."""

    def __init__(self) -> None:
        self._most_files = max(1, min(_MOST_FILES, open_files_limit() // 4))
        self._files: dict[str, int] = {}

    def __exit__(self, *exception: object) -> None:
        for file in self._files.values():
            os.close(file)
        self._files.clear()

    def read(self, path: str, block: Block) -> tuple[bytes, bytes]:
        """Read keys and JSON of a block.

        Raises:
            SpillError: The file is damaged.
        """
        # Read keys and JSON separately, so that neither is copied.
        keys = self.read_keys(path, block)
        json = self.bytes_at(path, block.offset + block.keys_size, block.json_size)
        if crc32(json) != block.crc:
            raise damage_error(path, block.offset)
        return keys, self._unpack(path, block, json)

    def read_keys(self, path: str, block: Block) -> bytes:
        """Read only the keys of a block; raises the same error as `read`."""
        keys = self.bytes_at(path, block.offset, block.keys_size)
        if crc32(keys) != block.keys_crc:
            raise damage_error(path, block.offset)
        return self._unpack(path, block, keys)

    def _unpack(self, path: str, block: Block, data: bytes) -> bytes:
        if not block.packed:
            return data
        try:
            return decompress(data)
        except ZstdError as error:  # The checksum did not detect the damage.
            raise damage_error(path, block.offset) from error

    def bytes_at(self, path: str, offset: int, size: int) -> bytes:
        """Read `size` bytes of a chunk's file; fewer at its end."""
        try:
            file = self._files.get(path)
            if file is None:
                if len(self._files) >= self._most_files:
                    os.close(self._files.pop(next(iter(self._files))))
                file = self._files[path] = open_finished(path)
            return read_at(file, size, offset)
        except OSError as error:
            raise damaged_spill_error(path, error.strerror) from error


def damage_error(path: str, offset: int) -> SpillError:
    """Make the error for a damaged file of the spill."""
    return damaged_spill_error(path, f"at byte {offset:,}")


@contextmanager
def check_blocks_match(blocks: list[tuple[str, Block]]) -> Iterator[None]:
    """Convert errors about keys that do not match the JSON to `SpillError`."""
    try:
        yield
    except (ValueError, struct.error) as error:
        folder = os.path.dirname(blocks[0][0])
        raise damaged_spill_error(folder, error) from error


_MEMORY_SHARE, _DISK_SHARE = 8, 2
"""Limits of the budget: an eighth of the available memory, and half of the spare disk.

A larger budget fills the system's cache, which also holds dump and output, so that writing waits
for the disk. With 24 GiB of memory, converting 20 GB took 224 s with half of the memory as the
budget, and 176 s with an eighth (3 GB)."""

_SMALL = 64 * 1024
"""Bytes granted to a chunk in addition to 1.25 times its size in the dump, for small chunks."""


def default_budget(spare_disk: int) -> int:
    """Return the default limit on the uncompressed bytes of a spill."""
    return max(0, min(available_memory() // _MEMORY_SHARE, spare_disk // _DISK_SHARE))


class Budget:
    """Divides the uncompressed bytes allowed in a spill among its chunks."""

    def __init__(self) -> None:
        self._left = 0
        self._granted: dict[int, int] = {}

    def allow(self, size: int) -> None:
        """Set the number of bytes that may still be written uncompressed."""
        self._left = max(0, size)

    def grant(self, chunk: int, size: int) -> int:
        """Reserve budget for a chunk; return the bytes that it may write uncompressed."""
        granted = min(self._left, size + size // 4 + _SMALL)
        self._left -= granted
        self._granted[chunk] = granted
        return granted

    def settle(self, chunk: int, blocks: Iterable[Block]) -> None:
        """Take back the budget that a chunk with these blocks did not use."""
        used = _uncompressed_bytes(blocks)
        self._left += self._granted.pop(chunk, used) - used

    def give_back(self, blocks: Iterable[Block]) -> None:
        """Take back the budget of removed blocks."""
        self._left += _uncompressed_bytes(blocks)


def _uncompressed_bytes(blocks: Iterable[Block]) -> int:
    return sum(block.keys_size + block.json_size for block in blocks if not block.packed)
