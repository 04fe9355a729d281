"""Access to files by path or by URL: on a disk, on a web server or in an object store.

A path names a local file. urllib3 reads files of web servers (`https://`, `http://`), and fsspec
opens other URLs (`s3://`, `gs://`, `hdfs://`, and any other with a driver). Each library is
imported when it is first needed.
"""

from __future__ import annotations

import glob
import os
import shutil
import zlib
from contextlib import nullcontext
from difflib import get_close_matches
from hashlib import blake2b
from typing import Any, BinaryIO, NamedTuple, cast

from so2docs.dump.remote import RemoteFile, is_http, open_http, open_store_file
from so2docs.errors import (
    DumpError,
    DumpNotFoundError,
    OptionError,
    OutputError,
    OutputNotFoundError,
)

_SHOWN = 5
_SAMPLES = 16
_SAMPLE_BYTES = 4096


class FileIdentity(NamedTuple):
    """The identity of a file, to detect that the file was changed or replaced.

    Attributes:
        size: Size in bytes.
        modified: Modification time in ns; for a URL, a checksum of the version that the server
            states, or 0 if it states none.
        device: Number of the device; 0 in a store.
        inode: Number of the file on the device; 0 in a store.
    """

    size: int = 0
    modified: int = 0
    device: int = 0
    inode: int = 0


NO_FILE = FileIdentity()
"""The identity of a source that can be read only once."""


def is_url(path: str) -> bool:
    """Whether a path is a URL."""
    return "://" in path


def open_file(path: str) -> BinaryIO:
    """Open a file for reading at any position; only reads at the end return fewer bytes."""
    if not is_url(path):
        return open(path, "rb")
    if is_http(path):
        return cast(BinaryIO, open_http(path))
    system, name = _system(path)
    return cast(BinaryIO, open_store_file(system.open(name, "rb", cache_type="none")))


def identify(path: str, file: BinaryIO | None = None) -> FileIdentity:
    """Return the identity of `file` if it is given, otherwise that of the file at `path`.

    Raises:
        OSError: The file does not exist, or cannot be read.
        DumpError: The server of a URL does not send the file.
    """
    if not is_url(path):
        status = os.stat(path) if file is None else os.fstat(file.fileno())
        return FileIdentity(status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino)
    if is_http(path):
        # If the file is open, each range request has already checked the identity.
        with nullcontext(file) if isinstance(file, RemoteFile) else open_http(path) as remote:
            return FileIdentity(remote.size, remote.identity)
    system, name = _system(path)
    info = system.info(name)
    marks = [str(info.get(mark, "")) for mark in ("ETag", "etag", "LastModified", "mtime", "md5")]
    return FileIdentity(int(info["size"]), zlib.crc32("|".join(marks).encode()))


