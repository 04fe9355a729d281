"""Reading documents back, one at a time."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from io import BufferedReader
from typing import Any, BinaryIO

import orjson
import zstandard
from isal import igzip

from so2docs.errors import OutputError

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGICS = (b"\x28\xb5", b"\x5e\x2a")  # of a frame, and of one to skip
_READ_BYTES = 256 * 1024


def read(path: str | os.PathLike[str] | BinaryIO) -> Iterator[dict[str, Any]]:
    """Read the documents of an output (or of any JSON lines), streamed.

    Args:
        path: A file name, or an open binary file, which is left open. Compressed by gzip or
            zstd or not.

    Yields:
        One question a time, its answers under `Answers`.

    Raises:
        OutputError: The file cannot be opened, is damaged, or a line is not JSON.
    """
    name = path if isinstance(path, str | os.PathLike) else getattr(path, "name", "the file")
    for number, line in enumerate(lines_of(path), 1):
        try:
            document = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise OutputError(f"{name}: line {number:,} is not JSON ({error})") from None
        yield document


def lines_of(path: str | os.PathLike[str] | BinaryIO) -> Iterator[bytes]:
    """The lines of an output, as `read` reads them, each with its end."""
    if not isinstance(path, str | os.PathLike):
        yield from _lines(path, getattr(path, "name", "the file"))
        return
    name = os.fspath(path)
    try:
        file = open(name, "rb")  # noqa: SIM115
    except OSError as error:
        raise OutputError(f"{name}: cannot be read: {error.strerror or error}") from error
    with file:
        yield from _lines(file, name)


def _lines(file: BinaryIO, name: str) -> Iterator[bytes]:
    if isinstance(file, BufferedReader):  # A pipe, perhaps.
        start = file.peek(len(_GZIP_MAGIC))[: len(_GZIP_MAGIC)]
    else:
        start = file.read(len(_GZIP_MAGIC))
        file.seek(-len(start), os.SEEK_CUR)
    opened: Any = igzip
    lines: Iterable[bytes] = file
    if start == _GZIP_MAGIC:
        lines = opened.open(file)
    elif start in _ZSTD_MAGICS:
        lines = _zstd_lines(file)
    number = 1
    try:
        for line in lines:
            yield line
            number += 1
    except (EOFError, OSError, zlib.error, zstandard.ZstdError) as error:
        raise OutputError(
            f"{name}: is damaged or cut off in line {number:,} ({error}); convert the dump again"
        ) from error


def _zstd_lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a zstd stream of any number of frames; `EOFError` if the last is cut off."""
    decompressor = zstandard.ZstdDecompressor()
    frame = decompressor.decompressobj()
    is_inside = False
    rest = b""
    while data := file.read(_READ_BYTES):
        while data:
            text = rest + frame.decompress(data)
            is_inside, data = not frame.eof, frame.unused_data
            if not is_inside:
                frame = decompressor.decompressobj()
            *lines, rest = text.splitlines(keepends=True) or [b""]
            if rest.endswith(b"\n"):
                lines, rest = [*lines, rest], b""
            yield from lines
    if is_inside:
        raise EOFError("a frame is not complete")
    if rest:
        yield rest
