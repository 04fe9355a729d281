"""Decompress the independent blocks of LZMA2 in parallel.

7-Zip writes such blocks when it compresses with several threads: a block starts where a chunk
resets the dictionary. Chunk headers contain the sizes, so blocks can be found or skipped without
decompression. The bytes of a block wait in a temporary file until it is the block's turn.

The compiled core decodes one and a half times as fast as the standard library. Blocks that it
refuses are decompressed again by the library, which alone decides whether data is damaged.

The rest of a stream from the first block that is truncated or too large is decompressed as one
block. Errors therefore do not depend on the number of threads.

Format: lzma2_decoder.c of XZ Utils, https://github.com/tukaani-project/xz
"""

from __future__ import annotations

import mmap
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, BinaryIO, NamedTuple

from so2docs.dump.archives import Wanted
from so2docs.dump.compressed import BLOCK_BYTES, Parts, Read, decompress_streams, read_blocks
from so2docs.parse.core import choose_core, compiled

ReadAt = Callable[[int, int], bytes]
"""Thread-safe function that reads n bytes at an offset, fewer at the end of the stream."""

_DICTIONARIES = 64 * 1024 * 1024
"""Maximum memory for the dictionaries of several threads, in bytes."""

_LEAST_UNPACKED = 1024 * 1024
"""Minimum decompressed size of a block; smaller blocks are joined, because each takes a task."""

_MOST_UNPACKED = 1024 * 1024 * 1024
"""Maximum decompressed size of a block, which may wait in a temporary file."""

_MORE_THAN_DICTIONARY = 4 * 1024 * 1024 + 128
"""Size of the core's window, without the dictionary."""

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

    @property
    def end(self) -> int:
        """Offset after the last byte in the decompressed stream."""
        return self.offset + self.length


def find_blocks(read_at: ReadAt, size: int) -> Iterator[Block]:
    """Find blocks from the headers of chunks, up to the end or the first invalid block."""
    offset = start = length = at = 0
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
        if at > size or length > _MOST_UNPACKED:
            return


@dataclass(frozen=True, slots=True)
class Method:
    """How to decompress a stream.

    Attributes:
        new: Makes a decompressor of the standard library.
        dictionary: Size of the dictionary in bytes.
    """

    new: Callable[[], Any]
    dictionary: int

    def allocate(self) -> mmap.mmap:
        """Allocate memory that is read in no order, in huge pages where the system has them."""
        size = self.dictionary + _MORE_THAN_DICTIONARY
        if not hasattr(mmap, "MADV_HUGEPAGE"):
            return mmap.mmap(-1, size)
        memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # Shared: small pages.
        with suppress(OSError):  # The system may have no huge pages.
            memory.madvise(mmap.MADV_HUGEPAGE)
        return memory

    def decompress(self, start: Callable[[], Read], window: mmap.mmap | None = None) -> Parts:
        """Decompress a stream, or one block and an end marker.

        Args:
            start: Returns a function that reads the stream from its start.
            window: Memory from `allocate`. A part is valid only until the next part is taken.

        Raises:
            EOFError: The stream is truncated.
            lzma.LZMAError: The stream is damaged.
        """
        done = 0
        if choose_core("auto") == "compiled":
            window = window or self.allocate()
            try:
                for part in _decode_by_core(start(), self.dictionary, window):
                    done += len(part)
                    yield part
            except _RefusedError:
                pass
            else:
                return
        for part in decompress_streams(start(), self.new):
            if done < len(part):
                yield memoryview(part)[done:]
            done = max(0, done - len(part))


class _RefusedError(Exception):
    """The compiled core does not decode a stream: it is damaged, truncated or unusual."""


def _decode_by_core(read: Read, dictionary: int, window: mmap.mmap) -> Parts:
    """Decode a stream with the compiled core; the parts are those of the window."""
    memory, view = compiled.new_lzma2(dictionary, window), memoryview(window)
    data, at, is_ended = read(BLOCK_BYTES), 0, False
    while True:
        end = compiled.decode_lzma2(memory, data, at)
        if end is None:
            raise _RefusedError
        if end == at:
            if not (more := read(BLOCK_BYTES)):
                break
            data, at = data[at:] + more, 0
            continue
        is_ended = data[at] == _END
        at = end
        first, last = compiled.read_lzma2(memory)
        if first < last:
            yield view[first:last]
    if not is_ended or at < len(data):
        raise _RefusedError


