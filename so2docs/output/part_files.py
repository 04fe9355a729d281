"""Output files under their temporary names: how they grow, and how they get their final ones.

A file of the same size must not pass for a finished one, which is known by its inode and time, and
in a later session by the CRC-32 of all of its bytes.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from io import RawIOBase
from pathlib import Path
from typing import Any, BinaryIO

from isal import isal_zlib

from so2docs.dump.storage import FileIdentity, identify
from so2docs.errors import DiskFullError, OutputError, So2docsError
from so2docs.output.targets import INDEX, side_file
from so2docs.store.disk import is_full, write_all

_COPY_BYTES = 256 * 1024
_READ_BYTES = 4 * 1024 * 1024
_NOT_FOR_FOLDERS = {errno.EINVAL, errno.ENOTSUP, errno.EACCES}
"""Some file systems sync no folders, and a folder may be closed to readers."""


PART = ".part"
"""What follows the name of a file until it is whole."""


def part_path(path: str) -> str:
    """The name of a file until it is whole."""
    return path + PART


def remove(path: str) -> None:
    """Remove a file that may not be there."""
    Path(path).unlink(missing_ok=True)


class LostFileError(OutputError):
    """A finished file is gone, or is not what was written, before it has its name.

    Attributes:
        path: Its final name.
    """

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{part_path(path)}: was removed or changed",
            retry="make sure that no other program changes it",
        )
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.path,)


@dataclass(frozen=True, slots=True)
class CompleteFile:
    """A file that is whole and on the disk, under its temporary name or the final one.

    Attributes:
        size: Its bytes.
        crc: CRC-32 of those; None where a library wrote them.
        label: The part of its name that is its own, where an output has several files.
        identity: Device, inode and modification time; None for a file of an earlier session.
        index: The index next to it, if it has one, which is published with it.
    """

    size: int
    crc: int | None
    label: str = ""
    identity: FileIdentity | None = field(default=None, compare=False)
    index: CompleteFile | None = None

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> CompleteFile:
        """A file of an earlier session, from its fields by name."""
        index = values["index"] and cls.from_json(values["index"])
        return cls(values["size"], values["crc"], values["label"], index=index)

    def as_verified(self, path: str) -> CompleteFile:
        """Mark the file as verified, so that its bytes are not read again."""
        index = self.index and self.index.as_verified(side_file(path, INDEX))
        return replace(self, identity=identify(part_path(path)), index=index)

    def all_files(self, path: str) -> list[tuple[str, CompleteFile]]:
        """Its index, if there is one, and itself, each with its name."""
        side = [(side_file(path, INDEX), self.index)] if self.index else []
        return [*side, (path, self)]

    def find(self, path: str) -> str | None:
        """The name that it has, of the two; None if it is lost.

        Reads a file that an earlier session wrote.
        """
        for name in (part_path(path), path):
            with explain_errors(name), suppress(FileNotFoundError):
                identity = identify(name)
                if identity.size != self.size:
                    continue
                if self.identity == identity:
                    return name
                if self.crc is not None and begins_with(name, self.size, self.crc):
                    return name
        return None


@dataclass(frozen=True, slots=True)
class Copy:
    """Bytes of a file that belong into another one.

    Attributes:
        source: The file that has them.
        offset: Where they start in it.
        size: Their number.
        target: The file that gets them.
        at: Where they start in that.
    """

    source: str
    offset: int
    size: int
    target: str
    at: int

    def join(self, other: Copy) -> Copy | None:
        """Both in one, if the other continues this one."""
        end = replace(self, offset=self.offset + self.size, at=self.at + self.size, size=other.size)
        return replace(self, size=self.size + other.size) if end == other else None


class PartFile:
    """A file that grows under `NAME.part`; of `-`, standard output.

    Attributes:
        path: The final name.
        part: The temporary one.
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
        self.part = part_path(path)
        self.size = size
        self.crc = crc
        self._file: RawIOBase | BinaryIO | None = None
        with self._translate_errors():
            if path == "-":
                if sys.stdout is None:  # It was closed before Python started.
                    raise OutputError("standard output is closed; name a file instead of -")
                self._file = sys.stdout.buffer

    def _translate_errors(self) -> AbstractContextManager[None]:
        return explain_errors(self.path if self.path == "-" else self.part)

    def _open(self) -> RawIOBase | BinaryIO:
        if self._file is None:
            if not self.size:
                remove(self.part)  # It may be a link to something else.
            self._file = open(self.part, "r+b" if self.size else "xb", buffering=0)  # noqa: SIM115
            if self.size:
                self._file.seek(self.size)
                self._file.truncate()
        return self._file

    def write(self, data: bytes) -> None:
        """Append bytes."""
        with self._translate_errors():
            write_all(self._open(), data)
        self.size += len(data)
        self.crc = isal_zlib.crc32(data, self.crc)

    def copy(self, path: str, offset: int, size: int, crc: int) -> None:
        """Append bytes of another file, whose CRC-32 is known."""
        if self.path != "-":
            copy_all([self.place(path, offset, size, crc)])
            return
        with self._translate_errors(), open(path, "rb", buffering=0) as source:
            source.seek(offset)
            _copy_by_reading(path, source, self._open(), size)
        self._count(size, crc)

    def place(self, path: str, offset: int, size: int, crc: int) -> Copy:
        """Leave room for bytes of another file, whose CRC-32 is known; not on standard output.

        Returns:
            What is to be copied, by any process, before the file is finished.
        """
        with self._translate_errors():
            self._open().seek(self.size + size)
        copy = Copy(path, offset, size, self.part, self.size)
        self._count(size, crc)
        return copy

    def _count(self, size: int, crc: int) -> None:
        self.size += size
        self.crc = isal_zlib.crc32_combine(self.crc, crc, size)

    def finish(self, label: str = "") -> CompleteFile:
        """Close the file when all of it is on the disk."""
        with self._translate_errors():
            file = self._open()
            if self.path == "-":
                file.flush()
                return CompleteFile(self.size, self.crc, label)
            os.fsync(file.fileno())
            self.close()
            return CompleteFile(self.size, self.crc, label, identify(self.part))

    def close(self) -> None:
        """Close the file; what is written next opens it again."""
        if self._file is not None and self.path != "-":
            self._file.close()
            self._file = None

    def discard(self) -> None:
        """Remove what was written."""
        self.close()
        if self.path != "-":
            remove(self.part)


