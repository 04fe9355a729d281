"""Decompress bzip2 in several threads; published archives used bzip2 until 2024-04.

Blocks (at most 900 kB before run lengths are expanded) are independent, but no index has their
positions: each block follows the last bit of the previous one. This module therefore searches at
every bit for the 48-bit number that starts a block, and decodes blocks ahead of time. If the number
occurs by chance within a block (once in 30,000 GB), the end of this block shows that no block
starts there.

The compiled core decodes a block at any bit, four times as fast as libbz2, and releases the GIL.
libbz2 tells whether a block that the core refuses is damaged or truncated. Without the core, libbz2
decompresses the stream in one thread.

Format: https://github.com/dsnet/compress/blob/master/doc/bzip2-format.pdf
"""

from __future__ import annotations

import re
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from so2docs.dump.compressed import BLOCK_BYTES, Parts, Read, decompress_streams, import_decoder
from so2docs.parse.core import choose_core, compiled

_MAGIC = b"BZh"
_HEADER = re.compile(b"BZh[1-9]")
_BLOCK = 0x314159265359
_END = 0x177245385090
_NUMBER_BITS = 48
_CRC_BITS = 32
_END_BITS = _NUMBER_BITS + _CRC_BITS
_HEADER_BYTES = 4
_MOST_BLOCK_BYTES = 4 * 1024 * 1024
"""Maximum compressed size of a block; bzip2 writes at most 0.91 MB, but the format allows more."""

_MOST_AT_ONCE = 1024 * 1024
"""Maximum bytes of a block decoded ahead of time; run lengths can expand a block to 46 MB."""


@dataclass(frozen=True, slots=True)
class _Decoded:
    """A decoded block.

    Attributes:
        end: Position of the bit after the block.
        crc: Checksum of the block.
        start: First bytes of the output.
        parts: The remaining bytes of the output.
    """

    end: int
    crc: int
    start: bytes | memoryview
    parts: Parts


class _Decoder:
    """Decodes blocks in any thread, and reuses the memory of earlier blocks."""

    def __init__(self) -> None:
        self._memories: list[object] = []

    def decode(self, data: bytes, start: int, level: int) -> _Decoded | None:
        """Decode the block at a bit of the data; None if it is incomplete or damaged.

        Raises:
            OSError: Its checksum is wrong, or it is randomized.
        """
        try:
            memory = self._memories.pop()
        except IndexError:
            memory = compiled.new_bzip2()
        block = compiled.decode_bzip2(memory, data, start, level)
        if block is None:
            self._memories.append(memory)
            return None
        end, crc, is_randomized = block
        if is_randomized:
            raise OSError("it has randomized blocks, as bzip2 wrote before version 0.9.5")
        parts = self._read(memory)
        return _Decoded(end, crc, next(parts), parts)

    def _read(self, memory: object) -> Parts:
        size = _MOST_AT_ONCE
        while size == _MOST_AT_ONCE:
            part = compiled.read_bzip2(memory, _MOST_AT_ONCE)
            size = len(part)
            if size < _MOST_AT_ONCE:
                self._memories.append(memory)
            yield part


