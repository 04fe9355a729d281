"""Read the documents of an output: stream the file, or read single segments with the index.

The first bytes of a file distinguish dumps from outputs, and determine the format of an output.
"""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedReader, BytesIO
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, overload

import orjson
from isal import igzip, isal_zlib

from so2docs.dump.compressed import decompress_zstd, is_damage, read_blocks
from so2docs.dump.kinds import PARQUET, SQLITE, detect_kind
from so2docs.dump.storage import check_source, identify, unreadable_output
from so2docs.errors import OutputError
from so2docs.output.compression import LAST_BLOCK, detect_compression
from so2docs.output.segments import Segment
from so2docs.store.disk import read_at
from so2docs.zstd import ZstdError, decompress, get_frame_info

_HEAD_BYTES = 64 * 1024
# Also matches a byte order mark, and every other byte of UTF-16.
BLANK = b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n"

_OTHER_FORMATS = (
    (PARQUET, "Parquet", "DuckDB, pandas or pyarrow"),
    (SQLITE, "an SQLite database", "so2docs serve or sqlite3"),
    (b"[", "a JSON array", "jq or json.load"),
    (b'{"BuildVersion"', "an import file of RavenDB", "RavenDB"),
    (b'{"index"', "bulk lines for Elasticsearch", "Elasticsearch or OpenSearch"),
)
"""Formats that so2docs does not read: first bytes, name, and programs that can read them."""


def read_start(path: str) -> bytes:
    """Read the start of a file, decompressing gzip and zstd; empty if the data are damaged."""
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise unreadable_output(path, error) from error
    compression = detect_compression(head)
    try:
        if compression == "gzip":
            return zlib.decompressobj(31).decompress(head, _HEAD_BYTES)
        if compression == "zstd":
            return bytes(next(decompress_zstd(BytesIO(head).read), b"")[:_HEAD_BYTES])
    except Exception as error:
        if not is_damage(error):
            raise
        return b""
    return head


def is_output(path: str, start: bytes) -> bool:
    """Whether a file is an output of any format; other files are read as dumps."""
    text = start.lstrip(BLANK)
    if text.startswith(b"{") or not_read_back(start) is not None:
        return True
    return ".json" in os.path.basename(path) and not text.startswith(b"<")


def not_read_back(start: bytes) -> tuple[str, str] | None:
    """Return the name of a format that so2docs does not read, and programs that read it."""
    text = start.lstrip(BLANK)
    for magic, file_type, reader in _OTHER_FORMATS:
        if text.startswith(magic):
            return file_type, reader
    return None


def describe_foreign(start: bytes) -> str | None:
    """Describe a file that is not JSON lines, with advice; None for unknown types."""
    if reading := not_read_back(start):
        file_type, reader = reading
        advice = f"use {reader}"
    else:
        kind = detect_kind(start)
        if kind is None and not start.lstrip(BLANK).startswith(b"<"):
            return None
        file_type = "XML" if kind is None else kind.name
        advice = "convert it with so2docs convert first"
    return f"is {file_type}, and so2docs reads back only JSON lines; {advice}"


if TYPE_CHECKING:
    from so2docs.types import Question

Record = TypeVar("Record")

_START_BYTES = 2

MOST_LINE_BYTES = 256 * 1024 * 1024
"""Maximum bytes in a line; this limits how much memory a decompression bomb can use."""


@overload
def read(path: str | os.PathLike[str] | BinaryIO) -> Iterator[Question]: ...
@overload
def read(path: str | os.PathLike[str] | BinaryIO, kind: type[Record]) -> Iterator[Record]: ...
def read(path: str | os.PathLike[str] | BinaryIO, kind: Any = None) -> Iterator[Any]:
    """Stream the documents of an output, or of any JSON lines.

    Args:
        path: Name of a file, or an open binary file, which is left open. The file may be
            compressed with gzip or zstd.
        kind: Type of a line for type checkers, such as `dict` for the records of a recipe; a
            `Question` if None. It is not checked at run time.

    Returns:
        An iterator over questions, each with its answers under `Answers`.

    Raises:
        OutputError: The file is missing. While iterating: the file is damaged, or a line is not
            JSON.
        OptionError: The path is a text file object, or neither a path nor a file object.
    """
    check_source(path, "the output")
    if isinstance(path, str | os.PathLike):
        name = os.fspath(path)
        try:
            # Do not open the file for this check: it may be a pipe, which can be opened only once.
            os.stat(path)
        except OSError as error:
            raise unreadable_output(name, error) from error
    else:
        name = str(getattr(path, "name", "the file"))
    return (parse_document(line, name, n) for n, line in enumerate(read_lines(path), 1))


