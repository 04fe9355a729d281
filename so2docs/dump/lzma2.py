"""Decompress the independent blocks of LZMA2 in parallel.

7-Zip writes such blocks when it compresses with several threads: a block starts where a chunk
resets the dictionary. Chunk headers contain the sizes, so blocks can be found or skipped without
decompression. The bytes of a block wait where they were decoded until it is the block's turn, those
of a large block in a temporary file.

The compiled core decodes one and a half times as fast as the standard library. Blocks that it
refuses are decompressed again by the library, which alone decides whether data is damaged.

A single thread decompresses a stream of one block, and the rest of any stream from the first block
that is damaged, truncated or too large. Errors therefore do not depend on the number of threads.

Format: lzma2_decoder.c of XZ Utils, https://github.com/tukaani-project/xz
"""

from __future__ import annotations

import mmap
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import BinaryIO, NamedTuple

from so2docs.dump.compressed import Decompressor, decompress_streams
from so2docs.dump.layers import BLOCK_BYTES, Parts, Read, skip
from so2docs.parse.core import choose_core, compiled

ReadAt = Callable[[int, int], bytes]
"""Function that reads n bytes at an offset, fewer at the end of the stream."""

_DICTIONARIES = 64 * 1024 * 1024
"""Maximum memory for the dictionaries of all threads, in bytes."""

_MOST_IN_MEMORY = 48 * 1024 * 1024
"""Maximum size of the decompressed blocks that wait in memory; the others wait in temporary
files."""

_LEAST_UNPACKED = 1024 * 1024
"""Minimum decompressed size of a block; smaller blocks are joined: each takes a task and a file."""

_MOST_PACKED, _MOST_UNPACKED = 256 * 1024 * 1024, 1024 * 1024 * 1024
"""Maximum compressed and decompressed size of a block to decompress into a temporary file."""

_MORE_THAN_DICTIONARY = 4 * 1024 * 1024 + 128
"""Size of the core's window for a stream of any length, without the dictionary."""

_MORE_THAN_BLOCK = 4096
"""Size of the core's window for a whole block, without the block."""

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
        if at > size or at - start > _MOST_PACKED or length > _MOST_UNPACKED:
            return


@dataclass(frozen=True, slots=True)
class Method:
    """How to decompress a stream.

    Attributes:
        new: Makes a decompressor of the standard library.
        dictionary: Size of the dictionary in bytes.
    """

    new: Callable[[], Decompressor]
    dictionary: int

    def decompress(self, start: Callable[[], Read], window: mmap.mmap | None = None) -> Parts:
        """Decompress a stream, or one block and an end marker.

        Args:
            start: Returns a function that reads the stream from its start.
            window: Memory from `allocate`, for all bytes of the stream, which keeps them. By
                default, a part is valid only until the next part is taken.

        Raises:
            EOFError: The stream is truncated.
            lzma.LZMAError: The stream is damaged.
        """
        done = 0
        if choose_core("auto") == "compiled":
            window = window or allocate(self.dictionary + _MORE_THAN_DICTIONARY)
            try:
                for part in _decode_by_core(start(), self.dictionary, window):
                    done += len(part)
                    yield part
            except _RefusedError:
                pass
            else:
                return
        yield from skip(decompress_streams(start(), self.new), done)


def allocate(size: int) -> mmap.mmap:
    """Allocate memory that is read in no order, in huge pages where the system has them."""
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return mmap.mmap(-1, size)
    memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # Shared pages are small.
    with suppress(OSError):  # The system may have no huge pages.
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


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