@dataclass(frozen=True, slots=True)
class Lzma2Stream:
    """A stream of LZMA2.

    Attributes:
        read_at: Reads the stream.
        size: Size of the stream in bytes.
        method: How to decompress it.
        work_dir: Folder for temporary files; the system's temporary folder if None.
    """

    read_at: ReadAt
    size: int
    method: Method
    work_dir: str | None = None

    def decompress(self, threads: int, wanted: Wanted) -> Parts:
        """Yield the decompressed bytes; blocks before the wanted bytes are skipped as zeros.

        Args:
            threads: Number of decompression threads. If the dictionaries of two threads are too
                large, the caller's thread decompresses one block after the other.
            wanted: The range to read, which the caller may move before it takes the next part.

        Raises:
            EOFError: The stream is truncated.
            lzma.LZMAError: The stream is damaged.
        """
        threads = min(threads, _DICTIONARIES // self.method.dictionary)
        blocks, end = find_blocks(self.read_at, self.size), 0
        first = list(islice(blocks, 2))
        decoded: Generator[tuple[Block, Parts], None, None] = (
            (block, _zeros(block) if wanted.start >= block.end else self._decompress(block))
            for block in chain(first, blocks)
        )
        if threads > 1 and len(first) > 1:
            decoded = self._decode_ahead(chain(first, blocks), threads, wanted)
        with closing(decoded):  # Here: a thread of the pool cannot wait for the end of the pool.
            for block, parts in decoded:
                yield from parts
                end = block.start + block.size
        if end < self.size or not end:
            yield from self.method.decompress(partial(self._reader, end, self.size))

    def _decode_ahead(
        self, blocks: Iterator[Block], threads: int, wanted: Wanted
    ) -> Generator[tuple[Block, Parts], None, None]:
        """Yield all blocks with their bytes, in order, while threads decompress the next blocks."""
        free: list[tuple[mmap.mmap, BinaryIO]] = []
        waiting: deque[tuple[Block, Parts]] = deque()
        stopped = threading.Event()
        block = next(blocks, None)

        def save(block: Block, window: mmap.mmap, file: BinaryIO) -> None:
            """Decompress a block to a file; raise any error after the bytes before it."""
            file.seek(0)
            try:
                for part in self._decompress(block, window):
                    if stopped.is_set():
                        break
                    file.write(part)
            finally:
                file.truncate()

        def start(block: Block) -> Parts:
            if not free:
                # A later block reuses both: memory that is new to the process is slower to write.
                new = resources.enter_context(tempfile.TemporaryFile(dir=self.work_dir))  # noqa: SIM115
                free.append((self.method.allocate(), new))
            window, file = free.pop()
            return read(pool.submit(save, block, window, file), window, file)

        def read(saved: Future[None], window: mmap.mmap, file: BinaryIO) -> Parts:
            wait([saved])
            file.seek(0)
            yield from read_blocks(file.read)
            free.append((window, file))
            saved.result()

        with ExitStack() as resources, ThreadPoolExecutor(threads, "so2docs-lzma2") as pool:
            try:
                while block or waiting:
                    while block and (
                        not waiting or (len(waiting) <= threads and block.offset < wanted.end)
                    ):
                        is_wanted = wanted.start < block.end
                        waiting.append((block, start(block) if is_wanted else _zeros(block)))
                        block = next(blocks, None)
                    yield waiting[0]
                    waiting.popleft()
            finally:
                stopped.set()

    def _decompress(self, block: Block, window: mmap.mmap | None = None) -> Parts:
        # Add the end marker, since only the last block has one.
        start = partial(self._reader, block.start, block.start + block.size, b"\0")
        return self.method.decompress(start, window)

    def _reader(self, at: int, stop: int, ending: bytes = b"") -> Read:
        """Return a function that reads a part of the stream, followed by `ending`."""

        def read(size: int, /) -> bytes:
            nonlocal at, ending
            if at < stop:
                data = self.read_at(min(size, stop - at), at)
                at += len(data)
            else:
                data, ending = ending, b""
            return data

        return read


def _zeros(block: Block) -> Parts:
    for at in range(0, block.length, len(_SKIPPED)):
        yield _SKIPPED[: block.length - at]
