"""Read members of 7z archives.

bzip2, in which Stack Exchange's archives are compressed, and the default LZMA2 are decompressed in
several threads, other methods in one.

Format: Methods.txt of the LZMA SDK, https://7-zip.org/sdk.html
"""

from __future__ import annotations

import io
import threading
from functools import partial
from typing import BinaryIO

from so2docs.dump.archives import Archive, Wanted
from so2docs.dump.bzip2 import decompress_bzip2
from so2docs.dump.compressed import (
    Parts,
    Read,
    decompress_streams,
    lzma_settings,
    raw_lzma,
    read_blocks,
    read_range,
)
from so2docs.dump.lzma2 import Lzma2Stream, Method
from so2docs.dump.seven_zip_header import (
    BZIP2,
    KIND,
    LZMA,
    LZMA2,
    STORED,
    SolidBlock,
    read_header,
    unsupported,
)


class SevenZip(Archive):
    """A 7z archive."""

    kind = KIND

    def __init__(self, name: str, file: BinaryIO) -> None:
        self._blocks, entries = read_header(name, file, partial(_decompress, name, file))
        super().__init__(name, file, entries)

    def open_block(self, number: int, wanted: Wanted, threads: int, work_dir: str | None) -> Parts:
        """Decompress a block."""
        block = self._blocks[number]
        # Remote files are read once, in order, so decompress them as one stream.
        is_local = isinstance(self.file, io.FileIO | io.BufferedIOBase)
        if block.method == LZMA2 and is_local:
            stream = Lzma2Stream(
                partial(self._read_at, threading.Lock(), block),
                block.packed,
                _lzma2_method(self.name, block),
                work_dir,
            )
            return stream.decompress(threads, wanted)
        return _decompress(self.name, self.file, block, threads)

    def _read_at(self, lock: threading.Lock, block: SolidBlock, length: int, offset: int) -> bytes:
        """Read n bytes of a packed block at an offset."""
        with lock:
            self.file.seek(block.start + offset)
            return self.file.read(min(length, block.packed - offset))


def _lzma2_method(name: str, block: SolidBlock) -> Method:
    settings = lzma_settings(name, block.properties, block.size, is_lzma2=True)
    return Method(raw_lzma(settings), settings["dict_size"])


def _decompress(name: str, file: BinaryIO, block: SolidBlock, threads: int = 1) -> Parts:
    """Decompress a block from its start.

    Raises:
        ArchiveError: The block is compressed with a method that is not supported.
    """

    def start() -> Read:
        file.seek(block.start)
        return read_range(file, block.packed)

    if block.method == LZMA2:
        parts = _lzma2_method(name, block).decompress(start)
    elif block.method == LZMA:
        settings = lzma_settings(name, block.properties, block.size)
        parts = decompress_streams(start(), raw_lzma(settings))
    elif block.method == BZIP2:
        parts = decompress_bzip2(start(), threads)
    elif block.method == STORED:
        parts = read_blocks(start())
    else:
        raise unsupported(name)
    left = block.size  # LZMA does not mark its end.
    while left:
        if not (part := next(parts, b"")[:left]):
            raise EOFError
        left -= len(part)
        yield part
