"""A small file system for conversions, which tests can fill at any moment."""

import errno
import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from faults.process import Process

FILLER = "filler"


@contextmanager
def small_disk(folder: Path, size: int = 64_000_000) -> Iterator[Path]:
    """Mount a file system of `size` bytes, and yield its path; without root, an ordinary folder."""
    disk = folder / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]
    with suppress(FileNotFoundError):
        subprocess.run(command, check=False, capture_output=True)
    try:
        yield disk
    finally:
        if disk.is_mount():
            subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill(disk: Path, free_bytes: int) -> None:
    """Fill the disk until only `free_bytes` bytes are free."""
    with (disk / FILLER).open("wb") as file:
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        try:
            os.posix_fallocate(file.fileno(), 0, max(free - free_bytes, 1))
        except OSError as error:
            if error.errno != errno.ENOSPC:  # Otherwise, another process has filled the disk.
                raise


def limit_files(process: Process, size: int) -> None:
    """Limit the file size of a process and its workers: writing fails as on a full disk."""
    for pid in (process.pid, *process.workers()):
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, size))
