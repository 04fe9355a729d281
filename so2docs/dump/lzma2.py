"""Decompress the independent blocks of LZMA2 in parallel.

7-Zip writes such blocks when it compresses with several threads: a block starts where a chunk
resets the dictionary. Chunk headers contain the sizes, so blocks can be found or skipped without
decompression. Each thread writes its block to a temporary file, which is read when it is
the block's turn, even if the file is still growing.

A single thread decompresses a stream of one block, and the rest of any stream from the first block
that is damaged, truncated or too large. Errors therefore do not depend on the
number of threads.

Format: lzma2_decoder.c of XZ Utils, https://github.com/tukaani-project/xz
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, islice
from typing import NamedTuple

from so2docs.dump.compressed import Decompressor, decompress_streams
from so2docs.dump.layers import BLOCK_BYTES, START, Mark, Parts, Place, Read

ReadAt = Callable[[int, int], bytes]
"""Function that reads n bytes at an offset, fewer at the end of the stream."""

_DICTIONARIES = 64 * 1024 * 1024
"""Maximum memory for the dictionaries of all threads, in bytes."""

_LEAST_UNPACKED = 1024 * 1024
"""Minimum decompressed size of a block; smaller blocks are joined: each takes a task and a file."""

_MOST_PACKED, _MOST_UNPACKED = 256 * 1024 * 1024, 1024 * 1024 * 1024
"""Maximum compressed and decompressed size of a block to decompress into a temporary file."""

_MOST_AHEAD = 64
_HEADER_BYTES = 6
_END, _STORED_WITH_RESET, _STORED, _COMPRESSED, _WITH_RESET = 0, 1, 2, 0x80, 0xE0
_SKIPPED = bytes(1024 * 1024)


class Block(NamedTuple):
    """The LZMA2 chunks from one reset of the dictionary to a later reset.

    Attributes:
        start: Offset of the first chunk in the stream.
        size: Size of the chunks in bytes, including the stream's end marker in the last block.
        offset: Offset of the first byte in the decompressed stream.
        length: Decompressed size in bytes.
    """

    start: int
    size: int
    offset: int
    length: int


def find_blocks(read_at: ReadAt, size: int, place: Place = START) -> Iterator[Block]:
    """Find blocks from the headers of chunks, up to the end or the first invalid block."""
    offset, start, length = place.offset, place.packed, 0
    at = start
    while at < size:
        header = read_at(_HEADER_BYTES, at).ljust(_HEADER_BYTES, b"\xff")
        control = header[0]
        resets = control == _STORED_WITH_RESET or control >= _WITH_RESET
        if control == _END:
            yield Block(start, at + 1 - start, offset, length)
            return
        if resets and length >= _LEAST_UNPACKED:
            yield Block(start, at - start, offset, length)
            start, offset, length = at, offset + length, 0
        if _STORED < control < _COMPRESSED or not (length or resets):
            return
        unpacked = int.from_bytes(header[1:3], "big") + 1
        if control >= _COMPRESSED:
            unpacked += (control & 0x1F) << 16
            at += 5 + (control >= 0xC0) + int.from_bytes(header[3:5], "big") + 1
        else:
            at += 3 + unpacked
        length += unpacked
        if at > size or at - start > _MOST_PACKED or length > _MOST_UNPACKED:
            return


class _Decoding:
    """A block that a thread decompresses into a temporary file."""

    def __init__(
        self, block: Block, read_at: ReadAt, new: Callable[[], Decompressor], work_dir: str | None
    ) -> None:
        self._block, self._read_at, self._new = block, read_at, new
        import tempfile

        self._file = tempfile.TemporaryFile(dir=work_dir)  # noqa: SIM115
        self._changed = threading.Condition()
        self._written, self._is_stopped = 0, False
        self._end: Exception | None = None

    def run(self) -> None:
        """Decompress the block; `parts` raises any error after the bytes before the error."""
        try:
            block = self._block
            # Add the end marker, since only the last block has one.
            read = _reader(self._read_at, block.start, block.start + block.size, b"\0")
            for part in decompress_streams(read, self._new):
                with self._changed:
                    if self._is_stopped:
                        return
                    self._file.seek(self._written)
                    self._file.write(part)
                    self._written += len(part)
                    self._changed.notify()
            end: Exception = StopIteration()
        except Exception as error:
            end = error
        with self._changed:
            self._end = end
            self._changed.notify()

    def parts(self) -> Parts:
        """Yield the bytes of the block, as the thread writes them."""
        at = 0
        while True:
            with self._changed:
                while self._written == at and self._end is None:
                    self._changed.wait()
                if self._written == at:
                    break
                self._file.seek(at)
                part = self._file.read(min(BLOCK_BYTES, self._written - at))
            at += len(part)
            yield part
        if not isinstance(self._end, StopIteration):
            assert self._end is not None
            raise self._end

    def close(self) -> None:
        """Stop the thread at its next step, and remove the file."""
        with self._changed:
            self._is_stopped = True
            self._file.close()


def decompress_blocks(
    read_at: ReadAt,
    size: int,
    new: Callable[[], Decompressor],
    threads: int,
    is_wanted: Callable[[int, int], bool],
    *,
    place: Place = START,
    mark: Mark = lambda _: None,
    dictionary: int,
    work_dir: str | None,
) -> Parts:
    """Decompress an LZMA2 stream, several blocks at a time.

    Args:
        read_at: Reads the stream; called by several threads.
        size: Size of the stream in bytes.
        new: Makes a decompressor.
        threads: Number of decompression threads; fewer if they would take too much memory.
        is_wanted: Returns whether any byte between two offsets in the decompressed stream is
            needed. A block without needed bytes is skipped: zeros replace its bytes.
        place: Start of the first block.
        mark: Called with the place of each block, if there are several.
        dictionary: Size of a decompressor's dictionary in bytes.
        work_dir: Folder for temporary files; the system's temporary folder if None.

    Yields:
        The decompressed bytes.

    Raises:
        EOFError: The stream is truncated.
        lzma.LZMAError: The stream is damaged.
    """
    blocks = find_blocks(read_at, size, place)
    first = list(islice(blocks, 2))
    end = place.packed
    if len(first) > 1:
        threads = min(threads, max(1, _DICTIONARIES // dictionary))
        start = partial(_Decoding, read_at=read_at, new=new, work_dir=work_dir)
        for block, parts in _decode(chain(first, blocks), threads, is_wanted, start):
            mark(Place(block.offset, block.start))
            yield from parts
            end = block.start + block.size
    if end < size or not end:
        yield from decompress_streams(_reader(read_at, end, size), new)


def _decode(
    blocks: Iterator[Block],
    threads: int,
    is_wanted: Callable[[int, int], bool],
    start: Callable[[Block], _Decoding],
) -> Iterator[tuple[Block, Parts]]:
    """Yield all blocks with their bytes, in order, while threads decompress the next blocks."""
    waiting: deque[tuple[Block, _Decoding | None]] = deque()
    with ThreadPoolExecutor(threads, "so2docs-lzma2") as pool:
        try:
            while True:
                ahead = sum(decoding is not None for _, decoding in waiting)
                while ahead <= threads and len(waiting) < _MOST_AHEAD:
                    block = next(blocks, None)
                    if block is None:
                        break
                    decoding = None
                    if is_wanted(block.offset, block.offset + block.length):
                        decoding = start(block)
                        pool.submit(decoding.run)
                        ahead += 1
                    waiting.append((block, decoding))
                if not waiting:
                    return
                block, decoding = waiting[0]
                yield block, _zeros(block.length) if decoding is None else decoding.parts()
                waiting.popleft()
                if decoding is not None:
                    decoding.close()
        finally:
            for _, decoding in waiting:
                if decoding is not None:
                    decoding.close()


def _reader(read_at: ReadAt, at: int, stop: int, ending: bytes = b"") -> Read:
    """Return a function that reads a part of the stream, followed by `ending`."""

    def read(size: int, /) -> bytes:
        nonlocal at, ending
        if at < stop:
            data = read_at(min(size, stop - at), at)
            at += len(data)
        else:
            data, ending = ending, b""
        return data

    return read


def _zeros(size: int) -> Parts:
    for at in range(0, size, len(_SKIPPED)):
        yield _SKIPPED[: size - at]
