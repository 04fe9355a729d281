"""Reading single segments of an output: where they are comes from the index."""

from __future__ import annotations

import os
import threading
from typing import Any, NamedTuple

import orjson
import zstandard
from isal import isal_zlib

from so2docs.dump.compressed import is_damage
from so2docs.dump.storage import unreadable_output
from so2docs.errors import OutputError
from so2docs.output.compression import LAST_BLOCK, detect_compression
from so2docs.output.index import Entry

_NOT_TO_BE_READ = (OSError, MemoryError)


class FileIdentity(NamedTuple):
    """What tells a file from another under the same name; times in nanoseconds."""

    device: int
    number: int
    size: int
    modified: int


def _identity(status: os.stat_result) -> FileIdentity:
    return FileIdentity(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def replaced_error(path: str) -> OutputError:
    """The error for an output that is another since it was opened."""
    return OutputError(f"{path}: was replaced while being read; run again to read the new file")


class SegmentReader:
    """Reads segments in any order, from any thread."""

    def __init__(self, path: str, identity: FileIdentity | None = None) -> None:
        """Open an output.

        Args:
            path: Its name.
            identity: That of the file that is expected there; any if None.

        Raises:
            OutputError: It cannot be read, or is another file.
        """
        self.path = path
        try:
            self.file = open(path, "rb")  # noqa: SIM115
            self.compression = detect_compression(self.file.read(2))
        except OSError as error:
            raise unreadable_output(path, error) from error
        self.identity = _identity(os.fstat(self.file.fileno()))
        if identity not in (None, self.identity):
            self.close()
            raise replaced_error(path)
        self._lock = threading.Lock()

    def is_replaced(self) -> bool:
        """Whether the file under this name is another by now."""
        try:
            return _identity(os.stat(self.path)) != self.identity
        except OSError:
            return True

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def read(self, entry: Entry) -> bytes:
        """The documents of a segment, as lines.

        Raises:
            OutputError: The bytes are not those that were written.
        """
        try:
            data = self._decompress(self.read_stored(entry), entry.raw_size)
        except Exception as error:
            if not (is_damage(error) or isinstance(error, _NOT_TO_BE_READ)):
                raise
            data = b""  # What is damaged, or an index that says what cannot be.
        if len(data) != entry.raw_size or isal_zlib.crc32(data) != entry.crc:
            raise OutputError(
                f"{self.path}: the documents from question {entry.first_id} on, at byte "
                f"{entry.offset:,}, are damaged; convert the dump again"
            )
        return data

    def _decompress(self, data: bytes, raw_size: int) -> bytes:
        if self.compression == "gzip":
            return bytes(isal_zlib.decompressobj(-15).decompress(data + LAST_BLOCK, raw_size + 1))
        if self.compression == "none":
            return data
        if zstandard.frame_content_size(data) > raw_size:
            raise zstandard.ZstdError("more than the index says")
        return zstandard.ZstdDecompressor().decompress(data, raw_size)

    def read_stored(self, entry: Entry) -> bytes:
        """The bytes of a segment as they are in the file."""
        if hasattr(os, "pread"):
            return os.pread(self.file.fileno(), entry.size, entry.offset)
        with self._lock:  # Windows
            self.file.seek(entry.offset)
            return self.file.read(entry.size)


def find_line(lines: bytes, question_id: int) -> tuple[bytes, dict[str, Any]] | None:
    """The line of a question among those of a segment, and its document."""
    key = b'"Id":%d' % question_id
    at = lines.find(key)
    while at >= 0:
        start = lines.rfind(b"\n", 0, at) + 1
        end = lines.find(b"\n", at)
        end = end if end >= 0 else len(lines)
        # Not the start of a longer number, nor the id of an answer.
        if lines[at + len(key) : at + len(key) + 1] in (b",", b"}"):
            document = orjson.loads(lines[start:end])
            if document["Id"] == question_id:
                return lines[start:end], document
        at = lines.find(key, at + 1)
    # Not there, or written by another program, with white space.
    for line in lines.splitlines():
        document = orjson.loads(line)
        if document["Id"] == question_id:
            return line, document
    return None