def sample_hash(file: BinaryIO, size: int) -> str:
    """Return a hash of 4 KiB at each of 17 positions of a file."""
    digest = blake2b(digest_size=16)
    for part in range(_SAMPLES + 1):
        file.seek(max(0, size * part // _SAMPLES - _SAMPLE_BYTES))
        digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()


def is_pattern(path: str) -> bool:
    """Whether a path has wildcards; the query of a file on a web server has none."""
    return glob.has_magic(path) and not is_http(path)


def expand_pattern(pattern: str) -> list[str]:
    """List the files that match a pattern, sorted; names without wildcards match themselves."""
    if not is_pattern(pattern):
        return [pattern]
    if not is_url(pattern):
        return sorted(glob.glob(pattern, recursive=True))
    system, name = _system(pattern)
    return sorted(system.unstrip_protocol(path) for path in system.glob(name))


def join(folder: str, *names: str) -> str:
    """Join a folder, given as a path or URL, and names below it."""
    return (
        "/".join([folder.rstrip("/"), *names]) if is_url(folder) else os.path.join(folder, *names)
    )


def list_folder(folder: str) -> list[str]:
    """List the names in a folder; empty if it does not exist, or is on a web server."""
    if is_http(folder):
        return []
    try:
        if not is_url(folder):
            return sorted(os.listdir(folder))
        system, name = _system(folder)
        paths = system.ls(name, detail=False)
    except FileNotFoundError:
        return []
    return sorted(path.rstrip("/").rpartition("/")[2] for path in paths)


def make_folder(folder: str) -> None:
    """Create a folder and its parents, if the store has folders."""
    if is_url(folder):
        system, name = _system(folder)
        system.makedirs(name, exist_ok=True)
    else:
        os.makedirs(folder, exist_ok=True)


def remove(path: str) -> None:
    """Remove a file, or a folder with its content, if it exists."""
    if is_url(path):
        system, name = _system(path)
        if system.exists(name):
            system.rm(name, recursive=True)
    elif os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.exists(path):
        os.remove(path)


def write(path: str, data: bytes) -> None:
    """Write a small file to a path or URL, replacing an earlier file."""
    if is_url(path):
        system, name = _system(path)
        system.pipe_file(name, data)
    else:
        with open(path, "wb") as file:
            file.write(data)


def publish(source: str, path: str) -> None:
    """Move a finished local file to its path, replacing an earlier file; atomic on a disk."""
    if not is_url(path):
        os.replace(source, path)
        return
    system, name = _system(path)
    # Upload under a temporary name, because file systems such as HDFS show incomplete files; object
    # stores do not.
    draft = f"{name}.{os.path.basename(os.path.dirname(source))}.part"
    system.put_file(source, draft)
    if system.exists(name):
        system.rm(name)
    system.mv(draft, name)
    os.remove(source)


def _system(url: str) -> tuple[Any, str]:
    """Return the fsspec file system of a URL, and the name of the file in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise OptionError(
            f"{url}: reading a URL needs fsspec: pip install fsspec and the driver for its store, "
            "such as s3fs or gcsfs"
        ) from None
    try:
        system, name = url_to_fs(url)
    except (ImportError, ValueError) as error:
        scheme = url.partition("://")[0]
        raise OptionError(
            f"{url}: cannot be read, since {scheme}:// needs a driver for fsspec ({error}); "
            "install it, or download the file first"
        ) from None
    # Drivers cache listings, which become stale when other processes write files.
    system.invalidate_cache()
    return system, name


def check_exists(path: str) -> None:
    """Raise `DumpError` if a path does not exist; URLs are not checked."""
    try:
        if not is_url(path):
            os.stat(path)
    except OSError as error:
        raise unreadable_dump(path, error) from error


def unreadable_dump(path: str, error: Exception) -> DumpError:
    """Make the error for an unreadable dump or file of a dump, with advice."""
    if isinstance(error, DumpError):
        return error
    kind = DumpNotFoundError if isinstance(error, FileNotFoundError) else DumpError
    return kind(path, _unreadable(path, error))


def unreadable_output(path: str, error: Exception) -> OutputError:
    """Make the error for an unreadable output or side file."""
    if is_url(path):
        return OutputError(f"{path}: is a URL, but outputs are read from files; download it first")
    kind = OutputNotFoundError if isinstance(error, FileNotFoundError) else OutputError
    return kind(f"{path}: {_unreadable(path, error)}")


def _unreadable(path: str, error: Exception) -> str:
    reason = getattr(error, "strerror", None) or error
    return f"cannot be read: {reason}; {_advice(path, error)}"


def _advice(path: str, error: Exception) -> str:
    if is_url(path):
        return "check the URL and your access to its store"
    if not path:
        return "the name is empty, perhaps from an unset variable; give a file"
    if path.startswith("~"):
        return "write ~ without quotes, so that the shell replaces it with your home folder"
    # If a parent is a file, Windows raises FileNotFoundError, other systems NotADirectoryError.
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        existing = _existing_part(path)
        return f"{existing} is a file, not a folder" if os.path.isfile(existing) else _nearest(path)
    kinds: dict[type[Exception], str] = {
        PermissionError: "ask its owner to let you read it",
        IsADirectoryError: "name a file in it",
    }
    return kinds.get(type(error), "check its disk, then try again")


def _nearest(path: str) -> str:
    """Advise on a path that does not exist: a broken link, a missing folder, or similar names."""
    if os.path.islink(path):
        return f"it is a link to {os.readlink(path)}, which does not exist"
    folder, name = os.path.split(path.rstrip("/"))
    existing = _existing_part(path)
    if existing != (folder or "."):
        missing = os.path.relpath(path, existing).split(os.sep)[0]
        return f"{missing} does not exist in {_called(existing)}"
    try:
        names = sorted(entry for entry in os.listdir(existing) if not entry.startswith("."))
    except OSError:
        return f"check the name in {_called(existing)}"
    by_case = {entry.lower(): entry for entry in reversed(names)}
    if near := get_close_matches(name.lower(), by_case, n=3, cutoff=0.75):
        alike = " or ".join(os.path.join(folder, by_case[entry]) for entry in near)
        return f"did you mean {alike}?"
    if not names:
        return f"there is nothing in {_called(existing)}"
    remainder = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"{_called(existing)} holds {', '.join(names[:_SHOWN])}{remainder}"


def _existing_part(path: str) -> str:
    """Find the longest part of a path that exists."""
    while path and not os.path.exists(path):
        path = os.path.dirname(path.rstrip("/"))
    return path or "."


def _called(folder: str) -> str:
    return "this folder" if folder == "." else folder
