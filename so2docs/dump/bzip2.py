"""Decompress bzip2 in several threads; published archives used bzip2 until 2024-04.

Blocks (at most 900 kB before run lengths are expanded) are independent, but no index has their
positions: each block follows the last bit of the previous one. This module therefore searches at
every bit for the 48-bit number that starts a block, and decodes blocks ahead of time. If the number
occurs by chance within a block (once in 30,000 GB), the end of this block shows that no block
starts there.

The compiled core decodes a block at any bit, four times as fast as libbz2. Without the core, and
for randomized blocks (bzip2 before 0.9.5), each block becomes a separate stream for the standard
library. Both decoders release the GIL. Only libbz2 decides whether data is damaged.

Format: https://github.com/dsnet/compress/blob/master/doc/bzip2-format.pdf
"""

from __future__ import annotations

import bz2
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from math import inf

from so2docs.dump.kinds import BZIP2
from so2docs.dump.layers import BLOCK_BYTES, Parts, Read
from so2docs.parse.core import choose_core, compiled

_BLOCK = 0x314159265359
_END = 0x177245385090
_NUMBER_BITS = 48
_CRC_BITS = 32
_END_BITS = _NUMBER_BITS + _CRC_BITS
_HEADER_BYTES = 4
_MOST_BLOCK_BYTES = 4 * 1024 * 1024
"""Maximum compressed size of a block; bzip2 writes at most 0.91 MB, but the format allows more."""

_LEVEL_BYTES = 100_000
"""Bytes in a full block per level, before run lengths are expanded."""

_MOST_AT_ONCE = 1024 * 1024
"""Maximum bytes of a block decoded ahead of time; run lengths can expand a block to 46 MB."""


@dataclass(frozen=True, slots=True)
class DecodedBlock:
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


class CompiledDecoder:
    """Finds and decodes blocks with the compiled core; positions are in bits."""

    def __init__(self) -> None:
        self._memories: list[object] = []

    def find(self, data: bytearray, start: int) -> list[int]:
        """Return the positions of the numbers, searching several thousand MB per second."""
        numbers = []
        while (start := compiled.find_bzip2(data, start)) >= 0:
            numbers.append(start)
            start += 1
        return numbers

    def decode(self, data: bytes, start: int, level: int) -> DecodedBlock | None:
        """Decode a block, reusing the memory of an earlier block."""
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
            self._memories.append(memory)
            return decode_by_library(data, start, end, level)
        parts = self._read(memory)
        return DecodedBlock(end, crc, next(parts), parts)

    def _read(self, memory: object) -> Parts:
        size = _MOST_AT_ONCE
        while size == _MOST_AT_ONCE:
            part = compiled.read_bzip2(memory, _MOST_AT_ONCE)
            size = len(part)
            if size < _MOST_AT_ONCE:
                self._memories.append(memory)
            yield part


