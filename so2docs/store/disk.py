"""Disk space: estimate it before a conversion, and explain a full disk."""

from __future__ import annotations

import os
import shutil
import sys
from io import RawIOBase
from pathlib import Path
from typing import BinaryIO, Literal

from so2docs.errors import DiskFullError, damaged_spill_error, flag
from so2docs.report import as_size

# Sizes relative to the dump, measured on published and generated dumps, plus a margin.
_SPILL_SHARE = 0.38
_OUTPUT_SHARE = {"gzip": 0.36, "zstd": 0.36, "none": 1.0}


def open_files_limit() -> int:
    """Return the maximum number of files that this process may have open."""
    try:
        import resource
    except ImportError:  # Windows
        return 512
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def check_room(dump_bytes: int, spill: Path, output: str, compression: str) -> int:
    """Raise `DiskFullError` if spill and output will not fit on their disks.

    Returns:
        Bytes that will be left on the disk of the spill; below 0 if unknown.
    """
    spilled = sum(path.stat().st_size for path in spill.iterdir())
    needs = [("the spill", spill, dump_bytes * _SPILL_SHARE - spilled)]
    if output != "-":
        size = dump_bytes * _OUTPUT_SHARE[compression]
        needs.append(("the output", Path(output).parent, size))
    needed: dict[int, tuple[list[str], Path, float]] = {}
    for purpose, folder, size in needs:
        device = os.stat(folder).st_dev
        names, _, reserved = needed.get(device, ([], folder, 0.0))
        needed[device] = ([*names, purpose], folder, reserved + max(0.0, size))
    for names, folder, size in needed.values():
        free = free_bytes(folder)
        if free is not None and free < size:
            movable = f", or put the spill elsewhere with {flag('work_dir')}"
            raise DiskFullError(
                f"{folder}: about {as_size(size)} is needed for {' and '.join(names)} "
                f"(dump: {as_size(dump_bytes)}), but only {as_size(free)} is available; "
                f"free some space{movable if 'the spill' in names else ''}"
            )
    _, _, size = needed[os.stat(spill).st_dev]
    return int((free_bytes(spill) or 0) - size)


def free_bytes(folder: str | Path) -> int | None:
    """Return the free space on the disk of a folder; None for a disk that reports no size."""
    usage = shutil.disk_usage(folder)
    return usage.free if usage.total else None


def lock_file(file: int) -> bool:
    """Lock an open file until it is closed; return whether it is locked.

    Raises:
        BlockingIOError: Another process holds the lock.
    """
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except (ImportError, OSError):  # Windows has no `fcntl`, and some file systems have no locks.
        return False
    return True


def write_all(file: RawIOBase | BinaryIO, data: bytes | bytearray) -> None:
    """Write all bytes to a raw file, even if each write accepts only a part of them."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) or 0 :]


class AppendedFile:
    """An unbuffered file that is only appended to; errors contain its name.

    Attributes:
        path: Name of the file.
        size: Bytes written so far.
    """

    def __init__(self, path: str, mode: Literal["wb", "w+b"] = "wb") -> None:
        self.path, self.size = path, 0
        self._file = open(path, mode, buffering=0)  # noqa: SIM115
        self.close = self._file.close

    @property
    def number(self) -> int:
        """The file descriptor."""
        return self._file.fileno()

    def write(self, data: bytes | bytearray) -> int:
        """Append bytes, and return their offset."""
        start = self.size
        try:
            write_all(self._file, data)
        except OSError as error:
            error.filename = self.path
            raise
        self.size += len(data)
        return start


def open_finished(path: str) -> int:
    """Open a finished file of the spill to read it; return its descriptor.

    Raises:
        SpillError: The file cannot be opened.
    """
    try:
        return os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise damaged_spill_error(path, error.strerror) from error


def read_at(file: int, size: int, offset: int) -> bytes:
    """Read `size` bytes at `offset`, or fewer only at the end of the file; repeat short reads."""
    data = _read_once(file, size, offset)
    while len(data) < size and (part := _read_once(file, size - len(data), offset + len(data))):
        data += part
    return data


def _seek_and_read(file: int, size: int, offset: int) -> bytes:
    os.lseek(file, offset, os.SEEK_SET)
    return os.read(file, size)


_read_once = getattr(os, "pread", _seek_and_read)  # Windows has no `pread`.
