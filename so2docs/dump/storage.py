"""Reading files by path or by URL: on a disk, on a web server or in an object store.

A path names a local file. Extensions read files with URLs: one for web servers (`https://`,
`http://`), and one for all other stores (`s3://`, `gs://`, `hdfs://`).
"""

from __future__ import annotations

import io
import os
from hashlib import blake2b
from typing import Any, BinaryIO, NamedTuple, cast

from so2docs.errors import (
    ChangedDumpError,
    DumpError,
    DumpNotFoundError,
    OptionError,
    OutputError,
    OutputNotFoundError,
)
from so2docs.registry import find_hook

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


def is_http(path: str) -> bool:
    """Whether a path is the URL of a file on a web server."""
    return path.lower().startswith(("http://", "https://"))


def _remote() -> Any:
    """Return the functions that read remote files, which are an extension."""
    return find_hook("remote files")


def check_source(source: object, name: str, several: str = "") -> None:
    """Reject an argument that is neither a path nor an open binary file."""
    if isinstance(source, io.TextIOBase):
        raise OptionError(f"{name} is open as text; open it in binary mode: open(path, 'rb')")
    if isinstance(source, str | os.PathLike) or callable(getattr(source, "read", None)):
        return
    advice = f"; {several}" if several and isinstance(source, list | tuple | set) else ""
    raise OptionError(f"{name} is {source!r}; it must be a path or an open binary file{advice}")


def open_file(path: str) -> BinaryIO:
    """Open a file for reading at any position; only reads at the end return fewer bytes."""
    if not is_url(path):
        return open(path, "rb")
    return cast(BinaryIO, _remote().open_file(path))


def identify(path: str, file: BinaryIO | None = None) -> FileIdentity:
    """Return the identity of `file` if it is given, otherwise that of the file at `path`."""
    if not is_url(path):
        status = os.stat(path) if file is None else os.fstat(file.fileno())
        return FileIdentity(status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino)
    return FileIdentity(*_remote().identify(path, file))


def check_unchanged(
    name: str, path: str, identity: FileIdentity, file: BinaryIO | None = None
) -> None:
    """Raise `ChangedDumpError` if the file has changed; `file` is the open file, if any."""
    try:
        current = identify(path, file)
    except OSError as error:
        raise ChangedDumpError(
            name,
            f"disappeared while being read ({error.strerror or 'not found'})",
            advice="make it available, then run again",
        ) from None
    if current != identity:
        sizes = f"{identity.size:,} bytes before, {current.size:,} now"
        raise changed_error(name, f"changed while being read ({sizes})")


def changed_error(name: str, problem: str) -> ChangedDumpError:
    """Make the error for a dump that changed before or while it was read."""
    return ChangedDumpError(name, problem, advice="wait until it is complete, then run again")


def sample_hash(file: BinaryIO, size: int) -> str:
    """Return a hash of 4 KiB at each of 17 positions of a file."""
    digest = blake2b(digest_size=16)
    for part in range(_SAMPLES + 1):
        file.seek(max(0, size * part // _SAMPLES - _SAMPLE_BYTES))
        digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()


def list_folder(folder: str) -> list[str]:
    """List the names in a folder; empty if it does not exist, or is on a web server."""
    try:
        names = _remote().list_folder(folder) if is_url(folder) else os.listdir(folder)
    except FileNotFoundError:
        return []
    return sorted(names)


def unreadable_dump(path: str, error: Exception) -> DumpError:
    """Make the error for an unreadable dump or file of a dump."""
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
    if is_url(path):
        advice = "check the URL and your access to its store"
    elif not path:
        advice = "the name is empty, perhaps from an unset variable; give a file"
    elif isinstance(error, IsADirectoryError):
        return "is a folder; give a file in it"
    elif isinstance(error, FileNotFoundError | NotADirectoryError):
        advice = "check the name"
    else:
        advice = "check its permissions and its disk, then try again"
    return f"cannot be read: {reason}; {advice}"