class LibraryDecoder:
    """Finds and decodes blocks with the standard library; positions are in bits."""

    def find(self, data: bytearray, start: int) -> list[int]:
        """Return the positions of the numbers."""
        return [position for position, _ in find_numbers(data, start // 8) if position >= start]

    def decode(self, data: bytes, start: int, level: int) -> DecodedBlock | None:
        """Decode a block, trying each later number as its end, in order; None if none fits."""
        for position, _ in find_numbers(data, start // 8):
            if position > start:
                with suppress(OSError, EOFError, ValueError):
                    return decode_by_library(data, start, position, level)
        return None


Decoder = CompiledDecoder | LibraryDecoder


def _patterns() -> list[tuple[int, int, bytes]]:
    """List, for each number and shift in bits, the whole bytes of the shifted number."""
    patterns = []
    for number in (_BLOCK, _END):
        patterns.append((number, 0, number.to_bytes(6, "big")))
        for shift in range(1, 8):
            whole = (number << (8 - shift)).to_bytes(7, "big")[1:6]
            patterns.append((number, shift, whole))
    return patterns


_PATTERNS = _patterns()


def find_numbers(data: bytes | bytearray, start: int = 0) -> list[tuple[int, int]]:
    """Return each number that marks a block or the end of a stream, after its bit position."""
    numbers = []
    for number, shift, pattern in _PATTERNS:
        at = data.find(pattern, start)
        while at >= 0:
            position = 8 * at if shift == 0 else 8 * at - 8 + shift
            if position >= 8 * start and _read_bits(data, position, _NUMBER_BITS) == number:
                numbers.append((position, number))
            at = data.find(pattern, at + 1)
    return sorted(numbers)


def _read_bits(data: bytes | bytearray, start: int, count: int) -> int:
    """Read bits at a position as a number; -1 if the data has too few bits."""
    end = start + count
    if end > 8 * len(data):
        return -1
    value = int.from_bytes(data[start // 8 : -(-end // 8)], "big") >> (-end % 8)
    return value & ((1 << count) - 1)


def _start_stream(data: bytes, start: int, end: int, level: int, ending: bytes = b"") -> bytes:
    """Make a stream of the bits from `start` to `end` and of `ending`, padded to whole bytes."""
    count = end - start + 8 * len(ending)
    bits = _read_bits(data, start, end - start) << 8 * len(ending) | int.from_bytes(ending, "big")
    return BZIP2 + b"%d" % level + (bits << (-count % 8)).to_bytes(-(-count // 8), "big")


def decode_by_library(data: bytes, start: int, end: int, level: int) -> DecodedBlock:
    """Decode a block as a separate stream.

    Raises:
        OSError: The block is damaged.
        EOFError: The block does not end at `end`.
    """
    crc = _read_bits(data, start + _NUMBER_BITS, _CRC_BITS)
    ending = (_END << _CRC_BITS | crc).to_bytes(10, "big")
    stream = bz2.BZ2Decompressor()
    packed = _start_stream(data, start, end, level, ending)
    part = stream.decompress(packed, _MOST_AT_ONCE)
    if not stream.eof and stream.needs_input:
        raise EOFError
    return DecodedBlock(end, crc, part, _read_stream(stream))


def _read_stream(stream: bz2.BZ2Decompressor) -> Parts:
    while not stream.eof:
        if stream.needs_input:
            raise OSError("the bzip2 data is damaged")
        yield stream.decompress(b"", _MOST_AT_ONCE)


def _check_by_library(data: bytes, start: int, level: int) -> None:
    """Raise OSError if data that starts with a block is damaged, not merely truncated."""
    stream = bz2.BZ2Decompressor()
    packed = _start_stream(data, start, 8 * len(data), level)
    while stream.decompress(packed, _MOST_AT_ONCE) and not stream.eof:
        # Decompress until the stream needs input, since output and a checksum may be pending.
        packed = b""


def _parse_header(header: bytes) -> int:
    """Return the level in the header of a stream, 1 to 9; 0 if this is not a bzip2 header."""
    is_header = len(header) == _HEADER_BYTES and header[:3] == BZIP2 and header[3] in b"123456789"
    return header[3] - ord("0") if is_header else 0


class _Input:
    """Compressed bytes from the next block on; positions are in bits from the start of the input.

    Attributes:
        position: The next bit to read.
        numbers: Positions of the numbers already found after `position`.
    """

    def __init__(self, read: Read, decoder: Decoder) -> None:
        self._read = read
        self._decoder = decoder
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
        for bit in self._decoder.find(self._data, self._searched - self._first):
            self.numbers.append(self._first + bit)
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

    def level_before(self, start: int) -> int:
        """Return the level of the stream whose first block is at a position; 0 if there is none."""
        header = start - 8 * _HEADER_BYTES
        if start % 8 or header < self._first:
            return 0
        return _parse_header(self.cut(header)[:_HEADER_BYTES])

    def read_header(self) -> int:
        """Read the header of the next stream and return its level; 0 if no stream follows.

        Raises:
            EOFError: The data ends within the header of the first stream.
            OSError: The first header is invalid.
        """
        count = self.need(8 * _HEADER_BYTES) // 8
        header = self.bits(self.position, 8 * count).to_bytes(count, "big")
        if level := _parse_header(header):
            self.move(self.position + 8 * _HEADER_BYTES)
        elif self.position == 0 and header:
            if (BZIP2 + b"9").startswith(header):
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
    block: Future[DecodedBlock | None]


class _Reader:
    """Reads blocks in order, and decodes later blocks ahead of time."""

    def __init__(
        self,
        read: Read,
        decoder: Decoder,
        pool: ThreadPoolExecutor,
        *,
        ahead: int,
        end: float,
    ) -> None:
        self._input = _Input(read, decoder)
        self._end = end
        self._decoder = decoder
        self._pool = pool
        self._ahead = ahead
        self._tasks: deque[_Task] = deque()

    def parts(self) -> Parts:
        """Yield the decompressed bytes of all streams."""
        data = self._input
        offset = 0
        while level := data.read_header():
            combined = 0
            while data.read_number() == _BLOCK:
                block = self._read_block(level, offset)
                data.move(data.position // 8 * 8 + block.end)
                for part in chain((block.start,), block.parts):
                    offset += len(part)
                    yield part
                combined = (combined << 1 | combined >> 31) & 0xFFFFFFFF ^ block.crc
            if data.need(_END_BITS) < _END_BITS:
                raise data.failure
            if data.bits(data.position + _NUMBER_BITS, _CRC_BITS) != combined:
                raise OSError("the checksum of a stream is wrong")
            data.move(-(-(data.position + _END_BITS) // 8) * 8)

    def _read_block(self, level: int, offset: int) -> DecodedBlock:
        """Return the decoded block at the current position of the input.

        Args:
            level: Level of the stream.
            offset: Offset of the block in the decompressed bytes.

        Raises:
            EOFError: The data ends within the block.
            OSError: The block is damaged.
        """
        data, tasks = self._input, self._tasks
        while tasks and tasks[0].start < data.position:
            tasks.popleft().block.cancel()  # This number occurred by chance within a block.
        self._start_tasks(level, offset)
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

    def _start_tasks(self, level: int, offset: int) -> None:
        """Start tasks that decode the next blocks, as far as their ends have been read.

        Blocks that probably start after the last wanted byte are left out.
        """
        data, tasks = self._input, self._tasks
        level = tasks[-1].level if tasks else level
        wanted = (self._end - offset) / (level * _LEVEL_BYTES)
        while len(tasks) < min(self._ahead, max(1, wanted)):
            while data.numbers and data.numbers[0] < data.position:
                data.numbers.popleft()
            limit = _MOST_BLOCK_BYTES + self._ahead * BLOCK_BYTES
            while len(data.numbers) < 2 and data.size < 8 * limit and data.extend():
                pass
            if len(data.numbers) < (1 if data.at_end else 2):
                return
            if wanted <= 1 and not tasks:
                return  # Another thread would only make this one wait.
            start = data.numbers.popleft()
            if data.bits(start, _NUMBER_BITS) == _END:
                continue
            level = data.level_before(start) or level
            packed = data.cut(start, data.numbers[0] if data.numbers else None)
            future = self._pool.submit(self._decoder.decode, packed, start % 8, level)
            tasks.append(_Task(start, level, future))


def decompress_bzip2(
    read: Read,
    threads: int,
    end: float = inf,
) -> Parts:
    """Decompress one or more bzip2 streams block by block, in several threads.

    Args:
        read: Reads compressed bytes.
        threads: Number of threads.
        end: Number of decompressed bytes after which no blocks are decoded ahead of time.

    Raises:
        EOFError: The data ends within a stream.
        OSError: The data is damaged.
    """
    decoder = CompiledDecoder() if choose_core("auto") == "compiled" else LibraryDecoder()
    threads = max(1, threads)
    pool = ThreadPoolExecutor(threads, "so2docs-bzip2")
    try:
        reader = _Reader(read, decoder, pool, ahead=threads + 2, end=end)
        yield from reader.parts()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
