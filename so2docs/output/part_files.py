"""Check output paths, and name side files.

Programs that read a folder or a glob of outputs must skip index, strays, manifest and lock. Some
(Spark, Arrow, Hugging Face, shells) skip names with a leading dot. Others (DuckDB, Polars,
ClickHouse) are given globs such as `*.parquet`, which skip names without a data extension. The name
of a side file contains the whole name of its output, so that outputs in two formats do not share
side files.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from isal import isal_zlib

from so2docs.errors import (
    OutputError,
    flag,
)

CARD = "README.md"
"""Name of the card of a folder."""

INDEX, STRAYS, MANIFEST, LOCK, RECORD = "index", "strays", "manifest", "lock", "record"
FAILED = "failed"
"""Side file of a site in a folder of outputs: the error, if its conversion failed."""


def side_file(output: str, kind: str) -> str:
    """Return the path of a side file of an output, such as its index, strays or manifest."""
    folder, name = os.path.split(follow(output))
    return os.path.join(folder, f".{name}.{kind}")


def follow(path: str) -> str:
    """Return the path that a symbolic link leads to; any other path is returned unchanged."""
    return os.path.realpath(path) if os.path.islink(path) else path


@dataclass(frozen=True, slots=True)
class TargetKind:
    """A kind of file written on request, such as reports; it replaces only files of this kind.

    Attributes:
        option: Keyword of the option that names the file; empty if a command names it.
        starts: First bytes of such files.
    """

    name: str
    option: str
    starts: tuple[bytes, ...]


# JSON lines never start with these bytes.
REPORT = TargetKind("report", "report", (b"{\n  ", b"[\n  ", b"[]\n"))


def check_folder(path: str, advice: str = "choose another output") -> None:
    """Reject a path whose folder is missing or not writable."""
    folder = os.path.dirname(follow(path)) or "."
    if not os.path.isdir(folder):
        raise OutputError(f"{path}: the folder {folder} {describe_missing_folder(folder, advice)}")
    if not os.access(folder, os.W_OK):
        raise OutputError(f"{path}: the folder {folder} is not writable; {advice}")


def describe_missing_folder(folder: str, advice: str) -> str:
    """Explain in a message why `folder` is not a folder: it is a file, or does not exist."""
    if os.path.exists(folder):
        return f"is a file, not a folder; {advice}"
    return "does not exist; create it first"


def check_replaceable(path: str, read: Iterable[str | None] = ()) -> None:
    """Reject a path that is an input, or that exists and is not a regular file."""
    try:
        mode = os.stat(path).st_mode  # One call, since another process may remove the file.
    except (OSError, ValueError):
        mode = stat.S_IFREG
    if stat.S_ISDIR(mode):
        raise OutputError(f"{path}: is a folder; give the name of a file")
    if not stat.S_ISREG(mode):
        raise OutputError(
            f"{path}: is a device or a pipe and cannot be replaced by a file; choose another "
            "output (- for standard output)"
        )
    for file in read:
        if file and is_same(path, file):
            raise OutputError(f"{path}: is also an input; choose another output")


def check_own(path: str, kind: TargetKind, read: Iterable[str] = ()) -> None:
    """Reject a path that cannot be written, is an input, or is a file not of this kind."""
    advice = f"choose another {flag(kind.option) if kind.option else 'DIR'}"
    if not path:
        raise OutputError(
            f"the name of the {kind.name} is empty, perhaps from an unset variable; {advice}"
        )
    is_folder, is_device = os.path.isdir(path), os.path.exists(path) and not os.path.isfile(path)
    if is_folder or (is_device and not os.access(path, os.W_OK)):
        raise OutputError(f"{path}: the {kind.name} cannot be written there; {advice}")
    if not is_device:
        check_folder(path, advice)
    for other in read:
        if os.path.realpath(path) == os.path.realpath(other) or is_same(path, other):
            raise OutputError(f"{path}: is the same file as {other}; {advice}")
    if os.path.isfile(path) and os.path.getsize(path):
        with open(path, "rb") as file:
            start = file.read(max(map(len, kind.starts)))
        if not start.startswith(kind.starts):
            raise OutputError(f"{path}: exists and is not a {kind.name}; {advice}")


def is_same(path: str, other: str) -> bool:
    """Whether two paths lead to the same existing file, directly or through links."""
    return os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)


_READ_BYTES = 4 * 1024 * 1024
_NOT_FOR_FOLDERS = {errno.EINVAL, errno.ENOTSUP, errno.EACCES}
"""Errors to ignore when syncing a folder: it may be unreadable, or its file system cannot sync it.
"""


def remove(path: str) -> None:
    """Remove a file if it exists."""
    Path(path).unlink(missing_ok=True)


def crc_of(file: IO[bytes], size: int) -> int:
    """Compute the CRC-32 of the next `size` bytes of a file; raise `EOFError` if it has fewer."""
    crc = 0
    while size:
        data = file.read(min(size, _READ_BYTES))
        if not data:
            raise EOFError
        crc = isal_zlib.crc32(data, crc)
        size -= len(data)
    return crc


def sync_folder(path: str) -> None:
    """Sync a folder to disk, if the system can."""
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