def _read_bits(data: bytes | bytearray, start: int, count: int) -> int:
    """Read bits at a position as a number."""
    end = start + count
    value = int.from_bytes(data[start // 8 : -(-end // 8)], "big") >> (-end % 8)
    return value & ((1 << count) - 1)


def _check_by_library(data: bytes, start: int, level: int) -> None:
    """Raise OSError if data with a block at a bit is damaged, not merely truncated."""
    stream = import_decoder("bz2").BZ2Decompressor()
    count = 8 * len(data) - start
    bits = _read_bits(data, start, count) << (-count % 8)
    packed = _MAGIC + b"%d" % level + bits.to_bytes(-(-count // 8), "big")
    while stream.decompress(packed, _MOST_AT_ONCE) and not stream.eof:
        # Decompress until the stream needs input, since output and a checksum may be pending.
        packed = b""


class _Input:
    """Compressed bytes from the next block on; positions are in bits from the start of the input.

    Attributes:
        position: The next bit to read.
        numbers: Positions of the numbers already found after `position`.
    """

    def __init__(self, read: Read) -> None:
        self._read = read
        self._data = bytearray()
        self._first = self._searched = self.position = 0
        self.failure: Exception = EOFError()
        self.at_end = False
        self.numbers: deque[int] = deque()

    @property
    def size(self) -> int:
        """Number of available bits from `position` on."""
        return self._first + 8 * len(self._data) - self.position

    def extend(self) -> bool:
        """Read more bytes, and search them for numbers; return False at the end."""
        if self.at_end:
            return False
        try:
            data = self._read(BLOCK_BYTES)
        except (EOFError, OSError) as error:
            # Return the blocks before the error first; then raise `failure`.
            self.failure, data = error, b""
        if not data:
            self.at_end = True
            return False
        self._data += data
        bit = self._searched - self._first
        while (bit := compiled.find_bzip2(self._data, bit)) >= 0:
            self.numbers.append(self._first + bit)
            bit += 1
        self._searched = max(self._searched, self._first + 8 * len(self._data) - _NUMBER_BITS + 1)
        return True

    def need(self, count: int) -> int:
        """Read until `count` bits are available; return `count`, or fewer bits at the end."""
        while self.size < count and self.extend():
            pass
        return min(count, self.size)

    def move(self, position: int) -> None:
        """Set the position, and drop the bytes before it."""
        self.position = position
        del self._data[: (position - self._first) // 8]
        self._first = position // 8 * 8

    def bits(self, start: int, count: int) -> int:
        """Read a range of bits as a number."""
        return _read_bits(self._data, start - self._first, count)

    def cut(self, start: int, end: int | None = None) -> bytes:
        """Copy the bytes that contain a range of bits and the number after the range."""
        last = None if end is None else (end - self._first) // 8 + _HEADER_BYTES + _END_BITS // 8
        return bytes(memoryview(self._data)[(start - self._first) // 8 : last])

    def read_header(self) -> int:
        """Read the header of the next stream and return its level; 0 if no stream follows.

        Raises:
            EOFError: The data ends within the header of the first stream.
            OSError: The first header is invalid.
        """
        count = self.need(8 * _HEADER_BYTES) // 8
        header = self.bits(self.position, 8 * count).to_bytes(count, "big")
        level = 0
        if _HEADER.fullmatch(header):
            level = header[3] - ord("0")
            self.move(self.position + 8 * _HEADER_BYTES)
        elif self.position == 0 and header:
            if (_MAGIC + b"9").startswith(header):
                raise self.failure
            raise OSError("it does not start with a bzip2 header")
        return level  # Ignore trailing bytes that are not bzip2, as bzip2 does.

    def read_number(self) -> int:
        """Read the number of a block or of the end of a stream, without moving the position.

        Raises:
            EOFError: The data ends within the number.
            OSError: Neither number is at the position.
        """
        count = self.need(_NUMBER_BITS) // 8 * 8
        value = self.bits(self.position, count)
        for number in (_BLOCK, _END):
            if number >> (_NUMBER_BITS - count) == value:
                if count < _NUMBER_BITS:
                    raise self.failure
                return number
        raise OSError("no block starts at the expected position")


@dataclass(frozen=True, slots=True)
class _Task:
    start: int
    level: int
    block: Future[_Decoded | None]


class _Reader:
    """Reads blocks in order, and decodes later blocks ahead of time."""

    def __init__(self, read: Read, pool: ThreadPoolExecutor, ahead: int) -> None:
        self._input = _Input(read)
        self._decoder = _Decoder()
        self._pool = pool
        self._ahead = ahead
        self._tasks: deque[_Task] = deque()

    def parts(self) -> Parts:
        """Yield the decompressed bytes of all streams."""
        data = self._input
        while level := data.read_header():
            combined = 0
            while data.read_number() == _BLOCK:
                block = self._read_block(level)
                data.move(data.position // 8 * 8 + block.end)
                yield block.start
                yield from block.parts
                combined = (combined << 1 | combined >> 31) & 0xFFFFFFFF ^ block.crc
            if data.need(_END_BITS) < _END_BITS:
                raise data.failure
            if data.bits(data.position + _NUMBER_BITS, _CRC_BITS) != combined:
                raise OSError("the checksum of a stream is wrong")
            data.move(-(-(data.position + _END_BITS) // 8) * 8)

    def _read_block(self, level: int) -> _Decoded:
        """Return the decoded block at the current position of a stream of a level.

        Raises:
            EOFError: The data ends within the block.
            OSError: The block is damaged.
        """
        data, tasks = self._input, self._tasks
        while tasks and tasks[0].start < data.position:
            tasks.popleft().block.cancel()  # This number occurred by chance within a block.
        self._start_tasks(level)
        is_started = tasks and (tasks[0].start, tasks[0].level) == (data.position, level)
        if is_started and (block := tasks.popleft().block.result()):
            return block
        # The block is damaged, or contains another number by chance: decode it here, with more
        # input.
        start = data.position % 8
        while True:
            packed = data.cut(data.position)
            if block := self._decoder.decode(packed, start, level):
                return block
            if len(packed) > _MOST_BLOCK_BYTES or not data.extend():
                break
        _check_by_library(packed, start, level)
        if data.at_end:
            raise data.failure
        raise OSError(f"a block is larger than {_MOST_BLOCK_BYTES >> 20} MiB")

    def _start_tasks(self, level: int) -> None:
        """Start tasks that decode the next blocks, as far as their ends have been read.

        A later stream usually has the same level; otherwise, its blocks are decoded again.
        """
        data, tasks = self._input, self._tasks
        while len(tasks) < self._ahead:
            while data.numbers and data.numbers[0] < data.position:
                data.numbers.popleft()
            limit = _MOST_BLOCK_BYTES + self._ahead * BLOCK_BYTES
            while len(data.numbers) < 2 and data.size < 8 * limit and data.extend():
                pass
            if len(data.numbers) < (1 if data.at_end else 2):
                return
            start = data.numbers.popleft()
            if data.bits(start, _NUMBER_BITS) == _END:
                continue
            packed = data.cut(start, data.numbers[0] if data.numbers else None)
            future = self._pool.submit(self._decoder.decode, packed, start % 8, level)
            tasks.append(_Task(start, level, future))


def decompress_bzip2(read: Read, threads: int) -> Parts:
    """Decompress one or more bzip2 streams.

    Args:
        read: Reads compressed bytes.
        threads: Number of threads, if the compiled core decodes the blocks.

    Raises:
        EOFError: The data ends within a stream.
        OSError: The data is damaged.
    """
    if choose_core("auto") != "compiled":
        yield from decompress_streams(read, import_decoder("bz2").BZ2Decompressor, magic=_MAGIC)
        return
    threads = max(1, threads)
    pool = ThreadPoolExecutor(threads, "so2docs-bzip2")
    try:
        yield from _Reader(read, pool, ahead=threads + 2).parts()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
