"""Compressed files: gzip, bzip2, xz and zstd, read from start to end.

Output is bounded at every step, so that a bomb takes time and no memory.

bzip2, the compression of published archives, is decompressed by several threads. Its blocks (at
most 900 kB before run lengths are expanded) are independent, but no index has their positions: each
follows the last bit of the previous one. So the 48-bit number that starts a block is searched for
at every bit. Each block becomes a stream of its own for the standard library, which releases the
interpreter's lock while it works. The number may occur by chance within a block (once in 30,000
GB); a block that fails is tried again together with the next ones.

Format: https://github.com/dsnet/compress/blob/master/doc/bzip2-format.pdf
"""

from __future__ import annotations

import bz2
import lzma
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, BinaryIO, Protocol

import zstandard
from isal.igzip_lib import DECOMP_DEFLATE, DECOMP_GZIP, IgzipDecompressor

from so2docs.dump.kinds import BZIP2
from so2docs.dump.source import BLOCK_BYTES, Parts, Read, read_blocks
from so2docs.errors import ArchiveError

_BLOCK = 0x314159265359
_END = 0x177245385090
_NUMBER_BITS = 48
_CRC_BITS = 32
_MOST_BLOCK_BITS = 8 * 2 * 1024 * 1024
_HEADER_BYTES = 4
_MOST_AT_ONCE = 1024 * 1024


def _patterns() -> list[tuple[int, int, bytes]]:
    """For each number and shift: the number, the shift, and the whole bytes inside."""
    patterns = []
    for number in (_BLOCK, _END):
        patterns.append((number, 0, number.to_bytes(6, "big")))
        for shift in range(1, 8):
            whole = (number << (8 - shift)).to_bytes(7, "big")[1:6]
            patterns.append((number, shift, whole))
    return patterns


_PATTERNS = _patterns()


def find_numbers(data: bytes, start: int = 0) -> list[tuple[int, int]]:
    """Find starts of blocks and ends of streams: positions in bits, each with its number."""
    numbers = []
    for number, shift, pattern in _PATTERNS:
        at = data.find(pattern, start)
        while at >= 0:
            first = at if shift == 0 else at - 1
            if first >= start and first + 7 <= len(data):
                value = int.from_bytes(data[first : first + 7], "big")
                if value >> (8 - shift) & ((1 << _NUMBER_BITS) - 1) == number:
                    numbers.append((8 * first + shift, number))
            at = data.find(pattern, at + 1)
    return sorted(numbers)


