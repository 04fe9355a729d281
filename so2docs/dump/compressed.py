"""Compressed files: gzip, bzip2, xz and zstd, read from start to end.

Output is bounded at every step, so that a bomb takes time and no memory.
"""

from __future__ import annotations

import lzma
from collections.abc import Callable
from typing import Any, BinaryIO, Protocol

import zstandard
from isal import igzip

from so2docs.dump.bzip2 import Bzip2
from so2docs.dump.damage import is_damage
from so2docs.dump.source import BLOCK_BYTES, Reader
from so2docs.errors import ArchiveError

_MOST_DICTIONARY = 1 << 30
"""Most memory for the dictionary of LZMA; `xz -9` needs 65 MiB."""


_STEP_BYTES = 64 * 1024


class Decompressor(Protocol):
    """What the standard library's decompressors have in common."""

    @property
    def eof(self) -> bool:
        """Whether the stream has ended."""

    @property
    def needs_input(self) -> bool:
        """Whether there is no output without more input."""

    @property
    def unused_data(self) -> bytes:
        """What follows the stream."""

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """At most `max_length` bytes of output."""


class Streams:
    """One or more compressed streams, one after the other.

    Args:
        reader: Gives compressed bytes.
        new: Makes a decompressor for the next stream.
        padding: Bytes that may come between and after the streams.
    """

    def __init__(self, reader: Reader, new: Callable[[], Decompressor], padding: bytes) -> None:
        self._reader = reader
        self._new = new
        self._padding = padding
        self._stream: Decompressor | None = None
        self._is_first = True

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end.

        Raises:
            EOFError: The data ends within a stream.
        """
        while True:
            if self._stream is None or self._stream.eof:
                data = self._next_stream()
                if not data and not self._is_first:
                    return b""
                self._stream, self._is_first = self._new(), False
            else:
                data = self._reader.read(BLOCK_BYTES) if self._stream.needs_input else b""
                if self._stream.needs_input and not data:
                    raise EOFError
            if given := self._stream.decompress(data, size):
                return given

    def _next_stream(self) -> bytes:
        data = self._stream.unused_data if self._stream is not None else b""
        while not (data := data.lstrip(self._padding) if self._padding else data):
            if not (data := self._reader.read(BLOCK_BYTES)):
                break
        return data


def open_gzip(reader: Reader, threads: int) -> Reader:
    """Several members too, checksums checked; ISA-L is three times as fast as zlib."""
    library: Any = igzip
    return _BytesBeforeError(library.IGzipFile(fileobj=_Readable(reader), mode="rb"))


def open_bzip2(reader: Reader, threads: int) -> Reader:
    """Several streams too, block by block in several threads."""
    return Bzip2(reader, threads)


def open_xz(reader: Reader, threads: int) -> Reader:
    """Several streams too, with padding between them."""
    return Streams(
        reader, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST_DICTIONARY), b"\0"
    )


def open_zstd(reader: Reader, threads: int) -> Reader:
    """Several frames too. A window over 128 MiB (`--long=28` and more) is refused."""
    file: Any = _Readable(reader)
    return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)


class _BytesBeforeError:
    """A file read in small steps: bytes before an error are handed on before it is raised."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._error: Exception | None = None

    def read(self, size: int, /) -> bytes:
        if self._error is not None:
            raise self._error
        found = bytearray()
        try:
            while len(found) < size and (
                data := self._file.read(min(_STEP_BYTES, size - len(found)))
            ):
                found += data
        except Exception as error:
            if not found or not is_damage(error):
                raise
            self._error = error
        return bytes(found)


class _Readable:
    """What libraries take as an open file: they read it, and must not close it."""

    def __init__(self, reader: Reader) -> None:
        self.read = reader.read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        pass


def raw_lzma(
    name: str, properties: bytes, unpacked: int, *, is_lzma2: bool = False
) -> Callable[[], Decompressor]:
    """Makes decompressors of LZMA as archives hold it, without a header.

    Args:
        name: Name of the dump, for messages.
        properties: Of the method, as the archive has them.
        unpacked: Bytes that come out: no larger dictionary is needed.
        is_lzma2: Whether it is LZMA2.

    Raises:
        ArchiveError: Its dictionary takes too much memory.
    """
    if is_lzma2:
        dictionary = (2 | properties[0] & 1) << (properties[0] // 2 + 11)
        chosen = {"id": lzma.FILTER_LZMA2}
    else:
        rest, literal_context = divmod(properties[0], 9)
        position, literal_position = divmod(rest, 5)
        dictionary = int.from_bytes(properties[1:5], "little")
        settings = {"lc": literal_context, "lp": literal_position, "pb": position}
        chosen = {"id": lzma.FILTER_LZMA1, **settings}
    dictionary = max(4096, min(dictionary, -(-unpacked // 4096) * 4096))
    if dictionary > _MOST_DICTIONARY:
        raise ArchiveError(
            name,
            f"needs {dictionary / 2**30:.1f} GiB of memory for its dictionary",
            advice="unpack it first",
        )
    chosen["dict_size"] = dictionary
    return lambda: lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[chosen])


class Range:
    """So many bytes of a file, from the current position."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._left = size

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes; all that are left if it is negative."""
        wanted = self._left if size < 0 else min(size, self._left)
        data = self._file.read(wanted) if wanted else b""
        if wanted and not data:
            raise EOFError
        self._left -= len(data)
        return data
