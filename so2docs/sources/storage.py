"""Files by path or by URL: what is read from, and written to, a disk or an object store.

A path is a file of this system. A URL (`s3://`, `gs://`, `hdfs://`, and whatever else has a driver)
goes through fsspec, which is imported for the first of them.
"""

from __future__ import annotations

import glob
import os
import shutil
import zlib
from typing import Any, BinaryIO, cast

from so2docs.errors import DumpError, OptionError

Identity = tuple[int, int, int]
"""Size in bytes, modification time and inode, or what a store has instead: to notice a change."""

_READ_AHEAD = 1024 * 1024


def is_url(path: str) -> bool:
    """Whether a path is a URL."""
    return "://" in path


def open_file(path: str) -> BinaryIO:
    """Open a file to read from any place in it."""
    if not is_url(path):
        return open(path, "rb", buffering=0)
    system, name = _system(path)
    return cast(BinaryIO, system.open(name, "rb", block_size=_READ_AHEAD))


def identity(path: str, file: BinaryIO | None = None) -> Identity:
    """What tells the file (an open one, or the one of that path) from another."""
    if not is_url(path):
        status = os.stat(path) if file is None else os.fstat(file.fileno())
        return status.st_size, status.st_mtime_ns, status.st_ino
    system, name = _system(path)
    system.invalidate_cache()
    found = system.info(name)
    marks = [str(found.get(mark, "")) for mark in ("ETag", "etag", "LastModified", "mtime", "md5")]
    return int(found["size"]), zlib.crc32("|".join(marks).encode()), 0


def matching(pattern: str) -> list[str]:
    """The files that a pattern stands for, sorted; a name without wildcards stands for itself."""
    if not glob.has_magic(pattern):
        return [pattern]
    if not is_url(pattern):
        return sorted(glob.glob(pattern, recursive=True))
    system, name = _system(pattern)
    return sorted(system.unstrip_protocol(found) for found in system.glob(name))


def join(folder: str, *names: str) -> str:
    """A path below a folder."""
    return (
        "/".join([folder.rstrip("/"), *names]) if is_url(folder) else os.path.join(folder, *names)
    )


def listed(folder: str) -> list[str]:
    """Names in a folder; none if it does not exist."""
    try:
        if not is_url(folder):
            return sorted(os.listdir(folder))
        system, name = _system(folder)
        found = system.ls(name, detail=False)
    except FileNotFoundError:
        return []
    return sorted(path.rstrip("/").rpartition("/")[2] for path in found)


def make_folder(folder: str) -> None:
    """Make a folder and those above it, where the store knows such a thing."""
    if is_url(folder):
        system, name = _system(folder)
        system.makedirs(name, exist_ok=True)
    else:
        os.makedirs(folder, exist_ok=True)


def remove(path: str) -> None:
    """Remove a file, or a folder with all that it holds; nothing happens if it is not there."""
    if is_url(path):
        system, name = _system(path)
        if system.exists(name):
            system.rm(name, recursive=True)
    elif os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.exists(path):
        os.remove(path)


def write(path: str, data: bytes) -> None:
    """Write a small file."""
    if is_url(path):
        system, name = _system(path)
        system.pipe_file(name, data)
    else:
        with open(path, "wb") as file:
            file.write(data)


def publish(made: str, path: str) -> None:
    """Give a finished local file its place, at once and as a whole, in that of an earlier one.

    Args:
        made: The file, for a local path on the same disk.
        path: Where it goes.
    """
    if not is_url(path):
        os.replace(made, path)
        return
    system, name = _system(path)
    # Stores show an object when it is complete; file systems such as HDFS while it is written.
    draft = f"{name}.{os.path.basename(os.path.dirname(made))}.part"
    system.put_file(made, draft)
    if system.exists(name):
        system.rm(name)
    system.mv(draft, name)
    os.remove(made)


def _system(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the name of the file there."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise OptionError(
            f"{url}: fsspec is needed for a URL; pip install fsspec and the driver of its store, "
            "such as s3fs or gcsfs"
        ) from None
    try:
        system, name = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise OptionError(f"{url}: {error}") from None
    return system, name


def check_exists(path: str) -> None:
    """Raise `DumpError` where there is nothing of this name, before anything is made of it."""
    try:
        if not is_url(path):
            os.stat(path)
    except OSError as error:
        raise DumpError(path, f"cannot be read: {error.strerror}") from error
