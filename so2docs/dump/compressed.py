"""Decompress files and the compression methods of archives, from start to end.

The output of each step is bounded, so a decompression bomb takes time but no memory.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from importlib import import_module
from typing import Any, BinaryIO

from isal.igzip_lib import DECOMP_GZIP, IgzipDecompressor

from so2docs.errors import ArchiveError, OptionError, So2docsError
from so2docs.zstd import ZstdDecompressor

BLOCK_BYTES = 256 * 1024
"""Approximate size of the blocks of streams. malloc maps larger blocks anew each time: with 1 MiB,
the page faults took 3 s of CPU time per GB."""

Read = Callable[[int], bytes]
"""Function that reads at most n bytes, none at the end."""

Parts = Generator[bytes | memoryview, None, None]
"""Generator of the bytes of a stream, in parts of any size.

A part can be a view of memory that the generator reuses: it is valid until the next part is taken.
"""

_MOST_DICTIONARY = 1 << 30
"""Maximum memory for an LZMA dictionary; `xz -9` needs 65 MiB."""

_GZIP = b"\x1f\x8b"
_STEP_BYTES = 256 * 1024
"""Maximum output of a step in bytes; an error within a step loses the output of this step."""


def read_blocks(read: Read) -> Parts:
    """Yield the bytes of a file, in blocks of any size."""
    while data := read(BLOCK_BYTES):
        yield data


def is_damage(error: Exception) -> bool:
    """Whether an error raised by a decompressor means damaged data.

    Each library has its own errors, and no list of them is complete: `gzip` and `bz2` raise
    `OSError`, `EOFError` and `zlib.error`, `lzma` and `zstd` have their own errors, and the
    modules of isal share an error class only in some builds. This function therefore lists the
    errors that do not mean damage.
    """
    if isinstance(error, OSError):
        return error.errno is None  # An error number means that the system could not read the file.
    return not isinstance(error, So2docsError | MemoryError)


def decompress_streams(
    read: Read, new: Callable[[], Any], padding: bytes = b"", magic: bytes = b""
) -> Parts:
    """Decompress one or more consecutive streams, with `padding` bytes between them.

    Trailing bytes that are not another stream, which starts with `magic`, are ignored.

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
        while magic.startswith(data) and (more := read(BLOCK_BYTES)):
            data += more
        if not data.startswith(magic):
            return


def decompress_gzip(read: Read) -> Parts:
    """Decompress gzip with one or more members, and check the checksums.

    Trailing bytes that are not gzip are ignored, as gzip does.

    ISA-L is three times as fast as zlib.
    """
    return decompress_streams(read, lambda: IgzipDecompressor(flag=DECOMP_GZIP), b"\0", _GZIP)


def decompress_xz(read: Read) -> Parts:
    """Decompress xz, including several streams with padding between them."""
    lzma = import_decoder("lzma")
    return decompress_streams(
        read, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST_DICTIONARY), b"\0"
    )


def decompress_zstd(read: Read) -> Parts:
    """Decompress zstd, including several frames; reject a window above 128 MiB (`--long=28`)."""
    return decompress_streams(read, ZstdDecompressor)


def import_decoder(name: str) -> Any:
    """Import `lzma` or `bz2`, which Python lacks if it was built without their libraries.

    Raises:
        OptionError: Python lacks the module.
    """
    try:
        return import_module(name)
    except ImportError:
        needed_by = {"lzma": ".xz files and 7z archives", "bz2": ".bz2 files and damaged archives"}
        raise OptionError(
            f"{needed_by[name]} need the module {name}, which this Python was built without; "
            "use a Python that has it, or unpack them first"
        ) from None


def lzma_settings(
    name: str, properties: bytes, unpacked: int, *, is_lzma2: bool = False
) -> dict[str, int]:
    """Return the settings of a decompressor for LZMA data in archives, which has no header.

    Args:
        name: Name of the dump, for messages.
        properties: Properties of the method in the archive.
        unpacked: Decompressed size in bytes; the dictionary need not be larger.
        is_lzma2: Whether the method is LZMA2.

    Raises:
        ArchiveError: The dictionary needs too much memory.
        OptionError: Python lacks the module `lzma`.
        lzma.LZMAError: The properties are invalid.
    """
    lzma = import_decoder("lzma")
    method = lzma.FILTER_LZMA2 if is_lzma2 else lzma.FILTER_LZMA1
    settings = lzma._decode_filter_properties(method, properties)
    dictionary = max(4096, min(settings["dict_size"], -(-unpacked // 4096) * 4096))
    if dictionary > _MOST_DICTIONARY:
        raise ArchiveError(
            name,
            f"needs {dictionary / 2**30:.1f} GiB of memory for its dictionary",
            advice="unpack it first",
        )
    return {**settings, "dict_size": dictionary}


def raw_lzma(settings: dict[str, int]) -> Callable[[], Any]:
    """Return a factory of decompressors with settings from `lzma_settings`."""
    lzma = import_decoder("lzma")
    return lambda: lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[settings])


def read_range(file: BinaryIO, size: int) -> Read:
    """Return a function that reads the next `size` bytes of a file, and then returns no more.

    The function raises `EOFError` if the file is shorter.
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
