"""Reading documents back, one at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import BufferedReader, BytesIO
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, overload

import orjson
import zstandard
from isal import igzip

from so2docs.dump.compressed import is_damage
from so2docs.dump.storage import unreadable_output
from so2docs.errors import OutputError
from so2docs.output.compression import detect_compression
from so2docs.reader.file_kinds import not_read_back

if TYPE_CHECKING:
    from so2docs.types import Question

Record = TypeVar("Record")

_START_BYTES = 2
_READ_BYTES = 256 * 1024
_END = b"\0the end\0"
_END_FRAME = zstandard.compress(_END)

MOST_LINE_BYTES = 256 * 1024 * 1024
"""A longer line is no document that can be read back; bounds what a bomb takes of memory."""


@overload
def read(path: str | os.PathLike[str] | BinaryIO) -> Iterator[Question]: ...
@overload
def read(path: str | os.PathLike[str] | BinaryIO, kind: type[Record]) -> Iterator[Record]: ...
def read(path: str | os.PathLike[str] | BinaryIO, kind: Any = None) -> Iterator[Any]:
    """Read the documents of an output (or of any JSON lines), streamed.

    Args:
        path: A file name, or an open binary file, which is left open. Compressed by gzip or
            zstd or not.
        kind: What type checkers take the lines for, such as `dict` for the records of a recipe; a
            `Question` if None. Nothing is checked at run time.

    Returns:
        An iterator: one question a time, its answers under `Answers`.

    Raises:
        OutputError: There is no such file; or, when its turn comes, it is damaged, or a line is not
            JSON.
    """
    if isinstance(path, str | os.PathLike):
        try:
            os.stat(path)  # Opened only to be read, once: it may be a pipe.
        except OSError as error:
            name = os.fspath(path)
            raise unreadable_output(name, error) from error
    return _documents(path)


def _documents(path: str | os.PathLike[str] | BinaryIO) -> Iterator[dict[str, Any]]:
    name = path if isinstance(path, str | os.PathLike) else getattr(path, "name", "the file")
    for number, line in enumerate(read_lines(path), 1):
        try:
            document = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            if number == 1 and (reading := not_read_back(line)):
                what, reader = reading
                raise OutputError(
                    f"{name}: is {what}, and only JSON lines are read; read it with {reader}"
                ) from None
            raise OutputError(
                f"{name}: line {number:,} is not JSON ({error}); convert the dump again"
            ) from None
        yield document


def read_lines(path: str | os.PathLike[str] | BinaryIO) -> Iterator[bytes]:
    """The lines of an output, as `read` reads them, each with its end."""
    if not isinstance(path, str | os.PathLike):
        yield from _lines(path, getattr(path, "name", "the file"))
        return
    name = os.fspath(path)
    try:
        file = open(name, "rb")  # noqa: SIM115
    except OSError as error:
        raise unreadable_output(name, error) from error
    with file:
        yield from _lines(file, name)


def _lines(file: BinaryIO, name: str) -> Iterator[bytes]:
    if isinstance(file, BufferedReader):  # A pipe, perhaps.
        start = file.peek(_START_BYTES)
    else:
        start = file.read(_START_BYTES)
        file.seek(-len(start), os.SEEK_CUR)
    compression = detect_compression(start)
    decoder: Any = igzip
    source: Any = decoder.open(file) if compression == "gzip" else file
    blocks = _zstd_blocks(file) if compression == "zstd" else _blocks(source)
    number = 1
    try:
        for line in _whole_lines(blocks):
            yield line
            number += 1
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise unreadable_output(name, error) from error
        if not is_damage(error):
            raise
        raise OutputError(
            f"{name}: is damaged or cut off in line {number:,} ({error}); convert the dump again"
        ) from error


def _blocks(file: Any) -> Iterator[bytes]:
    while data := file.read(_READ_BYTES):
        yield data


def _whole_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Lines with their ends; `EOFError` where one is longer than any document."""
    buffer = bytearray()
    for block in blocks:
        end = block.find(b"\n") + 1
        buffer += block[:end] if end else block
        if len(buffer) > MOST_LINE_BYTES:
            raise EOFError(f"it is longer than {MOST_LINE_BYTES >> 20} MiB")
        if end:
            yield bytes(buffer)
            last = block.rfind(b"\n") + 1
            yield from BytesIO(block[end:last])
            buffer = bytearray(block[last:])
    if buffer:
        yield bytes(buffer)


class _Ended:
    """A file with a frame of zstd after its end, which shows that the one before is complete."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._end = _END_FRAME

    def read(self, size: int) -> bytes:
        if data := self._file.read(size):
            return data
        data, self._end = self._end, b""
        return data


def _zstd_blocks(file: BinaryIO) -> Iterator[bytes]:
    """What any number of zstd frames hold; `EOFError` if the last is cut off."""
    reader: Any = _Ended(file)
    tail = b""
    for block in _blocks(
        zstandard.ZstdDecompressor().stream_reader(reader, read_across_frames=True)
    ):
        tail += block
        yield tail[: -len(_END)]
        tail = tail[-len(_END) :]
    if tail != _END:
        raise EOFError("a frame is not complete")