def parse_document(line: bytes, name: str, number: int) -> Any:
    """Parse the document on line `number` of the file `name`."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        if number == 1 and (foreign := describe_foreign(line)):
            raise OutputError(f"{name}: {foreign}") from None
        raise OutputError(
            f"{name}: line {number:,} is not JSON ({error}); convert the dump again"
        ) from None


def read_lines(path: str | os.PathLike[str] | BinaryIO) -> Iterator[bytes]:
    """Yield the lines of an output, decompressed, with their line feeds."""
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
    if isinstance(file, BufferedReader):  # The file may be a pipe.
        start = file.peek(_START_BYTES)
    else:
        start = file.read(_START_BYTES)
        file.seek(-len(start), os.SEEK_CUR)
    compression = detect_compression(start)
    decoder: Any = igzip
    source: Any = decoder.open(file) if compression == "gzip" else file
    blocks = decompress_zstd(file.read) if compression == "zstd" else read_blocks(source.read)
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
            f"{name}: is damaged or truncated in line {number:,} ({error}); convert the dump again"
        ) from error


def _whole_lines(blocks: Iterator[Any]) -> Iterator[bytes]:
    """Split blocks into lines, with their line feeds; raise `EOFError` if a line is too long."""
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


_NOT_TO_BE_READ = (OSError, MemoryError)


class SegmentReader:
    """Reads the segments of an output in any order, from any thread."""

    def __init__(self, path: str) -> None:
        """Open an output."""
        self.path = path
        try:
            self.file = open(path, "rb")  # noqa: SIM115
            self.compression = detect_compression(self.file.read(2))
        except OSError as error:
            raise unreadable_output(path, error) from error
        self._identity = identify(path, self.file)
        self._lock = threading.Lock()

    def check_current(self) -> None:
        """Raise `OutputError` if the path now leads to a file other than the open one."""
        with suppress(OSError):
            if identify(self.path) == self._identity:
                return
        raise OutputError(
            f"{self.path}: was replaced while being read; run again to read the new file"
        )

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def read(self, segment: Segment) -> bytes:
        """Read and decompress the lines of a segment; raise `OutputError` if it is damaged."""
        try:
            data = self._decompress(self.read_stored(segment), segment.raw_size)
        except Exception as error:
            if not (is_damage(error) or isinstance(error, _NOT_TO_BE_READ)):
                raise
            data = b""  # The segment is damaged, or the index has impossible values.
        if len(data) != segment.raw_size or isal_zlib.crc32(data) != segment.crc:
            raise OutputError(
                f"{self.path}: the documents from question {segment.first_id} on, at byte "
                f"{segment.offset:,}, are damaged; convert the dump again"
            )
        return data

    def _decompress(self, data: bytes, raw_size: int) -> bytes:
        if self.compression == "gzip":
            return bytes(isal_zlib.decompressobj(-15).decompress(data + LAST_BLOCK, raw_size + 1))
        if self.compression == "none":
            return data
        return decompress_frame(data, raw_size)

    def read_stored(self, segment: Segment) -> bytes:
        """Read the bytes of a segment, still compressed."""
        if hasattr(os, "pread"):
            return read_at(self.file.fileno(), segment.size, segment.offset)
        with self._lock:  # Windows has no `pread`.
            self.file.seek(segment.offset)
            return self.file.read(segment.size)


def decompress_frame(data: bytes, raw_size: int) -> bytes:
    """Decompress a zstd frame; raise `ZstdError` if its content does not have `raw_size` bytes."""
    if get_frame_info(data).decompressed_size != raw_size:
        raise ZstdError("the frame has another size")
    return decompress(data)
