"""bzip2, what published archives are compressed by, decompressed by several threads.

A block of bzip2 (at most 900 kB before its run lengths are undone) depends on no other, but nothing
says where it starts: it follows the last bit of the one before. So the 48-bit number that starts a
block is searched for at every bit. Each block is made a stream of its own for the standard library,
which gives up the interpreter's lock while it works. The number may occur by chance within a block
(once in 30,000 GB); a block that fails is tried again together with what follows.

Format: https://github.com/dsnet/compress/blob/master/doc/bzip2-format.pdf
"""

from __future__ import annotations

import bz2
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from so2docs.dump.source import BLOCK_BYTES, Reader

_BLOCK = 0x314159265359
_END = 0x177245385090
_NUMBER_BITS = 48
_CRC_BITS = 32
_MOST_BLOCK_BITS = 8 * 2 * 1024 * 1024
_HEADER_BYTES = 4
_MOST_AT_ONCE = 1024 * 1024


def _patterns() -> list[tuple[int, int, bytes]]:
    """For each number and shift: the number, the shift, and the whole bytes inside."""
    found = []
    for number in (_BLOCK, _END):
        found.append((number, 0, number.to_bytes(6, "big")))
        for shift in range(1, 8):
            whole = (number << (8 - shift)).to_bytes(7, "big")[1:6]
            found.append((number, shift, whole))
    return found


_PATTERNS = _patterns()


def find_numbers(data: bytes, start: int = 0) -> list[tuple[int, int]]:
    """Where blocks and the ends of streams start: positions in bits, each with its number."""
    found = []
    for number, shift, pattern in _PATTERNS:
        at = data.find(pattern, start)
        while at >= 0:
            first = at if shift == 0 else at - 1
            if first >= start and first + 7 <= len(data):
                value = int.from_bytes(data[first : first + 7], "big")
                if value >> (8 - shift) & ((1 << _NUMBER_BITS) - 1) == number:
                    found.append((8 * first + shift, number))
            at = data.find(pattern, at + 1)
    return sorted(found)


class _Bits:
    """A block: its bits as a number, the first being its starting number."""

    def __init__(self, data: bytes, start: int, stop: int) -> None:
        value = int.from_bytes(data[start // 8 : -(-stop // 8)], "big") >> (-stop % 8)
        self.size = stop - start
        self.value = value & ((1 << self.size) - 1)

    def join(self, other: _Bits) -> None:
        self.value = self.value << other.size | other.value
        self.size += other.size

    @property
    def crc(self) -> int:
        return self.value >> (self.size - _NUMBER_BITS - _CRC_BITS) & 0xFFFFFFFF

    def decompress(self) -> tuple[bz2.BZ2Decompressor, bytes]:
        """The block as a stream of its own; run lengths can make 46 MB of it, so only a start."""
        ending = _END << _CRC_BITS | self.crc
        bits = (int.from_bytes(b"BZh9", "big") << self.size | self.value) << 80 | ending
        size = 32 + self.size + 80
        stream = bz2.BZ2Decompressor()
        data = (bits << (-size % 8)).to_bytes(-(-size // 8), "big")
        part = stream.decompress(data, _MOST_AT_ONCE)
        if not stream.eof and stream.needs_input:
            raise EOFError
        return stream, part


class Bzip2:
    """A reader of one or more bzip2 streams."""

    def __init__(self, reader: Reader, threads: int) -> None:
        self._reader = reader
        self._threads = max(1, threads)
        self._pool = ThreadPoolExecutor(self._threads, "so2docs-bzip2")
        self._parts = self._decompress()
        self._held = b""

    def close(self) -> None:
        """End the threads; another one that is reading gets an error."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end.

        Raises:
            EOFError: The data ends within a stream.
            OSError: The data is damaged.
        """
        while not self._held:
            part = next(self._parts, None)
            if part is None:
                return b""
            self._held = part
        given, self._held = self._held[:size], self._held[size:]
        return given

    def _decompress(self) -> Generator[bytes, None, None]:
        waiting: deque[_Task] = deque()
        tasks: Iterator[_Task] = self._tasks()
        failure: Exception | None = None
        combined = 0
        while True:
            try:
                while len(waiting) <= self._threads + 1 and (task := next(tasks, None)):
                    waiting.append(task)
            except (EOFError, OSError) as error:
                # Bytes before the error are handed on first.
                failure, tasks = error, iter(())
            if not waiting:
                break
            bits, expected, future = waiting.popleft()
            if bits is None:
                if expected != combined:
                    raise OSError("the checksum of the bzip2 data is wrong")
                combined = 0
                continue
            assert future is not None
            yield from self._finish(bits, future, waiting)
            combined = (combined << 1 | combined >> 31) & 0xFFFFFFFF ^ bits.crc
        if failure is not None:
            raise failure

    def _finish(self, bits: _Bits, future: _Future, waiting: deque[_Task]) -> Iterator[bytes]:
        """All of a block, joined with the following ones where it is none by itself."""
        while True:
            try:
                stream, part = future.result()
                break
            except (OSError, EOFError, ValueError):
                if not waiting or waiting[0][0] is None:
                    raise OSError("the bzip2 data is damaged") from None
                bits.join(waiting.popleft()[0] or bits)
                if bits.size > _MOST_BLOCK_BITS:
                    raise OSError("the bzip2 data is damaged") from None
                future = self._pool.submit(bits.decompress)
        yield part
        while not stream.eof:
            if stream.needs_input:
                raise OSError("the bzip2 data is damaged")
            yield stream.decompress(b"", _MOST_AT_ONCE)

    def _tasks(self) -> Iterator[_Task]:
        """The blocks of all streams, being decompressed; and the checksum at each stream's end."""
        data = self._reader.read(BLOCK_BYTES)
        while True:
            while len(data) < _HEADER_BYTES and (more := self._reader.read(BLOCK_BYTES)):
                data += more
            if not (data[:3] == b"BZh" and data[3:4].isdigit()):
                return  # What follows the streams is no bzip2, and is passed over by bzip2 too.
            data = yield from self._stream(data[_HEADER_BYTES:])

    def _stream(self, data: bytes) -> Generator[_Task, None, bytes]:
        """The blocks of one stream; returns the bytes that follow it."""
        start: int | None = None
        searched = 0
        while True:
            for position, number in find_numbers(data, searched):
                if start is None and position != 0:
                    raise OSError("the bzip2 data is damaged")
                if start is not None:
                    bits = _Bits(data, start, position)
                    yield bits, 0, self._pool.submit(bits.decompress)
                start = position
                if number == _END:
                    while len(data) * 8 < position + 80 and (more := self._reader.read(64)):
                        data += more
                    if len(data) * 8 < position + 80:
                        raise EOFError
                    yield None, _Bits(data, position, position + 80).value & 0xFFFFFFFF, None
                    return data[-(-(position + 80) // 8) :]
            # What has been searched is kept from the start of the block on.
            drop = 0 if start is None else start // 8
            searched = max(len(data) - 6, 0) - drop
            data = data[drop:]
            start = None if start is None else start - 8 * drop
            if len(data) * 8 > _MOST_BLOCK_BITS:
                raise OSError("the bzip2 data is damaged")
            more = self._reader.read(BLOCK_BYTES)
            if not more:
                raise EOFError
            data += more


_Future = Future[tuple[bz2.BZ2Decompressor, bytes]]
_Task = tuple[_Bits | None, int, _Future | None]
