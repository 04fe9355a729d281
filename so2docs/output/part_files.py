"""Output files under their provisional names: how they grow, and how they get their final ones."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import RawIOBase
from pathlib import Path
from typing import BinaryIO

from isal import isal_zlib

from so2docs.errors import DiskFullError, OutputError, So2docsError
from so2docs.output.side_files import INDEX, side_file
from so2docs.store.disk import is_full, write_all

_COPY_BYTES = 256 * 1024
_READ_BYTES = 4 * 1024 * 1024


class PartFile:
    """A file that grows under `NAME.part`; of `-`, standard output.

    Attributes:
        path: The final name.
        part: The provisional one.
        size: Bytes so far.
        crc: CRC-32 of those.
    """

    def __init__(self, path: str, size: int = 0, crc: int = 0) -> None:
        """Start a file, or take up the first `size` bytes of one, which have this CRC-32.

        Raises:
            OutputError: The folder is missing or not writable.
            DiskFullError: The disk is full.
        """
        self.path = path
        self.part = f"{path}.part"
        self.size = size
        self.crc = crc
        self._file: RawIOBase | BinaryIO | None = None
        with self._explained():
            if path == "-":
                if sys.stdout is None:  # It was closed before Python started.
                    raise OutputError("standard output is closed; name a file instead of -")
                self._file = sys.stdout.buffer

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what the system says into what a user can act on."""
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            raise output_error(self.path if self.path == "-" else self.part, error) from error

    def _opened(self) -> RawIOBase | BinaryIO:
        if self._file is None:
            self._file = open(self.part, "r+b" if self.size else "wb", buffering=0)  # noqa: SIM115
            if self.size:
                self._file.seek(self.size)
                self._file.truncate()
        return self._file

    def write(self, data: bytes) -> None:
        """Append bytes."""
        with self._explained():
            write_all(self._opened(), data)
        self.size += len(data)
        self.crc = isal_zlib.crc32(data, self.crc)

    def copy(self, path: str, offset: int, size: int, crc: int) -> None:
        """Append bytes of another file, whose CRC-32 is known."""
        with self._explained(), open(path, "rb", buffering=0) as source:
            left = size - self._copy_in_kernel(source, offset, size)
            source.seek(offset + size - left)
            while left and (data := source.read(min(left, _COPY_BYTES))):
                write_all(self._opened(), data)
                left -= len(data)
        if left:
            raise OutputError(f"{path}: is cut off", retry="")
        self.size += size
        self.crc = isal_zlib.crc32_combine(self.crc, crc, size)

    def _copy_in_kernel(self, source: RawIOBase, offset: int, size: int) -> int:
        """Copy without reading, where system and file system can; the bytes that were copied."""
        done = 0
        if self.path == "-" or not hasattr(os, "copy_file_range"):
            return done
        target = self._opened().fileno()
        while done < size:
            try:
                copied = os.copy_file_range(
                    source.fileno(), target, size - done, offset_src=offset + done
                )
            except OSError as error:
                if is_full(error):
                    raise
                break
            if not copied:
                break
            done += copied
        return done

    def finish(self) -> None:
        """Close the file when all of it is on the disk."""
        with self._explained():
            file = self._opened()
            if self.path == "-":
                file.flush()
            else:
                os.fsync(file.fileno())
                file.close()

    def close(self) -> None:
        """Close the file as it is; what is written next opens it again."""
        if self._file is not None and self.path != "-":
            self._file.close()
            self._file = None

    def discard(self) -> None:
        """Remove what was written."""
        self.close()
        if self.path != "-":
            Path(self.part).unlink(missing_ok=True)


def begins_with(path: str, size: int, crc: int) -> bool:
    """Whether the first bytes of a file have this CRC-32.

    Reads them, at the speed of the disk: far less than writing them again, and the length alone
    would not show a byte that changed, nor what a power cut left unwritten.
    """
    found = 0
    try:
        with open(path, "rb", buffering=0) as file:
            while size and (data := file.read(min(size, _READ_BYTES))):
                found = isal_zlib.crc32(data, found)
                size -= len(data)
    except OSError:
        return False
    return not size and found == crc


def is_sealed(path: str, size: int) -> bool:
    """Whether a file that was sealed with so many bytes is there, under one of its names."""
    if path == "-":
        return True
    part = Path(f"{path}.part")
    found = part if part.exists() else Path(path)
    return found.is_file() and found.stat().st_size == size


def publish(path: str, size: int) -> bool:
    """Give a sealed file its name, after its index, unless an earlier session already did.

    Returns:
        Whether a file of that size has it.
    """
    if path == "-":
        return True
    try:
        for name in (side_file(path, INDEX), path):
            if os.path.exists(f"{name}.part"):
                os.replace(f"{name}.part", name)
        return os.path.getsize(path) == size
    except FileNotFoundError:
        return False
    except OSError as error:
        raise output_error(path, error) from error


def output_error(path: str, error: OSError) -> So2docsError:
    """The error for a file that the system will not write."""
    if is_full(error):
        return DiskFullError(f"{path}: the disk is full", retry="free some room")
    return OutputError(f"{path}: cannot be written: {error.strerror or error}", retry="fix this")