class _Bits:
    """A block: its bits as a number, which start with the number of a block."""

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
        """Decompress the start of the block; run lengths can expand a block to 46 MB."""
        ending = _END << _CRC_BITS | self.crc
        bits = (int.from_bytes(BZIP2 + b"9", "big") << self.size | self.value) << 80 | ending
        size = 32 + self.size + 80
        stream = bz2.BZ2Decompressor()
        data = (bits << (-size % 8)).to_bytes(-(-size // 8), "big")
        part = stream.decompress(data, _MOST_AT_ONCE)
        if not stream.eof and stream.needs_input:
            raise EOFError
        return stream, part


def decompress_bzip2(read: Read, threads: int) -> Parts:
    """Decompress one or more bzip2 streams block by block, in several threads.

    Raises:
        EOFError: The data ends within a stream.
        OSError: The data is damaged.
    """
    pool = ThreadPoolExecutor(max(1, threads), "so2docs-bzip2")
    try:
        yield from _decompress_blocks(read, pool, max(1, threads))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _decompress_blocks(read: Read, pool: ThreadPoolExecutor, threads: int) -> Iterator[bytes]:
    waiting: deque[_Task] = deque()
    tasks: Iterator[_Task] = _start_tasks(read, pool)
    failure: Exception | None = None
    combined = 0
    while True:
        try:
            while len(waiting) <= threads + 1 and (task := next(tasks, None)):
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
        yield from _finish_block(bits, future, waiting, pool)
        combined = (combined << 1 | combined >> 31) & 0xFFFFFFFF ^ bits.crc
    if failure is not None:
        raise failure


def _finish_block(
    bits: _Bits, future: _Future, waiting: deque[_Task], pool: ThreadPoolExecutor
) -> Iterator[bytes]:
    """Decompress a whole block; a part that is not a block is joined with the next ones."""
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
            future = pool.submit(bits.decompress)
    yield part
    while not stream.eof:
        if stream.needs_input:
            raise OSError("the bzip2 data is damaged")
        yield stream.decompress(b"", _MOST_AT_ONCE)


def _start_tasks(read: Read, pool: ThreadPoolExecutor) -> Iterator[_Task]:
    """The blocks of all streams, which are being decompressed, and the checksum of each stream."""
    data = read(BLOCK_BYTES)
    while True:
        while len(data) < _HEADER_BYTES and (more := read(BLOCK_BYTES)):
            data += more
        if not (data[:3] == BZIP2 and data[3:4].isdigit()):
            return  # What follows the streams is no bzip2, and is passed over by bzip2 too.
        data = yield from _start_stream(read, pool, data[_HEADER_BYTES:])


def _start_stream(
    read: Read, pool: ThreadPoolExecutor, data: bytes
) -> Generator[_Task, None, bytes]:
    """The blocks of one stream; returns the bytes that follow it."""
    start: int | None = None
    searched = 0
    while True:
        for position, number in find_numbers(data, searched):
            if start is None and position != 0:
                raise OSError("the bzip2 data is damaged")
            if start is not None:
                bits = _Bits(data, start, position)
                yield bits, 0, pool.submit(bits.decompress)
            start = position
            if number == _END:
                while len(data) * 8 < position + 80 and (more := read(64)):
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
        more = read(BLOCK_BYTES)
        if not more:
            raise EOFError
        data += more


_Future = Future[tuple[bz2.BZ2Decompressor, bytes]]
_Task = tuple[_Bits | None, int, _Future | None]


_MOST_DICTIONARY = 1 << 30
"""Most memory for the dictionary of LZMA; `xz -9` needs 65 MiB."""


_STEP_BYTES = 256 * 1024
"""Output before an error within a step is lost."""


class Decompressor(Protocol):
    """The interface of the standard library's decompressors."""

    @property
    def eof(self) -> bool:
        """Whether the stream has ended."""

    @property
    def needs_input(self) -> bool:
        """Whether there is no output without more input."""

    @property
    def unused_data(self) -> bytes:
        """The bytes after the stream."""

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """At most `max_length` bytes of output."""


def decompress_streams(read: Read, new: Callable[[], Decompressor], padding: bytes = b"") -> Parts:
    """Decompress one or more streams, one after the other.

    Args:
        read: Returns compressed bytes.
        new: Makes a decompressor for the next stream.
        padding: Bytes that may come between and after the streams.

    Raises:
        EOFError: The data ends within a stream.
    """
    data = read(BLOCK_BYTES)
    while True:
        stream = new()
        while not stream.eof:
            if output := stream.decompress(data, _STEP_BYTES):
                yield output
            data = b""
            if stream.needs_input and not stream.eof and not (data := read(BLOCK_BYTES)):
                raise EOFError
        data = stream.unused_data
        while not (data := data.lstrip(padding)):
            if not (data := read(BLOCK_BYTES)):
                return


def decompress_gzip(read: Read, threads: int) -> Parts:
    """Decompress gzip of one or more members, and check checksums.

    ISA-L is three times as fast as zlib.
    """
    return decompress_streams(read, lambda: IgzipDecompressor(flag=DECOMP_GZIP), b"\0")


def decompress_deflate(read: Read) -> Parts:
    """Decompress raw deflate, without a header, as in archives."""
    return decompress_streams(read, lambda: IgzipDecompressor(flag=DECOMP_DEFLATE))


def decompress_xz(read: Read, threads: int) -> Parts:
    """Decompress xz, with several streams too, and padding between them."""
    return decompress_streams(
        read, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST_DICTIONARY), b"\0"
    )


def decompress_zstd(read: Read, threads: int) -> Parts:
    """Decompress zstd, with several frames too; refuse a window over 128 MiB (`--long=28`)."""
    file: Any = SimpleNamespace(read=read)
    decompressor = zstandard.ZstdDecompressor()
    return read_blocks(decompressor.stream_reader(file, read_across_frames=True).read)


def raw_lzma(
    name: str, properties: bytes, unpacked: int, *, is_lzma2: bool = False
) -> Callable[[], Decompressor]:
    """Return a factory of decompressors for LZMA in archives, which has no header.

    Args:
        name: Name of the dump, for messages.
        properties: Properties of the method in the archive.
        unpacked: Decompressed size: no larger dictionary is needed.
        is_lzma2: Whether it is LZMA2.

    Raises:
        ArchiveError: Its dictionary takes too much memory.
    """
    if is_lzma2:
        dictionary = (2 | properties[0] & 1) << (properties[0] // 2 + 11)
        filter_ = {"id": lzma.FILTER_LZMA2}
    else:
        rest, literal_context = divmod(properties[0], 9)
        position, literal_position = divmod(rest, 5)
        dictionary = int.from_bytes(properties[1:5], "little")
        settings = {"lc": literal_context, "lp": literal_position, "pb": position}
        filter_ = {"id": lzma.FILTER_LZMA1, **settings}
    dictionary = max(4096, min(dictionary, -(-unpacked // 4096) * 4096))
    if dictionary > _MOST_DICTIONARY:
        raise ArchiveError(
            name,
            f"needs {dictionary / 2**30:.1f} GiB of memory for its dictionary",
            advice="unpack it first",
        )
    filter_["dict_size"] = dictionary
    return lambda: lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[filter_])


def read_range(file: BinaryIO, size: int) -> Read:
    """Return a function that reads the next n bytes of a file, and then none.

    It raises `EOFError` if the file is shorter.
    """
    left = size

    def read(size: int, /) -> bytes:
        nonlocal left
        data = file.read(min(size, left)) if left else b""
        if left and not data:
            raise EOFError
        left -= len(data)
        return data

    return read