class _Decoding:
    """A block that a thread decompresses ahead of its reader.

    The decompressed bytes wait in memory, and in a temporary file if there are more than `most`.
    Once the block is read, the thread waits for the reader instead. A block that takes no more
    memory as a whole stays in the window in which it was decoded. A later block reuses the window,
    because memory that is new to the process takes longer to write.
    """

    def __init__(
        self,
        block: Block,
        *,
        read_at: ReadAt,
        method: Method,
        most: int,
        windows: list[mmap.mmap],
        work_dir: str | None,
    ) -> None:
        self._block, self._read_at, self._method = block, read_at, method
        self._most, self._work_dir = most, work_dir
        self._windows = windows
        self._window: mmap.mmap | None = None
        largest = most + method.dictionary + _MORE_THAN_DICTIONARY
        if block.length <= largest:
            self._most = block.length
            self._window = windows.pop() if windows else allocate(largest + _MORE_THAN_BLOCK)
        # Parts, and the sizes of those in the file.
        self._waiting = deque[bytes | memoryview | int]()
        self._file: BinaryIO | None = None
        self._in_memory = self._in_file = self._read_from_file = 0
        self._changed = threading.Condition()
        self._is_read = self._is_stopped = False
        self._end: Exception | None = None

    def run(self) -> None:
        """Decompress the block; `parts` raises any error after the bytes before the error."""
        block = self._block
        # Add the end marker, since only the last block has one.
        start = partial(_reader, self._read_at, block.start, block.start + block.size, b"\0")
        try:
            for part in self._method.decompress(start, self._window):
                if not self._add(bytes(part) if self._window is None else part):
                    return
            end: Exception = StopIteration()
        except Exception as error:
            end = error
        with self._changed:
            self._end = end
            self._changed.notify()

    def _add(self, part: bytes | memoryview) -> bool:
        """Keep a part for the reader; return False if the block is not needed any more."""
        with self._changed:
            while self._is_read and self._in_memory >= self._most and self._waiting:
                self._changed.wait()
            if self._is_stopped:
                return False
            if self._in_memory < self._most:
                self._in_memory += len(part)
                self._waiting.append(part)
            else:
                self._write(part)
                self._waiting.append(len(part))
            self._changed.notify()
            return True

    def _write(self, part: bytes | memoryview) -> None:
        if self._file is None:
            import tempfile

            self._file = tempfile.TemporaryFile(dir=self._work_dir)  # noqa: SIM115
        self._file.seek(self._in_file)
        self._file.write(part)
        self._in_file += len(part)

    def parts(self) -> Parts:
        """Yield the bytes of the block, as the thread decompresses them."""
        self._is_read = True
        while (part := self._next()) is not None:
            yield part
        if not isinstance(self._end, StopIteration):
            assert self._end is not None
            raise self._end

    def _next(self) -> bytes | memoryview | None:
        """Wait for the next part, and return it; None at the end."""
        with self._changed:
            while not self._waiting and self._end is None:
                self._changed.wait()
            if not self._waiting:
                return None
            part = self._waiting.popleft()
            self._changed.notify()
            if isinstance(part, int):
                assert self._file is not None
                self._file.seek(self._read_from_file)
                self._read_from_file += part
                return self._file.read(part)
            self._in_memory -= len(part)
            return part

    def close(self) -> None:
        """Stop the thread at its next step, and remove the file."""
        with self._changed:
            if self._window is not None and self._end is not None:
                self._windows.append(self._window)
            self._is_stopped = True
            self._waiting.clear()
            self._changed.notify()
            if self._file is not None:
                self._file.close()


def decompress_blocks(
    read_at: ReadAt,
    size: int,
    method: Method,
    threads: int,
    is_wanted: Callable[[int, int], bool],
    *,
    work_dir: str | None,
) -> Parts:
    """Decompress an LZMA2 stream, several blocks at a time.

    Args:
        read_at: Reads the stream; called by several threads.
        size: Size of the stream in bytes.
        method: How to decompress the stream.
        threads: Number of decompression threads; fewer if they would take too much memory.
        is_wanted: Returns whether any byte between two offsets in the decompressed stream is
            needed. A block without needed bytes is skipped: zeros replace its bytes.
        work_dir: Folder for temporary files; the system's temporary folder if None.

    Yields:
        The decompressed bytes.

    Raises:
        EOFError: The stream is truncated.
        lzma.LZMAError: The stream is damaged.
    """
    blocks = find_blocks(read_at, size)
    first = list(islice(blocks, 2))
    end = 0
    if len(first) > 1:
        threads = min(threads, max(1, _DICTIONARIES // method.dictionary))
        most = _MOST_IN_MEMORY // (threads + 1)
        new = partial(_Decoding, read_at=read_at, method=method, most=most, work_dir=work_dir)
        start = partial(new, windows=[])
        for block, parts in _decode(chain(first, blocks), threads, is_wanted, start):
            yield from parts
            end = block.start + block.size
    if end < size or not end:
        yield from method.decompress(partial(_reader, read_at, end, size))


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