def copy_all(copies: Iterable[Copy]) -> None:
    """Copy bytes between files.

    A process that is killed here may still write for a moment while another one resumes what it
    did: the same bytes in the same place, since a file that is started again is another file.

    Raises:
        OutputError: A source is cut off, or a target cannot be written.
        DiskFullError: The disk is full.
    """
    for copy in copies:
        with (
            explain_errors(copy.target),
            open(copy.source, "rb", buffering=0) as source,
            open(copy.target, "r+b", buffering=0) as target,
        ):
            source.seek(copy.offset)
            target.seek(copy.at)
            remaining = copy.size - _copy_in_kernel(source, target, copy.size)
            _copy_by_reading(copy.source, source, target, remaining)


def _copy_in_kernel(source: RawIOBase, target: RawIOBase, size: int) -> int:
    """Copy without reading, where system and file system can; the bytes that were copied."""
    total = 0
    while total < size and hasattr(os, "copy_file_range"):
        try:
            copied = os.copy_file_range(source.fileno(), target.fileno(), size - total)
        except OSError as error:
            if is_full(error):
                raise
            break
        if not copied:
            break
        total += copied
    return total


def _copy_by_reading(path: str, source: RawIOBase, target: RawIOBase | BinaryIO, size: int) -> None:
    while size and (data := source.read(min(size, _COPY_BYTES))):
        write_all(target, data)
        size -= len(data)
    if size:
        raise OutputError(f"{path}: is cut off", retry="")


def begins_with(path: str, size: int, crc: int) -> bool:
    """Whether the first bytes of a file have this CRC-32.

    Reads them, at the speed of the disk: far less than writing them again, and the length alone
    would not show a byte that changed, nor what a power cut left unwritten.
    """
    actual = 0
    try:
        with open(path, "rb", buffering=0) as file:
            while size and (data := file.read(min(size, _READ_BYTES))):
                actual = isal_zlib.crc32(data, actual)
                size -= len(data)
    except OSError:
        return False
    return not size and actual == crc


def write_part(path: str, data: bytes) -> CompleteFile:
    """Write a small file under its temporary name.

    Raises:
        OutputError: It cannot be written.
        DiskFullError: The disk is full.
    """
    file = PartFile(path)
    try:
        file.write(data)
        return file.finish()
    except BaseException:
        with suppress(OSError):
            file.discard()
        raise


def finish_file(path: str) -> CompleteFile:
    """Bring a file to the disk that a library wrote under its temporary name.

    Raises:
        OutputError: That cannot be done.
        DiskFullError: The disk is full.
    """
    part = part_path(path)
    with explain_errors(part):
        with open(part, "r+b") as file:
            os.fsync(file.fileno())
        identity = identify(part)
        return CompleteFile(identity.size, None, identity=identity)


def publish(files: Sequence[tuple[str, CompleteFile]]) -> None:
    """Give finished files their names, in this order, each after its index.

    Raises:
        LostFileError: One of them is lost; none gets its name then.
        OutputError: A name cannot be given.
        DiskFullError: The disk is full.
    """
    every = [pair for path, file in files if path != "-" for pair in file.all_files(path)]
    sources = {path: file.find(path) for path, file in every}
    for path, name in sources.items():
        if name is None:
            raise LostFileError(path)
    for path, name in sources.items():
        with explain_errors(path):
            if name == path:  # An earlier session gave it its name.
                remove(part_path(path))
            else:
                os.replace(part_path(path), path)
    for folder in {os.path.dirname(path) or "." for path in sources}:
        with explain_errors(folder):
            _sync_folder(folder)


def _sync_folder(path: str) -> None:
    """Bring the names in a folder to the disk."""
    if os.name == "nt":
        return
    try:
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        if error.errno not in _NOT_FOR_FOLDERS:
            raise


@contextmanager
def explain_errors(path: str) -> Iterator[None]:
    """Turn what the system says of a file that is written into an error with advice."""
    try:
        yield
    except (BrokenPipeError, So2docsError):
        raise
    except OSError as error:
        if is_full(error):
            raise DiskFullError(f"{path}: the disk is full", retry="free some room") from error
        message = f"{path}: cannot be written: {error.strerror or error}"
        raise OutputError(message, retry="fix this") from error
